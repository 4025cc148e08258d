/* The report for people: five sections, readable at 80 columns. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/timetext.h"
#include "render/report.h"
#include "render/report_text.h"

#define LABEL_COLUMNS 14

void report_line(struct str *out, const struct text_style *style, const char *label,
	const char *format, ...)
{
	struct str text = { 0 };
	va_list args;
	va_start(args, format);
	str_vaddf(&text, format, args);
	va_end(args);
	size_t at = label ? LABEL_COLUMNS : 2;
	str_addf(out, "  %-*s", label ? LABEL_COLUMNS - 2 : 0, label ? label : "");
	text_add_wrapped(out, str_text(&text), at, at, style);
	out->failed |= text.failed;
	str_finish(&text);
}

void report_heading(
	struct str *out, const struct text_style *style, int number, const char *title)
{
	char line[80];
	snprintf(line, sizeof(line), style->ascii ? "%d. %s" : "§%d %s", number, title);
	str_add(out, "\n");
	text_add_colored(out, line, "1", style);
	str_add(out, "\n");
}

/* "0.80", or more digits where two would say nothing. */
static void hours_text(char *dst, size_t cap, int64_t ms)
{
	double hours = (double)ms / 3600e3;
	snprintf(dst, cap, hours > 0 && hours < 0.095 ? "%.4f" : "%.2f", hours);
}

static void add_sources(struct str *out, const struct audit *a, const struct text_style *style)
{
	size_t simulated = 0, imported = 0;
	for (size_t i = 0; i < a->n_hosts; i++) {
		simulated += a->hosts[i].simulated;
		imported += a->hosts[i].imported;
	}
	if (simulated) {
		text_add_colored(out,
			"SIMULATED DATA: invented by a simulated source, not measured on a "
			"GPU.",
			"1;31", style);
		str_add(out, "\n");
	}
	for (size_t i = 0; i < a->n_hosts && simulated && a->n_hosts > 1; i++)
		if (a->hosts[i].simulated)
			report_line(out, style, NULL, "simulated: %s", a->hosts[i].hostname);
	if (imported)
		text_add_wrapped(out,
			"Some of this data was imported from another tool: its time is its "
			"number of samples times their interval.",
			0, 0, style);
}

/* "HOST (bare, driver V)REST" in one line of at most `columns`: the name gives way. */
static void add_host(struct str *out, const struct audit_host *host, const char *rest,
	size_t columns, const struct text_style *style)
{
	struct str tail = { 0 };
	str_add(&tail, " (");
	text_add_cut(&tail, *host->environment ? host->environment : "unknown", 12, style);
	str_add(&tail, ", driver ");
	text_add_cut(&tail, *host->driver ? host->driver : "unknown", 14, style);
	str_addf(&tail, ")%s\n", rest);
	text_add_cut(out, host->hostname, columns - text_columns(str_text(&tail)) + 1, style);
	str_add(out, str_text(&tail));
	out->failed |= tail.failed;
	str_finish(&tail);
}

static void add_window(struct str *out, const struct audit *a, const struct text_style *style)
{
	char since[48], until[48];
	double observed = report_share(
		report_observed_ms(a->ms), report_observed_ms(a->ms) + a->ms[CARD_UNOBSERVED]);
	moment_text(since, sizeof(since), a->since_ms, style->utc);
	moment_text(until, sizeof(until), a->until_ms, style->utc);
	str_addf(out, "%s to %s", since, until);
	if (isfinite(observed))
		str_addf(out, ", %.1f%% of it observed", 100 * observed);
	str_add(out, "\n");
}

static void add_absent(struct str *out, const struct audit *a, const struct text_style *style)
{
	for (size_t i = 0; i < a->n_hosts; i++) {
		const struct audit_host *host = &a->hosts[i];
		char last[48];
		if (host->recording || host->last_tick_ms < 0 ||
			host->last_tick_ms + 1000 >= host->until_ms)
			continue;
		moment_text(last, sizeof(last), host->last_tick_ms, style->utc);
		struct str line = { 0 };
		str_addf(&line, "No recorder on %s since %s.", host->hostname, last);
		text_add_wrapped(out, str_text(&line), 0, 0, style);
		str_finish(&line);
	}
}

