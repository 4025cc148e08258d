/* Compares the figures of a report and the hours of its users with another window; also the
 * part about one person: hours, rank, and what they hold now. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/moment.h"
#include "audit/audit.h"
#include "report/report_parts.h"

static double share_of(const struct report *r, size_t state)
{
	return r->share[state];
}

static double hours_of(const struct report *r, size_t state)
{
	return (double)r->ms[state] / 3600e3;
}

static double observed_hours(const struct report *r, size_t of)
{
	(void)of;
	return (double)r->observed_ms / 3600e3;
}

static double waste_of(const struct report *r, size_t of)
{
	double number;
	memcpy(&number, (const char *)&r->waste + of, sizeof(number));
	return number;
}

/* The share, rounded as in the headline. */
static double shown_of(const struct report *r, size_t state)
{
	return isnan(r->share[state]) ? (double)NAN : r->shown[state];
}

/* The cost, rounded as in the bill. */
static double shown_cost(const struct report *r, size_t of)
{
	(void)of;
	return r->waste.shown_cost;
}

static double exact_cost(const struct report *r, size_t of)
{
	(void)of;
	return r->waste.cost;
}

/* A share of the time that the users of the report held cards. */
static double held_share(const struct report *r, size_t state)
{
	return r->held_share[state];
}

static double shown_held_share(const struct report *r, size_t state)
{
	double shown[SHARES_MAX];
	report_shown_held(r->held.ms, shown);
	return shown[state];
}

static double held_hours(const struct report *r, size_t state)
{
	return (double)(state == HOLDER_STATES ? r->held_ms : r->held.ms[state]) / 3600e3;
}

/* The figures in order. A figure is left out if it is unknown in both windows; time with
 * unknown use also if it is 0 in both. */
#define OF(member) offsetof(struct report_waste, member)
struct figure {
	const char *key, *label;
	enum figure_unit unit;
	int better;
	double (*get)(const struct report *r, size_t of);
	size_t of;
	bool some; /* left out if it is 0 in both */
};
static const struct figure card_figures[] = {
	{ "active", "active", FIGURE_SHARE, 1, share_of, CARD_ACTIVE, false },
	{ "idle_held", "idle-held", FIGURE_SHARE, -1, share_of, CARD_IDLE_HELD, false },
	{ "truly_idle", "truly-idle", FIGURE_SHARE, 0, share_of, CARD_TRULY_IDLE, false },
	{ "use_unknown", "use unknown", FIGURE_SHARE, 0, share_of, CARD_USE_UNKNOWN, true },
	{ "unobserved", "unobserved", FIGURE_SHARE, -1, share_of, CARD_UNOBSERVED, false },
	{ "observed_gpu_hours", "observed, GPU-hours", FIGURE_GPU_HOURS, 0, observed_hours, 0,
		false },
	{ "active_gpu_hours", "active, GPU-hours", FIGURE_GPU_HOURS, 1, hours_of, CARD_ACTIVE,
		false },
	{ "idle_held_gpu_hours", "idle-held, GPU-hours", FIGURE_GPU_HOURS, -1, hours_of,
		CARD_IDLE_HELD, false },
	{ "equivalent_gpus_unavailable", "unavailable GPUs", FIGURE_GPUS, -1, waste_of,
		OF(equivalent_unavailable), false },
	{ "idle_held_energy_kwh", "idle-held, kWh", FIGURE_KWH, -1, waste_of, OF(energy_kwh),
		false },
	{ "idle_held_cost", "idle-held, cost", FIGURE_MONEY, -1, exact_cost, 0, false },
};
static const struct figure user_figures[] = {
	{ "active", "used", FIGURE_SHARE, 1, held_share, HOLDER_ACTIVE, false },
	{ "idle_held", "idle", FIGURE_SHARE, -1, held_share, HOLDER_IDLE_HELD, false },
	{ "squatting", "idle on busy GPU", FIGURE_SHARE, -1, held_share, HOLDER_SQUATTING,
		false },
	{ "use_unknown", "use unknown", FIGURE_SHARE, 0, held_share, HOLDER_USE_UNKNOWN, true },
	{ "unobserved", "unobserved", FIGURE_SHARE, -1, share_of, CARD_UNOBSERVED, false },
	{ "held_gpu_hours", "held, GPU-hours", FIGURE_GPU_HOURS, 0, held_hours, HOLDER_STATES,
		false },
	{ "active_gpu_hours", "used, GPU-hours", FIGURE_GPU_HOURS, 1, held_hours, HOLDER_ACTIVE,
		false },
	{ "idle_held_gpu_hours", "idle, GPU-hours", FIGURE_GPU_HOURS, -1, held_hours,
		HOLDER_IDLE_HELD, false },
	{ "squatting_gpu_hours", "squatting, GPU-hours", FIGURE_GPU_HOURS, -1, held_hours,
		HOLDER_SQUATTING, false },
	{ "idle_held_cost", "idle-held, cost", FIGURE_MONEY, -1, exact_cost, 0, false },
};
#undef OF
#define N_OF(array) (sizeof(array) / sizeof((array)[0]))
_Static_assert(N_OF(card_figures) <= FIGURES_MAX && N_OF(user_figures) <= FIGURES_MAX,
	"every figure has a place");

