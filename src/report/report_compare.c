/* Compares the figures of a report and the hours of its users with another window; also the
 * part about one person: hours, rank, and what they hold now. */
#include "audit/audit.h"
#include "report/report_parts.h"

/* The figures in order. A figure is left out if it is unknown in both windows; time with
 * unknown use also if it is 0 in both. */
#define OF(member) offsetof(struct report, member)
#define SHARE(state) FIGURE_SHARE, .of = OF(share[state]), .shown = OF(shown[state])
#define HELD(state) FIGURE_SHARE, .of = OF(held_share[state]), .shown = OF(shown_held[state])
#define HOURS(member) FIGURE_GPU_HOURS, .of = OF(member)
#define WASTE(unit, member) unit, .of = OF(waste.member)
#define COST_OF_IDLE FIGURE_MONEY, .of = OF(waste.cost), .shown = OF(waste.shown_cost)
struct figure {
	const char *key, *label;
	enum figure_unit unit;
	size_t of;    /* its place in struct report; hours are there as milliseconds */
	size_t shown; /* the same as other parts of the report show it; 0: it is the same */
	int better;
	bool some; /* left out if it is 0 in both */
};
static const struct figure card_figures[] = {
	{ "active", "active", SHARE(CARD_ACTIVE), .better = 1 },
	{ "idle_held", "idle-held", SHARE(CARD_IDLE_HELD), .better = -1 },
	{ "reserved", "reserved", SHARE(CARD_RESERVED), .better = -1, .some = true },
	{ "truly_idle", "truly-idle", SHARE(CARD_TRULY_IDLE) },
	{ "use_unknown", "use unknown", SHARE(CARD_USE_UNKNOWN), .some = true },
	{ "unobserved", "unobserved", SHARE(CARD_UNOBSERVED), .better = -1 },
	{ "observed_gpu_hours", "observed, GPU-hours", HOURS(observed_ms) },
	{ "active_gpu_hours", "active, GPU-hours", HOURS(ms[CARD_ACTIVE]), .better = 1 },
	{ "idle_held_gpu_hours", "idle-held, GPU-hours", HOURS(ms[CARD_IDLE_HELD]),
		.better = -1 },
	{ "reserved_gpu_hours", "reserved, GPU-hours", HOURS(ms[CARD_RESERVED]), .better = -1,
		.some = true },
	{ "equivalent_gpus_unavailable", "unavailable GPUs",
		WASTE(FIGURE_GPUS, equivalent_unavailable), .better = -1 },
	{ "idle_held_energy_kwh", "idle-held, kWh", WASTE(FIGURE_KWH, energy_kwh),
		.better = -1 },
	{ "idle_held_cost", "idle-held, cost", COST_OF_IDLE, .better = -1 },
};
static const struct figure user_figures[] = {
	{ "active", "used", HELD(HOLDER_ACTIVE), .better = 1 },
	{ "idle_held", "idle", HELD(HOLDER_IDLE_HELD), .better = -1 },
	{ "squatting", "idle on busy GPU", HELD(HOLDER_SQUATTING), .better = -1 },
	{ "use_unknown", "use unknown", HELD(HOLDER_USE_UNKNOWN), .some = true },
	{ "unobserved", "unobserved", SHARE(CARD_UNOBSERVED), .better = -1 },
	{ "held_gpu_hours", "held, GPU-hours", HOURS(held_ms) },
	{ "active_gpu_hours", "used, GPU-hours", HOURS(held.ms[HOLDER_ACTIVE]), .better = 1 },
	{ "idle_held_gpu_hours", "idle, GPU-hours", HOURS(held.ms[HOLDER_IDLE_HELD]),
		.better = -1 },
	{ "reserved_gpu_hours", "reserved, GPU-hours", HOURS(held.reserved_ms), .better = -1,
		.some = true },
	{ "squatting_gpu_hours", "squatting, GPU-hours", HOURS(held.ms[HOLDER_SQUATTING]),
		.better = -1 },
	{ "idle_held_cost", "idle-held, cost", COST_OF_IDLE, .better = -1 },
};
#undef OF
#define N_OF(array) (sizeof(array) / sizeof((array)[0]))
_Static_assert(N_OF(card_figures) <= FIGURES_MAX && N_OF(user_figures) <= FIGURES_MAX,
	"every figure has a place");

static double figure_at(const struct report *r, enum figure_unit unit, size_t of)
{
	const char *at = (const char *)r + of;
	double number;
	int64_t ms;
	if (unit == FIGURE_GPU_HOURS) {
		memcpy(&ms, at, sizeof(ms));
		return (double)ms / 3600e3;
	}
	memcpy(&number, at, sizeof(number));
	return number;
}

static double shown_figure_at(const struct report *r, const struct figure *f)
{
	double exact = figure_at(r, f->unit, f->of);
	return !f->shown || isnan(exact) ? exact : figure_at(r, f->unit, f->shown);
}

static struct report_difference difference(double now, double before)
{
	return (struct report_difference){
		.change = now - before,
		.percent = before != 0 ? 100 * (now - before) / before : (double)NAN,
	};
}