static void add_header(struct str *out, const struct audit *a, const struct text_style *style)
{
	char window[48], rest[64];
	add_sources(out, a, style);
	duration_clock(window, sizeof(window), a->until_ms - a->since_ms);
	snprintf(rest, sizeof(rest), "  Window: %s", window);
	str_add(out, style->ascii ? "gua - " : "gua — ");
	if (a->n_hosts == 1)
		add_host(out, &a->hosts[0], rest, style->columns - 6, style);
	else
		str_addf(out, "%zu hosts%s\n", a->n_hosts, rest);
	add_window(out, a, style);
	for (size_t i = 0; i < a->n_hosts && a->n_hosts > 1; i++) {
		size_t n = a->hosts[i].n_cards;
		snprintf(rest, sizeof(rest), ": %zu GPU%s", n, n == 1 ? "" : "s");
		str_add(out, "  ");
		add_host(out, &a->hosts[i], rest, style->columns - 2, style);
	}
	add_absent(out, a, style);
}

/* Observed time; a part of use unknown is shown where there is some. */
static const struct bar_part {
	enum card_state state;
	const char *label, *block, *ascii, *color, *remark;
} bar_parts[] = {
	{ CARD_ACTIVE, "active", "█", "#", "32", "" },
	{ CARD_IDLE_HELD, "idle-held", "▒", "=", "33",
		"held and not used: what dashboards miss" },
	{ CARD_TRULY_IDLE, "truly-idle", "░", ".", "2", "" },
	{ CARD_USE_UNKNOWN, "use unknown", "▚", "?", "35",
		"held, but the driver reports no utilisation (MIG)" },
};
enum { BAR_PARTS = sizeof(bar_parts) / sizeof(bar_parts[0]) };

static void add_bar(struct str *out, const struct audit *a, const struct report_style *style)
{
	double parts[BAR_PARTS];
	size_t cells[BAR_PARTS];
	for (int i = 0; i < BAR_PARTS; i++)
		parts[i] = (double)a->ms[bar_parts[i].state];
	bar_divide(parts, BAR_PARTS, style->bar_cells, cells);
	for (int i = 0; i < BAR_PARTS; i++) {
		struct str run = { 0 };
		str_add_repeat(&run,
			style->text.ascii ? bar_parts[i].ascii : bar_parts[i].block, cells[i]);
		if (cells[i])
			text_add_colored(out, str_text(&run), bar_parts[i].color, &style->text);
		out->failed |= run.failed;
		str_finish(&run);
	}
	str_add(out, "\n");
}

/* " ± 0.2": by how many percent the share can be off, rounded up to a tenth; nothing for 0. */
static void add_uncertainty(
	struct str *out, const struct audit *a, const struct text_style *style)
{
	double tenths = ceil(1000 * report_uncertainty(a->unsure_ms, a->ms) - 1e-6);
	if (tenths >= 1)
		str_addf(out, " %s %.1f", style->ascii ? "+-" : "±", tenths / 10);
}

static void add_state(struct str *out, const struct audit *a, const struct bar_part *part,
	const struct text_style *style)
{
	str_addf(out, "  %-12s%s %5.1f%%", part->label,
		style->ascii ? part->ascii : part->block,
		100 * report_share(a->ms[part->state], report_observed_ms(a->ms)));
	if (part->state == CARD_IDLE_HELD)
		add_uncertainty(out, a, style);
	if (*part->remark)
		str_addf(out, "  %s %s", style->ascii ? "<-" : "←", part->remark);
	str_add(out, "\n");
}

static void add_headline(
	struct str *out, const struct audit *a, const struct report_style *style)
{
	int64_t observed_ms = report_observed_ms(a->ms);
	int64_t whole_ms = observed_ms + a->ms[CARD_UNOBSERVED];
	char hours[32], whole[32];
	report_heading(out, &style->text, 1, "Headline");
	if (observed_ms > 0)
		add_bar(out, a, style);
	for (int i = 0; i < BAR_PARTS && observed_ms > 0; i++)
		if (bar_parts[i].state != CARD_USE_UNKNOWN || a->ms[CARD_USE_UNKNOWN] > 0)
			add_state(out, a, &bar_parts[i], &style->text);
	hours_text(hours, sizeof(hours), observed_ms);
	report_line(out, &style->text, NULL, "of %s GPU-hours observed on %zu GPU%s", hours,
		report_observed_cards(a), report_observed_cards(a) == 1 ? "" : "s");
	hours_text(hours, sizeof(hours), a->ms[CARD_UNOBSERVED]);
	hours_text(whole, sizeof(whole), whole_ms);
	struct str rest = { 0 };
	str_addf(out, "  %-12s  %5.1f%% ", "unobserved",
		100 * (whole_ms > 0 ? report_share(a->ms[CARD_UNOBSERVED], whole_ms) : 0));
	str_addf(&rest, "of the window: %s of %s GPU-hours have no reading", hours, whole);
	text_add_wrapped(out, str_text(&rest), 23, 24, &style->text);
	str_finish(&rest);
}

