/* The holders of the cards: sums slots by process and card, then processes by identity; what
 * one user holds now, and memory that no living process explains. */
#include "audit/gather.h"
#include "classify/context.h"

/* A shorter pause counts as work. */
#define IDLE_MS 300000

/* Holders of a user, except those on a card whose use is unknown, and those whose job or
 * container computes, which must not be ended. */
#define PRESENT_SQL                                                                            \
	"SELECT h.gpu, p.pid, h.mem_bytes, max(h.since_ms, coalesce(h.last_active_ms, 0)), "   \
	"p.job, p.container, coalesce(p.notebook_path, p.notebook, p.job_name, p.job, "        \
	"iif(instr(p.pod, '/'), p.pod, NULL), p.container, p.pod, p.command), p.notebook IS "  \
	"NOT NULL, p.pod "                                                                     \
	"FROM holder h JOIN process p ON p.id = h.process WHERE p.user = ?1 AND NOT EXISTS "   \
	"(SELECT 1 FROM reading r WHERE r.gpu = h.gpu AND r.util_pct IS NULL) AND NOT EXISTS " \
	"(SELECT 1 FROM holder o JOIN process q ON q.id = o.process WHERE (q.id = p.id OR "    \
	"q.job = p.job OR q.pod = p.pod OR q.container = p.container) AND o.last_active_ms > " \
	"(SELECT max(last_tick_ms) FROM run) - 300000)"

static int take_present(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	struct audit *a = g->a;
	uint32_t card = gather_card(file, sqlite3_column_int64(row, 0));
	int64_t idle_ms = g->q->now_ms - sql_int(row, 3, 0);
	if (card == IDMAP_NONE)
		return 0;
	const struct audit_host *host = &a->hosts[a->cards[card].host];
	if (!host->recording || idle_ms < IDLE_MS)
		return 0;
	if (!array_one_more(&a->present, a->n_present))
		return err_memory(e);
	a->present[a->n_present++] = (struct audit_present){ .host = a->cards[card].host,
		.card = card,
		.pid = (uint32_t)sqlite3_column_int64(row, 1),
		.mem_bytes = sql_int(row, 2, -1),
		.idle_ms = idle_ms,
		.job = sql_text_copy(row, 4, &a->texts),
		.container = sql_text_copy(row, 5, &a->texts),
		.what = sql_text_copy(row, 6, &a->texts),
		.notebook = sqlite3_column_int(row, 7) != 0,
		.pod = sql_text_copy(row, 8, &a->texts) };
	return a->texts.failed ? err_memory(e) : 0;
}

/* Notes that a process belongs to the user. */
static int take_process(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	(void)g;
	return idmap_put(&file->person, sqlite3_column_int64(row, 0), 1) ? 0 : err_memory(e);
}

static int compare_present(const void *x, const void *y)
{
	const struct audit_present *p = x, *q = y;
	int by_idle = array_compare(q->idle_ms, p->idle_ms);
	return by_idle ? by_idle : array_compare(p->pid, q->pid);
}

static int add_present(struct gather *g, struct gather_file *file, struct err *e)
{
	return g->q->present_of ? gather_rows(g, file, PRESENT_SQL, take_present, e) : 0;
}

static int add_orphan(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	struct audit *a = g->a;
	struct audit_orphans *all = &a->orphans;
	uint32_t card = gather_card(file, sqlite3_column_int64(row, 0));
	if (card == IDMAP_NONE)
		return 0;
	const struct audit_host *host = &a->hosts[a->cards[card].host];
	/* The current holders are not relevant for a window that ended before. */
	if (!host->recording || host->last_tick_ms > g->q->until_ms)
		return 0;
	if (!array_one_more(&all->items, all->n))
		return err_memory(e);
	all->items[all->n++] = (struct audit_orphan){ .card = card,
		.pid = (uint32_t)sql_int(row, 1, 0),
		.mem_bytes = sql_int(row, 2, -1),
		.since_ms = sql_int(row, 3, -1) };
	return 0;
}

