/* Reads slots for the idle time of sessions: when cards were not observed; when each process
 * held a card, in which slots it used the card, and when its use is unknown. */
#include "audit/idle_history.h"
#include "model/reading.h"
#include "store/sql.h"

#define MINUTE_MS INT64_C(60000)

struct gap_fold {
	struct fold fold;
	struct idle_history *h;
	int64_t slot_ms;
	int64_t *seen_until; /* by card: the end of the slots that were read, or -1 */
	int64_t *gap_to;     /* by card: the end of its last gap */
};

/* Adds the time to gaps or to busy time, if there is any. */
static bool add_to(struct gap_fold *f, struct idle_gap **all, size_t *n, struct idle_gap one)
{
	if (one.to_ms <= one.from_ms)
		return true;
	if (!array_one_more(all, *n)) {
		err_memory(f->fold.e);
		return false;
	}
	(*all)[(*n)++] = one;
	return true;
}

static bool add_gap(struct gap_fold *f, uint32_t card, int64_t from_ms, int64_t to_ms)
{
	return add_to(f, &f->h->gaps, &f->h->n_gaps, (struct idle_gap){ card, from_ms, to_ms });
}

/* Takes a slot of a card with its observed time. A missing slot is a gap. Time that is
 * missing within a slot counts as its beginning, so that an idle clock is late rather than
 * early. The exception is a one-minute slot after one without a gap: there it counts as the
 * end, where a gap begins that continues in the next slot. */
static bool take_slot(struct fold *fold, sqlite3_value **values)
{
	struct gap_fold *f = fold->context;
	uint32_t card = idmap_get(&f->h->card_ids, sqlite3_value_int64(values[1]));
	if (card == IDMAP_NONE)
		return true;
	int64_t from_ms = sql_value_signed(values[0]) * 1000, *seen = &f->seen_until[card];
	int64_t observed_ms = sql_value_sum(values[2]);
	/* The current slot is only as long as the time that has passed. */
	int64_t passed_ms = f->h->last_tick_ms - from_ms;
	int64_t length_ms = clock_earlier(clock_later(passed_ms, 0), f->slot_ms);
	int64_t missing_ms = clock_later(length_ms - observed_ms, 0);
	int64_t active_ms = clock_earlier(sql_value_sum(values[3]), length_ms);
	bool ok = f->h->present ||
		  add_to(f, &f->h->busy, &f->h->n_busy,
			  (struct idle_gap){
				  card, from_ms + length_ms - active_ms, from_ms + length_ms });
	ok = ok && (*seen < 0 || add_gap(f, card, *seen, from_ms));
	/* Before the first slot nothing was recorded. */
	bool after_gap = f->gap_to[card] == from_ms || *seen < from_ms;
	if (f->slot_ms == MINUTE_MS && !after_gap)
		from_ms += length_ms - missing_ms;
	*seen = sql_value_signed(values[0]) * 1000 + f->slot_ms;
	f->gap_to[card] = from_ms + missing_ms;
	return ok && add_gap(f, card, from_ms, from_ms + missing_ms);
}

int idle_slots_read_gaps(struct idle_history *h, struct err *e)
{
	struct gap_fold f = { .h = h };
	f.fold = (struct fold){ .row = take_slot, .context = &f };
	if (!h->n_processes)
		return 0;
	f.seen_until = malloc((h->n_cards + 1) * sizeof(*f.seen_until));
	f.gap_to = calloc(h->n_cards + 1, sizeof(*f.gap_to));
	int rc = f.seen_until && f.gap_to ? 0 : err_memory(e);
	for (size_t i = 0; i < h->n_cards && rc == 0; i++)
		f.seen_until[i] = -1;
	/* The coarsest table has the oldest slots: in this order, time does not go back. */
	for (size_t i = 0; i < SLOT_TABLES && rc == 0; i++) {
		f.slot_ms = slot_tables[i].seconds * 1000;
		rc = sql_fold(h->db, &f.fold, e,
			"SELECT fold(slot, gpu, ms, active) FROM (SELECT slot, gpu, "
			"sum(iif(state = 3, 0, ms)) AS ms, sum(iif(state = 0, ms, 0)) AS "
			"active FROM %s WHERE slot >= %lld GROUP BY slot, gpu ORDER BY slot)",
			slot_tables[i].usage,
			(long long)(idle_history_first_ms(h) / 1000 - slot_tables[i].seconds));
	}
	/* A card without slots up to the last tick is no longer observed. */
	for (uint32_t i = 0; i < h->n_cards && rc == 0; i++)
		if (f.seen_until[i] >= 0 && !add_gap(&f, i, f.seen_until[i], h->last_tick_ms))
			rc = err_memory(e);
	free(f.seen_until);
	free(f.gap_to);
	idle_history_join_gaps(h);
	return rc;
}
/* An idle stretch of a process on a card. */
struct stretch {
	uint32_t process, card;
	int64_t begin_ms, end_ms;
};

