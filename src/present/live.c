/* A live view: asks the driver, turns its answers into cards and boards, and joins them with
 * what the store says of the past. */
#include "present/live.h"

#include <poll.h>

#include "lease/lease_dir.h"
#include "driver/host/apart.h"
#include "driver/host/worker.h"
#include "present/live_private.h"

/* Two readings of counters that are closer than 100 ms give no use. */
#define MEAN_US 120000
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
	struct metric_request *requests; /* of metrics: of the boards, then of the instances */
	size_t n_requests, cap_requests;
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

/* Searches for cards if it is time to: earlier if some are missing that it may find again. */
static int rescan(struct live_question *q, struct source *s, struct err *e)
{
	int64_t boot_us = clock_now(q->clock).boot_us;
	bool missing = s->incomplete;
	for (size_t i = 0; i < s->n_cards; i++)
		missing |= s->cards[i].status == CARD_STATUS_LOST && !s->cards[i].gone;
	int64_t every_us = missing ? RETRY_US : RESCAN_US;
	if (!q->scan && boot_us - q->scanned_us < every_us)
		return 0;
	q->scanned_us = boot_us;
	return source_scan(s, e);
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

/* Begins with the metrics of the board, except those that the instance has itself. */
static void begin_instance(const struct live_question *q, struct present_card *c)
{
	const struct present_board *b = &q->boards[c->board];
	memcpy(c->values, b->values, sizeof(c->values));
	memcpy(c->texts, b->texts, sizeof(c->texts));
	for (size_t k = 0; k < sizeof(divided) / sizeof(divided[0]); k++)
		c->values[divided[k]] = NAN;
}

/* A source in another process asks for all cards at once, and for those that were ok then. */
static void read_metrics(struct source *s, const struct metric_request *request, double *values,
	metric_texts texts)
{
	if (s->ops->metrics &&
		(s->ops->expect || s->cards[request->card].status == CARD_STATUS_OK))
		s->ops->metrics(s, request, values, texts);
}

/* Adds a request to the list; false: it was there already. */
static bool add_request(struct live_question *q, size_t *n, size_t card, bool board)
{
	struct metric_request *r = &q->requests[*n];
	bool is_new = *n >= q->n_requests || r->card != card || r->board != board;
	*r = (struct metric_request){ card, board, q->wanted };
	*n += 1;
	return is_new;
}

/* Lists what to ask: the boards, and the MIG instances. False: all was asked already. */
static bool list_requests(struct live_question *q, const struct source *s)
{
	size_t n = 0;
	bool news = false;
	for (size_t i = 0; i < q->n_boards; i++)
		if (q->boards[i].status == CARD_STATUS_OK)
			news |= add_request(q, &n, q->boards[i].first_card, true);
	for (size_t i = 0; i < q->n_cards; i++)
		if (s->cards[i].id.mig_index >= 0 && s->cards[i].status == CARD_STATUS_OK)
			news |= add_request(q, &n, i, false);
	news |= n != q->n_requests;
	q->n_requests = n;
	return news;
}

/* Drains and looks, and asks for the metrics of the last time, if that is one call. */
static int read_cards(struct live_question *q, struct source *s, struct err *e)
{
	if (s->ops->expect)
		return s->ops->expect(s, q->requests, q->n_requests, true, e);
	int rc = source_drain(s, NULL, e);
	return rc ? rc : source_look(s, NULL, e);
}

static int read_all_metrics(struct live_question *q, struct source *s, struct err *e)
{
	size_t at = 0;
	if (!array_reserve(&q->requests, &q->cap_requests, 2 * q->n_cards + 1))
		return err_memory(e);
	if (list_requests(q, s) && s->ops->expect)
		s->ops->expect(s, q->requests, q->n_requests, false, &s->unsaid);
	size_t n = q->n_requests;
	for (; at < n && q->requests[at].board; at++) {
		struct present_board *b = &q->boards[q->cards[q->requests[at].card].board];
		read_metrics(s, &q->requests[at], b->values, b->texts);
	}
	for (size_t i = 0; i < q->n_cards; i++)
		if (s->cards[i].id.mig_index >= 0)
			begin_instance(q, &q->cards[i]);
	for (; at < n; at++) {
		struct present_card *c = &q->cards[q->requests[at].card];
		read_metrics(s, &q->requests[at], c->values, c->texts);
	}
	return 0;
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

/* The request. Runs in the driver's thread. */
static int put_question(struct source *s, void *context, struct err *e)
{
	struct live_question *q = context;
	s->drains = DRAIN_BRIEF;
	int rc = rescan(q, s, e);
	if (rc == 0)
		rc = read_cards(q, s, e);
	if (rc) {
		q->n_requests = 0;
		return rc;
	}
	if (s->n_cards > q->cap) {
		if (!array_resize(&q->cards, s->n_cards) ||
			!array_resize(&q->boards, s->n_cards))
			return err_memory(e);
		q->cap = s->n_cards;
	}
	q->n_cards = s->n_cards;
	make_boards(q, s);
	rc = read_all_metrics(q, s, e);
	q->n_accounts = 0;
	for (size_t i = 0; q->want_accounts && s->ops->accounts && rc == 0 && i < s->n_cards;
		i++)
		if (s->cards[i].status == CARD_STATUS_OK)
			rc = read_accounts(q, s, i, e);
	q->answered_us = clock_now(q->clock).boot_us;
	return rc ? rc : source_unsaid(s, e);
}

static void free_question(void *context)
{
	struct live_question *q = context;
	free(q->cards);
	free(q->boards);
	free(q->requests);
	free(q->accounts);
	free(q);
}

/* The answer becomes what the view shows. */

/* A longer time between two samples is a gap: samples come at least once a second. */
#define HOLE_MS 2500

const unsigned char live_usual_metrics[METRIC_COUNT] = {
	[METRIC_TEMPERATURE_GPU] = 1,
	[METRIC_FAN_SPEED] = 1,
	[METRIC_UTILIZATION_GPU] = 1,
	[METRIC_UTILIZATION_MEMORY] = 1,
	[METRIC_UTILIZATION_ENCODER] = 1,
	[METRIC_UTILIZATION_DECODER] = 1,
	[METRIC_MEMORY_TOTAL] = 1,
	[METRIC_MEMORY_USED] = 1,
	[METRIC_MEMORY_FREE] = 1,
	[METRIC_POWER_DRAW] = 1,
	[METRIC_POWER_ENFORCED] = 1,
	[METRIC_CLOCK_SM] = 1,
	[METRIC_CLOCK_MEMORY] = 1,
	[METRIC_PSTATE] = 1,
};

const struct live_memory live_nothing_seen = { .util_pct = NAN,
	.since_ms = -1,
	.idle_ms = -1,
	.from_ms = -1,
	.newest_ms = -1,
	.covered_ms = -1,
	.empty = true,
	.own_ms = -1,
	.own_idle_ms = -1 };

void live_move(int64_t *at_ms, int64_t step_ms)
{
	if (*at_ms >= 0)
		*at_ms = *at_ms + step_ms > 0 ? *at_ms + step_ms : 0;
}

/* Moves the remembered times when the wall clock was set, so that their age stays the same. */
static void follow_clock(struct live *l, const struct moment *now)
{
	l->now_ms = now->wall_us / 1000;
	if (!l->refreshed)
		clock_watch_start(&l->clock_watch, now);
	int64_t step_ms = clock_watch_step_us(&l->clock_watch, now) / 1000;
	if (!step_ms)
		return;
	for (size_t i = 0; i < l->n_memory; i++) {
		struct live_memory *memory = &l->memory[i];
		int64_t *const times[] = { &memory->since_ms, &memory->idle_ms,
			&memory->newest_ms, &memory->covered_ms, &memory->own_ms,
			&memory->own_idle_ms };
		for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++)
			live_move(times[k], step_ms);
	}
	live_process_move(l, step_ms);
}

int64_t live_sample_ms(const struct live *l, size_t card, size_t sample)
{
	int64_t ms = l->source->cards[card].samples[sample].wall_us / 1000;
	if (ms < l->memory[card].from_ms)
		ms = l->memory[card].from_ms;
	return live_until_now(l, ms);
}

int64_t live_until_now(const struct live *l, int64_t at_ms)
{
	return at_ms < l->now_ms ? at_ms : l->now_ms;
}

/* Finds out whether samples were lost between the last drain and this one. The driver keeps ten
 * seconds, and returns each sample only once. A reading that is the mean over the whole time
 * misses nothing. */
static void take_coverage(struct live *l, size_t card)
{
	struct live_memory *m = &l->memory[card];
	m->from_ms = m->newest_ms;
	int64_t oldest_ms = live_sample_ms(l, card, 0);
	bool hole = oldest_ms - m->from_ms > HOLE_MS &&
		    l->source->cards[card].util_kind != UTIL_MEAN;
	m->gap = m->from_ms >= 0 && (m->missed || hole);
	m->missed = false;
	if (m->gap || m->covered_ms < 0)
		m->covered_ms = oldest_ms;
	m->newest_ms = live_sample_ms(l, card, l->source->cards[card].n_samples - 1);
}

/* Takes the newest utilisation. A drain without samples leaves the previous value. Without
 * utilisation, a failed refresh before this one is a gap. */
static void take_util(struct live *l)
{
	for (size_t i = 0; i < l->n_cards; i++) {
		const struct card_reading *r = &l->source->cards[i];
		l->memory[i].gap = false;
		l->memory[i].missed |= l->failed;
		if (r->status != CARD_STATUS_OK || !reading_util_is_known(r->util_kind)) {
			l->memory[i].util_pct = NAN;
			l->memory[i].gap = l->memory[i].missed;
			l->memory[i].missed = false;
		} else if (r->n_samples) {
			take_coverage(l, i);
			l->memory[i].util_pct = r->samples[r->n_samples - 1].util_pct;
		}
	}
}

/* Fills in values that are known without asking the driver again. */
static void fill_known(struct live *l, const struct card_id *id, int64_t used_bytes,
	double util_pct, double *values)
{
	unsigned domain, bus, device;
	values[METRIC_INDEX] = id->index;
	values[METRIC_CARDS] = (double)l->n_boards;
	if (id->mem_total_bytes >= 0)
		values[METRIC_MEMORY_TOTAL] = (double)id->mem_total_bytes;
	if (used_bytes >= 0)
		values[METRIC_MEMORY_USED] = (double)used_bytes;
	if (isnan(values[METRIC_MEMORY_FREE]))
		values[METRIC_MEMORY_FREE] =
			values[METRIC_MEMORY_TOTAL] - values[METRIC_MEMORY_USED];
	if (isnan(values[METRIC_UTILIZATION_GPU]))
		values[METRIC_UTILIZATION_GPU] = util_pct;
	bool wanted = l->wanted[METRIC_PCI_DOMAIN] || l->wanted[METRIC_PCI_BUS] ||
		      l->wanted[METRIC_PCI_DEVICE];
	if (wanted && sscanf(id->pci, "%x:%x:%x", &domain, &bus, &device) == 3) {
		values[METRIC_PCI_DOMAIN] = domain;
		values[METRIC_PCI_BUS] = bus;
		values[METRIC_PCI_DEVICE] = device;
	}
}

/* Metrics that rest keep the values of the answer before. */
static void keep_resting(const struct live *l, double *values, const double *before)
{
	for (int m = 0; m < METRIC_COUNT; m++)
		if (l->wanted[m] && !l->asking->question->wanted[m])
			values[m] = before[m];
}

static void keep_all_resting(struct live *l)
{
	const struct live_question *before = l->asking->question;
	for (size_t i = 0; i < l->n_boards && i < before->n_boards; i++)
		if (strcmp(l->boards[i].id.uuid, before->boards[i].id.uuid) == 0)
			keep_resting(l, l->boards[i].values, before->boards[i].values);
	for (size_t i = 0; i < l->n_cards && i < before->n_cards; i++)
		if (l->source->cards[i].id.mig_index >= 0)
			keep_resting(l, l->cards[i].values, before->cards[i].values);
}

static void finish_board(struct live *l, struct present_board *b)
{
	const struct live_memory *m = &l->memory[b->first_card];
	if (b->mig && !isnan(b->values[METRIC_MEMORY_TOTAL]))
		b->id.mem_total_bytes = (int64_t)b->values[METRIC_MEMORY_TOTAL];
	else if (b->mig)
		b->id.mem_total_bytes = -1;
	int64_t used = b->mig ? -1 : l->source->cards[b->first_card].mem_used_bytes;
	metric_derive(b->values);
	metric_take_codes(b->values, b->codes);
	fill_known(l, &b->id, used, b->mig ? NAN : m->util_pct, b->values);
}

static void finish_card(struct live *l, size_t i)
{
	struct present_card *c = &l->cards[i];
	const struct card_reading *r = &l->source->cards[i];
	const struct present_board *b = &l->boards[c->board];
	if (r->id.mig_index >= 0) {
		metric_derive(c->values);
		metric_take_codes(c->values, c->codes);
		fill_known(l, &r->id, r->mem_used_bytes, l->memory[i].util_pct, c->values);
	} else {
		memcpy(c->values, b->values, sizeof(c->values));
		memcpy(c->texts, b->texts, sizeof(c->texts));
		memcpy(c->codes, b->codes, sizeof(c->codes));
	}
	c->host = 0;
	c->last_seen_ms = -1;
	c->id = r->id;
	str_copy(c->source, sizeof(c->source), r->source);
	c->status = r->status;
	c->code = r->code;
	c->gone = r->gone;
	if (r->status == CARD_STATUS_OK)
		return;
	metric_clear(c->values, c->texts);
	memset(c->codes, 0, sizeof(c->codes));
	c->values[METRIC_INDEX] = c->id.index;
	c->values[METRIC_CARDS] = (double)l->n_boards;
}

/* Publishes the current arrays as the present. */
static void publish(struct live *l)
{
	l->host.rules = l->rules;
	l->host.last_tick_ms = -1;
	l->host.recorded_until_ms =
		l->past.now.any_run && !l->past.fresh ? l->past.now.last_tick_ms : -1;
	str_copy(l->host.note, sizeof(l->host.note), l->past.note);
	l->present = (struct present){ .now_ms = l->now_ms,
		.hosts = &l->host,
		.n_hosts = 1,
		.cards = l->cards,
		.n_cards = l->n_cards,
		.boards = l->boards,
		.n_boards = l->n_boards,
		.processes = l->now.items,
		.n_processes = l->now.n };
	/* The records of accounting mode, if no request is pending. */
	l->present.accounts = l->asking->question->accounts;
	l->present.n_accounts = l->asking->asked ? 0 : l->asking->question->n_accounts;
}

/* Turns the driver's answer into what the view shows: asks for all that belongs to it, then
 * judges. */
static int digest(struct live *l, struct err *e)
{
	/* Remember cards that are new; none is ever removed. */
	if (l->n_cards > l->n_memory && !array_resize(&l->memory, l->n_cards))
		return err_memory(e);
	while (l->n_memory < l->n_cards)
		l->memory[l->n_memory++] = live_nothing_seen;
	const struct moment now = clock_now(l->clock);
	follow_clock(l, &now);
	int rc = live_process_list(l, e);
	/* Nothing fails after this point: the view shows either all of the old or all of the
	 * new answer. */
	if (rc)
		return rc;
	const struct leases *leases = l->leases ? lease_dir_read(l->leases, l->now_ms) : NULL;
	if (l->past.db)
		past_read(&l->past, &now);
	str_copy(l->host.driver, sizeof(l->host.driver), l->source->driver_version);
	take_util(l);
	keep_all_resting(l);
	for (size_t i = 0; i < l->n_boards; i++)
		finish_board(l, &l->boards[i]);
	for (size_t i = 0; i < l->n_cards; i++)
		finish_card(l, i);
	live_process_use(l);
	live_judge(l, leases);
	publish(l);
	return 0;
}

/* Asking, and taking the answer. */

/* Sets the error message for a driver that does not answer. */
static int no_answer(struct live *l, struct err *e)
{
	int64_t ms = worker_took_ms(l->asking->worker);
	struct brief age = ms < 1000 ? str_brief("%lld ms", (long long)ms) : duration_text(ms);
	return err_set(e, ERR_BUSY,
		"the driver has not answered for %s: look for NVRM and Xid in the kernel's log "
		"(dmesg), or wait longer with --driver-timeout",
		age.text);
}

void live_rest(struct live *l, const unsigned char *resting)
{
	l->resting = resting;
}

static void ask(struct live *l)
{
	struct live_asking *a = l->asking;
	for (int m = 0; m < METRIC_COUNT; m++)
		a->question->wanted[m] = l->wanted[m] && !(l->resting && l->resting[m]);
	a->question->scan = l->failed;
	a->asked_us = clock_now(l->clock).boot_us;
	l->present.n_accounts = 0; /* the thread changes them */
	a->asked = worker_begin(a->worker, JOB_OWN);
}

void live_ask(struct live *l)
{
	if (!l->asking->asked)
		ask(l);
}

/* Exchanges the cards and boards of the view with those of the request: the new answer is
 * shown, and the old memory is reused for the next one. A second call undoes this. */
static void swap_readings(struct live *l, struct live_question *q)
{
	const struct live_question old = *q;
	q->cards = l->cards;
	q->boards = l->boards;
	q->n_cards = l->n_cards;
	q->n_boards = l->n_boards;
	q->cap = l->cap;
	l->cards = old.cards;
	l->boards = old.boards;
	l->n_cards = old.n_cards;
	l->n_boards = old.n_boards;
	l->cap = old.cap;
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
	a->asked = false;
	l->failed = true;
	return true;
}

/* Takes over the source that is open now, and the name of its host. */
static void take_source(struct live *l)
{
	char raw[128] = "";
	l->source = worker_opened(l->asking->worker);
	str_copy(raw, sizeof(raw), l->source->hostname);
	if (!raw[0] && gethostname(raw, sizeof(raw) - 1) != 0)
		str_copy(raw, sizeof(raw), "localhost");
	str_escape(l->host.hostname, sizeof(l->host.hostname), raw, strlen(raw));
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
		if (!l->source)
			take_source(l);
		swap_readings(l, a->question);
		rc = digest(l, e);
		if (rc)
			swap_readings(l, a->question);
	}
	l->failed = rc != 0;
	l->refreshed |= rc == 0;
	return rc;
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
	return l->asking->asked ? worker_fd(l->asking->worker) : -1;
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

static int refresh_once(struct live *l, int stop_fd, struct err *e)
{
	struct live_asking *a = l->asking;
	bool answered = a->asked && worker_result(a->worker, 0, NULL) != ERR_BUSY;
	int64_t since_us = answered ? a->question->answered_us : a->asked_us;
	bool old =
		a->asked && (a->overdue || clock_now(l->clock).boot_us - since_us >= FRESH_US);
	if (old && !answered)
		return no_answer(l, e);
	/* The driver gives each sample once, so an old answer is taken in before the next.
	 * live_take() also decides about one that came too late. */
	if (old && worker_took_ms(a->worker) <= a->deadline_ms && live_take(l, 0, e)) {
		a->asked = false;
		l->failed = true;
	}
	live_ask(l);
	int rc = stop_fd < 0 ? live_take(l, a->deadline_ms, e) : take_or_stop(l, stop_fd, e);
	a->overdue = rc == ERR_BUSY;
	return rc;
}

int live_refresh(struct live *l, int stop_fd, struct err *e)
{
	bool first = !l->refreshed, mean = false;
	int rc = refresh_once(l, stop_fd, e);
	for (size_t i = 0; rc == 0 && first && i < l->n_cards; i++)
		mean |= l->source->cards[i].util_kind == UTIL_MEAN;
	if (!mean)
		return rc;
	/* Such a use is known only between two readings. */
	struct pollfd stop = { .fd = stop_fd, .events = POLLIN };
	clock_wait(l->clock, clock_now(l->clock).boot_us + MEAN_US, &stop, stop_fd >= 0);
	return refresh_once(l, stop_fd, e);
}

/* Opens the reader that describes processes. It starts its own process here, so that it is
 * ready when the driver has listed the processes. Simulated processes need none, and those that
 * the store describes neither. */
static int open_processes(struct live *l, const struct live_options *o, struct err *e)
{
	const char *root = o->source.root ? o->source.root : "";
	bool measured = source_is_measured(o->source.name);
	if (o->db)
		past_trust(&l->past);
	int rc = reader_open(&l->reader, root, o->keep_uids ? OWNERS_BY_UID : 0, e);
	bool watched = measured && !root[0] && !o->once && !o->cards_only;
	if (rc == 0 && o->leases && (measured || root[0]))
		rc = lease_dir_open(&l->leases, &(struct lease_dir_options){ .root = root }, e);
	if (rc == 0)
		rc = lives_init(&l->lives, o->cards_only ? NULL : l->reader, watched, e);
	if (rc == 0 && measured && !o->cards_only && !l->past.trusted)
		reader_start(l->reader);
	return rc;
}

/* Begins to open the driver. */
static int open_driver(struct live *l, const struct live_options *o, struct err *e)
{
	struct source_options source = o->source;
	struct live_asking *a = l->asking = calloc(1, sizeof(*a));
	struct live_question *q = calloc(1, sizeof(*q));
	source.host = apart_host(l->apart);
	int rc = a && q ? worker_new(&a->worker, &source, o->deadline_ms, e) : err_memory(e);
	if (rc) {
		free(q);
		return rc;
	}
	worker_own(a->worker, put_question, q, free_question);
	q->clock = source.clock;
	q->scanned_us = clock_now(q->clock).boot_us;
	q->want_accounts = o->accounts;
	a->question = q;
	a->deadline_ms = o->deadline_ms;
	/* The first job reads the cards at once, which saves one switch to the thread. */
	ask(l);
	return 0;
}

int live_open(struct live **out, const struct live_options *o, struct err *e)
{
	struct live *l = calloc(1, sizeof(*l));
	if (!l)
		return err_memory(e);
	struct moment opened = clock_now(o->source.clock);
	l->clock = o->source.clock;
	l->present = (struct present){ .hosts = &l->host, .n_hosts = 1 };
	l->rules = l->usual_rules = o->rules;
	l->past.db = o->db;
	l->past.named = o->db_named;
	l->past.invented = source_is_invented(o->source.name);
	l->past.cards_only = o->cards_only;
	l->ticks_per_s = sysconf(_SC_CLK_TCK) > 0 ? sysconf(_SC_CLK_TCK) : 100;
	l->page_bytes = sysconf(_SC_PAGESIZE);
	l->viewer_uid = geteuid();
	memcpy(l->wanted, o->metrics ? o->metrics : live_usual_metrics, METRIC_COUNT);
	metric_complete(l->wanted);
	*out = l;
	const struct apart_manner manner = apart_manner_of(o->deadline_ms);
	int rc = apart_new(&l->apart, &o->source, &manner, e);
	if (rc == 0)
		rc = open_processes(l, o, e);
	if (rc == 0)
		rc = open_driver(l, o, e);
	if (rc)
		return rc;
	/* The store is read while the driver opens. */
	if (o->db)
		past_read(&l->past, &opened);
	rc = worker_result(l->asking->worker, o->deadline_ms, e);
	/* A driver that is slow to open is late with its first answer. */
	l->asking->overdue = rc == ERR_BUSY;
	if (!l->asking->overdue && !worker_opened(l->asking->worker))
		return rc;
	publish(l);
	return 0;
}

void live_close(struct live *l)
{
	if (!l)
		return;
	reader_dismiss(l->reader);
	if (l->asking && l->asking->worker)
		worker_end(l->asking->worker, WORKER_CLOSING_MS);
	apart_free(l->apart);
	free(l->asking);
	last_run_close(&l->past.now);
	context_finish(&l->past.floors);
	lives_finish(&l->lives);
	lease_dir_close(l->leases);
	reader_close(l->reader);
	live_process_finish_list(&l->now);
	live_process_finish_list(&l->before);
	free(l->cards);
	free(l->memory);
	free(l->boards);
	free(l->holders);
	free(l);
}

const struct present *live_present(const struct live *l)
{
	return &l->present;
}

struct reader *live_reader(struct live *l)
{
	return l->reader;
}

void live_recent_cards(const struct live *l, size_t first, const struct past_minutes *minutes)
{
	struct sqlite3 *db = past_open(&l->past);
	struct past_minutes own = *minutes;
	for (size_t i = 0; i < (l->n_cards - first) * own.n; i++)
		minutes->pct[i] = NAN;
	for (size_t i = first; db && i < l->n_cards; i++, own.pct += own.n)
		if (past_card_minutes(db, l->cards[i].id.uuid, &own) != 0)
			break;
	past_close(db);
}

bool live_recent_process(const struct live *l, size_t card, const struct process_id *id,
	const struct past_minutes *minutes)
{
	struct sqlite3 *db = card < l->n_cards ? past_open(&l->past) : NULL;
	int rc = db ? past_process_minutes(db, l->cards[card].id.uuid, id, minutes) : 0;
	past_close(db);
	return rc == 1;
}