static int add_orphans(struct gather *g, struct gather_file *file, struct err *e)
{
	return gather_rows(g, file,
		"SELECT holder.gpu, pid, mem_bytes, since_ms FROM holder"
		" JOIN process ON process.id = holder.process"
		" WHERE pid = 0 OR user = '" USER_DEAD "' ORDER BY holder.gpu, pid",
		add_orphan, e);
}

uint32_t holdings_find_user(struct users *u, const char *name, struct err *e)
{
	uint32_t index = names_find(&u->names, 0, name, e);
	if (index == IDMAP_NONE || index < u->n)
		return index;
	if (!array_one_more(&u->items, u->n)) {
		err_memory(e);
		return IDMAP_NONE;
	}
	struct audit_identity *item = &u->items[u->n++];
	*item = (struct audit_identity){ .sums = AUDIT_SUMS_NONE };
	str_copy(item->identity, sizeof(item->identity), name);
	return index;
}

static int compare_identities(const void *x, const void *y, void *items)
{
	const struct audit_identity *p = (struct audit_identity *)items + *(const uint32_t *)x;
	const struct audit_identity *q = (struct audit_identity *)items + *(const uint32_t *)y;
	int by_time = array_compare(audit_holder_ms(q->sums.ms) + q->sums.reserved_ms,
		audit_holder_ms(p->sums.ms) + p->sums.reserved_ms);
	return by_time ? by_time : strcmp(p->identity, q->identity);
}

static void renumber(struct audit_breakdown *b, size_t n_users, const uint32_t *to)
{
	for (size_t level = 0; level < BY_MAX; level++)
		for (size_t i = 0; i < b->n[level]; i++)
			if (b->rows[level][i].user < n_users)
				b->rows[level][i].user = to[b->rows[level][i].user];
}

int holdings_hand_over_users(struct users *u, struct audit *a, struct err *e)
{
	uint32_t *order = calloc(2 * u->n + 1, sizeof(*order)),
		 *to = order ? order + u->n : NULL;
	int rc = order ? 0 : err_memory(e);
	for (uint32_t i = 0; i < u->n && rc == 0; i++)
		order[i] = i;
	if (rc == 0)
		qsort_r(order, u->n, sizeof(*order), compare_identities, u->items);
	for (uint32_t i = 0; i < u->n && rc == 0; i++) {
		struct audit_identity *identity = audit_add_identity(a, e);
		if (identity)
			*identity = u->items[order[i]];
		to[order[i]] = i;
		rc = identity ? 0 : ERR_WORLD;
	}
	for (size_t i = 0; i < a->n_processes && rc == 0; i++)
		a->processes[i].identity = to[a->processes[i].identity];
	if (rc == 0) {
		renumber(&a->breakdown, u->n, to);
		renumber(&a->by_card, u->n, to);
	}
	arena_move(&a->texts, &u->names.texts);
	free(order);
	return rc;
}

void holdings_finish_users(struct users *u)
{
	free(u->items);
	names_finish(&u->names);
	*u = (struct users){ 0 };
}

/* Processes have no names yet, so they are compared by the names of their users. */
static int compare_processes(const void *x, const void *y, void *gather)
{
	const struct gather *g = gather;
	const struct audit_process *p = x, *q = y;
	int difference = audit_order_compare(g->q->order, &p->sums, &q->sums);
	if (difference == 0 && g->q->order == ORDER_NAME)
		difference = strcmp(g->a->identities[p->identity].identity,
			g->a->identities[q->identity].identity);
	if (difference)
		return difference;
	if (p->card != q->card)
		return array_compare((int64_t)p->card, (int64_t)q->card);
	return array_compare(p->id, q->id);
}

/* Sorts the processes and keeps those that were asked for. */
static void choose_processes(struct gather *g)
{
	struct audit *a = g->a;
	if (a->n_processes)
		qsort_r(a->processes, a->n_processes, sizeof(*a->processes), compare_processes,
			g);
	size_t max = g->q->max_processes;
	a->left_out = (struct audit_sums)AUDIT_SUMS_NONE;
	while (max && a->n_processes > max) {
		audit_sums_add(&a->left_out, &a->processes[--a->n_processes].sums);
		a->n_processes_left_out++;
	}
}

