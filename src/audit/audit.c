/* Makes an audit: the steps that fill it from stores, what every engine adds to it, and what
 * its time costs. */
#include "audit/audit.h"

#include "audit/gather.h"
#include "model/state.h"
#include "store/store.h"

#define HOUR_MS 3600e3
/* A card's idle power is used only if it is based on at least this much time. */
#define FLOOR_MS 60000

/* Truly-idle energy and time of all cards of a model. */
struct model_floor {
	const char *name;
	int64_t energy_mj, ms;
};

struct model_floors {
	struct model_floor *items;
	size_t n;
};

static struct model_floor *find_model(struct model_floors *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->items[i].name, name) == 0)
			return &m->items[i];
	return NULL;
}

static int add_model(struct model_floors *m, const struct audit_card *card, struct err *e)
{
	struct model_floor *model = find_model(m, card->id.name);
	if (!model && !array_one_more(&m->items, m->n))
		return err_memory(e);
	if (!model) {
		model = &m->items[m->n++];
		*model = (struct model_floor){ .name = card->id.name };
	}
	model->energy_mj += card->energy_mj[CARD_TRULY_IDLE] + card->energy_mj[CARD_RESERVED];
	model->ms +=
		card->energy_known_ms[CARD_TRULY_IDLE] + card->energy_known_ms[CARD_RESERVED];
	return 0;
}

/* Returns the mean power of a card without any work, in watts: its own or, if it was not idle
 * for long enough, that of all cards of its model; NAN: none was idle for long enough. */
static double floor_of(struct model_floors *m, const struct audit_card *card)
{
	int64_t ms =
		card->energy_known_ms[CARD_TRULY_IDLE] + card->energy_known_ms[CARD_RESERVED];
	const struct model_floor *model = find_model(m, card->id.name);
	if (ms >= FLOOR_MS)
		return (double)(card->energy_mj[CARD_TRULY_IDLE] +
				card->energy_mj[CARD_RESERVED]) /
		       (double)ms;
	return model->ms >= FLOOR_MS ? (double)model->energy_mj / (double)model->ms : NAN;
}

int audit_cost_cards(struct gather *g, struct err *e)
{
	struct audit *a = g->a;
	struct model_floors models = { 0 };
	int rc = 0;
	for (size_t i = 0; i < a->n_cards && rc == 0; i++)
		rc = add_model(&models, &a->cards[i], e);
	for (size_t i = 0; i < a->n_cards && rc == 0; i++) {
		struct audit_card *card = &a->cards[i];
		card->floor_w = floor_of(&models, card);
		card->price = g->q->price_of ? g->q->price_of(g->q->price_context, &card->id)
					     : (double)NAN;
	}
	free(models.items);
	return rc;
}

/* Adds the energy of a part of the card's time in a state. */
static void add_energy(struct audit_cost *cost, const struct audit_card *card,
	enum card_state state, double part_ms)
{
	if (part_ms <= 0 || card->ms[state] <= 0 || card->energy_known_ms[state] <= 0)
		return;
	double part = part_ms / (double)card->ms[state];
	double energy_mj = part * (double)card->energy_mj[state];
	double known_ms = part * (double)card->energy_known_ms[state];
	double floor_mj = fmin(card->floor_w * known_ms, energy_mj);
	cost->energy_mj += energy_mj;
	cost->floor_mj += isnan(card->floor_w) ? (double)NAN : floor_mj;
	cost->energy_ms += llround(known_ms);
}

/* Adds the cost of a part of the card's time. */
static void add_money(
	struct audit_cost *cost, const struct audit_card *card, enum cost_part part, double ms)
{
	bool priced = isfinite(card->price);
	cost->priced |= priced;
	if (priced)
		cost->money[part] += card->price * ms / HOUR_MS;
	if (part < COST_PARTS)
		*(priced ? &cost->priced_ms : &cost->unpriced_ms) += llround(ms);
}