static const char *const unit_names[] = { [FIGURE_SHARE] = "share",
	[FIGURE_GPU_HOURS] = "gpu_hours",
	[FIGURE_KWH] = "kwh",
	[FIGURE_MONEY] = "money",
	[FIGURE_GPUS] = "gpus" };

static struct cell figure_unit(const void *row, size_t of)
{
	(void)of;
	return table_text(unit_names[((const struct report_change *)row)->unit]);
}

static struct report_difference difference(double now, double before)
{
	return (struct report_difference){
		.change = now - before,
		.percent = before != 0 ? 100 * (now - before) / before : (double)NAN,
	};
}

/* Figures are rounded to six decimals, whatever the unit. */
#define OF(member) offsetof(struct report_change, member)
static const struct column figure_columns[] = {
	{ .key = "figure", TEXT(table_get_string, OF(key)) },
	{ .key = "unit", TEXT(figure_unit, 0) },
	{ .key = "now", VALUE(SHARE, table_get_double, OF(now)) },
	{ .key = "before", VALUE(SHARE, table_get_double, OF(before)) },
	{ .key = "change", VALUE(SHARE, table_get_double, OF(exact.change)) },
};
#undef OF

/* How text rounds a figure: as in the other parts of the report that show it. */
static double (*shown_by(const struct figure *f))(const struct report *, size_t)
{
	if (f->get == share_of)
		return shown_of;
	if (f->get == held_share)
		return shown_held_share;
	return f->get == exact_cost ? shown_cost : f->get;
}

static void add_figures(struct report *r, const struct report *before)
{
	struct report_compare *c = &r->compare;
	c->figure_table = (struct table)TABLE_OF(figure_columns);
	const struct figure *figures = r->of_users ? user_figures : card_figures;
	size_t n = r->of_users ? N_OF(user_figures) : N_OF(card_figures);
	for (const struct figure *f = figures; f < figures + n; f++) {
		double (*shown)(const struct report *, size_t) = shown_by(f);
		struct report_change change = { .key = f->key,
			.label = f->label,
			.unit = f->unit,
			.better = f->better,
			.now = f->get(r, f->of),
			.before = c->empty ? (double)NAN : f->get(before, f->of),
			.shown_now = shown(r, f->of),
			.shown_before = c->empty ? (double)NAN : shown(before, f->of) };
		change.exact = difference(change.now, change.before);
		change.shown = difference(change.shown_now, change.shown_before);
		bool known = !isnan(change.now) || !isnan(change.before);
		bool some = change.now != 0 || (change.before != 0 && !isnan(change.before));
		if (!known || (f->some && !some))
			continue;
		c->figures[c->n_figures++] = change;
		table_add(&c->figure_table, &change);
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

/* Joins neighbours of the same name, which come from different windows. Returns how many are
 * left. */
static size_t join_pairs(struct user_pair *pairs, size_t n)
{
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
	return kept;
}

static void add_hours(const struct audit_identity *who, int64_t *held_ms, int64_t *unused_ms)
{
	if (!who)
		return;
	*held_ms = audit_holder_ms(who->sums.ms);
	*unused_ms = audit_waste(&who->sums);
}

#define OF(member) offsetof(struct report_user_change, member)
static const struct column user_columns[] = {
	{ .key = "identity", TEXT(table_get_chars, OF(identity)) },
	{ .key = "gpu_seconds", VALUE(GPU_MS, table_get_known, OF(held_ms)) },
	{ .key = "gpu_seconds_before", VALUE(GPU_MS, table_get_known, OF(held_before_ms)) },
	{ .key = "gpu_seconds_change", VALUE(GPU_MS, table_get_double, OF(held.change)) },
	{ .key = "unused_gpu_seconds", VALUE(GPU_MS, table_get_known, OF(unused_ms)) },
	{ .key = "unused_gpu_seconds_before",
		VALUE(GPU_MS, table_get_known, OF(unused_before_ms)) },
	{ .key = "unused_gpu_seconds_change",
		VALUE(GPU_MS, table_get_double, OF(unused.change)) },
};
#undef OF

static void list_users(struct report_compare *c, const struct user_pair *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct report_user_change *u = &c->users[c->n_users++];
		str_copy(u->identity, sizeof(u->identity), name_of(&pairs[i]));
		add_hours(pairs[i].now, &u->held_ms, &u->unused_ms);
		add_hours(pairs[i].before, &u->held_before_ms, &u->unused_before_ms);
		u->held = difference((double)u->held_ms, (double)u->held_before_ms);
		u->unused = difference((double)u->unused_ms, (double)u->unused_before_ms);
		table_add(&c->user_table, u);
	}
}

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
		n = join_pairs(pairs, n);
		qsort_r(pairs, n, sizeof(*pairs), compare_pairs, &order);
	}
	size_t shown = q->top && n > q->top ? q->top : n;
	c->users = calloc(shown + 1, sizeof(*c->users));
	if (pairs && c->users)
		list_users(c, pairs, shown);
	else
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
	char now[48], then[48];
	double longer = (double)r->length_ms / (double)before->length_ms;
	if (fabs(r->observed - before->observed) > COVERAGE_SLACK)
		report_say(r, SENTENCE_COMPARE, "caution",
			"%.1f%% of this window was observed, and %.1f%% of the other: compare "
			"shares, not hours%s.",
			100 * r->observed, 100 * before->observed,
			fmin(r->observed, before->observed) < LITTLE
				? ", and what was not seen may have been different"
				: "");
	duration_text(now, sizeof(now), r->length_ms);
	duration_text(then, sizeof(then), before->length_ms);
	if (fabs(longer - 1) > LENGTH_SLACK)
		report_say(r, SENTENCE_COMPARE, "caution",
			"This window is %s long, and the other %s: compare shares, not hours.",
			now, then);
	if (r->observed_cards != before->observed_cards)
		report_say(r, SENTENCE_COMPARE, "caution",
			"%zu GPUs were observed in this window, and %zu in the other.",
			r->observed_cards, before->observed_cards);
	if (!state_rules_equal(&r->rules, &before->rules) || r->rules_mixed ||
		before->rules_mixed)
		report_say(r, SENTENCE_COMPARE, "caution",
			"The rules that say what is active and held were not the same.");
}

