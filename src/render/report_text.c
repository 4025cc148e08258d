/* The report for people: its sections, readable at 80 columns. */
#include "base/shares.h"
#include "model/process.h"
#include "render/report_formats.h"
#include "render/timeline.h"

enum { LABEL_COLUMNS = 14, INDENT = 2 };

/* A report while it is printed. */
struct page {
	struct str *out;
	const struct report *r;
	const struct report_style *style;
};

/* Adds the sentences of a kind as paragraphs, wrapped and indented; a label has its own
 * column. */
static void add_sentences(struct str *out, const struct report *r, enum sentence_kind kind,
	size_t indent, const struct text_style *style)
{
	const struct sentence *s;
	for (size_t i = 0; (s = report_next_sentence(r, kind, &i));) {
		size_t at = s->label ? LABEL_COLUMNS : indent;
		str_addf(out, "%*s%-*s", (int)indent, "", (int)(at - indent),
			s->label ? s->label : "");
		text_add_wrapped(out, s->text, at, at, style);
	}
}

/* Adds "HOST (bare, driver V)REST" in one line of at most `columns`; a long name is cut. */
static void add_host(struct str *out, const struct report *r, size_t index, const char *rest,
	const struct text_style *style)
{
	const struct audit_host *host = &r->a->hosts[index];
	bool of_fleet =
		r->fleet != NULL; /* metrics of a fleet do not include the environment */
	size_t columns = style->columns - (r->a->n_hosts == 1 ? 6 : 2);
	struct str tail = { 0 };
	str_add(&tail, " (");
	if (!of_fleet) {
		text_add_cut(
			&tail, *host->environment ? host->environment : "unknown", 12, style);
		str_add(&tail, ", ");
	}
	str_add(&tail, "driver ");
	text_add_cut(&tail, *host->driver ? host->driver : "unknown", 14, style);
	str_addf(&tail, ")%s\n", rest);
	text_add_cut(out, host->hostname, columns - str_columns(str_text(&tail)) + 1, style);
	str_add(out, str_text(&tail));
	out->failed |= tail.failed;
	str_finish(&tail);
}

static void add_header(struct str *out, const struct report *r, const struct text_style *style)
{
	char rest[96];
	const struct sentence *s;
	for (size_t i = 0; (s = report_next_sentence(r, SENTENCE_SIMULATED, &i));) {
		text_add_colored(out, s->text, "1;31", style); /* in one line */
		str_add(out, "\n");
	}
	add_sentences(out, r, SENTENCE_SIMULATED_HOST, INDENT, style);
	add_sentences(out, r, SENTENCE_IMPORTED, 0, style);
	snprintf(rest, sizeof(rest), "  Window: %s", duration_clock(r->length_ms).text);
	str_add(out, style->ascii ? "gua - " : "gua — ");
	if (r->a->n_hosts == 1)
		add_host(out, r, 0, rest, style);
	else
		str_addf(out, "%zu hosts%s\n", r->a->n_hosts, rest);
	add_sentences(out, r, SENTENCE_COVERAGE, 0, style);
	add_sentences(out, r, SENTENCE_CLIPPED, 0, style);
	add_sentences(out, r, SENTENCE_RESTRICTED, 0, style);
	for (size_t i = 0;
		i < r->a->n_hosts && r->a->n_hosts > 1 && r->n_listed == r->a->n_hosts; i++) {
		size_t n = r->a->hosts[i].n_cards;
		struct brief since = moment_text(r->a->hosts[i].known_ms, r->utc);
		snprintf(rest, sizeof(rest), ": %zu GPU%s%s%s", n, n == 1 ? "" : "s",
			r->a->hosts[i].late ? ", since " : "",
			r->a->hosts[i].late ? since.text : "");
		str_add(out, "  ");
		add_host(out, r, i, rest, style);
	}
	add_sentences(out, r, SENTENCE_ABSENT, 0, style);
}

static const char *bar_mark(size_t look, const struct text_style *style)
{
	return style->ascii ? state_looks[look].ascii : state_looks[look].block;
}

static void add_colored(
	struct str *out, const char *text, size_t look, const struct text_style *style)
{
	char codes[STATE_CODES_CAP];
	state_codes(codes, look);
	text_add_colored(out, text, codes, style);
}

/* Appends `n` cells of a bar, as the state looks there. */
static void add_cells(struct page *p, size_t look, size_t n)
{
	struct str run = { 0 };
	str_add_repeat(&run, bar_mark(look, &p->style->text), n);
	if (n && *state_looks[look].ascii != ' ')
		add_colored(p->out, str_text(&run), look, &p->style->text);
	p->out->failed |= run.failed;
	str_finish(&run);
}

