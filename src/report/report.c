/* The figures of a report, its verdict by the 20 % rule, and helpers for its other parts. */
#include "base/words.h"
#include "audit/audit.h"
#include "report/report_parts.h"

void report_say(
	struct report *r, enum sentence_kind kind, const char *label, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const char *text = arena_textv(&r->texts, format, args);
	va_end(args);
	if (!r->texts.failed && array_one_more(&r->sentences, r->n_sentences))
		r->sentences[r->n_sentences++] = (struct sentence){ kind, label, text };
	else
		r->failed = true;
}

const struct sentence *report_next_sentence(
	const struct report *r, enum sentence_kind kind, size_t *at)
{
	while (*at < r->n_sentences && r->sentences[*at].kind != kind)
		(*at)++;
	return *at < r->n_sentences ? &r->sentences[(*at)++] : NULL;
}

const char *report_plural(size_t n)
{
	return n == 1 ? "" : "s";
}

struct brief report_hours(const struct report *r, int64_t ms)
{
	bool minutes = r && r->minutes;
	double number = (double)ms / (minutes ? 60e3 : 3600e3);
	bool small = !minutes && number > 0 && number < 0.095;
	return str_brief(small ? "%.4f" : "%.2f", number);
}

const char *report_unit(const struct report *r)
{
	return r->minutes ? "GPU-minutes" : "GPU-hours";
}

struct report_place report_place(const struct audit *a, size_t card)
{
	const struct audit_card *c = &a->cards[card];
	struct report_place place = {
		.host = a->hosts[c->host].hostname, .uuid = c->id.uuid, .index = c->id.index
	};
	bool several = a->n_hosts > 1;
	snprintf(place.where, sizeof(place.where), "%s%s%s", several ? place.host : "",
		several ? " " : "", card_label(&c->id).text);
	return place;
}

const char *report_gpu(struct report *r, size_t card, const char *between)
{
	const struct audit_card *c = &r->a->cards[card];
	bool several = r->a->n_hosts > 1;
	return arena_textf(&r->texts, "GPU %s%s%s", card_label(&c->id).text,
		several ? between : "", several ? r->a->hosts[c->host].hostname : "");
}

void report_show_what(char dst[REPORT_WHAT_CAP], const char *const texts[PROCESS_TEXTS])
{
	const char *label = process_label(texts);
	const char *command = texts[PROCESS_COMMAND] ? texts[PROCESS_COMMAND] : "";
	snprintf(dst, REPORT_WHAT_CAP, "%s%s%s", label, *label && *command ? " " : "",
		*label || *command ? command : "-");
}

/* Above this share, idle-held time (of observed time) and squatting (of the time that users
 * held cards) are matters of policy. */
#define RULE_SHARE 0.2
/* A user with a smaller part than this is not named in the verdict. */
#define LEAST_NAMED 0.1
/* A verdict needs at least this part of the window to be observed ... */
#define LEAST_OBSERVED 0.5
/* ... and about an hour of it. The default window is an hour, whose last tick may be
 * missing. */
#define LEAST_MS (55 * 60000)
#define HOUR_MS (60 * 60000)

static const char *const verdict_names[VERDICTS] = {
	[VERDICT_NONE] = NULL,
	[VERDICT_LITTLE_OBSERVED] = "too_little_observed",
	[VERDICT_TOO_SHORT] = "too_short",
	[VERDICT_POLICY] = "allocation_policy",
	[VERDICT_SQUATTING] = "squatting",
	[VERDICT_WITHIN] = "within_rule",
};

/* The share of squatting in the time that users held cards, as far as use is known. */
static double squatting_share(const struct report *r)
{
	return report_share(
		r->held.ms[HOLDER_SQUATTING], r->held_ms - r->held.ms[HOLDER_USE_UNKNOWN]);
}

static int64_t longest_ms(const struct audit *a)
{
	int64_t most_ms = 0;
	for (size_t i = 0; i < a->n_cards; i++) {
		int64_t ms = state_observed_ms(a->cards[i].ms);
		most_ms = ms > most_ms ? ms : most_ms;
	}
	return most_ms;
}

static enum report_verdict verdict_of(const struct report *r, const struct audit *a)
{
	/* Of a fleet, hosts that reported nothing were not observed either. */
	double n_hosts = (double)(a->n_hosts + a->fleet.n_missing);
	double seen = n_hosts > 0 ? (double)a->n_hosts / n_hosts : 1;
	if (a->of_users || r->observed_ms == 0)
		return VERDICT_NONE;
	if (r->observed * seen < LEAST_OBSERVED)
		return VERDICT_LITTLE_OBSERVED;
	if (longest_ms(a) < LEAST_MS)
		return VERDICT_TOO_SHORT;
	if (r->share[CARD_IDLE_HELD] + r->share[CARD_RESERVED] > RULE_SHARE)
		return VERDICT_POLICY;
	return squatting_share(r) > RULE_SHARE ? VERDICT_SQUATTING : VERDICT_WITHIN;
}

