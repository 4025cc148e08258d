/* Follows the leases of the host: which ones begin, change, end and become unknown, and which
 * cards they cover. */
#include "record/watch_leases.h"

#include "record/watch.h"

bool watch_leases_is_used_by(const void *watch, uint32_t lease, uint32_t process)
{
	const struct watch *w = watch;
	return lease_is_used_by(&w->leases[lease].lease, &w->lives.entries[process].id);
}

/* Makes room for everything, so that a reading is taken completely or not at all. */
static int reserve(struct watch *w, const struct leases *all, struct err *e)
{
	bool ok = array_reserve(&w->leases, &w->cap_leases, w->n_leases + all->n) &&
		  array_reserve(&w->lease_at, &w->cap_lease_at, all->n);
	for (size_t i = 0; ok && i < w->n_cards; i++)
		ok = array_reserve(&w->cards[i].leases, &w->cards[i].cap_leases,
			w->cards[i].n_leases + all->n);
	return ok ? 0 : err_memory(e);
}

/* The moment of a change that was found now: half-way since the last reading. */
static int64_t changed_ms(const struct watch *w, int64_t now_ms)
{
	return w->leases_ms < 0 ? now_ms : w->leases_ms + (now_ms - w->leases_ms) / 2;
}

static void end_lease(struct lease_entry *entry, int64_t at_ms)
{
	entry->ended_ms = at_ms;
	entry->dirty = true;
}

/* Returns the number of a lease that goes on, or that of a new one. A job that was started
 * again has the same number, but has begun since the last reading. */
static uint32_t find_lease(struct watch *w, const struct lease *lease, int64_t now_ms)
{
	for (size_t i = 0; i < w->n_leases; i++) {
		struct lease_entry *entry = &w->leases[i];
		if (entry->ended_ms >= 0 || entry->lease.kind != lease->kind ||
			strcmp(entry->lease.id, lease->id) != 0)
			continue;
		bool same = lease->since_ms <= w->leases_ms ||
			    lease->since_ms == entry->lease.since_ms;
		if (same && strcmp(entry->lease.owner, lease->owner) == 0)
			return (uint32_t)i;
		end_lease(entry, clock_earlier(lease->since_ms, now_ms));
	}
	w->leases[w->n_leases] = (struct lease_entry){
		.from_ms = lease->since_ms, .first_seen_ms = now_ms, .ended_ms = -1
	};
	return (uint32_t)w->n_leases++;
}

/* Takes what is said about a lease; one that turns out to be older counts from its true begin,
 * where time is not accounted yet. */
static void take_lease(struct lease_entry *entry, const struct lease *lease,
	enum privacy privacy, int64_t now_ms)
{
	struct lease said = *lease;
	said.first_card = said.n_cards = 0;
	if (privacy == PRIVACY_STRICT) /* a user chooses them */
		*said.job_name = *said.account = '\0';
	entry->dirty |= memcmp(&entry->lease, &said, sizeof(said)) != 0;
	entry->lease = said;
	entry->from_ms = clock_earlier(entry->from_ms, said.since_ms);
	entry->last_seen_ms = now_ms;
}

/* The leases up to `n_known` that are not there any more have ended. */
static void end_missing(struct watch *w, size_t n_known, size_t n_all, int64_t now_ms)
{
	for (size_t i = 0; i < n_known; i++) {
		struct lease_entry *entry = &w->leases[i];
		bool there = entry->ended_ms >= 0;
		for (size_t k = 0; k < n_all && !there; k++)
			there = w->lease_at[k] == i;
		int64_t until_ms = entry->lease.until_ms;
		bool limit = until_ms > w->leases_ms && until_ms <= now_ms;
		if (!there)
			end_lease(entry, limit ? until_ms : changed_ms(w, now_ms));
	}
}