void audit_cost_holder(struct audit_sums *sums, const struct audit_card *card)
{
	static const enum card_state states[] = { [COST_ACTIVE] = CARD_ACTIVE,
		[COST_IDLE_HELD] = CARD_IDLE_HELD,
		[COST_USE_UNKNOWN] = CARD_USE_UNKNOWN,
		[COST_RESERVED] = CARD_RESERVED };
	const int64_t shares[] = { [COST_ACTIVE] = sums->active_share_ms,
		[COST_IDLE_HELD] = sums->idle_share_ms,
		[COST_USE_UNKNOWN] = sums->unknown_share_ms,
		[COST_RESERVED] = sums->reserved_ms };
	sums->cost = (struct audit_cost){ 0 };
	for (int part = 0; part < COST_HELD_PARTS; part++) {
		add_money(&sums->cost, card, part, (double)shares[part]);
		add_energy(&sums->cost, card, states[part], (double)shares[part]);
	}
	add_money(&sums->cost, card, COST_SQUATTING, (double)sums->ms[HOLDER_SQUATTING]);
}

void audit_cost_card(struct audit_cost *cost, const struct audit_card *card, int from, int to)
{
	static const enum card_state states[COST_PARTS] = { [COST_ACTIVE] = CARD_ACTIVE,
		[COST_IDLE_HELD] = CARD_IDLE_HELD,
		[COST_USE_UNKNOWN] = CARD_USE_UNKNOWN,
		[COST_RESERVED] = CARD_RESERVED,
		[COST_TRULY_IDLE] = CARD_TRULY_IDLE,
		[COST_UNOBSERVED] = CARD_UNOBSERVED };
	for (int part = from; part < to; part++) {
		double ms = (double)card->ms[states[part]];
		add_money(cost, card, part, ms);
		add_energy(cost, card, states[part], ms);
	}
}

void audit_cost_add(struct audit_cost *to, const struct audit_cost *more)
{
	for (int part = 0; part < COSTS; part++)
		to->money[part] += more->money[part];
	to->priced |= more->priced;
	to->priced_ms += more->priced_ms;
	to->unpriced_ms += more->unpriced_ms;
	to->energy_mj += more->energy_mj;
	to->floor_mj += more->floor_mj;
	to->energy_ms += more->energy_ms;
}

void audit_cost_subtract(struct audit_cost *from, const struct audit_cost *less)
{
	for (int part = 0; part < COSTS; part++)
		from->money[part] -= less->money[part];
	from->priced_ms -= less->priced_ms;
	from->unpriced_ms -= less->unpriced_ms;
	from->energy_mj -= less->energy_mj;
	from->floor_mj -= less->floor_mj;
	from->energy_ms -= less->energy_ms;
}

enum order audit_order_of(const char *name)
{
#define ORDER_ROW(id, text)                                                                    \
	if (name && strcmp(name, text) == 0)                                                   \
		return ORDER_##id;
	ORDERS(ORDER_ROW)
#undef ORDER_ROW
	return ORDER_DEFAULT;
}

int64_t audit_waste(const struct audit_sums *sums)
{
	return sums->ms[HOLDER_IDLE_HELD] + sums->ms[HOLDER_SQUATTING] + sums->reserved_ms;
}

static int64_t value_of(enum order order, const struct audit_sums *s)
{
	switch (order) {
	case ORDER_HELD:
		return audit_holder_ms(s->ms);
	case ORDER_USED:
		return s->ms[HOLDER_ACTIVE];
	case ORDER_IDLE:
		return s->ms[HOLDER_IDLE_HELD];
	case ORDER_SQUATTING:
		return s->ms[HOLDER_SQUATTING];
	case ORDER_SHARE:
		return s->active_share_ms + s->idle_share_ms;
	case ORDER_MEMORY:
		return s->peak_mem_kib;
	case ORDER_NAME:
		return 0;
	case ORDER_DEFAULT:
	case ORDER_WASTE:
		break;
	}
	return audit_waste(s);
}

int audit_order_compare(
	enum order order, const struct audit_sums *a, const struct audit_sums *b)
{
	if (order == ORDER_NAME)
		return 0;
	int by_value = array_compare(value_of(order, b), value_of(order, a));
	return by_value ? by_value
			: array_compare(audit_holder_ms(b->ms), audit_holder_ms(a->ms));
}

void audit_init(struct audit *a)
{
	*a = (struct audit){ .rules = RULES_DEFAULT, .oldest_ms = -1, .newest_ms = -1 };
}

struct audit_host *audit_add_host(struct audit *a, struct err *e)
{
	if (!array_one_more(&a->hosts, a->n_hosts)) {
		err_memory(e);
		return NULL;
	}
	a->hosts[a->n_hosts] = (struct audit_host){ .known_ms = -1, .last_tick_ms = -1 };
	return &a->hosts[a->n_hosts++];
}

