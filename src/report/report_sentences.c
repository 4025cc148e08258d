/* Writes the sentences of a report: the window, waste, what it is restricted to, notes about
 * the holders, and the foot. */
#include "audit/audit.h"
#include "report/report_parts.h"
#include "store/crowd.h"

/* The price of all cards that have one; NAN if they have different ones. */
static double common_price(const struct audit *a)
{
	double price = NAN;
	for (size_t i = 0; i < a->n_cards; i++) {
		if (isnan(a->cards[i].price))
			continue;
		if (isfinite(price) && a->cards[i].price != price)
			return NAN;
		price = a->cards[i].price;
	}
	return price;
}

/* Adds a sentence about the cost of time; `of` says which time. */
static void add_cost(struct report *r, const struct audit *a, const char *of)
{
	const struct report_waste *w = &r->waste;
	double price = common_price(a);
	char at[160] = "", reserved[64] = "";
	if (!isfinite(w->shown_cost)) {
		report_say(r, SENTENCE_WASTE, "cost", "- (no GPU has a price; see the bill)");
		return;
	}
	if (isfinite(price))
		snprintf(at, sizeof(at), " at %s %s per GPU-hour",
			report_bill_price(price).text, w->currency);
	if (w->shown_reserved_cost > 0)
		snprintf(reserved, sizeof(reserved), ", %.2f %s for reserved time",
			w->shown_reserved_cost, w->currency);
	report_say(r, SENTENCE_WASTE, "cost", "%.2f %s for %s%s%s", w->shown_cost, w->currency,
		of, reserved, at);
}

static void add_only(struct report *r, const struct restriction *only)
{
	struct str text = { 0 }; /* there may be thousands of words */
	for (size_t i = 0; i < RESTRICTIONS; i++) {
		struct restriction_word word = { 0 };
		for (size_t n = 0; restriction_next(only, (enum restriction_kind)i, &word); n++)
			if (n)
				str_addf(&text, ", %s", word.safe);
			else
				str_addf(&text, "%s%s %s", text.len ? "; " : "",
					restriction_names[i], word.safe);
	}
	if (text.len)
		report_say(r, SENTENCE_RESTRICTED, NULL, "Only %s", str_text(&text));
	r->failed |= text.failed;
	str_finish(&text);
}

/* Says what the report is restricted to and, for users, how much time they held and used. */
static void add_restriction(
	struct report *r, const struct audit *a, const struct report_request *q)
{
	char of[USER_CAP + 64];
	const char *unit = report_unit(r);
	const char *who = a->n_identities == 1 ? process_shown_user(a->identities[0].identity)
					       : "these users";
	const char *measure = r->fleet		     ? "shares of the GPUs' time"
			      : a->n_identities == 1 ? "presence, once per GPU and moment"
						     : "presence of each, added up";
	if (q->only)
		add_only(r, q->only);
	if (!a->of_users)
		return;
	int64_t reserved_ms = r->held.reserved_ms;
	if (r->held_ms == 0)
		report_say(r, SENTENCE_OBSERVED, NULL, "Nothing was held in this window.");
	else
		report_say(r, SENTENCE_OBSERVED, NULL,
			"of %s %s that %s held (%s): %.1f%% of the %s %s observed on %zu GPU%s",
			report_hours(r, r->held_ms).text, unit, who, measure,
			100 * report_share(r->held_ms, r->observed_ms),
			report_hours(r, r->observed_ms).text, unit, r->observed_cards,
			report_plural(r->observed_cards));
	if (r->held_ms + reserved_ms == 0)
		return;
	report_say(r, SENTENCE_WASTE, "unused",
		"%s of %s %s: %s idle, %s idle on a GPU that another user kept busy%s%s%s",
		report_hours(r, audit_waste(&r->held)).text,
		report_hours(r, r->held_ms + reserved_ms).text, unit,
		report_hours(r, r->held.ms[HOLDER_IDLE_HELD]).text,
		report_hours(r, r->held.ms[HOLDER_SQUATTING]).text, reserved_ms ? ", " : "",
		reserved_ms ? report_hours(r, reserved_ms).text : "",
		reserved_ms ? " reserved and not touched" : "");
	snprintf(of, sizeof(of), "the share of %s in idle-held time", who);
	if (r->waste.currency)
		add_cost(r, a, of);
}