struct row_fold {
	struct fold fold;
	struct idle_history *h;
	int64_t slot_ms;	   /* length of a slot */
	struct idmap last;	   /* by process and card: its newest span */
	struct stretch *stretches; /* by process */
	size_t n_stretches;
	size_t *first; /* where the stretches of a process begin */
	bool *used;    /* by span: its newest slot counts as used, whatever the limit */
	size_t used_cap;
	struct session_sum *sums; /* by session */
};

/* The use of a session's processes of one card in one slot, as far as rows were read. It adds
 * the highest use of each process; these may be at different times: an upper bound. */
struct session_sum {
	int64_t from_ms, pct;
	uint32_t card;
	int32_t other; /* IDLE_USE_... of one of them; 0: none */
};

/* A slot of a process on a card. */
struct held_slot {
	uint32_t process, card;
	int64_t from_ms, to_ms, held_ms, mem_kib;
	int64_t pct;   /* highest use of a drain; 100 if all limits are reached */
	int32_t other; /* why that is not a percentage: IDLE_USE_...; else 0 */
};

static int64_t key_of(const struct idle_history *h, uint32_t process, uint32_t card)
{
	return (int64_t)process * (int64_t)(h->n_cards + 1) + card;
}

/* Whether the card was not observed between two slots, so that it may have been held the whole
 * time. */
static bool is_bridged(
	const struct idle_history *h, uint32_t card, int64_t from_ms, int64_t to_ms)
{
	size_t i = idle_history_gap(h, card, from_ms);
	return from_ms >= to_ms ||
	       (i < h->n_gaps && h->gaps[i].card == card && h->gaps[i].from_ms <= from_ms &&
		       h->gaps[i].to_ms >= to_ms);
}

/* Returns where the slot ends for this process, as far as time has passed. */
static int64_t end_of(const struct idle_history *h, const struct held_slot *s)
{
	int64_t end_ms = clock_earlier(s->to_ms, h->processes[s->process].last_ms);
	return clock_later(clock_earlier(end_ms, h->last_tick_ms), s->from_ms);
}

/* Begins a span: the process held the card in the last part of the slot. */
static bool add_span(struct row_fold *f, const struct held_slot *s, bool follows)
{
	struct idle_history *h = f->h;
	const struct idle_process *p = &h->processes[s->process];
	int64_t end_ms = end_of(h, s);
	/* The first moment of a process is known exactly; later spans only by how much of
	 * the slot it held the card. */
	int64_t begin_ms = p->first_ms >= s->from_ms
				   ? p->first_ms
				   : clock_later(s->from_ms, end_ms - s->held_ms);
	if (!array_one_more(&h->spans, h->n_spans) ||
		!array_reserve(&f->used, &f->used_cap, h->n_spans + 1) ||
		!idmap_put(&f->last, key_of(h, s->process, s->card), (uint32_t)h->n_spans))
		return false;
	h->spans[h->n_spans++] = (struct idle_span){ .session = p->session,
		.process = s->process,
		.card = s->card,
		.begin_ms = follows ? s->from_ms : clock_earlier(begin_ms, end_ms),
		.end_ms = end_ms,
		.until_ms = s->to_ms,
		.mem_kib = s->mem_kib };
	return true;
}

/* Memory is stored as a peak; peaks from before the last use do not count afterwards. */
static bool take_held(struct row_fold *f, const struct held_slot *s)
{
	struct idle_history *h = f->h;
	uint32_t at = idmap_get(&f->last, key_of(h, s->process, s->card));
	bool used = s->pct >= IDLE_BELOW_MOST;
	bool follows =
		at != IDMAP_NONE && is_bridged(h, s->card, h->spans[at].until_ms, s->from_ms);
	if (!follows || (f->used[at] && !used)) {
		if (!add_span(f, s, follows))
			return false;
		/* It continues without a pause, or over a gap. */
		if (follows)
			h->spans[at].end_ms = s->from_ms;
		at = (uint32_t)h->n_spans - 1;
	} else {
		h->spans[at].end_ms = end_of(h, s);
		h->spans[at].until_ms = s->to_ms;
		h->spans[at].mem_kib = clock_later(h->spans[at].mem_kib, s->mem_kib);
	}
	f->used[at] = used;
	return true;
}

