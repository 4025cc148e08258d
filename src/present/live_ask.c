/* Reads the driver for a live view. One job in the driver's thread reads everything: new cards,
 * samples, processes, metrics. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/duration.h"
#include "driver/host/worker.h"
#include "present/live_private.h"

/* How often to search for a lost card (RETRY_US) and for new cards (RESCAN_US). */
#define RETRY_US (30 * 1000000LL)
#define RESCAN_US (600 * 1000000LL)
/* A healthy driver answers faster than this. */
#define PATIENCE_MS 50
/* A driver that is always late takes about the same time again; one that takes much longer has
 * hung. */
#define AS_LATE 2
/* An older answer, such as the one that was read while opening, is out of date: the view
 * asks again. The driver has new samples by then. */
#define FRESH_US 1000000

/* A request to the driver, and its answer. The driver's thread owns it while a request is
 * pending; otherwise the view does. */
struct live_question {
	struct clock *clock;
	unsigned char wanted[METRIC_COUNT];
	bool scan;	     /* search for cards even if it is not time yet */
	int64_t scanned_us;  /* boot time of the last search */
	int64_t answered_us; /* boot time of the answer */
	struct present_card
		*cards; /* for each card its board; for MIG instances also the metrics */
	struct present_board *boards;
	size_t n_cards, n_boards, cap;
	bool want_accounts;
	struct present_account *accounts;
	size_t n_accounts;
};

/* The driver's thread, and the state of its request. */
struct live_asking {
	struct worker *worker;
	struct live_question *question; /* owned by the worker */
	bool asked;	 /* a request is pending, or its answer has not been taken */
	bool overdue;	 /* the answer did not come within the deadline */
	int64_t late_ms; /* how long the last answer took; 0: it was in time */
	int64_t deadline_ms;
	int64_t asked_us; /* boot time */
};

/* Metrics that a MIG instance has itself. All others are those of its board. */
static const enum metric divided[] = { METRIC_MEMORY_TOTAL, METRIC_MEMORY_RESERVED,
	METRIC_MEMORY_USED, METRIC_MEMORY_FREE, METRIC_UTILIZATION_GPU,
	METRIC_UTILIZATION_MEMORY, METRIC_UTILIZATION_ENCODER, METRIC_UTILIZATION_DECODER,
	METRIC_UTILIZATION_JPEG, METRIC_UTILIZATION_OFA, METRIC_BAR1_TOTAL, METRIC_BAR1_USED };

/* Whether cards are missing that a scan may find again. */
static bool misses_cards(const struct source *s)
{
	for (size_t i = 0; i < s->n_cards; i++)
		if (s->cards[i].status == CARD_STATUS_LOST && !s->cards[i].gone)
			return true;
	return s->incomplete;
}

/* Searches for cards if it is time to. */
static int rescan(struct live_question *q, struct source *s, struct err *e)
{
	int64_t boot_us = clock_now(q->clock).boot_us;
	int64_t every_us = misses_cards(s) ? RETRY_US : RESCAN_US;
	if (!q->scan && boot_us - q->scanned_us < every_us)
		return 0;
	q->scanned_us = boot_us;
	return source_scan(s, e);
}

/* Makes room for the cards that the source has now. */
static int make_room(struct live_question *q, size_t n, struct err *e)
{
	if (n > q->cap) {
		if (!array_resize(&q->cards, n) || !array_resize(&q->boards, n))
			return err_memory(e);
		q->cap = n;
	}
	q->n_cards = n;
	return 0;
}

/* Finds the board of a card; adds it if this is the board's first card. */
static size_t find_board(struct live_question *q, struct source *s, size_t card)
{
	const struct card_reading *r = &s->cards[card];
	bool instance = r->id.mig_index >= 0;
	const char *uuid = instance ? r->id.parent_uuid : r->id.uuid;
	for (size_t i = 0; i < q->n_boards; i++)
		if (strcmp(q->boards[i].id.uuid, uuid) == 0)
			return i;
	struct present_board *b = &q->boards[q->n_boards];
	*b = (struct present_board){ .id = r->id, .first_card = card };
	b->status = CARD_STATUS_LOST;
	b->code = r->code;
	if (instance) {
		str_copy(b->id.uuid, sizeof(b->id.uuid), r->id.parent_uuid);
		b->id.parent_uuid[0] = '\0';
		b->id.mig_index = b->id.gpu_instance = b->id.compute_instance = -1;
		if (s->ops->board)
			s->ops->board(s, card, &b->id);
	}
	metric_clear(b->values, b->texts);
	return q->n_boards++;
}

/* Makes the boards. A board has the status of its best card. */
static void make_boards(struct live_question *q, struct source *s)
{
	q->n_boards = 0;
	for (size_t i = 0; i < q->n_cards; i++) {
		const struct card_reading *r = &s->cards[i];
		size_t at = find_board(q, s, i);
		struct present_board *b = &q->boards[at];
		q->cards[i].board = at;
		if (b->status == CARD_STATUS_OK ||
			(r->status == CARD_STATUS_LOST && b->first_card != i))
			continue;
		b->status = r->status;
		b->code = r->code;
		b->first_card = i;
		b->mig = r->id.mig_index >= 0;
	}
}