/* Bits of the card index in a key, which combines a process id and a card index. */
#define CARD_BITS 20
#define PROCESS_ID_MAX (1LL << 42)
/* Up to this many unneeded process rows are read, instead of looking rows up one by one. */
#define ID_GAP 8

void holdings_free_pairs(struct pairs *p)
{
	if (!p)
		return;
	idmap_finish(&p->map);
	names_finish(&p->users);
	for (size_t level = 0; level < BY_MAX; level++)
		names_finish(&p->labels[level]);
	free(p->items);
	free(p->unknown_ms);
	free(p);
}

static struct pair *find_pair(struct pairs *p, int64_t process, uint32_t card, struct err *e)
{
	if (p->n && p->items[p->last].process == process && p->items[p->last].card == card)
		return &p->items[p->last];
	int64_t key = process << CARD_BITS | card;
	uint32_t index = idmap_get(&p->map, key);
	if (index == IDMAP_NONE) {
		index = (uint32_t)p->n;
		if (!array_one_more(&p->items, p->n) || !idmap_put(&p->map, key, index)) {
			err_memory(e);
			return NULL;
		}
		p->items[p->n++] = (struct pair){ .process = process,
			.card = card,
			.user = IDMAP_NONE,
			.labels = { IDMAP_NONE, IDMAP_NONE },
			.peak_mem_kib = -1,
			.last_active_ms = -1 };
	}
	p->last = index;
	return &p->items[index];
}

/* What the rows of one file's holding tables are added to. */
struct holding_fold {
	struct fold fold;
	const struct gather *g;
	struct pairs *pairs;
	struct gather_file *file;
	int64_t seconds; /* width of the slots */
	struct heat_clock clock;
};

/* The states in the order of the columns. The last was added in version 2. */
#define COLUMNS                                                                                \
	"gpu, process, active_ms, idle_held_ms, truly_idle_ms, squatting_ms, use_unknown_ms, " \
	"active_double_ms, idle_held_double_ms, truly_idle_double_ms, squatting_double_ms, "   \
	"use_unknown_double_ms, active_share_ms, idle_share_ms, mem_peak_kib, slot"
enum {
	MS_AT = 2,
	DOUBLE_AT = MS_AT + HOLDER_STATES,
	REST_AT = DOUBLE_AT + HOLDER_STATES,
	SLOT_AT = REST_AT + 3,
};

/* Adds to the hours of the week, the days and the time line of the users that the audit is
 * restricted to. Squatting time counts as idle-held. */
static void add_hours(
	struct holding_fold *h, uint32_t card, int64_t slot, const int64_t ms[HOLDER_STATES])
{
	const struct heat_slot at = { slot, h->seconds };
	struct audit_columns *columns = &h->g->a->columns;
	const int64_t by_state[CARD_STATES] = { [CARD_ACTIVE] = ms[HOLDER_ACTIVE],
		[CARD_IDLE_HELD] = ms[HOLDER_IDLE_HELD] + ms[HOLDER_SQUATTING],
		[CARD_TRULY_IDLE] = ms[HOLDER_TRULY_IDLE],
		[CARD_USE_UNKNOWN] = ms[HOLDER_USE_UNKNOWN] };
	for (int state = 0; state < CARD_STATES; state++)
		if (by_state[state]) {
			hours_add(&h->file->part->a, &h->clock, at, state, by_state[state]);
			hours_add_column(columns, card, slot, state, by_state[state]);
		}
}

/* The presence of a row in a state, of which it has `ms`. */
static int64_t presence(sqlite3_value **values, int state, int64_t ms)
{
	int64_t twice = sql_value_signed(values[DOUBLE_AT + state]);
	return twice < ms ? ms - twice : 0;
}