struct audit_card *audit_add_card(struct audit *a, struct err *e)
{
	if (!array_one_more(&a->cards, a->n_cards)) {
		err_memory(e);
		return NULL;
	}
	a->cards[a->n_cards] = (struct audit_card){ .id = { .mig_index = -1,
							    .gpu_instance = -1,
							    .compute_instance = -1,
							    .mem_total_bytes = -1 },
		.price = NAN,
		.floor_w = NAN };
	return &a->cards[a->n_cards++];
}

struct audit_identity *audit_add_identity(struct audit *a, struct err *e)
{
	if (!array_one_more(&a->identities, a->n_identities)) {
		err_memory(e);
		return NULL;
	}
	a->identities[a->n_identities] = (struct audit_identity){ .sums = AUDIT_SUMS_NONE };
	return &a->identities[a->n_identities++];
}

struct audit_process *audit_add_process(struct audit *a, struct err *e)
{
	if (!array_one_more(&a->processes, a->n_processes)) {
		err_memory(e);
		return NULL;
	}
	a->processes[a->n_processes] =
		(struct audit_process){ .started_ms = -1, .sums = AUDIT_SUMS_NONE };
	return &a->processes[a->n_processes++];
}

struct audit_event *audit_add_event(struct audit *a, struct err *e)
{
	if (!array_one_more(&a->events, a->n_events)) {
		err_memory(e);
		return NULL;
	}
	a->events[a->n_events] = (struct audit_event){
		.xid = -1, .total_ms = -1, .last_ms = INT64_MIN, .last_card = AUDIT_NO_CARD
	};
	return &a->events[a->n_events++];
}

int64_t audit_holder_ms(const int64_t ms[HOLDER_STATES])
{
	int64_t sum = 0;
	for (int state = 0; state < HOLDER_STATES; state++)
		sum += ms[state];
	return sum;
}

void audit_sums_add(struct audit_sums *to, const struct audit_sums *more)
{
	for (int state = 0; state < HOLDER_STATES; state++)
		to->ms[state] += more->ms[state];
	to->active_share_ms += more->active_share_ms;
	to->idle_share_ms += more->idle_share_ms;
	to->context_share_ms += more->context_share_ms;
	to->unknown_share_ms += more->unknown_share_ms;
	to->reserved_ms += more->reserved_ms;
	audit_cost_add(&to->cost, &more->cost);
	if (more->peak_mem_kib > to->peak_mem_kib)
		to->peak_mem_kib = more->peak_mem_kib;
	to->last_active_ms = clock_later(to->last_active_ms, more->last_active_ms);
}

bool audit_is_late(const struct audit *a, int64_t known_ms)
{
	return known_ms > a->since_ms + AUDIT_CLIP_MS;
}

void audit_clip(struct audit *a, const struct audit_question *q, bool past)
{
	a->asked_since_ms = clock_later(q->since_ms, 0);
	/* Nothing is recorded in the future. */
	a->asked_until_ms = a->until_ms = clock_earlier(q->until_ms, q->now_ms);
	a->since_ms = clock_later(a->asked_since_ms, a->oldest_ms);
	if (past && a->newest_ms >= 0)
		a->until_ms = clock_earlier(a->until_ms, a->newest_ms);
	/* A start of 0 asks for all data. */
	a->clipped_start = q->since_ms > 0 && a->since_ms - a->asked_since_ms > AUDIT_CLIP_MS;
	a->clipped_end = a->asked_until_ms - a->until_ms > AUDIT_CLIP_MS;
}

/* The uncertainty of all cards together: the errors of different cards are independent. */
static int64_t unsure_of_all(const struct audit *a)
{
	double linear_ms = 0, squares = 0;
	for (size_t i = 0; i < a->n_cards; i++) {
		double own_ms2 = (double)a->cards[i].unsure_ms2, root_ms = sqrt(own_ms2);
		double linear = (double)a->cards[i].unsure_ms - root_ms;
		linear_ms += linear > 0 ? linear : 0;
		squares += own_ms2;
	}
	return llround(linear_ms + sqrt(squares));
}