static void add_headline(struct page *p)
{
	if (p->r->n_states) {
		const struct report *r = p->r;
		double parts[STATE_LOOKS];
		size_t cells[SHARES_MAX];
		for (size_t i = 0; i < r->n_states; i++)
			parts[i] = (double)r->states[i].ms;
		shares_divide(parts, r->n_states, p->style->bar_cells, true, cells);
		for (size_t i = 0; i < r->n_states; i++)
			add_cells(p, r->states[i].look, cells[i]);
		str_add(p->out, "\n");
	}
	for (size_t i = 0; i < p->r->n_states; i++) {
		const struct report_state *s = &p->r->states[i];
		/* How far the share can be off, in percent, rounded up to a tenth. */
		double tenths = ceil(1000 * p->r->uncertainty - 1e-6);
		str_addf(p->out, "  %-*s%s %5.1f%%", p->r->a->of_users ? 18 : 12, s->label,
			bar_mark(s->look, &p->style->text), 100 * s->shown);
		if (s->look == CARD_IDLE_HELD && !p->r->a->of_users && tenths >= 1)
			str_addf(p->out, " %s %.1f", p->style->text.ascii ? "+-" : "±",
				tenths / 10);
		if (*s->remark)
			str_addf(p->out, "  %s %s", p->style->text.ascii ? "<-" : "←",
				s->remark);
		str_add(p->out, "\n");
	}
}

/* The cards of the listed hosts. A terminal shows the first ones; --by card lists all. */
static void add_cards(struct page *p)
{
	enum { MOST = 48 };
	const struct report *r = p->r;
	const struct text_style *style = &p->style->text;
	size_t all = identity_by_is(&r->breakdown.by, IDENTITY_CARD) ? r->cards.n_rows : MOST;
	size_t first = 0, shown = 0;
	for (size_t i = 0; i < r->n_listed; i++) {
		size_t n = r->a->hosts[i].n_cards;
		struct table cards =
			table_part(&r->cards, first, n < all - shown ? n : all - shown);
		first += n;
		shown += cards.n_rows;
		if (!cards.n_rows)
			continue;
		if (r->a->n_hosts > 1) {
			str_add(p->out, " ");
			text_add_cut(
				p->out, r->a->hosts[i].hostname, style->columns - 2, style);
			str_add(p->out, "\n");
		}
		text_add_table(p->out, &cards, style);
	}
	if (shown < first)
		str_addf(
			p->out, "  " TIMELINE_MORE "; --by card\n  lists all\n", first - shown);
	if (r->n_listed < r->a->n_hosts)
		str_addf(p->out,
			"  The %zu hosts with the most idle-held time of %zu. --by host lists "
			"hosts, --host\n  NAME shows one, and --format csv --by card has all "
			"GPUs.\n",
			r->n_listed, r->a->n_hosts);
}

#define MS_PER_HOUR 3600e3
enum { LABEL = 20, NUMBER = 10, CHANGE = 16, USER = 14, USER_CHANGE = 11 };

/* A change as it is printed. */
struct change {
	struct brief text;
	double change, step; /* a change below half a step counts as none */
	int better;	     /* as in struct report_change */
	int columns;	     /* width of the field */
};

static bool is_same(const struct change *c)
{
	return fabs(c->change) < c->step / 2;
}

/* A change with an arrow for its direction, so that it is not shown by colour only: "=",
 * "▲ +1.5 points". */
static struct brief show_change(const struct change *c, bool ascii)
{
	bool more = c->change > 0;
	if (is_same(c))
		return str_brief("=");
	return str_brief(
		"%s %s", ascii ? (more ? "^" : "v") : (more ? "▲" : "▼"), c->text.text);
}

/* Appends the change, right-aligned, in green if it is for the better and red if not. */
static void add_change(struct page *p, const struct change *c)
{
	const struct text_style *style = &p->style->text;
	struct brief line = show_change(c, style->ascii);
	int wide = (int)str_columns(line.text);
	str_addf(p->out, "%*s", wide < c->columns ? c->columns - wide : 0, "");
	if (c->better == 0 || is_same(c))
		str_add(p->out, line.text);
	else
		text_add_colored(
			p->out, line.text, c->change * c->better > 0 ? "32" : "31", style);
}

struct brief report_text_number(double number, bool share)
{
	if (isnan(number))
		return str_brief("-");
	return share ? str_brief("%.1f%%", 100 * number) : str_brief("%.2f", number);
}