static void read_metrics(struct source *s, const struct metric_request *request, double *values,
	metric_texts texts)
{
	if (s->ops->metrics && s->cards[request->card].status == CARD_STATUS_OK)
		s->ops->metrics(s, request, values, texts);
}

/* Fills in the metrics of a MIG instance: those of its board, except those that the instance
 * has itself. */
static void read_instance(struct live_question *q, struct source *s, size_t card)
{
	struct present_card *c = &q->cards[card];
	const struct present_board *b = &q->boards[c->board];
	memcpy(c->values, b->values, sizeof(c->values));
	memcpy(c->texts, b->texts, sizeof(c->texts));
	for (size_t k = 0; k < sizeof(divided) / sizeof(divided[0]); k++)
		c->values[divided[k]] = NAN;
	read_metrics(
		s, &(struct metric_request){ card, false, q->wanted }, c->values, c->texts);
}

/* Reads the records of a card. The driver keeps at most 4000. */
static int read_accounts(struct live_question *q, struct source *s, size_t card, struct err *e)
{
	enum { MOST = 4000 };
	struct process_account *records = calloc(MOST, sizeof(*records));
	size_t n = records ? s->ops->accounts(s, card, records, MOST) : 0;
	bool room = records && array_resize(&q->accounts, q->n_accounts + n + 1);
	for (size_t i = 0; room && i < n; i++)
		q->accounts[q->n_accounts++] = (struct present_account){ card, records[i] };
	free(records);
	return room ? 0 : err_memory(e);
}

static int read_all_accounts(struct live_question *q, struct source *s, struct err *e)
{
	int rc = 0;
	q->n_accounts = 0;
	for (size_t i = 0; q->want_accounts && s->ops->accounts && rc == 0 && i < s->n_cards;
		i++)
		if (s->cards[i].status == CARD_STATUS_OK)
			rc = read_accounts(q, s, i, e);
	return rc;
}

/* The request. Runs in the driver's thread. */
static int put_question(struct source *s, void *context, struct err *e)
{
	struct live_question *q = context;
	int rc = rescan(q, s, e);
	if (rc == 0)
		rc = source_drain(s, NULL, e);
	if (rc == 0)
		rc = source_look(s, NULL, e);
	if (rc == 0)
		rc = make_room(q, s->n_cards, e);
	if (rc)
		return rc;
	make_boards(q, s);
	for (size_t i = 0; i < q->n_boards; i++) {
		struct present_board *b = &q->boards[i];
		if (b->status == CARD_STATUS_OK)
			read_metrics(s,
				&(struct metric_request){ b->first_card, true, q->wanted },
				b->values, b->texts);
	}
	for (size_t i = 0; i < q->n_cards; i++)
		if (s->cards[i].id.mig_index >= 0)
			read_instance(q, s, i);
	rc = read_all_accounts(q, s, e);
	q->answered_us = clock_now(q->clock).boot_us;
	return rc ? rc : source_unsaid(s, e);
}

static void free_question(void *context)
{
	struct live_question *q = context;
	free(q->cards);
	free(q->boards);
	free(q->accounts);
	free(q);
}

/* Sets the error message for a driver that does not answer. */
static int no_answer(struct live *l, struct err *e)
{
	int64_t ms = worker_took_ms(l->asking->worker);
	char age[40];
	duration_text(age, sizeof(age), ms);
	if (ms < 1000)
		snprintf(age, sizeof(age), "%lld ms", (long long)ms);
	return err_set(e, ERR_BUSY,
		"the driver has not answered for %s: look for NVRM and Xid in the kernel's log "
		"(dmesg), or wait longer with --driver-timeout",
		age);
}

int live_open_driver(struct live *l, const struct live_options *o, struct err *e)
{
	struct live_asking *a = l->asking = calloc(1, sizeof(*a));
	struct live_question *q = calloc(1, sizeof(*q));
	int rc = a && q ? worker_new(&a->worker, &o->source, o->deadline_ms, e) : err_memory(e);
	if (rc) {
		free(q);
		return rc;
	}
	worker_own(a->worker, put_question, q, free_question);
	q->clock = o->source.clock;
	q->scanned_us = clock_now(q->clock).boot_us;
	memcpy(q->wanted, l->wanted, METRIC_COUNT);
	q->want_accounts = o->accounts;
	a->question = q;
	a->deadline_ms = o->deadline_ms;
	/* The first job reads the cards at once, which saves one switch to the thread. */
	live_ask(l);
	return 0;
}

int live_await_driver(struct live *l, struct err *e)
{
	struct live_asking *a = l->asking;
	int rc = worker_result(a->worker, a->deadline_ms, e);
	a->overdue = rc == ERR_BUSY;
	l->source = worker_opened(a->worker);
	if (l->source)
		return 0;
	return a->overdue ? no_answer(l, e) : rc;
}