void audit_add_up(struct audit *a)
{
	for (size_t i = 0; i < a->n_cards; i++) {
		const struct audit_card *card = &a->cards[i];
		int64_t *known_ms = &a->hosts[card->host].known_ms;
		if (*known_ms < 0 || card->first_seen_ms < *known_ms)
			*known_ms = card->first_seen_ms;
		for (int state = 0; state < CARD_STATES; state++) {
			a->ms[state] += card->ms[state];
			a->energy_mj[state] += card->energy_mj[state];
			a->energy_known_ms[state] += card->energy_known_ms[state];
		}
		audit_cost_card(&a->cost, card, 0, COST_PARTS);
	}
	for (size_t i = 0; i < a->n_hosts; i++)
		a->hosts[i].late = audit_is_late(a, a->hosts[i].known_ms);
	a->unsure_ms = unsure_of_all(a);
	int64_t shared_ms = 0, used_ms = a->ms[CARD_ACTIVE] + a->ms[CARD_IDLE_HELD];
	for (size_t i = 0; i < a->n_identities; i++) {
		const struct audit_sums *sums = &a->identities[i].sums;
		shared_ms += sums->active_share_ms + sums->idle_share_ms;
		audit_cost_add(&a->held_cost, &sums->cost);
	}
	bool all = !a->of_users && !a->fleet.n_partial; /* all users are known */
	a->unattributed_ms = used_ms > shared_ms && all ? used_ms - shared_ms : 0;
}

void audit_finish(struct audit *a)
{
	arena_finish(&a->texts);
	free(a->days.items);
	free(a->columns.items);
	free(a->columns.marks);
	free(a->present);
	free(a->events);
	free(a->stores.unread);
	free(a->spells.items);
	free(a->leases.items);
	free(a->orphans.items);
	for (size_t level = 0; level < BY_MAX; level++) {
		free(a->breakdown.rows[level]);
		free(a->by_card.rows[level]);
	}
	free(a->processes);
	free(a->identities);
	free(a->cards);
	free(a->hosts);
	*a = (struct audit){ 0 };
}

/* A process that the audit shows, alone or with a spell. */
struct shown {
	size_t path; /* its store */
	int64_t id;  /* of its row there */
	const char **texts;
	struct audit_spell *spell; /* NULL: none */
};

static int compare_shown(const void *x, const void *y)
{
	const struct shown *a = x, *b = y;
	return array_compare((int64_t)a->path, (int64_t)b->path);
}

/* Reads what the row of the process says; its store is open. `*stmt` is kept for the next one.
 */
static int describe(struct gather *g, const struct shown *s, sqlite3_stmt **stmt, struct err *e)
{
	struct arena *texts = &g->a->texts;
	int rc = *stmt ? 0
		       : sql_prepare(g->files[s->path].db, stmt, e,
				 "SELECT " PROCESS_TEXT_COLUMNS
				 ", pid, started_ms, user FROM process WHERE id = ?1");
	sqlite3_stmt *row = *stmt;
	sql_bind(row, SQL_INT(s->id));
	rc = rc ? rc : sql_step(row, e);
	if (rc == 1) {
		for (int i = 0; i < PROCESS_TEXTS; i++)
			s->texts[i] = sql_text_copy(row, i, texts);
		if (s->spell) {
			const char *user = sql_text_copy(row, PROCESS_TEXTS + 2, texts);
			s->spell->pid = (uint32_t)sql_int(row, PROCESS_TEXTS, 0);
			s->spell->started_ms = sql_int(row, PROCESS_TEXTS + 1, -1);
			s->spell->user = user ? user : "";
		}
		rc = texts->failed ? err_memory(e) : 0;
	}
	sqlite3_reset(row);
	return rc;
}

/* Describes the processes and the spells that are shown, store by store. */
static int gather_describe(struct gather *g, struct err *e)
{
	struct audit *a = g->a;
	sqlite3_stmt *stmt = NULL;
	size_t n = 0;
	struct shown *all = calloc(a->n_processes + a->spells.n + 1, sizeof(*all));
	int rc = all ? 0 : err_memory(e);
	for (size_t i = 0; i < a->n_processes && all; i++)
		all[n++] = (struct shown){ a->processes[i].path, a->processes[i].id,
			a->processes[i].texts, NULL };
	for (size_t i = 0; i < a->spells.n && all; i++) {
		struct audit_spell *s = &a->spells.items[i];
		all[n++] = (struct shown){ s->path, s->id, s->texts, s };
	}
	array_sort(all, n, compare_shown);
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct gather_file *file = &g->files[all[i].path];
		if (file->code)
			continue;
		rc = gather_open(g, file, e) || describe(g, &all[i], &stmt, e) ? e->code : 0;
		if (rc == 0 && i + 1 < n && all[i + 1].path == all[i].path)
			continue;
		sqlite3_finalize(stmt);
		stmt = NULL;
		if (rc)
			rc = gather_failed(g, file, e);
		if (i + 1 == n || all[i + 1].path != all[i].path)
			gather_leave(g, file);
	}
	free(all);
	return rc;
}