/* A user's part of the time that a verdict is about: idle-held and reserved. It does not
 * include bare contexts: ending them frees little. */
static int64_t part_of_user(const struct audit_sums *s, enum report_verdict verdict)
{
	return verdict == VERDICT_SQUATTING
		       ? s->ms[HOLDER_SQUATTING]
		       : s->idle_share_ms - s->context_share_ms + s->reserved_ms;
}

static const struct audit_identity *largest(const struct audit *a, enum report_verdict verdict)
{
	const struct audit_identity *most = NULL;
	for (size_t i = 0; i < a->n_identities; i++) {
		const struct audit_identity *who = &a->identities[i];
		if (!most ||
			part_of_user(&who->sums, verdict) > part_of_user(&most->sums, verdict))
			most = who;
	}
	return most && part_of_user(&most->sums, verdict) > 0 ? most : NULL;
}

/* Names the user with the largest part, and the command that shows the details. */
static void add_largest(struct report *r, const struct audit *a, const struct report_request *q)
{
	enum report_verdict verdict = r->waste.judged;
	bool squatting = verdict == VERDICT_SQUATTING;
	const struct audit_identity *who = largest(a, verdict);
	struct str next = { 0 };
	int64_t all_ms = squatting ? r->held.ms[HOLDER_SQUATTING]
				   : r->ms[CARD_IDLE_HELD] + r->ms[CARD_RESERVED];
	if (!who || report_share(part_of_user(&who->sums, verdict), all_ms) < LEAST_NAMED)
		return;
	if (q->command) {
		str_addf(&next, " Next: %s --%s ", q->command,
			a->fleet.asked ? "by user,host" : "user");
		if (!a->fleet.asked)
			words_quote(&next, who->identity);
		str_add(&next, q->same_db ? " (with the same --db)" : "");
	}
	bool apart = !squatting && r->held.context_share_ms >= LEAST_SHOWN_MS;
	report_say(r, SENTENCE_VERDICT, "", "%s%s has the largest part: %s of %s %s%s.%s",
		apart ? "Apart from contexts, " : "", process_shown_user(who->identity),
		report_hours(r, part_of_user(&who->sums, verdict)).text,
		report_hours(r, all_ms).text, report_unit(r), squatting ? "" : " (share)",
		str_text(&next));
	r->failed |= next.failed;
	str_finish(&next);
}

/* Says why there is no verdict, and what to do about it. */
static void add_missing(struct report *r, const struct audit *a, const struct report_request *q)
{
	bool recording = false;
	int64_t seen_ms = longest_ms(a);
	for (size_t i = 0; i < a->n_hosts; i++)
		recording |= a->hosts[i].recording;
	if (r->waste.judged == VERDICT_LITTLE_OBSERVED && a->fleet.asked) {
		report_say(r, SENTENCE_VERDICT, "20% rule",
			"No verdict: %.1f%% of the window was observed on %zu host%s, %zu "
			"expected host%s reported nothing, and a verdict needs half of the "
			"fleet's time. 'gua fleet status' says which hosts are silent.",
			100 * r->shown_observed, a->n_hosts, report_plural(a->n_hosts),
			a->fleet.n_missing, report_plural(a->fleet.n_missing));
		return;
	}
	if (r->waste.judged == VERDICT_LITTLE_OBSERVED) {
		report_say(r, SENTENCE_VERDICT, "20% rule",
			"No verdict: %.1f%% of the window was observed, and a verdict needs "
			"half of it. 'gua status' says whether the recorder runs, and 'gua "
			"events' what was missed.",
			100 * r->shown_observed);
		return;
	}
	const char *next = "";
	if (a->oldest_ms >= 0 && a->oldest_ms < a->since_ms)
		next = q->command ? " A longer window has more: --since 1d."
				  : " A longer window has more.";
	else if (recording)
		next = arena_textf(
			&r->texts, " Ask again in %s.", duration_text(HOUR_MS - seen_ms).text);
	report_say(r, SENTENCE_VERDICT, "20% rule",
		"No verdict yet: %s observed, and a verdict needs an hour.%s",
		duration_text(seen_ms).text, next);
}