/* Adds a row. The time that a user was present in a state is the time of the user's
 * processes, minus the time in which several of them were present (the "double" columns).
 * The result is negative where the state of the user differs from that of the process. */
static bool take_holding(struct fold *f, sqlite3_value **values)
{
	struct holding_fold *h = f->context;
	uint32_t place = idmap_get(&h->file->places, sqlite3_value_int64(values[0]));
	uint32_t card = place == IDMAP_NONE ? IDMAP_NONE : h->file->cards[place];
	int64_t process = sqlite3_value_int64(values[1]);
	if (card >= 1u << CARD_BITS || process < 0 || process > PROCESS_ID_MAX)
		return true;
	if (h->pairs->unknown_ms)
		h->pairs->unknown_ms[place] += presence(values, HOLDER_USE_UNKNOWN,
			sql_value_sum(values[MS_AT + HOLDER_USE_UNKNOWN]));
	if (!restriction_has(h->g, h->file, process))
		return true;
	struct pair *pair = find_pair(h->pairs, process, card, f->e);
	if (!pair)
		return false;
	pair->place = place;
	int64_t presence_ms[HOLDER_STATES];
	for (int state = 0; state < HOLDER_STATES; state++) {
		int64_t ms = sql_value_sum(values[MS_AT + state]);
		presence_ms[state] = presence(values, state, ms);
		pair->own_ms[state] += ms;
		pair->presence_ms[state] += presence_ms[state];
	}
	if (restriction_of_users(&h->g->q->only))
		add_hours(h, card, sqlite3_value_int64(values[SLOT_AT]), presence_ms);
	pair->active_share_ms += sql_value_sum(values[REST_AT]);
	pair->idle_share_ms += sql_value_sum(values[REST_AT + 1]);
	int64_t peak_kib = sql_value_known(values[REST_AT + 2]);
	if (peak_kib > pair->peak_mem_kib)
		pair->peak_mem_kib = peak_kib;
	return true;
}

static int read_holdings(
	struct holding_fold *h, const char *table, struct slot_span span, struct err *e)
{
	h->fold = (struct fold){ .row = take_holding, .context = h };
	return sql_fold(h->file->db, &h->fold, e,
		"SELECT fold(" COLUMNS ") FROM %s WHERE slot >= %lld AND slot < %lld%s", table,
		(long long)span.from, (long long)span.to,
		h->pairs->unknown_ms ? "" : restriction_sql(h->g));
}

static int read_window(
	const struct gather *g, struct gather_file *file, struct pairs *p, struct err *e)
{
	bool of_users = restriction_of_users(&g->q->only);
	struct window_reads reads =
		window_reads(g, file, of_users ? hours_level(g) : WINDOW_BY_DAY);
	struct holding_fold h = {
		.g = g, .pairs = p, .file = file, .clock = { .utc = g->q->utc }
	};
	int rc = 0;
	for (size_t i = 0; i < reads.n && rc == 0; i++) {
		h.seconds = reads.items[i].table->seconds;
		rc = read_holdings(&h, reads.items[i].table->holding, reads.items[i].span, e);
	}
	return rc;
}

static int compare_pairs(const void *x, const void *y)
{
	const struct pair *a = x, *b = y;
	int by_process = array_compare(a->process, b->process);
	return by_process ? by_process : array_compare(a->card, b->card);
}

/* The columns of a row before those that a breakdown asks for. */
enum { LABELS_AT = 5 };

static int set_labels(struct pairs *p, struct pair *pair, sqlite3_stmt *row, struct err *e)
{
	char text[COMMAND_CAP];
	for (int level = 0; level < BY_MAX; level++) {
		if (sqlite3_column_type(row, LABELS_AT + level) == SQLITE_NULL)
			continue;
		sql_text(row, LABELS_AT + level, text, sizeof(text));
		if (!*text)
			continue;
		pair->labels[level] = names_find(&p->labels[level], 0, text, e);
		if (pair->labels[level] == IDMAP_NONE)
			return ERR_WORLD;
	}
	return 0;
}