/* The activity in a slot was outside the idle stretches: if a stretch begins or ends in the
 * slot, the mark is cut there. */
static void cut_mark(const struct row_fold *f, struct idle_mark *m, uint32_t process)
{
	int64_t from_ms = m->from_ms, until_ms = m->until_ms;
	for (size_t i = f->first[process]; i < f->first[process + 1]; i++) {
		const struct stretch *s = &f->stretches[i];
		if (s->card != m->card || s->end_ms < from_ms || s->begin_ms > until_ms)
			continue;
		bool begins = s->begin_ms > from_ms, ends = s->end_ms < until_ms;
		if (begins && !ends && s->begin_ms < m->until_ms)
			m->until_ms = s->begin_ms;
		if (ends && !begins && s->end_ms > m->from_ms)
			m->from_ms = s->end_ms;
	}
}

static bool add_marks(struct row_fold *f, const struct held_slot *s, uint32_t session, bool cut)
{
	struct idle_history *h = f->h;
	struct idle_mark mark = { .session = session,
		.card = s->card,
		.from_ms = s->from_ms,
		.until_ms = s->to_ms,
		.slot_ms = s->from_ms };
	struct session_sum *sum = &f->sums[session];
	if (sum->from_ms != s->from_ms || sum->card != s->card)
		*sum = (struct session_sum){ .from_ms = s->from_ms, .card = s->card };
	sum->pct += clock_later(s->pct, 0);
	sum->other = s->other ? s->other : sum->other;
	int64_t pct = sum->pct;
	mark.pct = sum->other ? sum->other : (int32_t)clock_earlier(pct, INT32_MAX);
	if (s->pct > 0 && pct < IDLE_BELOW_MOST) {
		if (!array_one_more(&h->lows, h->n_lows))
			return false;
		h->lows[h->n_lows++] = (struct idle_low){ session, s->from_ms, pct };
	}
	if (cut)
		cut_mark(f, &mark, s->process);
	for (size_t i = 0; i < h->n_limits && mark.until_ms >= mark.from_ms; i++) {
		if (s->pct <= 0 || pct < h->limits[i])
			continue;
		if (!array_one_more(&h->marks, h->n_marks))
			return false;
		mark.limit = (unsigned)i;
		h->marks[h->n_marks++] = mark;
	}
	return true;
}

/* Unknown use could be anywhere in the slot: it counts at the end, so that it does not
 * coincide with unobserved time, which counts at the beginning. */
static bool add_unknown(struct row_fold *f, uint32_t session, int64_t end_ms, int64_t ms)
{
	struct idle_history *h = f->h;
	if (ms == 0)
		return true;
	if (!array_one_more(&h->blinds, h->n_blinds))
		return false;
	h->blinds[h->n_blinds++] = (struct idle_blind){
		.session = session, .from_ms = end_ms - ms, .to_ms = end_ms
	};
	return true;
}

/* Takes a slot of processes that share a row. If their session is unknown, their use counts for
 * each session of their user, because it may belong to it. */
static bool take_crowd(
	struct row_fold *f, const struct held_slot *s, uint32_t crowd, int64_t unknown_ms)
{
	struct idle_history *h = f->h;
	const struct idle_crowd *c = &h->crowds[crowd];
	int64_t end_ms = clock_later(clock_earlier(s->to_ms, h->last_tick_ms), s->from_ms);
	bool ok = true;
	unknown_ms = clock_earlier(unknown_ms, end_ms - s->from_ms);
	for (uint32_t i = 0; ok && i < h->n_sessions; i++)
		if (c->session == i ||
			(c->session == IDMAP_NONE && h->sessions[i].kind != SESSION_LEASE &&
				strcmp(h->sessions[i].user, c->user) == 0))
			ok = add_marks(f, s, i, false) && add_unknown(f, i, end_ms, unknown_ms);
	return ok;
}

enum {
	AT_SLOT,
	AT_GPU,
	AT_PROCESS,
	AT_HELD,
	AT_ACTIVE,
	AT_ENGINE,
	AT_MOST,
	AT_UNKNOWN,
	AT_MEM,
	AT_USED
};

