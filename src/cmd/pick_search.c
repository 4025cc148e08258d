/* The search of gua pick: look at the cards, wait for the turn, respect those who have waited
 * longer, reserve. */
#include "cmd/pick_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/pick_place.h"
#include "cmd/pick_queue.h"

/* With --free-for the cards are read at least this often: some drivers keep no samples, so use
 * between two readings that are further apart would not be seen. */
enum { FIRST_POLL_MS = 1000, LAST_POLL_MS = 10000, WATCH_POLL_MS = 2000 };
/* A pick chooses within milliseconds: a process that keeps the turn for this long is stuck. */
#define TURN_MS 5000
/* Cards are left for earlier waiting picks for this long. It is many times their longest
 * interval of polling. One that waits for many cards gets this time to collect them; one that
 * is stopped, or that only pretends to wait, cannot block the others for longer. */
#define YIELD_MS (5 * 60 * 1000)

/* The state of one card during a choice. */
struct hold {
	bool asked, promised;
	int fd;		      /* reservation; -1: none */
	struct pick_owner by; /* if reserved: by whom; if promised: for whom */
};

struct search {
	const struct pick_request *request;
	struct live_session *session;
	struct filter filter;
	struct pick_wish wish;
	struct pick_locks locks;
	struct pick_queue queue;
	bool joined; /* a place in the queue was asked for */
	struct pick_result *result;
	int64_t yielding_since_us; /* enough cards are left for others since; -1: not */
	/* One choice. */
	const struct present *now;
	struct hold *holds;		   /* by index of the card */
	struct pick_candidate *candidates; /* cards of the filter, the good ones first */
	size_t n_candidates, n_good;
};

/* Reads the cards once. */
static int look(struct search *s, struct err *e)
{
	struct live_session *session = s->session;
	struct pick_result *r = s->result;
	int rc = cmd_live_refresh(session, e);
	/* Readings that are always old are not good enough to choose a card. */
	if (rc == 0 && live_late_ms(session->live)) {
		session->lost = true;
		rc = err_set(e, ERR_BUSY,
			"the driver always takes longer than --driver-timeout to answer");
	}
	if (rc)
		return rc;
	s->now = live_present(session->live);
	s->wish.rules = s->now->hosts[0].rules;
	text_copy(r->host, sizeof(r->host), s->now->hosts[0].hostname);
	text_copy(r->note, sizeof(r->note), s->now->hosts[0].note);
	r->time_ms = s->now->now_ms;
	return 0;
}

static int rank(struct search *s, struct err *e)
{
	size_t *indexes = calloc(s->now->n_cards + 1, sizeof(*indexes));
	s->holds = calloc(s->now->n_cards + 1, sizeof(*s->holds));
	s->candidates = calloc(s->now->n_cards + 1, sizeof(*s->candidates));
	int n = indexes && s->holds && s->candidates
			? filter_cards(&s->filter, s->now, indexes, e)
			: err_memory(e);
	for (int i = 0; i < n; i++)
		s->candidates[i].card = &s->now->cards[indexes[i]];
	free(indexes);
	if (n < 0)
		return n;
	s->n_candidates = (size_t)n;
	for (size_t i = 0; i < s->now->n_cards; i++)
		s->holds[i].fd = -1;
	s->n_good = pick_rank(&s->wish, s->candidates, s->n_candidates, s->now->now_ms);
	return 0;
}

static struct hold *hold_of(struct search *s, const struct present_card *card)
{
	return &s->holds[card - s->now->cards];
}

/* Reserves a card, if that has not been tried yet. */
static int reserve(struct search *s, const struct present_card *card, struct err *e)
{
	struct hold *h = hold_of(s, card);
	if (h->asked)
		return 0;
	h->asked = true;
	int fd = pick_lock_card(&s->locks, card->id.uuid, &h->by, e);
	h->fd = fd > 0 ? fd : -1;
	return fd > 0 || fd == ERR_BUSY ? 0 : fd;
}

/* Marks the cards that an earlier pick would take now, as many as it wants. */
static int promise_to(struct search *s, struct pick_ticket *t, struct err *e)
{
	struct pick_candidate *all = calloc(s->now->n_cards + 1, sizeof(*all));
	size_t n = 0, promised = 0;
	int rc = all ? 0 : err_memory(e);
	t->ask.wish.rules = s->wish.rules;
	for (size_t i = 0; i < s->now->n_cards && !rc; i++)
		if (pick_ask_names(&t->ask, s->now->cards[i].id.uuid))
			all[n++].card = &s->now->cards[i];
	size_t good = rc ? 0 : pick_rank(&t->ask.wish, all, n, s->now->now_ms);
	for (size_t i = 0; i < good && promised < t->ask.wish.n && !rc; i++) {
		struct hold *h = hold_of(s, all[i].card);
		rc = reserve(s, all[i].card, e);
		if (h->fd < 0 || h->promised)
			continue;
		h->promised = true;
		h->by = t->by;
		promised++;
	}
	free(all);
	return rc;
}