/* What the hours of a row mean, by measure. */
static const char *const measure_texts[MEASURES] = {
	[MEASURE_PRESENCE] = "presence, once per GPU and moment",
	[MEASURE_USERS] = "each user's presence, so that two users on a GPU count twice",
	[MEASURE_PROCESSES] = "each process's own, so that two processes on a GPU count twice",
	[MEASURE_CARDS] = "the GPUs' own",
	[MEASURE_SHARES] = "shares of the GPUs' time, which add up to it",
};

static void add_measures(struct report *r, const struct audit *a)
{
	const struct report_breakdown *b = &r->breakdown;
	enum measure last = b->measures[b->by.n - 1];
	const struct audit_cost *cost =
		b->measures[0] == MEASURE_CARDS ? &a->cost : &a->held_cost;
	struct str text = { 0 };
	const char *times = r->minutes ? "Minutes" : "Hours";
	if (last == MEASURE_CARDS)
		return;
	if (identity_by_is(&b->by, IDENTITY_PROCESS))
		str_addf(&text, "%s: the process's own on that GPU, by its own use.", times);
	else if (b->by.n == 2 && b->measures[0] != last)
		str_addf(&text, "%s of a %s: %s. %s of a %s: %s.", times,
			identity_kinds[b->by.kinds[0]].name, measure_texts[b->measures[0]],
			times, identity_kinds[b->by.kinds[1]].name, measure_texts[last]);
	else
		str_addf(&text, "%s: %s.", times, measure_texts[last]);
	if (!identity_by_is(&b->by, IDENTITY_PROCESS))
		str_addf(&text, " unused: idle, also on a GPU that another user keeps busy%s.",
			r->held.reserved_ms > 0 ? ", and reserved" : "");
	if (last == MEASURE_SHARES)
		str_add(&text,
			audit_is_sampled(a) ? "" : " idle on busy GPU: on top of the shares.");
	else if (last != MEASURE_PROCESSES || identity_by_has(&b->by, IDENTITY_USER))
		str_add(&text, " share: a GPU's time, divided among its holders.");
	if (r->bill.currency && cost->priced &&
		b->measures[0] != MEASURE_PROCESSES) /* otherwise no space is left */
		str_addf(&text, " cost: of the share, in %s.", r->bill.currency);
	report_say(r, SENTENCE_HOLDERS, NULL, "%s", str_text(&text));
	r->failed |= text.failed;
	str_finish(&text);
}

/* Names users whose idle time is mostly bare contexts, because ending those frees little. */
static void add_contexts(struct report *r, const struct audit *a)
{
	enum { NAMED = 3 };
	const char *text = "";
	size_t n = 0;
	for (size_t i = 0; i < a->n_identities; i++) {
		const struct audit_sums *s = &a->identities[i].sums;
		if (s->context_share_ms < LEAST_SHOWN_MS ||
			2 * s->context_share_ms < s->idle_share_ms || n++ >= NAMED)
			continue;
		text = arena_textf(&r->texts, "%s%s%s %s", text, *text ? ", " : "",
			process_shown_user(a->identities[i].identity),
			report_hours(r, s->context_share_ms).text);
	}
	if (n)
		report_say(r, SENTENCE_HOLDERS, NULL,
			"Idle with little more than a CUDA context: %s%s %s (share). "
			"Ending that frees little memory.",
			text, n > NAMED ? ", ..." : "", report_unit(r));
}