void live_close_driver(struct live *l)
{
	if (l->asking && l->asking->worker)
		worker_end(l->asking->worker, WORKER_CLOSING_MS);
	free(l->asking);
}

void live_ask(struct live *l)
{
	struct live_asking *a = l->asking;
	if (a->asked)
		return;
	a->question->scan = l->failed;
	a->asked_us = clock_now(l->clock).boot_us;
	l->present.n_accounts = 0; /* the thread changes them */
	a->asked = worker_begin(a->worker, JOB_OWN);
}

static void swap_sizes(size_t *a, size_t *b)
{
	size_t was = *a;
	*a = *b;
	*b = was;
}

/* Exchanges the cards and boards of the view with those of the request: the new answer is
 * shown, and the old memory is reused for the next one. A second call undoes this. */
static void swap_readings(struct live *l, struct live_question *q)
{
	struct present_card *cards = l->cards;
	struct present_board *boards = l->boards;
	l->cards = q->cards;
	l->boards = q->boards;
	q->cards = cards;
	q->boards = boards;
	swap_sizes(&l->n_cards, &q->n_cards);
	swap_sizes(&l->n_boards, &q->n_boards);
	swap_sizes(&l->cap, &q->cap);
}

static void drop(struct live *l)
{
	l->asking->asked = false;
	l->failed = true;
}

/* Whether to drop the answer. A late answer is partly old, and the driver may be faster now, so
 * ask again. If the driver is always late, the answer is used. */
static bool drop_late(struct live *l)
{
	struct live_asking *a = l->asking;
	int64_t took_ms = worker_took_ms(a->worker), before_ms = a->late_ms;
	a->late_ms = took_ms > a->deadline_ms ? took_ms : 0;
	if (a->late_ms <= AS_LATE * before_ms)
		return false;
	drop(l);
	return true;
}

int live_take(struct live *l, int64_t wait_ms, struct err *e)
{
	struct live_asking *a = l->asking;
	int rc = worker_result(a->worker, wait_ms, e);
	if (rc != ERR_BUSY && drop_late(l)) {
		live_ask(l);
		rc = worker_result(a->worker, wait_ms, e);
	}
	if (rc == ERR_BUSY)
		return no_answer(l, e);
	if (worker_took_ms(a->worker) <= a->deadline_ms)
		a->late_ms = 0;
	a->asked = false;
	if (rc == 0) {
		swap_readings(l, a->question);
		rc = live_digest(l, e);
		if (rc)
			swap_readings(l, a->question);
	}
	l->failed = rc != 0;
	l->refreshed |= rc == 0;
	return rc;
}

void live_publish_accounts(struct live *l)
{
	const struct live_question *q = l->asking->question;
	l->present.accounts = q->accounts;
	l->present.n_accounts = l->asking->asked ? 0 : q->n_accounts;
}

int64_t live_late_ms(const struct live *l)
{
	const struct live_asking *a = l->asking;
	return a->late_ms ? (clock_now(l->clock).boot_us - a->asked_us) / 1000 : 0;
}

int64_t live_silent_ms(struct live *l)
{
	return l->asking->asked ? worker_took_ms(l->asking->worker) : -1;
}

int live_fd(struct live *l)
{
	return worker_fd(l->asking->worker);
}

/* Takes the answer within the deadline; returns earlier if `stop_fd` becomes readable. */
static int take_or_stop(struct live *l, int stop_fd, struct err *e)
{
	int rc = live_take(l, PATIENCE_MS, e);
	int64_t left_ms;
	while (rc == ERR_BUSY && (left_ms = l->asking->deadline_ms - live_silent_ms(l)) > 0) {
		struct pollfd fds[] = { { .fd = live_fd(l), .events = POLLIN },
			{ .fd = stop_fd, .events = POLLIN } };
		int ready = poll(fds, 2, (int)left_ms);
		if (ready < 0 && errno != EINTR)
			break;
		rc = live_take(l, 0, e);
		if (ready > 0 && fds[1].revents)
			break;
	}
	return rc;
}

/* Whether the pending request is an earlier one, so that its answer is old. */
static bool is_old(const struct live *l, bool answered)
{
	const struct live_asking *a = l->asking;
	int64_t since_us = answered ? a->question->answered_us : a->asked_us;
	return a->overdue || clock_now(l->clock).boot_us - since_us >= FRESH_US;
}

int live_refresh(struct live *l, int stop_fd, struct err *e)
{
	struct live_asking *a = l->asking;
	bool answered = a->asked && worker_result(a->worker, 0, NULL) != ERR_BUSY;
	bool old = a->asked && is_old(l, answered);
	if (old && !answered)
		return no_answer(l, e);
	/* The driver gives each sample once, so an old answer is taken in before the next.
	 * live_take() also decides about one that came too late. */
	if (old && worker_took_ms(a->worker) <= a->deadline_ms && live_take(l, 0, e))
		drop(l);
	live_ask(l);
	int rc = stop_fd < 0 ? live_take(l, a->deadline_ms, e) : take_or_stop(l, stop_fd, e);
	a->overdue = rc == ERR_BUSY;
	return rc;
}
