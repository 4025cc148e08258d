/* Writes the sentences of a report. */
#include "base/array.h"
#include "report/report_parts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/timetext.h"

void report_say(
	struct report *r, enum sentence_kind kind, const char *label, const char *format, ...)
{
	if (!array_one_more(&r->sentences, r->n_sentences)) {
		r->failed = true;
		return;
	}
	char *text = NULL;
	va_list args;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	if (!text)
		r->failed = true;
	else
		r->sentences[r->n_sentences++] = (struct sentence){ kind, label, text };
}

const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

void hours_text(char dst[HOURS_TEXT_CAP], int64_t ms)
{
	double hours = (double)ms / 3600e3;
	snprintf(dst, HOURS_TEXT_CAP, hours > 0 && hours < 0.095 ? "%.4f" : "%.2f", hours);
}

/* More hosts with simulated data are counted, not named. */
enum { SIMULATED_MAX = 5 };

static void add_sources(struct report *r)
{
	size_t simulated = 0, captured = 0, imported = 0;
	for (size_t i = 0; i < r->n_hosts; i++) {
		simulated += r->hosts[i].simulated && !r->hosts[i].captured;
		captured += r->hosts[i].captured;
		imported += r->hosts[i].imported;
	}
	if (simulated)
		report_say(r, SENTENCE_SIMULATED, NULL, SIMULATED_WARNING);
	if (captured)
		report_say(r, SENTENCE_SIMULATED, NULL, CAPTURED_WARNING);
	bool many = simulated + captured > SIMULATED_MAX;
	if (many)
		report_say(r, SENTENCE_SIMULATED_HOST, NULL, "simulated: %zu of %zu hosts",
			simulated + captured, r->n_hosts);
	for (size_t i = 0; i < r->n_hosts && r->n_hosts > 1 && !many; i++)
		if (r->hosts[i].simulated)
			report_say(r, SENTENCE_SIMULATED_HOST, NULL, "%s: %s",
				r->hosts[i].captured ? "captured" : "simulated",
				r->hosts[i].hostname);
	if (imported)
		report_say(r, SENTENCE_IMPORTED, NULL,
			"Some of this data was imported from another tool: its time is its "
			"number of samples times their interval.");
}

/* More hosts without a recorder are not named. */
enum { ABSENT_MAX = 5 };

/* Says which hosts have had no recorder since when. */
static void add_absent(struct report *r)
{
	size_t n = 0, most = r->n_listed < r->n_hosts ? ABSENT_MAX : r->n_hosts;
	for (size_t i = 0; i < r->n_hosts; i++) {
		const struct audit_host *host = &r->hosts[i];
		char last[48];
		if (host->recording || host->last_tick_ms < 0 ||
			host->last_tick_ms + 1000 >= host->until_ms || ++n > most)
			continue;
		moment_text(last, sizeof(last), host->last_tick_ms, r->utc);
		report_say(r, SENTENCE_ABSENT, NULL, "No recorder on %s since %s.",
			host->hostname, last);
	}
	if (n > most)
		report_say(r, SENTENCE_ABSENT, NULL,
			"No recorder at the end of the window on %zu other host%s.", n - most,
			plural(n - most));
}

/* Says that the window was asked to be longer than the data. */
static void add_clipped(struct report *r)
{
	char since[48], until[48];
	moment_text(since, sizeof(since), r->asked_since_ms, r->utc);
	moment_text(until, sizeof(until), r->asked_until_ms, r->utc);
	if (r->clipped_start && r->clipped_end)
		report_say(r, SENTENCE_CLIPPED, NULL,
			"Clipped: from %s to %s was asked for; the data begins later and ends "
			"earlier.",
			since, until);
	else if (r->clipped_start)
		report_say(r, SENTENCE_CLIPPED, NULL,
			"Clipped: from %s on was asked for; the oldest data is newer.", since);
	else if (r->clipped_end)
		report_say(r, SENTENCE_CLIPPED, NULL,
			"Clipped: up to %s was asked for; the newest data is older, and "
			"nothing "
			"of it was recorded here.",
			until);
}