void report_add_verdict(struct report *r, const struct audit *a, const struct report_request *q)
{
	enum report_verdict verdict = r->waste.judged;
	if (verdict == VERDICT_LITTLE_OBSERVED || verdict == VERDICT_TOO_SHORT) {
		add_missing(r, a, q);
		return;
	}
	/* The rule itself. A share of 20.04 % is above it, but is printed as 20.0 %: "just
	 * above" avoids an apparent contradiction. */
	double held = 100 * (r->shown[CARD_IDLE_HELD] + r->shown[CARD_RESERVED]);
	double squatting = 100 * squatting_share(r);
	const double just = 100 * RULE_SHARE + 0.05;
	const char *what = r->ms[CARD_RESERVED] > 0 ? "Idle-held and reserved together are"
						    : "Idle-held is";
	if (r->waste.judged == VERDICT_POLICY)
		report_say(r, SENTENCE_VERDICT, "20% rule",
			"%s %.1f%% of observed time, %s 20%%: the problem is the allocation "
			"policy, not the hardware.",
			what, held, held < just ? "just above" : "above");
	else if (r->waste.judged == VERDICT_WITHIN)
		report_say(r, SENTENCE_VERDICT, "20% rule",
			"%s %.1f%% of observed time, not above 20%%: the allocation policy is "
			"not the problem.",
			what, held);
	else
		report_say(r, SENTENCE_VERDICT, "20% rule",
			"%s %.1f%% of observed time, not above 20%%. But of the time that "
			"users held GPUs, %.1f%% was idle on a GPU that another user kept "
			"busy, "
			"%s 20%%: the problem is the allocation policy, not the hardware.",
			what, held, squatting, squatting < just ? "just above" : "above");
	if (verdict == VERDICT_POLICY) {
		/* Cards that are held only by bare contexts are nearly free. */
		double without = report_share(
			r->ms[CARD_IDLE_HELD] + r->ms[CARD_RESERVED] - r->held.context_share_ms,
			r->observed_ms);
		if (r->held.context_share_ms >= LEAST_SHOWN_MS && without <= RULE_SHARE)
			report_say(r, SENTENCE_VERDICT, "",
				"Without contexts it would be %.1f%%, not above 20%%: those "
				"cards are nearly free.",
				100 * fmax(without, 0));
	}
	if (verdict != VERDICT_WITHIN)
		add_largest(r, a, q);
	if (r->ms[CARD_USE_UNKNOWN] > 0)
		report_say(r, SENTENCE_VERDICT, "",
			"Time held with use unknown (%.1f%% of observed time) does not count "
			"as idle-held.",
			100 * r->shown[CARD_USE_UNKNOWN]);
}

double report_share(int64_t part_ms, int64_t whole_ms)
{
	return whole_ms > 0 ? (double)part_ms / (double)whole_ms : NAN;
}

double report_energy_kwh(const int64_t energy_mj[CARD_STATES],
	const int64_t known_ms[CARD_STATES], const int64_t ms[CARD_STATES], size_t state)
{
	if (ms[state] > 0 && known_ms[state] == 0)
		return NAN;
	return (double)energy_mj[state] / 3.6e9;
}

void report_shown_shares(
	const int64_t ms[CARD_STATES], double shown[CARD_STATES], double *observed)
{
	double parts[CARD_STATES], shares[SHARES_MAX];
	const double window[] = { (double)state_observed_ms(ms), (double)ms[CARD_UNOBSERVED] };
	for (int state = 0; state < CARD_STATES; state++)
		parts[state] = state == CARD_UNOBSERVED ? 0 : (double)ms[state];
	shares_round(parts, CARD_STATES, shares);
	memcpy(shown, shares, CARD_STATES * sizeof(*shown));
	shares_round(window, 2, shares);
	*observed = shares[0];
	shown[CARD_UNOBSERVED] = isnan(shares[1]) ? 0 : shares[1];
}

void report_shown_held(
	const int64_t ms[HOLDER_STATES], int64_t reserved_ms, double shown[SHARES_MAX])
{
	double parts[HOLDER_STATES + 1];
	for (int state = 0; state < HOLDER_STATES; state++)
		parts[state] = (double)ms[state];
	parts[HOLDER_STATES] = (double)reserved_ms;
	shares_round(parts, HOLDER_STATES + 1, shown);
}

