/* Describes the structs that are sent, and writes and reads them by these descriptions. */
#include "driver/host/wire.h"

enum { CARDS_MAX = 1024, ITEMS_MAX = 1 << 20, XIDS_MAX = 1024 };
#define XIDS_AS_BEFORE (-1)
/* No host has been up for a million years. */
#define TIME_MOST (INT64_MAX / 4)

enum field_kind {
	FIELD_PLAIN,
	FIELD_TEXT, /* an array of char */
	FIELD_BOOL,
	FIELD_LESS, /* 32 bits, less than `most` */
	FIELD_TIME, /* 64 bits, of either sign, and plausible */
};

struct field {
	size_t offset, size;
	enum field_kind kind;
	unsigned most;
};

struct wire_form {
	const struct field *fields;
	size_t n;
};

/* clang-format off */
#define FIELD(type, member, kind, most) \
	{ offsetof(struct type, member), sizeof(((struct type *)0)->member), FIELD_##kind, most }
#define PLAIN(type, member) FIELD(type, member, PLAIN, 0)
#define TEXT(type, member) FIELD(type, member, TEXT, 0)
#define BOOL(type, member) FIELD(type, member, BOOL, 0)
#define TIME(type, member) FIELD(type, member, TIME, 0)
#define LESS(type, member, most) FIELD(type, member, LESS, most)
#define FIELDS(name, ...) static const struct field name##_fields[] = { __VA_ARGS__ };
#define FIELDS_OF(name) { name##_fields, sizeof(name##_fields) / sizeof(struct field) }
#define FORM(name, ...) FIELDS(name, __VA_ARGS__) const struct wire_form name = FIELDS_OF(name);
#define OWN_FORM(name, ...) \
	FIELDS(name, __VA_ARGS__) static const struct wire_form name = FIELDS_OF(name);

OWN_FORM(wire_error,
	PLAIN(err, code), PLAIN(err, number), TEXT(err, text))

FORM(wire_avoid,
	PLAIN(source_avoid, index), TEXT(source_avoid, pci))

FORM(wire_id,
	TEXT(card_id, uuid), TEXT(card_id, name), TEXT(card_id, parent_uuid),
	TEXT(card_id, pci), PLAIN(card_id, index), PLAIN(card_id, mig_index),
	PLAIN(card_id, gpu_instance), PLAIN(card_id, compute_instance),
	PLAIN(card_id, mem_total_bytes))

FORM(wire_asked,
	BOOL(round, drain), BOOL(round, shared), BOOL(round, look_all), BOOL(round, energy),
	PLAIN(round, patrol))

FORM(wire_made,
	BOOL(round, drain), BOOL(round, shared), BOOL(round, look_all), BOOL(round, energy),
	BOOL(round, drained), BOOL(round, glanced), BOOL(round, looks), BOOL(round, due),
	TIME(round, begun_us), TIME(round, ended_us), TIME(round, begun_ms),
	TIME(round, ended_ms), TIME(round, energy_ms), TIME(round, cost_us),
	TIME(round, shared_cost_us), TIME(round, energy_cost_us))

FORM(wire_wanted,
	BOOL(round_card, want), BOOL(round_card, shared), PLAIN(round_card, mem_bytes))

FORM(wire_done,
	BOOL(round_card, want), BOOL(round_card, drained), BOOL(round_card, looked))

FORM(wire_slow,
	PLAIN(round_card, temperature_c), PLAIN(round_card, power_limit_w))

OWN_FORM(wire_head,
	TEXT(source, driver_version), TEXT(source, hostname),
	PLAIN(source, sample_period_us), PLAIN(source, code), BOOL(source, incomplete),
	PLAIN(source, ring_us), PLAIN(source, memory_cost_us), PLAIN(source, energy_cost_us))

/* What seldom changes: the identity, and these. */
OWN_FORM(wire_kept,
	TEXT(card_reading, source), BOOL(card_reading, own_processes))

OWN_FORM(wire_state,
	LESS(card_reading, status, CARD_STATUS_COUNT), PLAIN(card_reading, code),
	BOOL(card_reading, gone), LESS(card_reading, util_kind, UTIL_UNKNOWN + 1),
	PLAIN(card_reading, n_lost), BOOL(card_reading, process_util_known),
	LESS(card_reading, n_engines, ENGINE_COUNT + 1), BOOL(card_reading, stranger),
	PLAIN(card_reading, sm_active_pct), PLAIN(card_reading, power_mw),
	PLAIN(card_reading, energy_mj), BOOL(card_reading, processes_known),
	PLAIN(card_reading, mem_used_bytes), PLAIN(card_reading, mem_reserved_bytes),
	BOOL(card_reading, mem_includes_reserved), BOOL(card_reading, mem_is_sum))

static const struct array {
	size_t items, n; /* offsets of the pointer and of the count */
	size_t size;	 /* of an item */
	bool looked;	 /* read by looks; else by drains */
} arrays[WIRE_ARRAYS] = {
#define ARRAY(items_, n_, type, looked_) \
	{ offsetof(struct card_reading, items_), offsetof(struct card_reading, n_), \
	  sizeof(struct type), looked_ },
	ARRAY(samples, n_samples, util_sample, false)
	ARRAY(process_utils, n_process_utils, process_util, false)
	ARRAY(parts, n_parts, process_part, false)
	ARRAY(ended, n_ended, ended_process, false)
	ARRAY(processes, n_processes, card_process, true)
};
/* clang-format on */
_Static_assert(sizeof(void *) != 8 || sizeof(struct card_reading) == 544,
	"a new member of a reading must cross, too: see the tables");

/* Which parts of a card follow; bits from PART_ARRAYS on are its arrays. */
enum { PART_IDENTITY = 1, PART_STATE = 2, PART_ARRAYS = 4 };
_Static_assert((PART_ARRAYS << WIRE_ARRAYS) - 1 <= UINT8_MAX, "the parts are sent as a byte");

void wire_write(struct str *out, const void *src, size_t size)
{
	str_add_bytes(out, src, size);
}

void wire_read(struct wire *in, void *dst, size_t size)
{
	in->bad |= size > in->left;
	if (in->bad) {
		memset(dst, 0, size);
		return;
	}
	memcpy(dst, in->bytes, size);
	in->bytes += size;
	in->left -= size;
}

void wire_write_number(struct str *out, int64_t number)
{
	wire_write(out, &number, sizeof(number));
}

int64_t wire_read_number(struct wire *in, int64_t least, int64_t most)
{
	int64_t number;
	wire_read(in, &number, sizeof(number));
	in->bad |= number < least || number > most;
	return in->bad ? least : number;
}

void wire_write_text(struct str *out, const char *text)
{
	wire_write_number(out, (int64_t)strlen(text));
	str_add(out, text);
}

void wire_read_text(struct wire *in, char *dst, size_t cap)
{
	size_t len = (size_t)wire_read_number(in, 0, (int64_t)in->left);
	in->bad |= len > in->left;
	dst[0] = '\0';
	if (in->bad)
		return;
	str_escape(dst, cap, in->bytes, strnlen(in->bytes, len));
	in->bytes += len;
	in->left -= len;
}

void wire_write_form(struct str *out, const void *from, const struct wire_form *form)
{
	for (size_t i = 0; i < form->n; i++) {
		const struct field *f = &form->fields[i];
		const char *at = (const char *)from + f->offset;
		if (f->kind == FIELD_TEXT)
			wire_write_text(out, at);
		else
			wire_write(out, at, f->size);
	}
}

static bool is_valid(const struct field *f, const char *bytes)
{
	unsigned number = 0;
	int64_t time = 0;
	if (f->kind == FIELD_BOOL)
		return (unsigned char)bytes[0] <= 1;
	if (f->kind == FIELD_LESS)
		memcpy(&number, bytes, sizeof(number));
	if (f->kind == FIELD_TIME)
		memcpy(&time, bytes, sizeof(time));
	return (f->kind != FIELD_LESS || number < f->most) && time >= -TIME_MOST &&
	       time <= TIME_MOST;
}

void wire_read_form(struct wire *in, void *to, const struct wire_form *form)
{
	for (size_t i = 0; i < form->n && !in->bad; i++) {
		const struct field *f = &form->fields[i];
		char *at = (char *)to + f->offset;
		if (f->kind == FIELD_TEXT) {
			wire_read_text(in, at, f->size);
			continue;
		}
		in->bad |= f->size > in->left || !is_valid(f, in->bytes);
		if (!in->bad)
			wire_read(in, at, f->size);
	}
}

void wire_write_err(struct str *out, const struct err *e)
{
	wire_write_form(out, e, &wire_error);
}

int wire_read_err(struct wire *in, struct err *e)
{
	*e = (struct err){ 0 };
	wire_read_form(in, e, &wire_error);
	in->bad |= e->code < ERR_NOTHING || e->code > 0;
	return in->bad ? 0 : e->code;
}

static bool differ(const void *a, const void *b, const struct wire_form *form)
{
	for (size_t i = 0; i < form->n; i++) {
		size_t offset = form->fields[i].offset;
		if (memcmp((const char *)a + offset, (const char *)b + offset,
			    form->fields[i].size) != 0)
			return true;
	}
	return false;
}

static size_t count_of(const struct card_reading *r, const struct array *a)
{
	size_t n;
	memcpy(&n, (const char *)r + a->n, sizeof(n));
	return n;
}

static unsigned parts_of(
	const struct card_reading *r, const struct card_reading *was, unsigned fresh)
{
	unsigned parts = 0;
	if (!was)
		return ~0U;
	if (memcmp(r, was, sizeof(*r)) == 0)
		return fresh;
	if (differ(&r->id, &was->id, &wire_id) || differ(r, was, &wire_kept))
		parts |= PART_IDENTITY;
	if (differ(r, was, &wire_state))
		parts |= PART_STATE;
	for (unsigned i = 0; i < WIRE_ARRAYS; i++)
		if (count_of(r, &arrays[i]) != count_of(was, &arrays[i]))
			parts |= PART_ARRAYS << i;
	return parts | fresh;
}

static void write_card(struct str *out, const struct card_reading *r, unsigned parts)
{
	unsigned char byte = parts & ((PART_ARRAYS << WIRE_ARRAYS) - 1);
	wire_write(out, &byte, 1);
	if (parts & PART_IDENTITY) {
		wire_write_form(out, &r->id, &wire_id);
		wire_write_form(out, r, &wire_kept);
	}
	if (parts & PART_STATE)
		wire_write_form(out, r, &wire_state);
	for (unsigned i = 0; i < WIRE_ARRAYS; i++)
		if (parts & PART_ARRAYS << i) {
			const struct array *a = &arrays[i];
			const char *items;
			size_t n = count_of(r, a);
			memcpy(&items, (const char *)r + a->items, sizeof(items));
			wire_write_number(out, (int64_t)n);
			if (n)
				wire_write(out, items, n * a->size);
		}
}

static unsigned fresh_parts(const struct wire_fresh *fresh, size_t card)
{
	bool drained = fresh->drained && (!fresh->drained_cards || fresh->drained_cards[card]);
	bool looked = fresh->looked && (!fresh->looked_cards || fresh->looked_cards[card]);
	unsigned parts = 0;
	for (unsigned i = 0; i < WIRE_ARRAYS; i++)
		if (arrays[i].looked ? looked : drained)
			parts |= PART_ARRAYS << i;
	return parts;
}

void wire_write_source(struct str *out, const struct source *s, struct wire_sent *sent,
	const struct wire_fresh *fresh)
{
	unsigned char head = !sent->n || differ(s, &sent->head, &wire_head);
	wire_write(out, &head, 1);
	if (head)
		wire_write_form(out, s, &wire_head);
	sent->head = *s;
	wire_write_number(out, (int64_t)s->n_cards);
	for (size_t i = 0; i < s->n_cards; i++) {
		bool known = i < sent->n;
		unsigned parts = parts_of(&s->cards[i], known ? &sent->cards[i] : NULL,
			known ? fresh_parts(fresh, i) : 0);
		write_card(out, &s->cards[i], parts);
		if (!known && !array_one_more(&sent->cards, sent->n)) {
			out->failed = true;
			return;
		}
		sent->cards[i] = s->cards[i];
		sent->n += !known;
	}
	wire_write_number(out, fresh->drained ? (int64_t)s->n_xids : XIDS_AS_BEFORE);
	if (fresh->drained && s->n_xids)
		wire_write(out, s->xids, s->n_xids * sizeof(*s->xids));
}

void wire_sent_finish(struct wire_sent *sent)
{
	free(sent->cards);
	*sent = (struct wire_sent){ 0 };
}

static void read_array(
	struct wire *in, struct card_reading *r, struct mirror_arrays *m, unsigned i)
{
	const struct array *a = &arrays[i];
	size_t n = (size_t)wire_read_number(in, 0, ITEMS_MAX);
	in->bad |= n * a->size > in->left;
	if (in->bad || !array_reserve_sized(&m->items[i], &m->cap[i], n, a->size)) {
		in->bad = true;
		return;
	}
	if (n)
		wire_read(in, m->items[i], n * a->size);
	memcpy((char *)r + a->items, &m->items[i], sizeof(m->items[i]));
	memcpy((char *)r + a->n, &n, sizeof(n));
}

static void read_card(struct wire *in, struct card_reading *r, struct mirror_arrays *m)
{
	unsigned char parts = 0;
	wire_read(in, &parts, 1);
	if (parts & PART_IDENTITY) {
		wire_read_form(in, &r->id, &wire_id);
		wire_read_form(in, r, &wire_kept);
	}
	if (parts & PART_STATE)
		wire_read_form(in, r, &wire_state);
	for (unsigned i = 0; i < WIRE_ARRAYS && !in->bad; i++)
		if (parts & PART_ARRAYS << i)
			read_array(in, r, m, i);
}

static bool add_card(struct mirror *m)
{
	size_t n = m->source.n_cards;
	if (!array_one_more(&m->source.cards, n) || !array_one_more(&m->arrays, n))
		return false;
	m->source.cards[n] = (struct card_reading){ .mem_used_bytes = UNKNOWN_BYTES };
	m->arrays[n] = (struct mirror_arrays){ 0 };
	m->source.n_cards++;
	return true;
}

static void read_xids(struct mirror *m, struct wire *in)
{
	int64_t n = wire_read_number(in, XIDS_AS_BEFORE, XIDS_MAX);
	if (n == XIDS_AS_BEFORE)
		return;
	m->source.n_xids = 0;
	if (!array_reserve(&m->xids, &m->cap_xids, (size_t)n)) {
		in->bad = true;
		return;
	}
	m->source.xids = m->xids;
	for (int64_t i = 0; i < n; i++) {
		wire_read(in, &m->xids[i], sizeof(m->xids[i]));
		in->bad |= m->xids[i].card >= m->source.n_cards;
		if (in->bad)
			return;
		m->source.n_xids++;
	}
}

bool wire_mirror_read(struct mirror *m, struct wire *in)
{
	unsigned char head = 0;
	wire_read(in, &head, 1);
	if (head)
		wire_read_form(in, &m->source, &wire_head);
	/* A source never removes a card. */
	size_t n = (size_t)wire_read_number(in, (int64_t)m->source.n_cards, CARDS_MAX);
	for (size_t i = 0; i < n && !in->bad; i++) {
		if (i == m->source.n_cards && !add_card(m))
			in->bad = true;
		else
			read_card(in, &m->source.cards[i], &m->arrays[i]);
	}
	if (!in->bad)
		read_xids(m, in);
	return !in->bad;
}

void wire_mirror_finish(struct mirror *m)
{
	for (size_t i = 0; i < m->source.n_cards; i++)
		for (size_t k = 0; k < WIRE_ARRAYS; k++)
			free(m->arrays[i].items[k]);
	free(m->arrays);
	free(m->source.cards);
	free(m->xids);
	*m = (struct mirror){ 0 };
}
