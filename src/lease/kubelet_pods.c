/* Decodes what the kubelet says about devices: api.proto of pod-resources, version 1. */
#include "lease/kubelet_pods.h"

enum { SPACE_MAX = 63, POD_MAX = 253, CARDS_MAX = 256 };

/* Bytes that are left of a message. */
struct wire {
	const char *at;
	size_t len;
	bool bad; /* they are no message */
};

/* A field; only one of bytes (kind 2) has any. */
struct field {
	uint64_t number;
	unsigned kind;
	struct wire bytes;
};

static uint64_t take_varint(struct wire *w)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64 && w->len; shift += 7) {
		unsigned char byte = (unsigned char)*w->at;
		w->at++;
		w->len--;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	w->bad = true;
	return 0;
}

/* Takes the next field; false: there is none, or w->bad. */
static bool next_field(struct wire *w, struct field *f)
{
	if (!w->len || w->bad)
		return false;
	uint64_t key = take_varint(w), n = 0;
	*f = (struct field){ .number = key >> 3, .kind = (unsigned)(key & 7) };
	if (f->kind == 0)
		take_varint(w);
	else if (f->kind == 1 || f->kind == 5)
		n = f->kind == 1 ? 8 : 4;
	else if (f->kind == 2)
		n = take_varint(w);
	else
		w->bad = true;
	if (w->bad || n > w->len) {
		w->bad = true;
		return false;
	}
	f->bytes = (struct wire){ .at = w->at, .len = (size_t)n };
	w->at += n;
	w->len -= (size_t)n;
	return true;
}

/* A pod while it is read. */
struct pod {
	char space[SPACE_MAX + 1], name[POD_MAX + 1];
	struct str cards;
	size_t n_cards;
	bool shared, numbered;
};

/* Adds a card, once. */
static void add_card(struct pod *p, const char *card)
{
	const char *list = str_text(&p->cards);
	char known[UUID_CAP];
	while (lease_file_card(&list, known))
		if (strcmp(known, card) == 0)
			return;
	if (p->n_cards++ < CARDS_MAX)
		str_addf(&p->cards, "%s%s", p->cards.len ? "," : "", card);
}

/* "nvidia0", "nvidia0/gi1", "nvidia0/vgpu2", "nvidia0/gi1/vgpu2" of Google's plugin: the number
 * of a device file, an instance on it, a part of it. Which instance it is is not known here:
 * "0.1" is the number of no card. */
static void add_numbered(struct pod *p, const char *id)
{
	unsigned card = 0, instance = 0;
	char number[UUID_CAP];
	int used = 0;
	if (sscanf(id, "nvidia%4u%n", &card, &used) != 1 || (id[used] && id[used] != '/'))
		return;
	bool has_instance = sscanf(id + used, "/gi%4u", &instance) == 1;
	snprintf(number, sizeof(number), has_instance ? "%u.%u" : "%u", card, instance);
	p->shared |= strstr(id + used, "/vgpu") != NULL;
	p->numbered = true;
	add_card(p, number);
}

/* A device of any plugin; those that are not cards are left out. "ID::3" is one of several
 * parts of a card: time slices, or clients of MPS. */
static void add_device(struct pod *p, struct wire *bytes)
{
	char id[UUID_CAP + 16], card[UUID_CAP];
	if (bytes->len >= sizeof(id) || memchr(bytes->at, '\0', bytes->len) ||
		memchr(bytes->at, ',', bytes->len))
		return;
	snprintf(id, sizeof(id), "%.*s", (int)bytes->len, bytes->at);
	const char *list = id;
	char *part = strstr(id, "::");
	if (strncmp(id, "nvidia", 6) == 0) {
		if (part)
			*part = '\0';
		p->shared |= part != NULL;
		add_numbered(p, id);
	} else if ((strncmp(id, "GPU-", 4) == 0 || strncmp(id, "MIG-", 4) == 0) &&
		   lease_file_card(&list, card) && !*list) {
		p->shared |= part != NULL;
		add_card(p, card);
	}
}

/* Calls `take` with the bytes of each field of that number. */
static void each(struct pod *p, struct wire *w, uint64_t number,
	void (*take)(struct pod *p, struct wire *bytes))
{
	struct field f;
	while (next_field(w, &f))
		if (f.number == number && f.kind == 2) {
			take(p, &f.bytes);
			w->bad |= f.bytes.bad;
		}
}

static void take_devices(struct pod *p, struct wire *bytes)
{
	each(p, bytes, 2, add_device); /* ContainerDevices.device_ids */
}

/* Copies a name as Kubernetes allows it; "": it is none. */
static void take_name(char *dst, size_t cap, const struct wire *bytes)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
	*dst = '\0';
	if (bytes->len >= cap || memchr(bytes->at, '\0', bytes->len))
		return;
	snprintf(dst, cap, "%.*s", (int)bytes->len, bytes->at);
	if (dst[strspn(dst, allowed)])
		*dst = '\0';
}

static bool take_pod(const struct kubelet_pods *k, struct wire *bytes)
{
	struct pod p = { .space = "" };
	struct field f;
	while (next_field(bytes, &f)) {
		if (f.kind != 2)
			continue;
		if (f.number == 1)
			take_name(p.name, sizeof(p.name), &f.bytes);
		else if (f.number == 2)
			take_name(p.space, sizeof(p.space), &f.bytes);
		else if (f.number == 3)
			each(&p, &f.bytes, 2, take_devices); /* ContainerResources.devices */
		bytes->bad |= f.bytes.bad;
	}
	char id[SPACE_MAX + POD_MAX + 2];
	snprintf(id, sizeof(id), "%s/%s", p.space, p.name);
	struct lease_file lease = LEASE_FILE_NONE;
	lease.id = id;
	lease.user = p.space;
	lease.cards = str_text(&p.cards);
	lease.numbering = p.numbered ? "minor" : NULL;
	lease.share = p.shared ? 0 : 1;
	lease.watched = "yes";
	if (!bytes->bad && *p.space && *p.name && p.n_cards && !p.cards.failed)
		k->take(k->context, &lease);
	str_finish(&p.cards);
	return !bytes->bad;
}

int kubelet_pods_decode(
	const struct kubelet_pods *k, const char *bytes, size_t len, struct err *e)
{
	struct wire all = { .at = bytes, .len = len };
	struct field f;
	bool whole = true;
	while (whole && next_field(&all, &f))
		if (f.number == 1 && f.kind == 2)
			whole = take_pod(k, &f.bytes);
	return whole && !all.bad
		       ? 0
		       : err_set(e, ERR_WORLD, "the kubelet's answer is not a list of pods");
}