/* The states of the headline; of users, with names of their own. */
struct headline_state {
	size_t state;	   /* of the sums */
	size_t look;	   /* in state_looks */
	bool if_some;	   /* shown only if it is not 0 */
	const char *label; /* NULL: the look's word */
	const char *remark;
};
static const struct headline_state card_states[] = {
	{ CARD_ACTIVE, CARD_ACTIVE, false, NULL, "" },
	{ CARD_IDLE_HELD, CARD_IDLE_HELD, false, NULL,
		"held and not used: what dashboards miss" },
	{ CARD_RESERVED, CARD_RESERVED, true, NULL, "given away, and nobody uses it" },
	{ CARD_TRULY_IDLE, CARD_TRULY_IDLE, false, NULL, "" },
	{ CARD_USE_UNKNOWN, CARD_USE_UNKNOWN, true, NULL,
		"held, but the driver reports no utilisation (MIG)" },
};
static const struct headline_state holder_states[] = {
	{ HOLDER_ACTIVE, CARD_ACTIVE, false, "used", "" },
	{ HOLDER_IDLE_HELD, CARD_IDLE_HELD, false, "idle", "" },
	{ HOLDER_SQUATTING, STATE_SQUATTING, false, NULL, "another user kept the GPU busy" },
	{ HOLDER_TRULY_IDLE, CARD_TRULY_IDLE, true, "little memory", "" },
	{ HOLDER_USE_UNKNOWN, CARD_USE_UNKNOWN, true, NULL,
		"the driver reports no utilisation (MIG)" },
};

static void add_states(
	struct report *r, const struct headline_state *states, size_t n, const int64_t *ms)
{
	double parts[STATE_LOOKS], shown[SHARES_MAX];
	for (size_t i = 0; i < n; i++) {
		int64_t own_ms = ms[states[i].state];
		if (states[i].if_some && own_ms <= 0)
			continue;
		parts[r->n_states] = (double)own_ms;
		r->states[r->n_states++] = (struct report_state){
			.label = states[i].label ? states[i].label
						 : state_looks[states[i].look].word,
			.remark = states[i].remark,
			.look = states[i].look,
			.ms = own_ms,
		};
	}
	shares_round(parts, r->n_states, shown);
	for (size_t i = 0; i < r->n_states; i++)
		r->states[i].shown = shown[i];
}

#define ADD_STATES(r, states, ms) add_states(r, states, sizeof(states) / sizeof(states[0]), ms)

/* The cost of idle-held and of reserved time; in a report about users, that of their share. */
static void add_cost(struct report_waste *w, const struct audit *a)
{
	struct bill_totals totals;
	w->cost = w->shown_cost = w->reserved_cost = w->shown_reserved_cost = NAN;
	if (!a->cost.priced)
		return;
	report_bill_total(&totals, a);
	const struct audit_cost *cost = a->of_users ? &a->held_cost : &a->cost;
	const struct bill_cents *cents = a->of_users ? &totals.held : &totals.all;
	w->cost = cost->money[COST_IDLE_HELD];
	w->shown_cost = (double)cents->parts[COST_IDLE_HELD] / 100;
	if (!a->has_leases)
		return;
	w->reserved_cost = cost->money[COST_RESERVED];
	w->shown_reserved_cost = (double)cents->parts[COST_RESERVED] / 100;
}

static void add_waste(struct report *r, const struct audit *a, const struct report_request *q)
{
	struct report_waste *w = &r->waste;
	double cards = (double)r->observed_cards;
	w->idle_held_hours = (double)r->ms[CARD_IDLE_HELD] / 3600e3;
	w->truly_idle_hours = (double)r->ms[CARD_TRULY_IDLE] / 3600e3;
	w->equivalent_unavailable = cards * r->share[CARD_IDLE_HELD];
	w->equivalent_free = cards * r->share[CARD_TRULY_IDLE];
	w->reserved_hours = w->equivalent_reserved = NAN;
	if (a->has_leases) {
		w->reserved_hours = (double)r->ms[CARD_RESERVED] / 3600e3;
		w->equivalent_reserved = cards * r->share[CARD_RESERVED];
	}
	w->energy_kwh =
		report_energy_kwh(a->energy_mj, a->energy_known_ms, a->ms, CARD_IDLE_HELD);
	w->energy_known =
		report_share(a->energy_known_ms[CARD_IDLE_HELD], a->ms[CARD_IDLE_HELD]);
	w->currency = q->has_prices ? q->currency : NULL;
	w->squatting_hours = audit_is_sampled(a)
				     ? (double)NAN
				     : (double)r->held.ms[HOLDER_SQUATTING] / 3600e3;
	add_cost(w, a);
	if (a->of_users) { /* their own idle time */
		w->idle_held_hours = (double)r->held.ms[HOLDER_IDLE_HELD] / 3600e3;
		if (a->has_leases)
			w->reserved_hours = (double)r->held.reserved_ms / 3600e3;
		w->equivalent_reserved = NAN;
		w->truly_idle_hours = w->equivalent_unavailable = w->equivalent_free = NAN;
		w->energy_kwh = w->energy_known = NAN;
	}
	w->judged = verdict_of(r, a);
	w->verdict = verdict_names[w->judged];
}