static int promise(struct search *s, struct err *e)
{
	struct pick_ticket *tickets = NULL;
	int rc = 0;
	if (s->request->wait_ms == 0 || s->request->ignore_reservations)
		return 0;
	size_t n = pick_queue_before(&s->queue, &s->locks, &tickets);
	for (size_t i = 0; i < n && !rc; i++)
		rc = promise_to(s, &tickets[i], e);
	free(tickets);
	return rc;
}

/* Whether enough cards have been left for others for long enough. */
static bool is_patience_over(struct search *s, bool enough)
{
	int64_t now_us = clock_now(&s->session->clock).boot_us;
	if (!enough)
		s->yielding_since_us = -1;
	else if (s->yielding_since_us < 0)
		s->yielding_since_us = now_us;
	return enough && now_us - s->yielding_since_us >= YIELD_MS * INT64_C(1000);
}

/* Chooses among the good candidates; those that are not chosen get another verdict. Returns how
 * many are chosen, or an error. */
static int take(struct search *s, struct err *e)
{
	size_t chosen = 0, left = 0, want = s->wish.n;
	for (size_t i = 0; i < s->n_good; i++) {
		struct pick_candidate *c = &s->candidates[i];
		struct hold *h = hold_of(s, c->card);
		int rc = chosen < want ? reserve(s, c->card, e) : 0;
		if (rc)
			return rc;
		c->verdict = chosen == want ? PICK_SPARE
			     : h->fd < 0    ? PICK_TAKEN
			     : h->promised  ? PICK_PROMISED
					    : PICK_GOOD;
		chosen += c->verdict == PICK_GOOD;
		left += c->verdict == PICK_PROMISED;
	}
	if (chosen < want && is_patience_over(s, chosen + left >= want))
		for (size_t i = 0; i < s->n_good && chosen < want; i++)
			if (s->candidates[i].verdict == PICK_PROMISED) {
				s->candidates[i].verdict = PICK_GOOD;
				chosen++;
			}
	for (size_t i = 0; i < s->n_good && chosen < want; i++)
		if (s->candidates[i].verdict == PICK_GOOD)
			s->candidates[i].verdict = PICK_SPARE;
	return chosen < want ? 0 : (int)chosen;
}

static void copy_fact(struct search *s, const struct pick_candidate *c, struct pick_fact *f)
{
	struct hold *h = hold_of(s, c->card);
	const double *values = c->card->values;
	*f = (struct pick_fact){ .id = c->card->id,
		.verdict = c->verdict,
		.lock = -1,
		.by = h->by,
		.free_bytes = values[METRIC_MEMORY_FREE],
		.util_pct = values[METRIC_UTILIZATION_GPU],
		.holders = values[METRIC_GUA_HOLDERS],
		.free_since_ms = c->card->free_since_ms };
	if (c->card->state == CARD_SUSPECT)
		present_suspect_text(f->suspect, sizeof(f->suspect), c->card);
	if (c->verdict == PICK_GOOD) {
		f->lock = h->fd;
		h->fd = -1;
	}
}

/* Copies what was found into the result: first the picked cards, then the others. */
static int keep_facts(struct search *s, struct err *e)
{
	struct pick_result *r = s->result;
	pick_result_finish(r);
	r->facts = calloc(s->n_candidates + 1, sizeof(*r->facts));
	if (!r->facts)
		return err_memory(e);
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < s->n_candidates; i++)
			if ((s->candidates[i].verdict == PICK_GOOD) == (round == 0))
				copy_fact(s, &s->candidates[i], &r->facts[r->n_facts++]);
	while (r->n_picked < r->n_facts && r->facts[r->n_picked].verdict == PICK_GOOD)
		r->n_picked++;
	return 0;
}

/* Takes a place in the queue. Without one, the pick waits all the same. */
static void join(struct search *s)
{
	struct str wish = { 0 }, cards = { 0 };
	struct err e = { 0 };
	s->joined = true;
	for (size_t i = 0; i < s->n_candidates && s->request->filter->ids.n; i++)
		str_addf(&cards, "%s%s", i ? "," : "", s->candidates[i].card->id.uuid);
	pick_wish_add(&wish, &s->wish, str_text(&cards));
	if (pick_queue_join(&s->queue, &s->locks, str_text(&wish), &e) != 0)
		fprintf(stderr, "gua pick: %s; waiting without a place in the queue\n", e.text);
	str_finish(&wish);
	str_finish(&cards);
}