/* Explains the mark of a bare context, and a row that short processes share, if shown. */
static void explain_processes(struct report *r, const struct audit *a)
{
	bool context = false, crowd = false;
	for (size_t i = 0; i < r->breakdown.table.n_rows && i < a->n_processes; i++) {
		const struct audit_process *p = &a->processes[i];
		const char *command = p->texts[PROCESS_COMMAND];
		context |= p->context;
		crowd |= p->pid == 0 && command && strcmp(command, CROWD_COMMAND) == 0;
	}
	if (context)
		report_say(r, SENTENCE_HOLDERS, NULL,
			"[ctx]: never more than about a CUDA context; ending it frees little "
			"memory.");
	if (crowd)
		report_say(r, SENTENCE_HOLDERS, NULL,
			CROWD_COMMAND " are a user's processes of less than %d minutes, after "
				      "the first %d of a day: their time is stored as one.",
			CROWD_SHORT_MS / 60000, CROWD_LIVES);
}

static void add_notes(struct report *r, const struct audit *a, const struct report_request *q)
{
	const struct report_breakdown *b = &r->breakdown;
	size_t n = b->table.n_rows, all = a->n_processes + a->n_processes_left_out;
	bool cards = b->measures[q->by.n - 1] == MEASURE_CARDS, rest = false;
	if (identity_by_is(&q->by, IDENTITY_CARD))
		return;
	bool nobodys = a->unattributed_ms >= LEAST_SHOWN_MS;
	if (n == 0)
		report_say(r, SENTENCE_HOLDERS, NULL,
			r->fleet && r->fleet->n_partial
				? "Not known: metrics say who used a host, not on which GPU."
			: nobodys && r->fleet
				? "Not known: metrics show a new user after 150 s, and no "
				  "user at all with --identities off."
				: "Nobody held a GPU.");
	for (size_t i = 0; i < n; i++)
		rest |= b->rows[i].rest;
	if (rest)
		report_say(r, SENTENCE_HOLDERS, NULL, "--top 0 shows all.");
	if (identity_by_is(&b->by, IDENTITY_PROCESS) && n < all)
		report_say(r, SENTENCE_HOLDERS, NULL, "%zu more processes: --top 0 shows all",
			all - n);
	if (identity_by_has(&q->by, IDENTITY_GROUP) && !q->has_groups)
		report_say(r, SENTENCE_HOLDERS, NULL,
			"No groups are defined: [groups] in gua.conf(5) does that.");
	if (nobodys && !cards)
		report_say(r, SENTENCE_HOLDERS, NULL,
			"%s %s of active or idle-held time are in nobody's share.",
			report_hours(r, a->unattributed_ms).text, report_unit(r));
	if (n)
		add_measures(r, a);
	if (identity_by_is(&q->by, IDENTITY_USER))
		add_contexts(r, a);
	if (identity_by_is(&q->by, IDENTITY_PROCESS))
		explain_processes(r, a);
}

static void add_hosts(struct report *r, const struct audit *a)
{
	const struct audit_fleet *f = &a->fleet;
	char expected[64] = "", silent[96] = "", late[96] = "";
	if (f->n_expected >= 0)
		snprintf(expected, sizeof(expected), " of %lld expected",
			(long long)f->n_expected);
	if (f->n_late)
		snprintf(late, sizeof(late), ", %zu first seen within the window", f->n_late);
	if (f->n_silent)
		snprintf(silent, sizeof(silent), ", %zu not seen at its end", f->n_silent);
	report_say(r, SENTENCE_FLEET, NULL, "Hosts: %zu seen%s%s%s.", f->n_seen, expected, late,
		silent);
	if (f->n_missing)
		report_say(r, SENTENCE_ABSENT, NULL,
			"Expected and not seen: %s. Their time is in no figure below.",
			f->missing);
	char resets[96] = "", observed[64] = "";
	if (isfinite(r->observed))
		snprintf(observed, sizeof(observed), ", %.1f%% of the GPUs' time in it",
			100 * r->shown_observed);
	if (f->n_counted)
		snprintf(resets, sizeof(resets), " Counter resets: %zu host%s lost %s store.",
			f->n_resets, report_plural(f->n_resets),
			f->n_resets == 1 ? "its" : "their");
	report_say(r, SENTENCE_FLEET, NULL, "Window covered: %s to %s%s.%s",
		moment_text(a->since_ms, r->utc).text, moment_text(a->until_ms, r->utc).text,
		observed, resets);
}