/* Copies the row's values to that process's pairs; `*at` is the first pair that may match. */
static int name_pairs(struct pairs *p, size_t *at, sqlite3_stmt *row, struct err *e)
{
	int64_t id = sqlite3_column_int64(row, 0);
	while (*at < p->n && p->items[*at].process < id)
		++*at;
	if (*at == p->n || p->items[*at].process != id)
		return 0;
	char name[USER_CAP];
	sql_text(row, 1, name, sizeof(name));
	uint32_t user = names_find(&p->users, 0, name, e);
	if (user == IDMAP_NONE)
		return ERR_WORLD;
	int rc = 0;
	for (; *at < p->n && p->items[*at].process == id && rc == 0; ++*at) {
		struct pair *pair = &p->items[*at];
		pair->user = user;
		pair->pid = (uint32_t)sqlite3_column_int64(row, 2);
		pair->started_ms = sql_int(row, 3, -1);
		pair->last_active_ms = sql_int(row, 4, -1);
		rc = set_labels(p, pair, row, e);
	}
	return rc;
}

/* Reads the process rows of all pairs, which are sorted; neighbouring ids are read together. */
static int read_owners(
	const struct gather *g, struct gather_file *file, struct pairs *p, struct err *e)
{
	sqlite3_stmt *stmt;
	const struct by *by = &g->q->by;
	int rc = sql_prepare(file->db, &stmt, e,
		"SELECT id, user, pid, started_ms, last_active_ms, %s, %s FROM process "
		"WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
		breakdown_column(by, 0), breakdown_column(by, 1));
	for (size_t from = 0, to = 0; from < p->n && rc == 0; from = to) {
		to = from + 1;
		while (to < p->n && p->items[to].process - p->items[to - 1].process <= ID_GAP)
			to++;
		sql_bind(stmt, SQL_INT(p->items[from].process),
			SQL_INT(p->items[to - 1].process));
		size_t at = from;
		while (rc == 0 && (rc = sql_step(stmt, e)) == 1)
			rc = name_pairs(p, &at, stmt, e);
		sqlite3_reset(stmt);
	}
	sqlite3_finalize(stmt);
	return rc;
}

/* For current holders, the table `holder` has the newest time of last activity. */
static int read_last_active(struct gather_file *file, struct pairs *p, struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(file->db, &stmt, e,
		"SELECT gpu, process, last_active_ms FROM holder WHERE last_active_ms NOT "
		"NULL");
	while (sql_next(&stmt, &rc, e)) {
		struct pair key = { .process = sqlite3_column_int64(stmt, 1),
			.card = gather_card(file, sqlite3_column_int64(stmt, 0)) };
		struct pair *pair =
			p->n ? bsearch(&key, p->items, p->n, sizeof(key), compare_pairs) : NULL;
		if (pair && pair->last_active_ms < sqlite3_column_int64(stmt, 2))
			pair->last_active_ms = sqlite3_column_int64(stmt, 2);
	}
	return rc;
}

struct audit_sums holdings_sums(const struct pair *pair)
{
	struct audit_sums sums = { .active_share_ms = pair->active_share_ms,
		.idle_share_ms = pair->idle_share_ms,
		.context_share_ms = pair->context ? pair->idle_share_ms : 0,
		.unknown_share_ms = pair->unknown_share_ms,
		.reserved_ms = pair->reserved_ms,
		.peak_mem_kib = pair->peak_mem_kib,
		.last_active_ms = pair->last_active_ms };
	memcpy(sums.ms, pair->own_ms, sizeof(sums.ms));
	return sums;
}

static int add_process(struct audit *a, size_t path, const struct pair *pair, struct err *e)
{
	struct audit_process *process = audit_add_process(a, e);
	if (!process)
		return ERR_WORLD;
	process->host = a->cards[pair->card].host;
	process->card = pair->card;
	process->identity = pair->user;
	process->id = pair->process;
	process->path = path;
	process->pid = pair->pid;
	process->started_ms = pair->started_ms;
	process->sums = holdings_sums(pair);
	process->context = pair->context;
	audit_cost_holder(&process->sums, &a->cards[pair->card]);
	return 0;
}