/* A map of the week with fewer hours than this says nothing. */
enum { LEAST_HOURS = 4 };

void report_add_figures(struct report *r, const struct audit *a, const struct report_request *q)
{
	r->a = a;
	r->length_ms = a->until_ms - a->since_ms;
	r->n_listed = a->n_hosts > AUDIT_HOSTS_LISTED ? AUDIT_HOSTS_WORST : a->n_hosts;
	double shown[SHARES_MAX];
	r->held = (struct audit_sums)AUDIT_SUMS_NONE;
	for (size_t i = 0; i < a->n_identities; i++)
		audit_sums_add(&r->held, &a->identities[i].sums);
	r->held_ms = audit_holder_ms(r->held.ms);
	report_shown_held(r->held.ms, 0, shown);
	for (int state = 0; state < HOLDER_STATES; state++) {
		r->held_share[state] = report_share(r->held.ms[state], r->held_ms);
		r->shown_held[state] = shown[state];
	}
	memcpy(r->ms, a->ms, sizeof(r->ms));
	r->observed_ms = state_observed_ms(a->ms);
	int64_t whole_ms = r->observed_ms + a->ms[CARD_UNOBSERVED];
	for (int state = 0; state < CARD_STATES; state++)
		r->share[state] = report_share(a->ms[state], r->observed_ms);
	r->share[CARD_UNOBSERVED] =
		whole_ms > 0 ? report_share(a->ms[CARD_UNOBSERVED], whole_ms) : 0;
	r->observed = report_share(r->observed_ms, whole_ms);
	report_shown_shares(r->ms, r->shown, &r->shown_observed);
	r->uncertainty = a->fleet.asked && !a->fleet.sampled_ms
				 ? (double)NAN
				 : report_share(a->unsure_ms, r->observed_ms);
	for (size_t i = 0; i < a->n_cards; i++)
		r->observed_cards += state_observed_ms(a->cards[i].ms) > 0;
	if (a->of_users && r->held_ms > 0)
		ADD_STATES(r, holder_states, r->held.ms);
	else if (!a->of_users && r->observed_ms > 0)
		ADD_STATES(r, card_states, r->ms);
	add_waste(r, a, q);
}

void report_make(struct report *r, const struct audit *a, const struct report_request *q)
{
	*r = (struct report){ .utc = q->utc,
		.only = q->only,
		.fleet = a->fleet.asked ? &a->fleet : NULL,
		.asked = q->asked };
	report_add_figures(r, a, q);
	r->minutes = r->observed_ms + r->ms[CARD_UNOBSERVED] < HOUR_MS;
	int n = 0;
	for (int i = 0; i < 7 * 24; i++) {
		const int64_t *ms = a->heat[i / 24][i % 24].ms;
		struct report_hour *h = &r->hours[i / 24][i % 24];
		int64_t sum_ms = 0;
		for (int state = 0; state < CARD_STATES; state++)
			sum_ms += ms[state];
		h->observed = sum_ms != 0;
		n += h->observed;
		for (int state = 0; state < CARD_STATES; state++)
			h->share[state] = report_share(ms[state], sum_ms);
	}
	r->has_hours = n >= LEAST_HOURS;
	report_time_add_trend(r, a);
	report_time_add_line(r, a);
	report_cards_add_hosts(&r->host_table, a);
	report_cards_add(&r->cards, a);
	report_holders_add_users(r, a, q);
	report_holders_add_breakdown(r, a, q);
	r->breakdown.table.minutes = r->by_card.table.minutes =
		r->minutes && r->breakdown.measures[q->by.n ? q->by.n - 1 : 0] != MEASURE_CARDS;
	report_events_add(&r->events, a);
	report_processes_add_spells(&r->longest, a);
	report_processes_add_leases(r, a);
	report_bill_make(r, a, q);
	report_sentences_add(r, a, q);
}

void report_finish(struct report *r)
{
	arena_finish(&r->texts);
	free(r->sentences);
	struct table *const tables[] = { &r->host_table, &r->cards, &r->identities, &r->events,
		&r->longest, &r->leases, &r->orphans, &r->bill.lines, &r->bill.cards,
		&r->bill.energy, &r->breakdown.table, &r->by_card.table, &r->policy };
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		table_finish(tables[i]);
	free(r->breakdown.rows);
	report_time_finish(r);
	report_compare_finish(r);
	free(r->by_card.rows);
	*r = (struct report){ 0 };
}