static bool take_row(struct fold *fold, sqlite3_value **values)
{
	struct row_fold *f = fold->context;
	struct idle_history *h = f->h;
	int64_t id = sqlite3_value_int64(values[AT_PROCESS]);
	int64_t unknown_ms = sql_value_sum(values[AT_UNKNOWN]);
	struct held_slot s = { .held_ms = sql_value_sum(values[AT_HELD]),
		.process = idmap_get(&h->process_ids, id),
		.card = idmap_get(&h->card_ids, sqlite3_value_int64(values[AT_GPU])),
		.from_ms = sql_value_signed(values[AT_SLOT]) * 1000,
		.mem_kib = sql_value_known(values[AT_MEM]),
		.pct = sql_value_known(values[AT_MOST]) };
	uint32_t crowd = s.process == IDMAP_NONE ? idmap_get(&h->crowd_ids, id) : IDMAP_NONE;
	if ((s.process == IDMAP_NONE && crowd == IDMAP_NONE) || s.card == IDMAP_NONE ||
		s.held_ms == 0)
		return true;
	bool old = s.pct<0, encodes = sql_value_sum(values[AT_ENGINE])> 0;
	s.to_ms = s.from_ms + f->slot_ms;
	if (encodes || sql_value_sum(values[AT_USED]) > 0) {
		s.pct = 100;
		s.other = encodes ? IDLE_USE_ENGINE : IDLE_USE_UNKNOWN;
	}
	/* In an idle stretch SM use is below 10 %, but an engine may be used. For rows from
	 * before version 4, the stretch is all that is known. */
	bool cut = old && sql_value_sum(values[AT_ACTIVE]) > 0 && !encodes;
	bool ok = true;
	if (crowd != IDMAP_NONE) {
		ok = take_crowd(f, &s, crowd, unknown_ms);
	} else {
		uint32_t session = h->processes[s.process].session;
		int64_t end_ms = end_of(h, &s);
		ok = (h->brief || take_held(f, &s)) && add_marks(f, &s, session, cut) &&
		     add_unknown(
			     f, session, end_ms, clock_earlier(unknown_ms, end_ms - s.from_ms));
	}
	if (!ok)
		err_memory(fold->e);
	return ok;
}

/* Rows from before version 4: any use counts. If the driver does not report the use of
 * processes, 1 % or more use of the card counts; unknown use counts as use. */
#define USED_BEFORE                                                                            \
	"iif(own_use IS NOT NULL, 0, active_ms > 0 OR sm_pct_ms > 0 OR use_unknown_ms > 0 "    \
	"OR (sm_pct_ms IS NULL AND coalesce((SELECT sum(util_pct_ms) >= sum(ms) FROM %s AS u " \
	"WHERE u.slot = h.slot AND u.gpu = h.gpu AND u.state IN (0, 1, 2)), 0)))"

static int compare_stretches(const void *a, const void *b)
{
	const struct stretch *x = a, *y = b;
	int by_process = array_compare(x->process, y->process);
	return by_process ? by_process : array_compare(x->begin_ms, y->begin_ms);
}

/* Reads the idle stretches, by which slots are cut. */
static int read_stretches(struct row_fold *f, int64_t first_ms, struct err *e)
{
	struct idle_history *h = f->h;
	sqlite3_stmt *rows = NULL;
	f->first = calloc(h->n_processes + 2, sizeof(*f->first));
	if (!f->first)
		return err_memory(e);
	if (h->brief) /* only rows from before version 4 need them */
		return 0;
	int rc = sql_prepare(h->db, &rows, e,
		"SELECT process, gpu, begin_ms, end_ms FROM spell WHERE end_ms > %lld "
		"UNION ALL SELECT process, gpu, begin_ms, end_ms FROM open_spell",
		(long long)first_ms);
	while (sql_next(&rows, &rc, e)) {
		const struct stretch s = { idmap_get(&h->process_ids, sql_int(rows, 0, 0)),
			idmap_get(&h->card_ids, sql_int(rows, 1, 0)), sql_int(rows, 2, -1),
			sql_int(rows, 3, -1) };
		if (s.process == IDMAP_NONE || s.card == IDMAP_NONE)
			continue;
		if (!array_one_more(&f->stretches, f->n_stretches))
			rc = err_memory(e);
		else
			f->stretches[f->n_stretches++] = s;
	}
	array_sort(f->stretches, f->n_stretches, compare_stretches);
	for (size_t i = 0; i < f->n_stretches; i++)
		f->first[f->stretches[i].process + 1]++;
	for (size_t p = 1; p <= h->n_processes; p++)
		f->first[p] += f->first[p - 1];
	return rc;
}