static void add_cautions(struct report *r, const struct audit_fleet *f)
{
	if (f->n_twice)
		report_say(r, SENTENCE_FLEET, NULL,
			"%zu GPU%s reported by two hosts at the same time and counted twice: "
			"--match can choose one of two ways in which a host is scraped.",
			f->n_twice, f->n_twice == 1 ? " is" : "s are");
	if (f->n_partial)
		report_say(r, SENTENCE_FLEET, NULL,
			"Users are left out: %zu of these hosts %s other GPUs too, and metrics "
			"say who used a host, not on which GPU.",
			f->n_partial, f->n_partial == 1 ? "has" : "have");
	if (f->n_assumed)
		report_say(r, SENTENCE_FLEET, NULL,
			"%zu users of hosts first seen within the window are taken to have "
			"begun at 0 in it: to ask for each would be too much for one query.",
			f->n_assumed);
	if (f->n_not_finite)
		report_say(r, SENTENCE_FLEET, NULL,
			"%zu values of the engine are not numbers and are left out.",
			f->n_not_finite);
	for (size_t i = 0; i < f->n_warnings; i++)
		report_say(r, SENTENCE_FLEET, NULL, "The engine warns: %s", f->warnings[i]);
}

/* Says how exact samples are, and what they do not have. */
static void add_sampled(struct report *r, const struct audit_fleet *f)
{
	long long often = f->often_ms / 1000, most = f->sampled_ms / 1000;
	report_say(r, SENTENCE_COVERAGE, NULL,
		"%ssampled every %s%lld s by %s; each state ± %.1f points",
		f->n_counted ? "partly " : "",
		often < most ? str_brief("%lld to ", often).text : "", most, f->samplers,
		ceil(1000 * r->uncertainty - 1e-6) / 10);
	if (f->n_counted)
		report_say(r, SENTENCE_FLEET, NULL,
			"gua counts on %zu of these hosts; the other %zu have only metrics of "
			"%s.",
			f->n_counted, f->n_seen - f->n_counted, f->samplers);
	if (f->samples_alone)
		report_say(r, SENTENCE_FLEET, NULL,
			"The metrics of gua do not have what was asked for: these are samples "
			"of %s alone, without the hosts that only gua watches.",
			f->samplers);
	report_say(r, SENTENCE_FLEET, NULL,
		"Metrics of %s: each sample stands for the time since the one before it, so "
		"what happens between two is not seen. They have no processes, idle spells or "
		"events, and no squatters. gua on the hosts counts each second, and for whom.",
		f->samplers);
}

/* Up to this many hosts without leases are named. */
enum { LEASELESS_NAMED = 5 };

/* Of hosts beside others with leases, it is not known what was given away: their reserved time
 * counts as truly-idle. */
static void add_without_leases(struct report *r, const struct audit *a)
{
	const char *names = "";
	size_t n = 0;
	for (size_t i = 0; i < a->n_hosts && a->has_leases; i++)
		if (!a->hosts[i].has_leases && n++ < LEASELESS_NAMED)
			names = arena_textf(&r->texts, "%s%s%s", names, n > 1 ? ", " : "",
				a->hosts[i].hostname);
	if (n)
		report_say(r, SENTENCE_FLEET, NULL,
			"No leases are known of %zu host%s (%s%s): what was reserved there "
			"counts as truly-idle.",
			n, report_plural(n), names, n > LEASELESS_NAMED ? ", ..." : "");
}