/* Makes the audit of the stores that can be read. */
static int run_steps(struct gather *g, struct err *e)
{
	static int (*const steps[])(struct gather *, struct err *) = { gather_survey,
		window_set, hosts_check_overlap, hours_make_days, restriction_check_words,
		usage_read, hosts_settle, hours_read_columns, audit_cost_cards, holdings_read,
		gather_describe };
	int rc = 0;
	audit_init(g->a);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && rc == 0 && !g->again; i++)
		rc = steps[i](g, e);
	return rc;
}

static int add_unread(struct audit *a, const char *why, struct err *e)
{
	struct audit_stores *s = &a->stores;
	const char *copy = arena_text(&a->texts, why);
	if (!copy || !array_one_more(&s->unread, s->n_unread))
		return err_memory(e);
	s->unread[s->n_unread++] = copy;
	return 0;
}

/* Lists in the audit the stores that it does not include. */
static int list_unread(struct gather *g, struct err *e)
{
	int rc = 0;
	g->a->stores.n = g->n_files + g->q->n_unread;
	for (size_t i = 0; i < g->q->n_unread && rc == 0; i++)
		rc = add_unread(g->a, g->q->unread[i], e);
	for (size_t i = 0; i < g->n_files && rc == 0; i++)
		if (g->files[i].code)
			rc = add_unread(g->a, g->files[i].why, e);
	return rc;
}

int audit_run(struct audit *a, const struct audit_question *q, struct err *e)
{
	struct gather g = { .a = a, .q = q };
	if (q->engine)
		return q->engine(q->engine_context, a, q, e);
	audit_init(a);
	tzset();
	int rc = gather_list(&g, e) || run_steps(&g, e) ? e->code : 0;
	/* Each round leaves out at least one more store. */
	while (rc == 0 && g.again) {
		audit_finish(a);
		gather_forget(&g);
		rc = run_steps(&g, e);
	}
	if (rc == 0)
		rc = list_unread(&g, e);
	gather_close(&g);
	if (rc == 0)
		audit_add_up(a);
	return rc;
}

/* Copies which host rows belong to the same host. */
static int copy_hosts(const struct gather *g, struct merge_hosts *to, struct err *e)
{
	to->items = calloc(g->n_records + 1, sizeof(*to->items));
	if (!to->items)
		return err_memory(e);
	for (size_t i = 0; i < g->n_records; i++) {
		const struct gather_record *record = &g->records[i];
		size_t first = hosts_first(g, i);
		struct merge_host *host = &to->items[to->n++];
		*host = (struct merge_host){ .path = record->file,
			.id = record->id,
			.machine = first,
			.newest = g->records[first].newest == i };
		str_copy(host->name, sizeof(host->name), record->hostname);
		str_copy(host->machine_id, sizeof(host->machine_id), record->machine_id);
	}
	return 0;
}

int audit_check_stores(const char *const *paths, size_t n, bool *simulated,
	struct merge_hosts *hosts, struct err *e)
{
	const struct audit_question q = { .paths = paths,
		.n_paths = n,
		.until_ms = NUMBER_MAX / 2,
		.now_ms = NUMBER_MAX / 2 };
	struct audit a;
	struct gather g = { .a = &a, .q = &q, .strict = true };
	audit_init(&a);
	bool failed = gather_list(&g, e) || gather_survey(&g, e) || window_set(&g, e) ||
		      hosts_check_overlap(&g, e) || copy_hosts(&g, hosts, e);
	*simulated = false;
	for (size_t i = 0; i < a.n_hosts; i++)
		*simulated |= a.hosts[i].simulated;
	gather_close(&g);
	audit_finish(&a);
	return failed ? e->code : 0;
}

enum {
	DAY_ROWS = 3000, /* number of rows read, the newest */
	MINUTE_ROWS = 1000,
};
/* Bits of the card id in a key, which combines a process id and a card id. */
#define LIFE_CARD_BITS 20

/* What the newest rows are read into: the largest memory of each process on each card. A
 * process that was seen while it started, or between two allocations, has more later. */
struct lives {
	struct fold fold;
	struct idmap places; /* by process and card */
	struct life {
		int64_t gpu, process, kib;
		uint32_t model;
	} * items;
	size_t n, n_rows;
};

