/* Sections 3 to 5 of the text report: cards, holders, hours of the week. */
#include <math.h>
#include <string.h>

#include "base/timetext.h"
#include "render/report.h"
#include "render/report_text.h"

/* Why a card has no readings now. */
static const struct status_word {
	const char *status, *words;
} status_words[] = {
	{ "lost", "is lost" },
	{ "asleep", "is asleep and was left alone" },
	{ "denied", "may not be opened" },
};

static void add_status(struct str *out, const struct audit *a, const struct audit_card *card,
	const struct text_style *style)
{
	const char *words = card->status;
	char label[32], seen[48];
	bool several = a->n_hosts > 1;
	for (size_t i = 0; i < sizeof(status_words) / sizeof(status_words[0]); i++)
		if (strcmp(status_words[i].status, card->status) == 0)
			words = status_words[i].words;
	card_label(label, sizeof(label), &card->id);
	moment_text(seen, sizeof(seen), card->last_seen_ms, style->utc);
	report_line(out, style, NULL, "* GPU %s%s%s %s; accounted up to %s", label,
		several ? " on " : "", several ? a->hosts[card->host].hostname : "", words,
		seen);
}

void report_cards_section(
	struct str *out, const struct audit *a, const struct report_style *style)
{
	const struct text_style *text = &style->text;
	report_heading(out, text, 3, "Per-GPU");
	for (size_t host = 0; host < a->n_hosts; host++) {
		struct table t;
		report_cards_table(&t, a, host);
		if (a->n_hosts > 1) {
			str_add(out, " ");
			text_add_cut(out, a->hosts[host].hostname, text->columns - 2, text);
			str_add(out, "\n");
		}
		text_add_table(out, &t, text);
		table_finish(&t);
	}
	for (size_t i = 0; i < a->n_cards; i++)
		if (strcmp(a->cards[i].status, "ok") != 0)
			add_status(out, a, &a->cards[i], text);
}

static void add_left_out(struct str *out, const struct text_style *style, size_t shown,
	size_t all, const char *what)
{
	if (shown < all)
		report_line(
			out, style, NULL, "%zu more %s: --top 0 shows all", all - shown, what);
}

static void add_identities(
	struct str *out, const struct audit *a, const struct report_style *style)
{
	const struct text_style *text = &style->text;
	struct table t;
	report_heading(out, text, 4, "Top identities");
	report_identities_table(&t, a, style->top);
	if (t.n_rows == 0)
		report_line(out, text, NULL, "Nobody held a GPU.");
	else
		text_add_table(out, &t, text);
	add_left_out(out, text, t.n_rows, a->n_identities, "identities");
	if (a->unattributed_ms >= 18000) /* what shows as 0.01 h */
		report_line(out, text, NULL,
			"%.2f GPU-hours of active or idle-held time are in "
			"nobody's share.",
			(double)a->unattributed_ms / 3600e3);
	if (t.n_rows)
		report_line(out, text, NULL,
			"GPU-hours, idle-held, held h and squat h are presence: once per card "
			"and "
			"moment. share h divides a card's time among its holders.");
	table_finish(&t);
}

static void add_processes(
	struct str *out, const struct audit *a, const struct report_style *style)
{
	const struct text_style *text = &style->text;
	struct table t;
	report_heading(out, text, 4, "Top processes");
	report_processes_table(&t, a, style->top);
	if (t.n_rows == 0)
		report_line(out, text, NULL, "Nobody held a GPU.");
	else
		text_add_table(out, &t, text);
	add_left_out(
		out, text, t.n_rows, a->n_processes + a->n_processes_left_out, "processes");
	if (t.n_rows)
		report_line(out, text, NULL,
			"Hours are the process's time on that card; held h is by its own "
			"use.");
	table_finish(&t);
}

void report_holders_section(
	struct str *out, const struct audit *a, const struct report_style *style)
{
	if (style->by == REPORT_BY_USER)
		add_identities(out, a, style);
	else if (style->by == REPORT_BY_PROCESS)
		add_processes(out, a, style);
}

/* Shares from 0 to 1; the first is for less than 1 %. */
static const char *const block_densities[] = { "·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char *const ascii_densities[] = { ".", ":", "-", "=", "+", "*", "#", "%", "@" };
enum { DENSITIES = 9 };

static const char *density(double share, bool ascii)
{
	size_t level = share < 0.01 ? 0 : 1 + (size_t)(share * (DENSITIES - 1));
	if (level >= DENSITIES)
		level = DENSITIES - 1;
	return ascii ? ascii_densities[level] : block_densities[level];
}

static void add_heat_row(struct str *out, const struct audit *a, int dow, int state,
	const struct text_style *style)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	str_addf(out, "  %s", days[dow]);
	for (int hour = 0; hour < 24; hour++) {
		const int64_t *ms = a->heat[dow][hour].ms;
		int64_t observed_ms = ms[0] + ms[1] + ms[2];
		const char *mark = " ";
		if (observed_ms > 0)
			mark = density(report_share(ms[state], observed_ms), style->ascii);
		str_addf(out, " %s%s", mark, mark);
	}
	while (out->len && out->data[out->len - 1] == ' ')
		out->len--;
	str_add(out, "\n");
}

static void add_heatmap(struct str *out, const struct audit *a, const char *title, int state,
	const struct text_style *style)
{
	str_addf(out, "  %s\n     ", title);
	for (int hour = 0; hour < 24; hour++)
		str_addf(out, " %02d", hour);
	str_add(out, "\n");
	for (int day = 0; day < 7; day++)
		add_heat_row(out, a, (day + 1) % 7, state, style);
}

void report_heatmap_section(
	struct str *out, const struct audit *a, const struct text_style *style)
{
	report_heading(out, style, 5,
		style->utc ? "Hours of the week (UTC)" : "Hours of the week (local time)");
	add_heatmap(out, a, "active, share of observed time", CARD_ACTIVE, style);
	add_heatmap(out, a, "idle-held, share of observed time", CARD_IDLE_HELD, style);
	report_line(out, style, NULL,
		style->ascii
			? "'.' below 1%%, then :-=+*#%%@ in eighths up to 100%%; blank: no data"
			: "· below 1%%, then ▁▂▃▄▅▆▇█ in eighths up to 100%%; blank: no data");
}