/* Says that the other window has no data, and where there is data. */
static void say_empty(struct report *r, const struct audit *before)
{
	char since[48], until[48], oldest[48];
	moment_text(since, sizeof(since), r->compare.since_ms, r->utc);
	moment_text(until, sizeof(until), r->compare.until_ms, r->utc);
	moment_text(oldest, sizeof(oldest), before->oldest_ms, r->utc);
	report_say(r, SENTENCE_COMPARE, NULL,
		"There is no data between %s and %s to compare with; data begins %s.", since,
		until, oldest);
}

void report_compare(
	struct report *r, const struct report_other *other, const struct report_request *q)
{
	struct report before = { .utc = q->utc };
	struct report_compare *c = &r->compare;
	c->asked = true;
	c->empty = other->before->n_cards == 0;
	report_add_figures(&before, other->before, q);
	c->since_ms = c->empty ? other->since_ms : before.since_ms;
	c->until_ms = c->empty ? other->until_ms : before.until_ms;
	c->observed = c->empty ? (double)NAN : before.observed;
	add_figures(r, &before);
	add_users(r, other, q);
	if (c->empty)
		say_empty(r, other->before);
	else
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

static size_t rank_of(const struct audit *a, const struct audit_identity *who)
{
	size_t rank = 1;
	for (size_t i = 0; i < a->n_identities; i++)
		rank += audit_waste(&a->identities[i].sums) > audit_waste(&who->sums);
	return rank;
}

static void add_releases(struct report *r, const struct audit *a)
{
	struct report_person *p = &r->person;
	for (size_t i = 0; i < a->n_present; i++) {
		const struct audit_present *held = &a->present[i];
		char card[CARD_LABEL_CAP];
		if (p->n_releases == RELEASES_MAX) {
			p->n_more++;
			continue;
		}
		struct report_release *release = &p->releases[p->n_releases++];
		*release = (struct report_release){ .mem_bytes = held->mem_bytes,
			.idle_ms = held->idle_ms,
			.what = held->what,
			.notebook = held->notebook };
		card_label(card, sizeof(card), &a->cards[held->card].id);
		snprintf(release->where, sizeof(release->where), "GPU %s%s%s", card,
			a->n_hosts > 1 ? " of " : "",
			a->n_hosts > 1 ? a->hosts[held->host].hostname : "");
		release_command(release->command, held->pid, held->job, held->container);
	}
}

void report_compare_person(struct report *r, const char *name, const struct report_other *other)
{
	struct report_person *p = &r->person;
	const struct audit_identity *now = find_user(other->audit, name);
	const struct audit_identity *before = find_user(other->before, name);
	*p = (struct report_person){ .cost = NAN, .cost_before = NAN };
	str_copy(p->name, sizeof(p->name), name);
	p->n_users = other->audit->n_identities;
	if (now) {
		p->held_ms = audit_holder_ms(now->sums.ms);
		p->used_ms = now->sums.ms[HOLDER_ACTIVE];
		p->unused_ms = audit_waste(&now->sums);
		p->cost = report_bill_money(&now->sums.cost, COST_IDLE_HELD);
		p->rank = rank_of(other->audit, now);
	}
	if (before) {
		p->held_before_ms = audit_holder_ms(before->sums.ms);
		p->used_before_ms = before->sums.ms[HOLDER_ACTIVE];
		p->unused_before_ms = audit_waste(&before->sums);
		p->cost_before = report_bill_money(&before->sums.cost, COST_IDLE_HELD);
	}
	add_releases(r, other->audit);
}