/* A number for the owner of a lease. A namespace is not a user of the same name. */
static uint32_t owner_of(const struct watch *w, uint32_t lease)
{
	const struct lease *own = &w->leases[lease].lease;
	for (uint32_t i = 0; i < lease; i++) {
		const struct lease *other = &w->leases[i].lease;
		if (strcmp(other->owner, own->owner) == 0 &&
			(other->kind == LEASE_POD) == (own->kind == LEASE_POD))
			return i;
	}
	return lease;
}

static struct card_lease *find_open(struct watched *card, uint32_t lease)
{
	for (size_t i = 0; i < card->n_leases; i++)
		if (card->leases[i].lease == lease && card->leases[i].to_ms == INT64_MAX)
			return &card->leases[i];
	return NULL;
}

/* Takes the leases that cover the card. On a card that it did not have before, a lease begins
 * now, unless the lease or the card is new. */
static void take_card(
	struct watch *w, size_t i, const struct leases *all, size_t n_known, int64_t change_ms)
{
	struct watched *card = &w->cards[i];
	card->leases_version++;
	for (size_t k = 0; k < all->n; k++) {
		uint32_t at = w->lease_at[k];
		const struct lease_entry *entry = &w->leases[at];
		struct card_lease *own = find_open(card, at);
		bool covers = lease_covers(all, &all->v[k], &w->entries[i].id);
		bool begun = at >= n_known || i >= w->n_lease_cards;
		if (own && !covers)
			own->to_ms = change_ms;
		if (!covers)
			continue;
		if (!own) {
			own = &card->leases[card->n_leases++];
			*own = (struct card_lease){ .lease = at,
				.from_ms = begun ? entry->from_ms : change_ms,
				.to_ms = INT64_MAX,
				.owner = owner_of(w, at),
				.pick = entry->lease.kind == LEASE_PICK,
				.sum.slot = -1 };
		}
		int64_t unknown_ms = entry->lease.unknown_since_ms;
		own->unknown_ms = unknown_ms < 0 ? INT64_MAX : unknown_ms;
	}
	for (size_t k = 0; k < card->n_leases; k++) {
		int64_t ended_ms = w->leases[card->leases[k].lease].ended_ms;
		if (ended_ms >= 0 && card->leases[k].to_ms == INT64_MAX)
			card->leases[k].to_ms = ended_ms;
	}
}

int watch_leases_take(struct watch *w, const struct leases *all, int64_t now_ms, struct err *e)
{
	size_t n_known = w->n_leases;
	bool changed = all->generation != w->lease_generation || w->leases_ms < 0 ||
		       w->n_lease_cards != w->n_cards;
	w->has_leases = all->has_source;
	for (size_t i = 0; i < n_known && !changed; i++)
		if (w->leases[i].ended_ms < 0)
			w->leases[i].last_seen_ms = now_ms;
	int rc = changed ? reserve(w, all, e) : 0;
	if (rc)
		return rc;
	for (size_t i = 0; i < all->n && changed; i++) {
		w->lease_at[i] = find_lease(w, &all->v[i], now_ms);
		take_lease(&w->leases[w->lease_at[i]], &all->v[i], w->lives.privacy, now_ms);
	}
	if (changed)
		end_missing(w, n_known, all->n, now_ms);
	for (size_t i = 0; i < w->n_cards && changed; i++)
		take_card(w, i, all, n_known, changed_ms(w, now_ms));
	w->lease_generation = all->generation;
	w->n_lease_cards = w->n_cards;
	w->leases_ms = now_ms;
	return 0;
}

void watch_leases_step(struct watch *w, int64_t new_now_ms)
{
	for (size_t i = 0; i < w->n_leases; i++)
		w->leases[i].from_ms = clock_earlier(w->leases[i].from_ms, new_now_ms);
	for (size_t i = 0; i < w->n_cards; i++)
		for (size_t k = 0; k < w->cards[i].n_leases; k++) {
			struct card_lease *own = &w->cards[i].leases[k];
			own->from_ms = clock_earlier(own->from_ms, new_now_ms);
		}
	if (w->leases_ms >= 0)
		w->leases_ms = new_now_ms;
}