/* Values: gpu, process, mem_peak_kib. */
static bool take_life(struct fold *f, sqlite3_value **values)
{
	struct lives *l = f->context;
	struct life life = { .gpu = sqlite3_value_int64(values[0]),
		.process = sqlite3_value_int64(values[1]),
		.kib = sql_value_known(values[2]) };
	int64_t key = (int64_t)((uint64_t)life.process << LIFE_CARD_BITS ^ (uint64_t)life.gpu);
	uint32_t place = idmap_get(&l->places, key);
	l->n_rows++;
	if (place != IDMAP_NONE) {
		l->items[place].kib = clock_later(l->items[place].kib, life.kib);
		return true;
	}
	if (!array_one_more(&l->items, l->n) || !idmap_put(&l->places, key, (uint32_t)l->n)) {
		err_memory(f->e);
		return false;
	}
	l->items[l->n++] = life;
	return true;
}

/* Drops the lives that have had more than a context; the others have no model yet. */
static void choose_lives(struct lives *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++)
		if (context_may_be(l->items[i].kib * 1024)) {
			l->items[n] = l->items[i];
			l->items[n++].model = IDMAP_NONE;
		}
	l->n = n;
}

/* Sets the model of the lives on a card; `row` has its id and name. */
static int name_lives(struct lives *l, struct names *models, sqlite3_stmt *row, struct err *e)
{
	char name[CARD_NAME_CAP];
	int64_t gpu = sqlite3_column_int64(row, 0);
	sql_text(row, 1, name, sizeof(name));
	uint32_t model = names_find(models, 0, name, e);
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].gpu == gpu)
			l->items[i].model = model;
	return model == IDMAP_NONE ? ERR_WORLD : 0;
}

/* By model and process, the largest memory first. */
static int compare_lives(const void *x, const void *y)
{
	const struct life *a = x, *b = y;
	int order = array_compare(a->model, b->model);
	order = order ? order : array_compare(a->process, b->process);
	return order ? order : array_compare(b->kib, a->kib);
}

static int compare_sizes(const void *x, const void *y)
{
	const struct life *a = x, *b = y;
	int by_model = array_compare(a->model, b->model);
	return by_model ? by_model : array_compare(a->kib, b->kib);
}

/* Learns from the lives; a process on several cards of a model is one life. */
static int learn_lives(
	struct context_floors *f, struct lives *l, const struct names *models, struct err *e)
{
	struct context_lives lives = { .n = 0 };
	size_t n = 0;
	int rc = 0;
	array_sort(l->items, l->n, compare_lives);
	for (size_t i = 0; i < l->n && l->items[i].model != IDMAP_NONE; i++)
		if (n == 0 || l->items[n - 1].model != l->items[i].model ||
			l->items[n - 1].process != l->items[i].process)
			l->items[n++] = l->items[i];
	array_sort(l->items, n, compare_sizes);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = context_learn_life(f, &lives, models->items[l->items[i].model].text,
			l->items[i].kib * 1024, e);
	return rc;
}

int audit_read_floors(struct context_floors *f, struct sqlite3 *db, struct err *e)
{
	struct lives l = { .fold = { .row = take_life, .context = &l } };
	struct names models = { .n = 0 };
	sqlite3_stmt *row = NULL;
	context_finish(f);
	int rc = sql_fold(db, &l.fold, e,
		"SELECT fold(gpu, process, mem_peak_kib) FROM "
		"(SELECT gpu, process, mem_peak_kib FROM holding_1d ORDER BY slot DESC LIMIT "
		"%d)",
		DAY_ROWS);
	if (rc == 0 && l.n_rows < MINUTE_ROWS) /* days have all complete hours */
		rc = sql_fold(db, &l.fold, e,
			"SELECT fold(gpu, process, mem_peak_kib) FROM "
			"(SELECT gpu, process, mem_peak_kib FROM holding_1m ORDER BY slot DESC "
			"LIMIT %d)",
			MINUTE_ROWS);
	choose_lives(&l);
	if (rc == 0)
		rc = sql_prepare(db, &row, e, "SELECT id, name FROM gpu");
	while (sql_next(&row, &rc, e))
		rc = name_lives(&l, &models, row, e);
	if (rc == 0)
		rc = learn_lives(f, &l, &models, e);
	if (rc)
		context_finish(f);
	idmap_finish(&l.places);
	names_finish(&models);
	free(l.items);
	return rc;
}