/* The foot of a report over a fleet or over stores. */
static void add_fleet(struct report *r, const struct audit *a)
{
	enum { UNREAD_NAMED = 10 }; /* unreadable stores; JSON has all */
	const struct audit_fleet *f = &a->fleet;
	const struct audit_stores *s = &a->stores;
	if (r->asked) {
		enum { NAMED = 5 };
		report_say(r, SENTENCE_FLEET, NULL, "Hosts asked by ssh: %zu; %zu answered.",
			r->asked->n_asked, r->asked->n_answered);
		for (size_t i = 0; i < r->asked->n_failed && i < NAMED; i++)
			report_say(r, SENTENCE_FLEET, NULL, "Not in this report: %s (%s).",
				r->asked->failed[i].host, r->asked->failed[i].why);
		if (r->asked->n_failed > NAMED)
			report_say(r, SENTENCE_FLEET, NULL, "Not in this report: %zu more.",
				r->asked->n_failed - NAMED);
	}
	if (f->asked) {
		report_say(r, SENTENCE_FLEET, NULL, "From %s: %s.", f->url, f->engine);
		add_hosts(r, a);
		add_without_leases(r, a);
		add_cautions(r, f);
		if (f->sampled_ms)
			add_sampled(r, f);
		else
			report_say(r, SENTENCE_FLEET, NULL,
				"Metrics have no processes, idle spells, events, mean "
				"utilisation or memory peaks, and name users by their shares: "
				"the stores of the hosts have the rest.");
		return;
	}
	add_without_leases(r, a);
	if (s->n_unread)
		report_say(r, SENTENCE_FLEET, NULL,
			"%zu of %zu stores could not be read; nothing of %s is in this report:",
			s->n_unread, s->n, s->n_unread == 1 ? "it" : "them");
	for (size_t i = 0; i < s->n_unread && i < UNREAD_NAMED; i++)
		report_say(r, SENTENCE_FLEET, NULL, "- %s", s->unread[i]);
	if (s->n_unread > UNREAD_NAMED)
		report_say(r, SENTENCE_FLEET, NULL,
			"- and %zu more: --format json names all of them",
			s->n_unread - UNREAD_NAMED);
}

/* Up to this many hosts with simulated data are named; further ones are counted. */
enum { SIMULATED_MAX = 5 };

static void add_sources(struct report *r)
{
	size_t simulated = 0, captured = 0, imported = 0;
	for (size_t i = 0; i < r->a->n_hosts; i++) {
		simulated += r->a->hosts[i].simulated && !r->a->hosts[i].captured;
		captured += r->a->hosts[i].captured;
		imported += r->a->hosts[i].imported;
	}
	if (simulated)
		report_say(r, SENTENCE_SIMULATED, NULL, SIMULATED_WARNING);
	if (captured)
		report_say(r, SENTENCE_SIMULATED, NULL, CAPTURED_WARNING);
	bool many = simulated + captured > SIMULATED_MAX;
	if (many)
		report_say(r, SENTENCE_SIMULATED_HOST, NULL, "simulated: %zu of %zu hosts",
			simulated + captured, r->a->n_hosts);
	for (size_t i = 0; i < r->a->n_hosts && r->a->n_hosts > 1 && !many; i++)
		if (r->a->hosts[i].simulated)
			report_say(r, SENTENCE_SIMULATED_HOST, NULL, "%s: %s",
				r->a->hosts[i].captured ? "captured" : "simulated",
				r->a->hosts[i].hostname);
	if (imported)
		report_say(r, SENTENCE_IMPORTED, NULL,
			"Some of this data was imported from another tool: its time is its "
			"number of samples times their interval.");
}

/* Up to this many hosts without a recorder are named. */
enum { ABSENT_MAX = 5 };