static void add_coverage(struct report *r)
{
	char since[48], until[48], observed[48] = "";
	moment_text(since, sizeof(since), r->since_ms, r->utc);
	moment_text(until, sizeof(until), r->until_ms, r->utc);
	if (isfinite(r->observed))
		snprintf(observed, sizeof(observed), ", %.1f%% of it observed",
			100 * r->shown_observed);
	report_say(r, SENTENCE_COVERAGE, NULL, "%s to %s%s", since, until, observed);
	add_clipped(r);
	add_absent(r);
}

static void add_headline(struct report *r)
{
	char hours[HOURS_TEXT_CAP], whole[HOURS_TEXT_CAP];
	hours_text(hours, r->observed_ms);
	if (!r->of_users)
		report_say(r, SENTENCE_OBSERVED, NULL, "of %s GPU-hours observed on %zu GPU%s",
			hours, r->observed_cards, plural(r->observed_cards));
	hours_text(hours, r->ms[CARD_UNOBSERVED]);
	hours_text(whole, r->observed_ms + r->ms[CARD_UNOBSERVED]);
	report_say(r, SENTENCE_UNOBSERVED, NULL,
		"of the window: %s of %s GPU-hours have no reading", hours, whole);
}

/* ": 0.03 EUR, 0.04 kg CO2", where that is known; "" otherwise. */
static void energy_cost_text(char *dst, size_t cap, const struct report *r, double kwh)
{
	const struct report_bill *bill = &r->bill;
	char money[64] = "", co2[64] = "";
	if (isfinite(bill->energy_price))
		snprintf(money, sizeof(money), "%.2f %s", kwh * bill->energy_price,
			bill->energy_currency);
	if (isfinite(bill->co2_g_per_kwh))
		snprintf(co2, sizeof(co2), "%.2f kg CO2", kwh * bill->co2_g_per_kwh / 1000);
	snprintf(dst, cap, "%s%s%s%s", *money || *co2 ? ": " : "", money,
		*money && *co2 ? ", " : "", co2);
}

static void add_energy(struct report *r)
{
	const struct report_waste *w = &r->waste;
	char cost[160], known[64] = "";
	if (!isfinite(w->energy_kwh)) {
		report_say(r, SENTENCE_WASTE, "energy",
			r->fleet ? "- (the metrics have no energy of this time)"
				 : "- (the driver reported no energy for this time)");
		return;
	}
	energy_cost_text(cost, sizeof(cost), r, w->energy_kwh);
	if (isfinite(w->energy_known) && w->energy_known < 0.9995)
		snprintf(known, sizeof(known), " (known for %.1f%% of it)",
			100 * w->energy_known);
	report_say(r, SENTENCE_WASTE, "energy", "%.2f kWh went into idle-held time%s%s",
		w->energy_kwh, known, cost);
}

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

void report_add_cost(struct report *r, const struct audit *a, const char *of)
{
	const struct report_waste *w = &r->waste;
	double price = common_price(a);
	char text[40], at[160] = "";
	if (!isfinite(w->shown_cost)) {
		report_say(r, SENTENCE_WASTE, "cost", "- (no GPU has a price; see the bill)");
		return;
	}
	price_text(text, sizeof(text), price);
	if (isfinite(price))
		snprintf(at, sizeof(at), " at %s %s per GPU-hour", text, w->currency);
	report_say(r, SENTENCE_WASTE, "cost", "%.2f %s for %s%s", w->shown_cost, w->currency,
		of, at);
}

/* Idle-held time that ending a process would hardly give back, and time that is beside it. */
static void add_beside(struct report *r)
{
	char hours[HOURS_TEXT_CAP];
	hours_text(hours, r->held.context_share_ms);
	if (r->held.context_share_ms >= LEAST_SHOWN_MS)
		report_say(r, SENTENCE_WASTE, "  context",
			"%s of these GPU-hours are the share of processes with little more "
			"than a CUDA context: ending them frees little memory",
			hours);
	hours_text(hours, r->held.ms[HOLDER_SQUATTING]);
	if (r->held.ms[HOLDER_SQUATTING] >= LEAST_SHOWN_MS)
		report_say(r, SENTENCE_WASTE, "squatting",
			"%s GPU-hours idle on GPUs that another user kept busy (presence, not "
			"part of idle-held)",
			hours);
}