struct figure_row {
	struct report_change change;
	const char *unit;
};

/* Figures are rounded to six decimals, whatever the unit. */
#define OF(member) offsetof(struct figure_row, member)
static const struct column figure_columns[] = {
	{ "figure", STRING(change.key) },
	{ "unit", STRING(unit) },
	{ "now", NUMBER(SHARE, change.now) },
	{ "before", NUMBER(SHARE, change.before) },
	{ "change", NUMBER(SHARE, change.exact.change) },
};
#undef OF

static void add_figures(struct report *r, const struct report *before)
{
	static const char *const units[] = { [FIGURE_SHARE] = "share",
		[FIGURE_GPU_HOURS] = "gpu_hours",
		[FIGURE_KWH] = "kwh",
		[FIGURE_MONEY] = "money",
		[FIGURE_GPUS] = "gpus" };
	struct report_compare *c = &r->compare;
	c->figure_table = (struct table)TABLE_OF(figure_columns);
	const struct figure *figures = r->a->of_users ? user_figures : card_figures;
	size_t n = r->a->of_users ? N_OF(user_figures) : N_OF(card_figures);
	for (const struct figure *f = figures; f < figures + n; f++) {
		struct report_change change = { .key = f->key,
			.label = f->label,
			.unit = f->unit,
			.better = f->better,
			.now = figure_at(r, f->unit, f->of),
			.before = c->empty ? (double)NAN : figure_at(before, f->unit, f->of),
			.shown_now = shown_figure_at(r, f),
			.shown_before = c->empty ? (double)NAN : shown_figure_at(before, f) };
		change.exact = difference(change.now, change.before);
		change.shown = difference(change.shown_now, change.shown_before);
		bool known = !isnan(change.now) || !isnan(change.before);
		bool some = change.now != 0 || (change.before != 0 && !isnan(change.before));
		if (!known || (f->some && !some))
			continue;
		c->figures[c->n_figures++] = change;
		table_add(&c->figure_table, &(struct figure_row){ change, units[f->unit] });
	}
}

/* A user in this window and in the other one. */
struct user_pair {
	const struct audit_identity *now, *before; /* one may be NULL */
};

static const char *name_of(const struct user_pair *p)
{
	return (p->now ? p->now : p->before)->identity;
}

static int compare_names(const void *x, const void *y)
{
	return strcmp(name_of(x), name_of(y));
}

/* Sorts users of this window in the order of the report, then the others in the same order. */
static int compare_pairs(const void *x, const void *y, void *order)
{
	const struct user_pair *p = x, *q = y;
	if (!p->now != !q->now)
		return !p->now - !q->now;
	int difference = audit_order_compare(*(const enum order *)order,
		p->now ? &p->now->sums : &p->before->sums,
		q->now ? &q->now->sums : &q->before->sums);
	return difference ? difference : compare_names(x, y);
}

static struct report_use use_of(const struct audit_identity *who)
{
	if (!who)
		return (struct report_use){ .cost = NAN };
	return (struct report_use){ .held_ms = audit_holder_ms(who->sums.ms),
		.used_ms = who->sums.ms[HOLDER_ACTIVE],
		.reserved_ms = who->sums.reserved_ms,
		.unused_ms = audit_waste(&who->sums),
		.cost = report_bill_money(&who->sums.cost, COST_IDLE_HELD) };
}

#define OF(member) offsetof(struct report_user_change, member)
static const struct column user_columns[] = {
	{ "identity", CHARS(identity) },
	{ "gpu_seconds", KNOWN(GPU_MS, now.held_ms) },
	{ "gpu_seconds_before", KNOWN(GPU_MS, before.held_ms) },
	{ "gpu_seconds_change", NUMBER(GPU_MS, held.change) },
	{ "unused_gpu_seconds", KNOWN(GPU_MS, now.unused_ms) },
	{ "unused_gpu_seconds_before", KNOWN(GPU_MS, before.unused_ms) },
	{ "unused_gpu_seconds_change", NUMBER(GPU_MS, unused.change) },
};
#undef OF

