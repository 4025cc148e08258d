/* Reads CUDA_VISIBLE_DEVICES as CUDA does. */
#include "track/visible.h"

#include "base/piece.h"

/* The UUID of the card itself, also for an instance on it. */
static const char *physical_uuid(const struct visible *v, size_t i)
{
	const struct card_id *id = &v->cards[i].id;
	return id->mig_index >= 0 ? id->parent_uuid : id->uuid;
}

static bool same_card(const struct visible *v, size_t a, size_t b)
{
	return strcmp(physical_uuid(v, a), physical_uuid(v, b)) == 0;
}

/* Whether no earlier row is of the same card. */
static bool is_first(const struct visible *v, size_t i)
{
	size_t k = 0;
	while (!same_card(v, k, i))
		k++;
	return k == i;
}

static bool is_prefix(struct piece w, const char *of)
{
	return w.len <= strlen(of) && memcmp(w.at, of, w.len) == 0;
}

/* Returns the card with this number, or v->n. */
static size_t find_number(const struct visible *v, struct piece w)
{
	size_t number = 0;
	for (size_t k = 0; k < w.len; k++) {
		if (w.at[k] < '0' || w.at[k] > '9' || number > v->n)
			return v->n;
		number = 10 * number + (size_t)(w.at[k] - '0');
	}
	for (size_t i = 0; i < v->n; i++)
		if (v->cards[i].status != CARD_STATUS_DENIED && is_first(v, i) && number-- == 0)
			return i;
	return v->n;
}

/* Returns the only card or MIG instance whose UUID begins like this, or v->n. */
static size_t find_uuid(const struct visible *v, struct piece w, bool instances)
{
	size_t found = v->n;
	for (size_t i = 0; i < v->n; i++) {
		const struct card_id *id = &v->cards[i].id;
		const char *uuid = instances ? id->uuid : physical_uuid(v, i);
		bool counts = instances ? id->mig_index >= 0 : is_first(v, i);
		if (!counts || !is_prefix(w, uuid))
			continue;
		if (w.len == strlen(uuid))
			return i;
		if (found < v->n)
			return v->n;
		found = i;
	}
	return found;
}

/* The older name of an instance: MIG-GPU-UUID/GI/CI. */
static size_t find_instance(const struct visible *v, struct piece w)
{
	char name[UUID_CAP + 64];
	for (size_t i = 0; i < v->n; i++) {
		const struct card_id *id = &v->cards[i].id;
		snprintf(name, sizeof(name), "MIG-%s/%d/%d", id->parent_uuid, id->gpu_instance,
			id->compute_instance);
		if (id->mig_index >= 0 && w.len == strlen(name) && is_prefix(w, name))
			return i;
	}
	return v->n;
}

/* Whether the word shows card `i`; *valid: it names a card at all. */
static bool shows(const struct visible *v, struct piece w, size_t i, bool *valid)
{
	bool mig = piece_is_like(w, "MIG-*");
	size_t found = v->n;
	if (w.len && w.at[0] >= '0' && w.at[0] <= '9')
		found = find_number(v, w);
	else if (piece_is_like(w, "MIG-GPU-*"))
		found = find_instance(v, w);
	else if (w.len)
		found = find_uuid(v, w, mig);
	*valid = found < v->n;
	return *valid && (mig ? found == i : same_card(v, found, i));
}

bool visible_has(const struct visible *v, size_t i)
{
	if (v->cards[i].status == CARD_STATUS_DENIED)
		return false;
	if (!v->list)
		return true;
	bool valid = true;
	for (const char *rest = v->list; valid;) {
		rest += strspn(rest, " \t");
		struct piece w = { rest, strcspn(rest, ", \t") };
		if (shows(v, w, i, &valid))
			return true;
		rest += w.len + strspn(rest + w.len, " \t");
		if (*rest != ',')
			return false;
		rest++;
	}
	return false;
}