struct brief report_text_percent(const struct report_difference *d)
{
	if (isnan(d->percent))
		return str_brief("%s", d->change != 0 ? "new" : "");
	if (d->percent <= -100)
		return str_brief("gone");
	return d->percent >= 1000 ? str_brief("x %.0f", 1 + d->percent / 100)
				  : str_brief("%+.1f%%", d->percent);
}

/* What changed, with its sign. */
static struct change change_of(const struct report_change *c)
{
	bool share = c->unit == FIGURE_SHARE;
	double difference = c->shown.change;
	return (struct change){ .change = difference,
		.step = share ? 0.001 : 0.01,
		.better = c->better,
		.columns = CHANGE,
		.text = share			 ? str_brief("%+.1f points", 100 * difference)
			: c->unit == FIGURE_GPUS ? str_brief("%+.2f", difference)
						 : report_text_percent(&c->exact) };
}

struct brief report_text_change(const struct report_change *c)
{
	struct change change = change_of(c);
	return isnan(change.change) ? str_brief("-") : show_change(&change, false);
}

static void add_hours(struct page *p, int64_t now_ms, int64_t before_ms,
	const struct report_difference *d, int better)
{
	struct change change = { .change = d->change,
		.step = MS_PER_HOUR / 100,
		.better = better,
		.columns = USER_CHANGE,
		.text = report_text_percent(d) };
	str_addf(p->out, "  %8.2f %8.2f", (double)now_ms / MS_PER_HOUR,
		(double)before_ms / MS_PER_HOUR);
	add_change(p, &change);
}

static void add_users(struct page *p)
{
	const struct report_compare *c = &p->r->compare;
	const struct text_style *style = &p->style->text;
	str_addf(p->out, "\n  %-*s  %8s %8s%*s  %8s %8s%*s\n", USER, "user", "held h", "before",
		USER_CHANGE, "change", "unused h", "before", USER_CHANGE, "change");
	for (size_t i = 0; i < c->n_users; i++) {
		const struct report_user_change *u = &c->users[i];
		str_add(p->out, "  ");
		size_t wide =
			text_add_cut(p->out, process_shown_user(u->identity), USER, style);
		str_add_repeat(p->out, " ", USER - wide);
		add_hours(p, u->now.held_ms, u->before.held_ms, &u->held, 0);
		add_hours(p, u->now.unused_ms, u->before.unused_ms, &u->unused, -1);
		text_end_line(p->out);
	}
	if (c->n_left_out)
		str_addf(p->out, "  %zu more users: --top 0 shows all\n", c->n_left_out);
}

static void add_compare(struct page *p)
{
	const struct report_compare *c = &p->r->compare;
	if (c->empty)
		return;
	str_addf(p->out, "  %-*s  %*s  %*s%*s\n", LABEL, "", NUMBER, "now", NUMBER, "before",
		CHANGE, "change");
	for (size_t i = 0; i < c->n_figures; i++) {
		const struct report_change *f = &c->figures[i];
		struct change change = change_of(f);
		bool share = f->unit == FIGURE_SHARE;
		if (p->style->brief && !share)
			continue;
		str_addf(p->out, "  %-*s  %*s  %*s", LABEL, f->label, NUMBER,
			report_text_number(f->shown_now, share).text, NUMBER,
			report_text_number(f->shown_before, share).text);
		if (!isnan(change.change))
			add_change(p, &change);
		str_add(p->out, "\n");
	}
	if (c->n_users && !p->style->brief)
		add_users(p);
}

enum { BAR_CELLS = 32, TREND_LABEL = 12, ROWS_MOST = 14 };