static void add_waste(struct report *r, const struct audit *a, const struct report_request *q)
{
	const struct report_waste *w = &r->waste;
	size_t n = r->observed_cards;
	char hours[HOURS_TEXT_CAP];
	if (r->observed_ms == 0) {
		report_say(r, SENTENCE_WASTE, NULL, "No time was observed.");
		return;
	}
	hours_text(hours, r->ms[CARD_IDLE_HELD]);
	report_say(r, SENTENCE_WASTE, "idle-held",
		"%s GPU-hours = %.2f of %zu GPU%s equivalently unavailable", hours,
		w->equivalent_unavailable, n, plural(n));
	add_beside(r);
	hours_text(hours, r->ms[CARD_TRULY_IDLE]);
	report_say(r, SENTENCE_WASTE, "truly-idle",
		"%s GPU-hours = %.2f of %zu GPU%s equivalently free", hours, w->equivalent_free,
		n, plural(n));
	add_energy(r);
	if (w->currency)
		report_add_cost(r, a, "idle-held time");
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

static void add_cards(struct report *r, const struct audit *a)
{
	for (size_t i = 0; i < a->n_cards; i++) {
		const struct audit_card *card = &a->cards[i];
		const char *words = card->status;
		char label[CARD_LABEL_CAP], seen[48];
		bool several = a->n_hosts > 1;
		if (strcmp(card->status, "ok") == 0)
			continue;
		for (size_t k = 0; k < sizeof(status_words) / sizeof(status_words[0]); k++)
			if (strcmp(status_words[k].status, card->status) == 0)
				words = status_words[k].words;
		card_label(label, sizeof(label), &card->id);
		moment_text(seen, sizeof(seen), card->last_seen_ms, r->utc);
		report_say(r, SENTENCE_CARD, NULL, "* GPU %s%s%s %s; accounted up to %s", label,
			several ? " on " : "", several ? a->hosts[card->host].hostname : "",
			words, seen);
	}
}

static void add_rules(struct report *r)
{
	if (r->fleet) {
		report_say(r, SENTENCE_RULES, NULL,
			"Rules: those of each host's recorder, which its metrics do not "
			"carry.");
		return;
	}
	char slot[32], slots[96] = "", spell[32], spells[64] = "";
	duration_text(slot, sizeof(slot), r->resolution_ms);
	duration_text(spell, sizeof(spell), r->rules.spell_ms);
	if (r->longest.n_rows)
		snprintf(spells, sizeof(spells), "; idle spells from %s", spell);
	if (r->resolution_ms)
		snprintf(slots, sizeof(slots),
			" Time is kept in slots of up to %s, taken whole.", slot);
	report_say(r, SENTENCE_RULES, NULL,
		"Rules: active from %.10g%% utilisation; held above %.10g MB%s%s.%s%s",
		r->rules.active_util_pct, (double)r->rules.held_mem_bytes / 1e6,
		r->rules.count_graphics ? ", graphics processes included" : "", spells,
		r->rules_mixed ? " Other rules were in force in part of the window." : "",
		slots);
	if (r->strict)
		report_say(r, SENTENCE_RULES, NULL,
			"Privacy was strict: no command lines, paths or other texts of "
			"processes were recorded.");
}

void report_add_sentences(
	struct report *r, const struct audit *a, const struct report_request *q)
{
	add_sources(r);
	add_coverage(r);
	report_add_restriction(r, a, q);
	add_headline(r);
	if (!r->of_users)
		add_waste(r, a, q);
	add_cards(r, a);
	report_add_orphans(r, a);
	report_add_notes(r, a, q);
	report_add_spell_sentences(r, a);
	report_add_bill_sentences(r, a);
	report_add_event_sentences(r, a);
	report_add_fleet(r, a);
	add_rules(r);
}