/* Marks the pairs that had only a bare context. What was learned is read if it is needed. */
static int mark_contexts(
	const struct gather *g, const struct gather_file *file, struct pairs *p, struct err *e)
{
	struct context_floors floors = { .n = 0 };
	bool read = false;
	int rc = 0;
	for (size_t i = 0; i < p->n && rc == 0; i++) {
		struct pair *pair = &p->items[i];
		if (!context_may_be(pair->peak_mem_kib * 1024))
			continue;
		if (!read)
			rc = audit_read_floors(&floors, file->db, e);
		read = true;
		/* Compares with what was learned about the model, else with a fixed size. */
		int64_t floor = context_floor(&floors, g->a->cards[pair->card].id.name);
		enum context found =
			context_judge(PROCESS_COMPUTE, pair->peak_mem_kib * 1024, floor);
		pair->context = rc == 0 && (found == CONTEXT_ONLY ||
						   (found == CONTEXT_ABOUT && floor < 0));
	}
	context_finish(&floors);
	return rc;
}

/* Divides the time with unknown use of each card by the presence of its holders, because
 * there is nothing else to divide it by. */
static void divide_unknown(const struct gather_file *file, struct pairs *p)
{
	for (size_t i = 0; i < p->n && p->unknown_ms; i++) {
		struct pair *pair = &p->items[i];
		int64_t own_ms = pair->presence_ms[HOLDER_USE_UNKNOWN];
		int64_t all_ms = p->unknown_ms[pair->place];
		int64_t card_ms = file->unknown_ms[pair->place];
		double part = all_ms > card_ms ? (double)card_ms / (double)all_ms : 1;
		pair->unknown_share_ms = (int64_t)((double)own_ms * part);
	}
}

/* In pairs, leases have the ids from here on. */
#define LEASE_IDS (PROCESS_ID_MAX / 2)

/* What a lease is called in a breakdown: SQL over the table lease. */
static const char *lease_column(const struct by *by, size_t level)
{
	static const char *const columns[IDENTITIES] = {
		[IDENTITY_PROCESS] =
			"'lease ' || iif(kind = 0, 'job', iif(kind = 1, 'pod', 'pick')) || ' '"
			" || name",
		[IDENTITY_JOB] = "iif(kind = 0, " BREAKDOWN_JOB(
			"'slurm:' || name", "'slurm:' || coalesce(task, name)") ", NULL)",
		[IDENTITY_JOB_NAME] = "job_name",
		[IDENTITY_POD] = "iif(kind = 1, name, NULL)",
		[IDENTITY_ACCOUNT] = "account",
	};
	const char *column = level < by->n ? columns[by->kinds[level]] : NULL;
	return column ? column : "NULL";
}

/* The columns of a row of a lease before those that a breakdown asks for (LABELS_AT). */
#define LEASED "lease, gpu, slot, reserved_ms, owner"