static void add_users(
	struct report *r, const struct report_other *other, const struct report_request *q)
{
	struct report_compare *c = &r->compare;
	const struct audit *a = other->audit, *b = other->before;
	size_t n = 0, most = a->n_identities + b->n_identities;
	struct user_pair *pairs = calloc(most + 1, sizeof(*pairs));
	enum order order = q->order;
	c->user_table = (struct table)TABLE_OF(user_columns);
	for (size_t i = 0; i < a->n_identities && pairs; i++)
		pairs[n++] = (struct user_pair){ .now = &a->identities[i] };
	for (size_t i = 0; i < b->n_identities && pairs; i++)
		pairs[n++] = (struct user_pair){ .before = &b->identities[i] };
	if (pairs) {
		qsort(pairs, n, sizeof(*pairs), compare_names);
		/* Joins neighbours of the same name, which come from different windows. */
		size_t kept = 0;
		for (size_t i = 0; i < n; i++) {
			struct user_pair *last = kept ? &pairs[kept - 1] : NULL;
			if (!last || compare_names(last, &pairs[i]) != 0)
				pairs[kept++] = pairs[i];
			else if (pairs[i].now)
				last->now = pairs[i].now;
			else
				last->before = pairs[i].before;
		}
		n = kept;
		qsort_r(pairs, n, sizeof(*pairs), compare_pairs, &order);
	}
	size_t shown = q->top && n > q->top ? q->top : n;
	c->users = calloc(shown + 1, sizeof(*c->users));
	if (pairs && c->users) {
		for (size_t i = 0; i < shown; i++) {
			struct report_use now = use_of(pairs[i].now),
					  before = use_of(pairs[i].before);
			struct report_user_change *u = &c->users[c->n_users++];
			*u = (struct report_user_change){ .now = now,
				.before = before,
				.held = difference((double)now.held_ms, (double)before.held_ms),
				.unused = difference(
					(double)now.unused_ms, (double)before.unused_ms) };
			str_copy(u->identity, sizeof(u->identity), name_of(&pairs[i]));
			table_add(&c->user_table, u);
		}
	} else
		r->failed = true;
	c->n_left_out = n - c->n_users;
	free(pairs);
}

/* Adds cautions about differences between the windows that make a comparison less reliable. */
#define COVERAGE_SLACK 0.05
#define LENGTH_SLACK 0.02
#define LITTLE 0.5

static void add_cautions(struct report *r, const struct report *before)
{
	double longer = (double)r->length_ms / (double)before->length_ms;
	if (fabs(r->observed - before->observed) > COVERAGE_SLACK)
		report_say(r, SENTENCE_COMPARE, "caution",
			"%.1f%% of this window was observed, and %.1f%% of the other: compare "
			"shares, not hours%s.",
			100 * r->observed, 100 * before->observed,
			fmin(r->observed, before->observed) < LITTLE
				? ", and what was not seen may have been different"
				: "");
	if (fabs(longer - 1) > LENGTH_SLACK)
		report_say(r, SENTENCE_COMPARE, "caution",
			"This window is %s long, and the other %s: compare shares, not hours.",
			duration_text(r->length_ms).text,
			duration_text(before->length_ms).text);
	if (r->observed_cards != before->observed_cards)
		report_say(r, SENTENCE_COMPARE, "caution",
			"%zu GPUs were observed in this window, and %zu in the other.",
			r->observed_cards, before->observed_cards);
	if (!state_rules_equal(&r->a->rules, &before->a->rules) || r->a->rules_mixed ||
		before->a->rules_mixed)
		report_say(r, SENTENCE_COMPARE, "caution",
			"The rules that say what is active and held were not the same.");
}

void report_compare(
	struct report *r, const struct report_other *other, const struct report_request *q)
{
	struct report before = { .utc = q->utc };
	struct report_compare *c = &r->compare;
	c->asked = true;
	c->empty = other->before->n_cards == 0;
	report_add_figures(&before, other->before, q);
	c->since_ms = c->empty ? other->since_ms : other->before->since_ms;
	c->until_ms = c->empty ? other->until_ms : other->before->until_ms;
	c->observed = c->empty ? (double)NAN : before.observed;
	add_figures(r, &before);
	add_users(r, other, q);
	if (c->empty) {
		/* Says that the other window has no data, and where there is data. */
		report_say(r, SENTENCE_COMPARE, NULL,
			"There is no data between %s and %s to compare with; data begins %s.",
			moment_text(r->compare.since_ms, r->utc).text,
			moment_text(r->compare.until_ms, r->utc).text,
			moment_text(other->before->oldest_ms, r->utc).text);
	} else
		add_cautions(r, &before);
}

void report_compare_finish(struct report *r)
{
	free(r->compare.users);
	table_finish(&r->compare.figure_table);
	table_finish(&r->compare.user_table);
}

static const struct audit_identity *find_user(const struct audit *a, const char *name)
{
	for (size_t i = 0; i < a->n_identities; i++)
		if (strcmp(a->identities[i].identity, name) == 0)
			return &a->identities[i];
	return NULL;
}

void report_compare_person(struct report *r, const char *name, const struct report_other *other)
{
	struct report_person *p = &r->person;
	const struct audit *a = other->audit;
	const struct audit_identity *now = find_user(a, name);
	*p = (struct report_person){ .now = use_of(now),
		.before = use_of(find_user(other->before, name)),
		.n_users = a->n_identities,
		.rank = now != NULL };
	str_copy(p->name, sizeof(p->name), name);
	for (size_t i = 0; i < a->n_identities && now; i++)
		p->rank += audit_waste(&a->identities[i].sums) > audit_waste(&now->sums);
	for (size_t i = 0; i < a->n_present; i++) {
		const struct audit_present *held = &a->present[i];
		if (p->n_releases == RELEASES_MAX) {
			p->n_more = a->n_present - i;
			return;
		}
		struct report_release *release = p->releases + p->n_releases++;
		release->held = held;
		release->where = report_gpu(r, held->card, " of ");
		release_command(
			release->command, held->pid, held->job, held->container, held->pod);
	}
}