static void forget(struct search *s)
{
	for (size_t i = 0; i < s->now->n_cards && s->holds; i++)
		if (s->holds[i].fd >= 0)
			close(s->holds[i].fd);
	free(s->holds);
	free(s->candidates);
	s->holds = NULL;
	s->candidates = NULL;
}

/* Reads the cards once, and reserves as many as are wanted or none. */
static int choose(struct search *s, struct err *e)
{
	int rc = look(s, e);
	if (rc)
		return rc;
	rc = rank(s, e);
	/* One pick at a time: otherwise two picks that need two cards each could get one each.
	 */
	int turn = rc ? -1 : pick_lock_turn(&s->locks, TURN_MS);
	if (rc == 0)
		rc = promise(s, e);
	if (rc == 0)
		rc = take(s, e);
	if (rc >= 0)
		rc = keep_facts(s, e);
	if (rc == 0 && !s->result->n_picked && s->request->wait_ms && !s->joined &&
		s->locks.directory >= 0)
		join(s);
	forget(s);
	if (turn >= 0)
		close(turn);
	return rc;
}

/* Says once that the search goes on. */
static void report_wait(struct search *s, bool first, const struct err *e)
{
	struct str lines = { 0 };
	if (s->session->lost && !s->session->told)
		fprintf(stderr, "gua pick: %s; waiting\n", e->text);
	else if (!s->session->lost && first && isatty(STDERR_FILENO)) {
		pick_result_reservations(s->result, &lines);
		fprintf(stderr, "%sgua pick: not enough free cards; waiting\n",
			str_text(&lines));
	}
	s->session->told = s->session->lost;
	str_finish(&lines);
}

static int refuse(struct search *s, struct err *e)
{
	const char *note = live_present(s->session->live)->hosts[0].note;
	pick_result_refuse(s->result, s->wish.n, e);
	if (s->wish.free_for_ms > 0 && *note) {
		struct err whole = *e;
		err_set(e, ERR_WORLD, "%s (%s)", whole.text, note);
	}
	return ERR_WORLD;
}

/* Reads the cards repeatedly, at growing intervals, until there are enough or the time is over.
 * A driver that fails in the meantime may come back, so the wait continues. */
static int choose_in_time(struct search *s, struct err *e)
{
	struct live_session *session = s->session;
	int64_t wait_ms = s->request->wait_ms, poll_ms = FIRST_POLL_MS;
	int64_t start_us = clock_now(&session->clock).boot_us;
	int64_t last_poll_ms = s->wish.free_for_ms > 0 ? WATCH_POLL_MS : LAST_POLL_MS;
	for (bool first = true;; first = false) {
		int rc = choose(s, e);
		if (s->result->n_picked || (rc && !session->lost))
			return rc;
		int64_t left_ms =
			wait_ms - (clock_now(&session->clock).boot_us - start_us) / 1000;
		if (wait_ms >= 0 && left_ms <= 0)
			return rc ? rc : refuse(s, e);
		report_wait(s, first, e);
		cmd_live_wait(session, wait_ms >= 0 && left_ms < poll_ms ? left_ms : poll_ms);
		poll_ms = 2 * poll_ms < last_poll_ms ? 2 * poll_ms : last_poll_ms;
	}
}

int pick_search(struct pick_result *r, const struct pick_request *q, struct err *e)
{
	static const unsigned char wanted[METRIC_COUNT] = {
		[METRIC_UTILIZATION_GPU] = 1,
		[METRIC_MEMORY_TOTAL] = 1,
		[METRIC_MEMORY_USED] = 1,
		[METRIC_MEMORY_FREE] = 1,
	};
	static struct live_session session; /* a thread that hangs may still use its clock */
	struct search s = { .request = q,
		.session = &session,
		.wish = q->wish,
		.locks = { .directory = -1, .ignore_others = q->ignore_reservations },
		.queue = PICK_QUEUE_NONE,
		.result = r,
		.yielding_since_us = -1 };
	struct live_values live = *q->live;
	live.cards_only = true;
	int rc = filter_init(&s.filter, q->filter, e);
	if (!rc)
		rc = cmd_live_open(&session, &live, wanted, e);
	if (rc)
		return rc;
	rc = pick_place_open(
		&s.locks.directory, q->lock_dir, q->live->root ? q->live->root : "", e);
	if (!rc)
		rc = choose_in_time(&s, e);
	pick_queue_leave(&s.queue, &s.locks);
	if (s.locks.directory >= 0)
		close(s.locks.directory);
	cmd_live_close(&session);
	return rc;
}