/* Adds the reserved time of a lease to its pair. */
static int take_leased(struct holding_fold *h, sqlite3_stmt *row, struct err *e)
{
	struct gather_file *file = h->file;
	uint32_t card = gather_card(file, sqlite3_column_int64(row, 1));
	int64_t lease = sqlite3_column_int64(row, 0), slot = sqlite3_column_int64(row, 2);
	int64_t reserved_ms = sql_int(row, 3, 0);
	char owner[USER_CAP];
	bool takes_it;
	sql_text(row, 4, owner, sizeof(owner));
	if (card != IDMAP_NONE)
		file->part->a.lease_unknown_ms += sql_int(row, LABELS_AT + BY_MAX, 0);
	int rc = restriction_take_owner(h->g, file, owner, &takes_it, e);
	takes_it = takes_it &&
		   restriction_takes_job_of(&h->g->q->only, row, LABELS_AT + BY_MAX + 1);
	if (rc || !takes_it || !reserved_ms || card >= 1u << CARD_BITS || lease < 0 ||
		lease > LEASE_IDS)
		return rc;
	struct pair *pair = find_pair(h->pairs, LEASE_IDS + lease, card, e);
	if (!pair)
		return ERR_WORLD;
	if (restriction_of_users(&h->g->q->only)) {
		const struct heat_slot at = { slot, h->seconds };
		hours_add(&file->part->a, &h->clock, at, CARD_RESERVED, reserved_ms);
		hours_add_column(&h->g->a->columns, card, slot, CARD_RESERVED, reserved_ms);
	}
	pair->reserved_ms += reserved_ms;
	if (pair->lease)
		return 0;
	pair->lease = true;
	pair->started_ms = -1;
	pair->user = names_find(&h->pairs->users, 0, owner, e);
	return pair->user == IDMAP_NONE ? ERR_WORLD : set_labels(h->pairs, pair, row, e);
}

/* Reads the leases of the window. They are added to the pairs, as processes that have nothing
 * but reserved time. */
static int read_leases(
	const struct gather *g, struct gather_file *file, struct pairs *p, struct err *e)
{
	struct holding_fold h = {
		.g = g, .pairs = p, .file = file, .clock = { .utc = g->q->utc }
	};
	int64_t any = 0; /* most stores have none */
	int rc = sql_number(file->db, &any, e, "SELECT EXISTS (SELECT 1 FROM lease)");
	for (int i = 0; any && i < SLOT_TABLES && rc == 0; i++) {
		sqlite3_stmt *row;
		h.seconds = slot_tables[i].seconds;
		rc = sql_prepare(file->db, &row, e,
			"SELECT " LEASED ", %s, %s, unknown_ms, " LEASE_JOB
			" FROM %s AS s JOIN lease ON "
			"lease.id = s.lease WHERE slot >= %lld AND slot < %lld",
			lease_column(&g->q->by, 0), lease_column(&g->q->by, 1),
			slot_tables[i].reserved, (long long)g->from_slot,
			(long long)g->to_slot);
		while (sql_next(&row, &rc, e))
			rc = take_leased(&h, row, e);
	}
	return rc;
}

/* Reads the pairs: their slots, their owners, and what is known of them. */
static int read_pairs(const struct gather *g, struct gather_file *file, struct err *e)
{
	struct pairs *p = file->part->pairs = calloc(1, sizeof(*p));
	if (!p)
		return err_memory(e);
	if (file->unknown_ms)
		p->unknown_ms = calloc(file->n_cards + 1, sizeof(*p->unknown_ms));
	if (file->unknown_ms && !p->unknown_ms)
		return err_memory(e);
	int rc = read_window(g, file, p, e);
	idmap_finish(&p->map); /* sorting moves them */
	array_sort(p->items, p->n, compare_pairs);
	if (rc || read_owners(g, file, p, e) || read_last_active(file, p, e) ||
		mark_contexts(g, file, p, e))
		return e->code;
	divide_unknown(file, p);
	return read_leases(g, file, p, e);
}

static int read_file(struct gather *g, struct gather_file *file, struct err *e)
{
	const char *owned = "SELECT id FROM process WHERE user = ?1";
	if (gather_start_part(g, file, e) || restriction_read(g, file, e) ||
		(g->q->present_of && gather_rows(g, file, owned, take_process, e)) ||
		read_pairs(g, file, e))
		return e->code;
	return spells_read(g, file, e);
}

/* What the holders of all files are added to. */
struct owners {
	struct users users;
	struct breakdown breakdown; /* as asked */
	struct breakdown by_card;   /* of the users that the audit is restricted to */
};

/* Gives a pair the numbers of its user and its names in the audit. */
static int number_pair(struct owners *o, const struct pairs *p, const uint32_t *users,
	struct pair *pair, struct err *e)
{
	int rc = 0;
	pair->user = users[pair->user];
	for (size_t level = 0; level < BY_MAX && rc == 0; level++) {
		uint32_t label = pair->labels[level];
		if (label != IDMAP_NONE)
			rc = breakdown_label(&o->breakdown, pair, level,
				p->labels[level].items[label].text, e);
	}
	return rc;
}