/* Shares from 0 to 1; the first is for less than 1 %. */
static const char *const block_densities[] = { "·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
enum { DENSITIES = 9 };
#define LEGEND_BLOCKS "· below 1%, then ▁▂▃▄▅▆▇█ in eighths up to 100%; blank: no data"
#define LEGEND_ASCII "'.' below 1%, 0 below 10%, 1 below 20% ... 9 from 90%; blank: no data"

static const char *const digit_densities[] = { ".", "0", "1", "2", "3", "4", "5", "6", "7", "8",
	"9" };
enum { DIGITS = 11 };

/* A share as one character: a block in eighths, or in ASCII the digit of its tens. */
static const char *density(double share, bool ascii)
{
	size_t most = ascii ? DIGITS - 1 : DENSITIES - 1;
	if (isnan(share))
		return " ";
	size_t level = share < 0.01 ? 0 : 1 + (size_t)(share * (double)most);
	level = level < most ? level : most;
	return ascii ? digit_densities[level] : block_densities[level];
}

const char *report_text_state(const struct report *r, enum card_state state)
{
	return r->a->of_users ? state_looks[state].users : state_looks[state].word;
}

/* The states of a trend. */
static const enum card_state trend_states[] = { CARD_ACTIVE, CARD_IDLE_HELD, CARD_UNOBSERVED };

static void add_periods(struct page *page)
{
	static const char *const titles[] = { [PERIOD_DAY] = "day",
		[PERIOD_WEEK] = "week from",
		[PERIOD_MONTH] = "month",
		[PERIOD_YEAR] = "year" };
	const struct report_trend *t = &page->r->trend;
	struct str *out = page->out;
	str_addf(out, "  %-10s  %6s  %9s  %10s\n", titles[t->unit],
		report_text_state(page->r, CARD_ACTIVE),
		report_text_state(page->r, CARD_IDLE_HELD), "unobserved");
	for (size_t i = 0; i < t->n; i++) {
		const struct report_period *p = &t->periods[i];
		str_addf(out, "  %-10s  %6s  %9s  %10s  ", p->name,
			report_text_number(p->share[CARD_ACTIVE], true).text,
			report_text_number(p->share[CARD_IDLE_HELD], true).text,
			report_text_number(p->share[CARD_UNOBSERVED], true).text);
		/* Appends the bar of a period: the states of observed time, then blanks. */
		double parts[CARD_STATES];
		size_t cells[SHARES_MAX];
		for (int state = 0; state < CARD_STATES; state++)
			parts[state] = (double)p->ms[state];
		if (page->r->a->of_users) /* the rest of the cards' time does not belong to
					  these users */
			parts[CARD_UNOBSERVED] = 0;
		shares_divide(parts, CARD_STATES, BAR_CELLS, true, cells);
		for (size_t k = 0; k < CARD_STATES; k++)
			add_cells(page, state_order[k], cells[state_order[k]]);
		text_end_line(out);
	}
}

/* A column of one or two characters for each period, and the share of the last one. */
#define COLUMNS_OF(trend) ((trend)->n <= TREND_MAX / 2 ? 2 : 1)

static void add_line(struct str *out, const struct report *r, enum card_state state,
	const struct text_style *style)
{
	const struct report_trend *t = &r->trend;
	struct str line = { 0 };
	for (size_t i = 0; i < t->n; i++)
		str_add_repeat(&line, density(t->periods[i].share[state], style->ascii),
			COLUMNS_OF(t));
	str_addf(out, "  %-*s", TREND_LABEL, report_text_state(r, state));
	add_colored(out, str_text(&line), state, style);
	str_addf(
		out, " %s\n", report_text_number(t->periods[t->n - 1].share[state], true).text);
	out->failed |= line.failed;
	str_finish(&line);
}

/* Continues "Shares of". In a report about users there is no blank, because time in which
 * they held nothing is not theirs. */
static const char *trend_legend(const struct report *r, bool rows)
{
	if (r->a->of_users)
		return rows ? "the time held; unobserved: of the GPUs' time."
			    : "the time held, as a number for the last one: ";
	return rows ? "observed time; the bar is all time, blank where unobserved."
		    : "observed time, as a number for the last one: ";
}

static void add_trend(struct page *page)
{
	const struct text_style *style = &page->style->text;
	bool rows = page->r->trend.n <= ROWS_MOST;
	char legend[200];
	if (rows)
		add_periods(page);
	else {
		const struct report_trend *t = &page->r->trend;
		const char *first = t->periods[0].name, *last = t->periods[t->n - 1].name;
		for (size_t k = 0; k < 3; k++)
			add_line(page->out, page->r, trend_states[k], style);
		str_addf(page->out, "  %*s%-*s%s\n", TREND_LABEL, "",
			(int)(t->n * COLUMNS_OF(t) - str_columns(last)), first, last);
	}
	snprintf(legend, sizeof(legend), "%s%s", trend_legend(page->r, rows),
		rows	       ? ""
		: style->ascii ? LEGEND_ASCII
			       : LEGEND_BLOCKS);
	str_add(page->out, "  Shares of ");
	text_add_wrapped(page->out, legend, 12, 2, style);
}

/* Steps of a map on a terminal with 256 colours: below 1 %, then fifths. */
enum { STEPS = 6 };
static const int active_colors[STEPS] = { 236, 22, 28, 34, 40, 83 };
static const int held_colors[STEPS] = { 236, 52, 94, 136, 172, 214 };

/* Appends the cells of a day, each three columns wide: filled with its colour, or a mark. */
static void add_day(struct str *out, const struct report_hour hours[24], int state,
	const struct text_style *style)
{
	const int *colors = state == CARD_ACTIVE ? active_colors : held_colors;
	struct str row = { 0 };
	for (int hour = 0; hour < 24; hour++) {
		double share = hours[hour].observed ? hours[hour].share[state] : (double)NAN;
		const char *mark = density(share, style->ascii);
		int step = share >= 0.01 ? 1 + (int)(share * (STEPS - 1)) : 0;
		if (style->color256 && !isnan(share))
			str_addf(&row, "\033[48;5;%dm   \033[0m",
				colors[step < STEPS ? step : STEPS - 1]);
		else
			str_addf(&row, " %s%s", style->ascii ? " " : mark, mark);
	}
	while (row.len && row.data[row.len - 1] == ' ')
		row.data[--row.len] = '\0';
	if (style->color256)
		str_addf(out, " %s", str_text(&row));
	else
		add_colored(out, str_text(&row), (size_t)state, style);
	out->failed |= row.failed;
	str_finish(&row);
}

static void add_map(
	struct str *out, const struct report *r, int state, const struct text_style *style)
{
	str_addf(out, "  %s, share of %s\n     ", report_text_state(r, (enum card_state)state),
		r->a->of_users ? "the time held" : "observed time");
	for (int hour = 0; hour < 24; hour++)
		str_addf(out, " %02d", hour);
	str_add(out, "\n");
	for (int day = 1; day <= 7; day++) { /* Monday first */
		str_addf(out, "  %s", moment_weekdays[day % 7]);
		add_day(out, r->hours[day % 7], state, style);
		text_end_line(out);
	}
}

static void add_week(struct page *page)
{
	static const char *const marks[STEPS] = { "below 1%", "to 20%", "to 40%", "to 60%",
		"to 80%", "to 100%" };
	struct str *out = page->out;
	const struct text_style *style = &page->style->text;
	if (!page->style->brief)
		add_map(out, page->r, CARD_ACTIVE, style);
	add_map(out, page->r, CARD_IDLE_HELD, style);
	/* The colours of both maps, from nothing to everything. */
	for (int i = 0; i < STEPS && style->color256; i++)
		str_addf(out, "  \033[48;5;%dm  \033[0m\033[48;5;%dm  \033[0m %s",
			active_colors[i], held_colors[i], marks[i]);
	if (style->color256) {
		str_add(out, "\n  blank: no data\n");
		return;
	}
	str_add(out, "  ");
	text_add_wrapped(out, style->ascii ? LEGEND_ASCII : LEGEND_BLOCKS, 2, 2, style);
}

static void add_block(struct page *p, const struct report_block *b)
{
	static void (*const pictures[])(struct page *) = { [BLOCK_HEADLINE] = add_headline,
		[BLOCK_COMPARE] = add_compare,
		[BLOCK_CARDS] = add_cards,
		[BLOCK_TREND] = add_trend,
		[BLOCK_HOURS] = add_week };
	if (b->kind == BLOCK_TABLE)
		text_add_table(p->out, b->table, &p->style->text);
	else if (b->kind != BLOCK_SENTENCES)
		pictures[b->kind](p);
	else if (b->sentences == SENTENCE_UNOBSERVED) {
		/* Continues "unobserved 5.0%". */
		const struct sentence *s;
		for (size_t i = 0; (s = report_next_sentence(p->r, SENTENCE_UNOBSERVED, &i));) {
			str_addf(p->out, "  %-12s  %5.1f%% ", "unobserved",
				100 * p->r->shown[CARD_UNOBSERVED]);
			text_add_wrapped(p->out, s->text, 23, 24, &p->style->text);
		}
	} else
		add_sentences(p->out, p->r, b->sentences, INDENT, &p->style->text);
}

void report_text(struct str *out, const struct report *r, const struct report_style *style)
{
	struct page page = { .out = out, .r = r, .style = style };
	struct report_section sections[REPORT_SECTIONS];
	size_t n = report_sections(r, sections);
	int number = 0;
	char heading[160];
	add_header(out, r, &style->text);
	for (size_t i = 0; i < n; i++) {
		const struct report_section *s = &sections[i];
		if (s->page_only || (s->detail && style->brief))
			continue;
		snprintf(heading, sizeof(heading), style->text.ascii ? "%d. %s" : "§%d %s",
			++number, s->title);
		str_add(out, "\n");
		text_add_colored(out, heading, "1", &style->text);
		str_add(out, "\n");
		for (size_t k = 0; k < s->n_blocks; k++)
			add_block(&page, &s->blocks[k]);
	}
	str_add(out, "\n");
	add_sentences(out, r, SENTENCE_RULES, 0, &style->text);
	add_sentences(out, r, SENTENCE_FLEET, 0, &style->text);
	out->failed |= r->failed;
}