int idle_slots_read(struct idle_history *h, struct err *e)
{
	struct row_fold f = { .h = h };
	int64_t first_ms = idle_history_first_ms(h);
	f.fold = (struct fold){ .row = take_row, .context = &f };
	f.sums = calloc(h->n_sessions + 1, sizeof(*f.sums));
	int rc = f.sums ? 0 : err_memory(e);
	if (rc == 0 && h->n_processes)
		rc = read_stretches(&f, first_ms, e);
	/* The coarsest table has the oldest slots: in this order, time does not go back. */
	for (size_t i = 0; i < SLOT_TABLES && rc == 0 && h->n_processes; i++) {
		const struct slot_table *t = &slot_tables[i];
		f.slot_ms = t->seconds * 1000;
		rc = sql_fold(h->db, &f.fold, e,
			"SELECT fold(slot, gpu, process, active_ms + idle_held_ms + "
			"squatting_ms "
			"+ use_unknown_ms, active_ms, engine_ms, own_use & 255, own_use >> 8, "
			"mem_peak_kib, " USED_BEFORE ") FROM %s AS h WHERE slot >= %lld AND "
			"slot < %lld",
			t->usage, t->holding, (long long)(first_ms / 1000 - t->seconds),
			(long long)(h->until_ms / 1000 + 1));
	}
	idmap_finish(&f.last);
	free(f.stretches);
	free(f.first);
	free(f.used);
	free(f.sums);
	return rc;
}

/* The newest span of a process on a card; NULL: none. */
static struct idle_span *newest(const struct idle_history *h, uint32_t process, uint32_t card)
{
	struct idle_span *best = NULL;
	for (size_t i = 0; i < h->n_spans; i++)
		if (h->spans[i].process == process && h->spans[i].card == card &&
			(!best || h->spans[i].begin_ms > best->begin_ms))
			best = &h->spans[i];
	return best;
}

/* Takes a holder of the last tick. With `brief`, it counts as holding the card since it was
 * first seen. */
static int take_holder(struct idle_history *h, sqlite3_stmt *row, struct err *e)
{
	uint32_t process = idmap_get(&h->process_ids, sql_int(row, 0, 0));
	uint32_t card = idmap_get(&h->card_ids, sql_int(row, 1, 0));
	if (process == IDMAP_NONE || card == IDMAP_NONE)
		return 0;
	struct idle_process *p = &h->processes[process];
	int64_t kind = sql_int(row, 4, 0) & (PROCESS_COMPUTE | PROCESS_GRAPHICS);
	h->sessions[p->session].draws |= h->present && kind == PROCESS_GRAPHICS;
	struct idle_span *s = h->brief ? NULL : newest(h, process, card);
	int64_t lately_ms = h->last_tick_ms - h->interval_ms - MINUTE_MS;
	/* A new holder has no slot yet. */
	if (!s || !is_bridged(h, card, s->until_ms, lately_ms)) {
		if (!h->present)
			return 0;
		if (!array_one_more(&h->spans, h->n_spans))
			return err_memory(e);
		s = &h->spans[h->n_spans++];
		*s = (struct idle_span){ .session = p->session,
			.process = process,
			.card = card,
			.begin_ms = h->brief ? p->first_ms : sql_int(row, 2, 0),
			.mem_kib = -1 };
		s->begin_ms = clock_earlier(s->begin_ms, h->last_tick_ms);
	}
	/* In the current slot, the held time grows with each tick. */
	if (!h->brief && s->begin_ms > p->first_ms && s->begin_ms > h->last_tick_ms - MINUTE_MS)
		s->begin_ms = clock_earlier(h->last_tick_ms, sql_int(row, 2, s->begin_ms));
	s->open = true;
	s->end_ms = s->until_ms = h->last_tick_ms;
	if (h->present && sql_int(row, 3, -1) >= 0)
		s->mem_kib = sql_int(row, 3, -1) / 1024;
	return 0;
}

int idle_slots_read_held(struct idle_history *h, struct err *e)
{
	sqlite3_stmt *rows = NULL;
	int rc = sql_prepare(h->db, &rows, e,
		"SELECT process, gpu, since_ms, coalesce(mem_bytes, (SELECT 1024 * "
		"mem_peak_kib FROM open_spell AS o WHERE o.gpu = holder.gpu AND o.process = "
		"holder.process)), kind FROM holder");
	while (sql_next(&rows, &rc, e))
		rc = take_holder(h, rows, e);
	return rc;
}