/* Adds a pair to everything that it belongs to. */
static int add_pair(struct gather *g, size_t path, const struct pair *pair, struct err *e)
{
	struct owners *o = g->context;
	struct audit_sums time = holdings_sums(pair);
	memcpy(time.ms, pair->presence_ms, sizeof(time.ms));
	audit_cost_holder(&time, &g->a->cards[pair->card]);
	audit_sums_add(&o->users.items[pair->user].sums, &time);
	if ((g->q->want_processes && !pair->lease && add_process(g->a, path, pair, e)) ||
		breakdown_add(&o->breakdown, path, pair, e))
		return e->code;
	return breakdown_add(&o->by_card, path, pair, e);
}

static int add_pairs(struct gather *g, struct gather_file *file, struct err *e)
{
	struct owners *o = g->context;
	struct pairs *p = file->part->pairs;
	uint32_t *users = calloc(p->users.n + 1, sizeof(*users));
	int rc = users ? 0 : err_memory(e);
	for (size_t i = 0; i < p->users.n && rc == 0; i++) {
		users[i] = holdings_find_user(&o->users, p->users.items[i].text, e);
		rc = users[i] == IDMAP_NONE ? ERR_WORLD : 0;
	}
	for (size_t i = 0; i < p->n && rc == 0; i++) {
		struct pair *pair = &p->items[i];
		if (pair->user == IDMAP_NONE)
			continue;
		rc = number_pair(o, p, users, pair, e);
		if (rc == 0)
			rc = add_pair(g, (size_t)(file - g->files), pair, e);
	}
	free(users);
	return rc;
}

static int add_file(struct gather *g, struct gather_file *file, struct err *e)
{
	static int (*const parts[])(
		struct gather *, struct gather_file *, struct err *) = { restriction_add,
		add_pairs, events_add, add_present, spells_add, add_orphans, audit_leases_add };
	int rc = 0;
	gather_add_hours(g, file);
	g->a->lease_unknown_ms += file->part->a.lease_unknown_ms;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && rc == 0; i++)
		rc = parts[i](g, file, e);
	return rc;
}

/* Sorts what was read. Users are renumbered, because other items refer to them by index. */
static int finish_holders(struct gather *g, struct owners *o, struct err *e)
{
	if (breakdown_end(&o->breakdown, e) || holdings_hand_over_users(&o->users, g->a, e))
		return e->code;
	choose_processes(g);
	events_sort(g->a);
	array_sort(g->a->present, g->a->n_present, compare_present);
	spells_sort(&g->a->spells, g->q->max_spells);
	audit_leases_sort(&g->a->leases, g->q->max_spells);
	return 0;
}

int holdings_read(struct gather *g, struct err *e)
{
	static const struct by cards = { { IDENTITY_CARD }, 1 }, nothing = { .n = 0 };
	static const struct gather_pass pass = { .read = read_file, .add = add_file };
	struct owners o = { 0 };
	g->a->of_users = restriction_of_users(&g->q->only);
	if (g->a->of_users) {
		hours_clear(&g->a->days);
		hours_clear_columns(&g->a->columns, g->a->n_cards);
	}
	breakdown_start(&o.breakdown, g, &o.users, &g->a->breakdown, &g->q->by);
	breakdown_start(
		&o.by_card, g, &o.users, &g->a->by_card, g->a->of_users ? &cards : &nothing);
	g->context = &o;
	int rc = gather_each(g, &pass, e);
	g->context = NULL;
	if (rc == 0 && !g->again)
		rc = restriction_check_users(g, e);
	if (rc == 0)
		rc = finish_holders(g, &o, e);
	breakdown_finish(&o.breakdown);
	breakdown_finish(&o.by_card);
	holdings_finish_users(&o.users);
	return rc;
}