/* Says which window is covered, and whether it is shorter than the requested one. */
static void add_coverage(struct report *r)
{
	char observed[48] = "";
	if (isfinite(r->observed))
		snprintf(observed, sizeof(observed), ", %.1f%% of it observed",
			100 * r->shown_observed);
	report_say(r, SENTENCE_COVERAGE, NULL, "%s to %s%s",
		moment_text(r->a->since_ms, r->utc).text,
		moment_text(r->a->until_ms, r->utc).text, observed);
	struct brief since = moment_text(r->a->asked_since_ms, r->utc);
	struct brief until = moment_text(r->a->asked_until_ms, r->utc);
	if (r->a->clipped_start && r->a->clipped_end)
		report_say(r, SENTENCE_CLIPPED, NULL,
			"Clipped: from %s to %s was asked for; the data begins later and ends "
			"earlier.",
			since.text, until.text);
	else if (r->a->clipped_start)
		report_say(r, SENTENCE_CLIPPED, NULL,
			"Clipped: from %s on was asked for; the oldest data is newer.",
			since.text);
	else if (r->a->clipped_end)
		report_say(r, SENTENCE_CLIPPED, NULL,
			"Clipped: up to %s was asked for; the newest data is older, and "
			"nothing of it was recorded here.",
			until.text);
	/* Since when hosts have had no recorder. */
	size_t n = 0, most = r->n_listed < r->a->n_hosts ? ABSENT_MAX : r->a->n_hosts;
	for (size_t i = 0; i < r->a->n_hosts; i++) {
		const struct audit_host *host = &r->a->hosts[i];
		if (host->recording || host->last_tick_ms < 0 ||
			host->last_tick_ms + 1000 >= host->until_ms || ++n > most)
			continue;
		bool sampled = host->metrics && strcmp(host->metrics, "gua") != 0;
		report_say(r, SENTENCE_ABSENT, NULL, "No %s %s since %s.",
			sampled ? "samples of" : "recorder on", host->hostname,
			moment_text(host->last_tick_ms, r->utc).text);
	}
	if (n > most)
		report_say(r, SENTENCE_ABSENT, NULL,
			"Nothing is known of %zu other host%s at the end of the window.",
			n - most, report_plural(n - most));
}

static void add_energy(struct report *r)
{
	const struct report_waste *w = &r->waste;
	const struct report_bill *bill = &r->bill;
	char money[64] = "", co2[64] = "", known[64] = "";
	if (!isfinite(w->energy_kwh)) {
		report_say(r, SENTENCE_WASTE, "energy",
			r->fleet ? "- (the metrics have no energy of this time)"
				 : "- (the driver reported no energy for this time)");
		return;
	}
	if (isfinite(bill->energy_price))
		snprintf(money, sizeof(money), ": %.2f %s", w->energy_kwh * bill->energy_price,
			bill->energy_currency);
	if (isfinite(bill->co2_g_per_kwh))
		snprintf(co2, sizeof(co2), "%s%.2f kg CO2", *money ? ", " : ": ",
			w->energy_kwh * bill->co2_g_per_kwh / 1000);
	if (isfinite(w->energy_known) && w->energy_known < 0.9995)
		snprintf(known, sizeof(known), " (known for %.1f%% of it)",
			100 * w->energy_known);
	bool little = w->energy_kwh > 0 && w->energy_kwh < 0.005; /* would be 0.00 kWh */
	report_say(r, SENTENCE_WASTE, "energy", "%.2f %s went into idle-held time%s%s%s",
		w->energy_kwh * (little ? 1000 : 1), little ? "Wh" : "kWh", known, money, co2);
}

static void add_waste(struct report *r, const struct audit *a, const struct report_request *q)
{
	const struct report_waste *w = &r->waste;
	size_t n = r->observed_cards;
	const char *unit = report_unit(r);
	if (r->observed_ms == 0) {
		report_say(r, SENTENCE_WASTE, NULL, "No time was observed.");
		return;
	}
	report_say(r, SENTENCE_WASTE, "idle-held",
		"%s %s = %.2f of %zu GPU%s equivalently unavailable",
		report_hours(r, r->ms[CARD_IDLE_HELD]).text, unit, w->equivalent_unavailable, n,
		report_plural(n));
	if (r->held.context_share_ms >= LEAST_SHOWN_MS)
		report_say(r, SENTENCE_WASTE, "  context",
			"%s of these %s are the share of processes with little more than a "
			"CUDA context: ending them frees little memory",
			report_hours(r, r->held.context_share_ms).text, unit);
	if (r->held.ms[HOLDER_SQUATTING] >= LEAST_SHOWN_MS)
		report_say(r, SENTENCE_WASTE, "squatting",
			"%s %s idle on GPUs that another user kept busy (presence, not "
			"part of idle-held)",
			report_hours(r, r->held.ms[HOLDER_SQUATTING]).text, unit);
	if (r->ms[CARD_RESERVED] > 0) {
		report_say(r, SENTENCE_WASTE, "reserved",
			"%s %s = %.2f of %zu GPU%s given away and not touched",
			report_hours(r, r->ms[CARD_RESERVED]).text, unit,
			w->equivalent_reserved, n, report_plural(n));
		report_say(r, SENTENCE_WASTE, "together",
			"idle-held and reserved: %.1f of %zu GPU%s",
			w->equivalent_unavailable + w->equivalent_reserved, n,
			report_plural(n));
	}
	report_say(r, SENTENCE_WASTE, "truly-idle",
		"%s %s = %.2f of %zu GPU%s equivalently free",
		report_hours(r, r->ms[CARD_TRULY_IDLE]).text, unit, w->equivalent_free, n,
		report_plural(n));
	if (a->lease_unknown_ms > 0)
		report_say(r, SENTENCE_WASTE, "  unknown",
			"of %s of these %s it is not known whether they were reserved, because "
			"the scheduler was silent",
			report_hours(r, a->lease_unknown_ms).text, unit);
	add_energy(r);
	if (w->currency)
		add_cost(r, a, "idle-held time");
	report_add_verdict(r, a, q);
}