/* Whether an account may still need the lease. */
static bool is_needed(const struct watch *w, uint32_t lease)
{
	if (w->leases[lease].ended_ms < 0 || w->leases[lease].dirty)
		return true;
	for (size_t i = 0; i < w->n_cards; i++) {
		const struct watched *card = &w->cards[i];
		for (size_t k = 0; k < card->n_leases && !card->gone; k++)
			if (card->leases[k].lease == lease &&
				card->leases[k].to_ms > card->account.covered_ms)
				return true;
	}
	return false;
}

/* Removes a lease, and numbers those after it again. */
static void forget_lease(struct watch *w, uint32_t lease)
{
	memmove(&w->leases[lease], &w->leases[lease + 1],
		(--w->n_leases - lease) * sizeof(*w->leases));
	for (size_t i = 0; i < w->n_cards; i++) {
		struct watched *card = &w->cards[i];
		size_t left = 0;
		for (size_t k = 0; k < card->n_leases; k++) {
			struct card_lease own = card->leases[k];
			bool gone = own.lease == lease;
			own.lease -= own.lease > lease;
			if (!gone)
				card->leases[left++] = own;
		}
		card->n_leases = left;
		card->leases_version++;
		for (size_t k = 0; k < left; k++)
			card->leases[k].owner = owner_of(w, card->leases[k].lease);
	}
}

/* Gives a process what the scheduler says about its job: the number, where its cgroup has the
 * SLUID, and what its environment did not say. */
static void name_job(const struct watch *w, struct process_entry *p, const struct lease *lease)
{
	struct process_id *id = &p->id;
	char task[TASK_CAP] = "";
	const struct {
		char *to;
		const char *from;
		size_t cap;
	} texts[] = { { id->origin.job_name, lease->job_name, LABEL_CAP },
		{ id->origin.account, lease->account, TAG_CAP },
		{ id->origin.job_task, task, TASK_CAP } };
	if (*lease->task)
		snprintf(task, sizeof(task), "slurm:%.*s", TASK_CAP - 8, lease->task);
	if (*lease->sluid && strcmp(id->job + strlen("slurm:"), lease->sluid) == 0) {
		snprintf(id->job, sizeof(id->job), "slurm:%.*s", LABEL_CAP - 8, lease->id);
		p->dirty = true;
	}
	for (size_t i = 0; i < 3 && w->lives.privacy == PRIVACY_NORMAL; i++)
		if (!*texts[i].to && *texts[i].from) {
			str_copy(texts[i].to, texts[i].cap, texts[i].from);
			p->dirty = true;
		}
}

/* Only for processes and leases that have come since the last time. */
static void name_jobs(struct watch *w)
{
	bool all = w->named_generation != w->lease_generation;
	for (size_t i = 0; i < w->lives.n; i++) {
		struct process_entry *p = &w->lives.entries[i];
		if ((!all && p->store_id) || strncmp(p->id.job, "slurm:", 6) != 0)
			continue;
		for (size_t k = 0; k < w->n_leases; k++)
			if (w->leases[k].lease.kind == LEASE_SLURM &&
				lease_is_used_by(&w->leases[k].lease, &p->id))
				name_job(w, p, &w->leases[k].lease);
	}
	w->named_generation = w->lease_generation;
}

void watch_leases_tick(struct watch *w)
{
	name_jobs(w);
	for (size_t i = 0; i < w->n_cards; i++) {
		struct account_scene on = watch_scene(w, i);
		account_leased(&w->cards[i].account, &on);
		/* More may be known now about the processes that use them. */
		w->cards[i].leases_version++;
	}
}

void watch_leases_stored(struct watch *w)
{
	for (uint32_t i = (uint32_t)w->n_leases; i-- > 0;)
		if (!is_needed(w, i))
			forget_lease(w, i);
}

void watch_leases_close(struct watch *w)
{
	for (size_t i = 0; i < w->n_leases; i++)
		w->leases[i].dirty = true;
}