static void add_energy(struct str *out, const struct audit *a, const struct text_style *style)
{
	double kwh = report_energy_kwh(a->energy_mj, a->energy_known_ms, a->ms, CARD_IDLE_HELD);
	double known = report_share(a->energy_known_ms[CARD_IDLE_HELD], a->ms[CARD_IDLE_HELD]);
	if (!isfinite(kwh))
		report_line(out, style, "energy",
			"- (the driver reported no energy for this time)");
	else if (isfinite(known) && known < 0.9995)
		report_line(out, style, "energy",
			"%.2f kWh went into idle-held time (known for %.1f%% of it)", kwh,
			100 * known);
	else
		report_line(out, style, "energy", "%.2f kWh went into idle-held time", kwh);
}

static void add_rule(struct str *out, const struct audit *a, const struct text_style *style)
{
	double share = report_share(a->ms[CARD_IDLE_HELD], report_observed_ms(a->ms));
	if (report_breaks_rule(a))
		report_line(out, style, "20% rule",
			"Idle-held is %.1f%% of observed time, above 20%%: the problem is the "
			"allocation policy, not the hardware.",
			100 * share);
	else
		report_line(out, style, "20% rule",
			"Idle-held is %.1f%% of observed time, not above 20%%: the allocation "
			"policy is not the problem.",
			100 * share);
	if (a->ms[CARD_USE_UNKNOWN] > 0)
		report_line(out, style, "",
			"Time held with use unknown (%.1f%% of observed time) does not count "
			"as idle-held.",
			100 * report_share(a->ms[CARD_USE_UNKNOWN], report_observed_ms(a->ms)));
}

static void add_waste(struct str *out, const struct audit *a, const struct report_style *style)
{
	const struct text_style *text = &style->text;
	int64_t observed_ms = report_observed_ms(a->ms);
	size_t n = report_observed_cards(a);
	char hours[32];
	report_heading(out, text, 2, "Waste");
	if (observed_ms == 0) {
		report_line(out, text, NULL, "No time was observed.");
		return;
	}
	hours_text(hours, sizeof(hours), a->ms[CARD_IDLE_HELD]);
	report_line(out, text, "idle-held",
		"%s GPU-hours = %.2f of %zu GPU%s equivalently unavailable", hours,
		report_share(a->ms[CARD_IDLE_HELD], observed_ms) * (double)n, n,
		n == 1 ? "" : "s");
	hours_text(hours, sizeof(hours), a->ms[CARD_TRULY_IDLE]);
	report_line(out, text, "truly-idle",
		"%s GPU-hours = %.2f of %zu GPU%s equivalently free", hours,
		report_share(a->ms[CARD_TRULY_IDLE], observed_ms) * (double)n, n,
		n == 1 ? "" : "s");
	add_energy(out, a, text);
	if (isfinite(style->cost))
		report_line(out, text, "cost",
			"%.2f %s for idle-held time at %.10g %s per GPU-hour",
			style->cost * (double)a->ms[CARD_IDLE_HELD] / 3600e3, style->currency,
			style->cost, style->currency);
	add_rule(out, a, text);
}

/* The last lines: by which rules, and how fine. */
static void add_footer(struct str *out, const struct audit *a, const struct text_style *style)
{
	struct str line = { 0 };
	char slot[32];
	str_addf(&line, "Rules: active from %.10g%% utilisation; held above %.10g MB%s.%s",
		a->rules.active_util_pct, (double)a->rules.held_mem_bytes / 1e6,
		a->rules.count_graphics ? ", graphics processes included" : "",
		a->rules_mixed ? " Other rules were in force in part of the window." : "");
	duration_text(slot, sizeof(slot), a->resolution_ms);
	if (a->resolution_ms)
		str_addf(&line, " Time is kept in slots of up to %s, taken whole.", slot);
	str_add(out, "\n");
	text_add_wrapped(out, str_text(&line), 0, 0, style);
	str_finish(&line);
}

void report_text(struct str *out, const struct audit *a, const struct report_style *style)
{
	add_header(out, a, &style->text);
	add_headline(out, a, style);
	add_waste(out, a, style);
	report_cards_section(out, a, style);
	report_holders_section(out, a, style);
	report_heatmap_section(out, a, &style->text);
	add_footer(out, a, &style->text);
}