/* Why a card has no readings now. */
static const struct status_word {
	const char *status, *words;
} status_words[] = {
	{ "lost", "is lost" },
	{ "asleep", "is asleep and was left alone" },
	{ "denied", "may not be opened" },
};

static void add_rules(struct report *r)
{
	if (r->fleet && !r->fleet->sampled_ms) {
		report_say(r, SENTENCE_RULES, NULL,
			"Rules: those of each host's recorder, which its metrics do not "
			"carry.");
		return;
	}
	char slots[96] = "", spells[64] = "";
	if (r->longest.n_rows)
		snprintf(spells, sizeof(spells), "; idle spells from %s",
			duration_text(r->a->rules.spell_ms).text);
	if (r->a->resolution_ms)
		snprintf(slots, sizeof(slots),
			" Time is kept in slots of up to %s, taken whole.",
			duration_text(r->a->resolution_ms).text);
	report_say(r, SENTENCE_RULES, NULL,
		"Rules: active from %.10g%% utilisation; held above %.10g MB%s%s.%s%s",
		r->a->rules.active_util_pct, (double)r->a->rules.held_mem_bytes / 1e6,
		r->a->rules.count_graphics ? ", graphics processes included" : "", spells,
		r->a->rules_mixed ? " Other rules were in force in part of the window." : "",
		slots);
	if (r->a->strict)
		report_say(r, SENTENCE_RULES, NULL,
			"Privacy was strict: no command lines, paths or other texts of "
			"processes were recorded.");
}

void report_sentences_add(
	struct report *r, const struct audit *a, const struct report_request *q)
{
	add_sources(r);
	add_coverage(r);
	add_restriction(r, a, q);
	if (!a->of_users)
		report_say(r, SENTENCE_OBSERVED, NULL, "of %s %s observed on %zu GPU%s",
			report_hours(r, r->observed_ms).text, report_unit(r), r->observed_cards,
			report_plural(r->observed_cards));
	report_say(r, SENTENCE_UNOBSERVED, NULL, "of the window: %s of %s %s have no reading",
		report_hours(r, r->ms[CARD_UNOBSERVED]).text,
		report_hours(r, r->observed_ms + r->ms[CARD_UNOBSERVED]).text, report_unit(r));
	if (!a->of_users)
		add_waste(r, a, q);
	for (size_t i = 0; i < a->n_cards; i++) {
		const struct audit_card *card = &a->cards[i];
		const char *words = card->status;
		if (strcmp(card->status, "ok") == 0)
			continue;
		for (size_t k = 0; k < sizeof(status_words) / sizeof(status_words[0]); k++)
			if (strcmp(status_words[k].status, card->status) == 0)
				words = status_words[k].words;
		report_say(r, SENTENCE_CARD, NULL, "* %s %s; accounted up to %s",
			report_gpu(r, i, " on "), words,
			moment_text(card->last_seen_ms, r->utc).text);
	}
	report_processes_add_orphans(r, a);
	add_notes(r, a, q);
	report_processes_say_spells(r, a);
	report_bill_say(r, a);
	report_events_say(r, a);
	add_fleet(r, a);
	add_rules(r);
}
