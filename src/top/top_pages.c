/* Draws what `gua top` shows instead of the table: help, menus, the question before a signal,
 * the details of one process or card. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/moment.h"
#include "top/top_state.h"
#include "top/top_words.h"

static void heading(struct top_state *s, const char *text)
{
	top_frame_add(&s->frame, TOP_HEADING, " ");
	top_frame_add(&s->frame, TOP_HEADING, text);
	top_frame_fill(&s->frame, TOP_HEADING, s->layout.columns);
	top_frame_end_line(&s->frame);
}

static void draw_help(struct top_state *s)
{
	static const char *const lines[][2] = {
		{ "F1 ? h", "this help; any key closes it" },
		{ "arrows, PgUp PgDn Home End",
			"select a process; left and right scroll its command" },
		{ "up, from the first process", "select a card" },
		{ "Enter", "details of the process, or of the card" },
		{ "/ F3 F4", "filter: part of a command, user, notebook, job, pid" },
		{ "Escape", "without the filter: all processes" },
		{ "u", "only one user" },
		{ "t F5", "tree: each process below the one that started it" },
		{ "s F6", "sort by ...; a click on a title does it too" },
		{ "i", "idle holders first, the longest on top" },
		{ "P M T c", "sort by use, memory, age, card; I reverses" },
		{ "k F9", "send a signal; asks first" },
		{ "r", "read everything again now" },
		{ "[ ]", "scroll the cards; the mouse wheel does it too" },
		{ "m", "leave the mouse to the terminal, to select text" },
		{ "q F10", "quit" },
	};
	heading(s, "KEYS");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		top_frame_add(&s->frame, TOP_PLAIN, " ");
		top_frame_add_field(&s->frame, TOP_STRONG, lines[i][0], 27, true);
		top_frame_add(&s->frame, TOP_PLAIN, lines[i][1]);
		top_frame_end_line(&s->frame);
	}
	top_frame_add(&s->frame, TOP_IDLE, " ! IDLE");
	top_frame_add(&s->frame, TOP_PLAIN, " holds memory and has not computed for that long");
	top_frame_end_line(&s->frame);
	top_frame_add(
		&s->frame, TOP_PLAIN, " T: C compute, G graphics, X both, M through MPS.");
	top_frame_end_line(&s->frame);
}

size_t top_pages_menu_first(const struct top_state *s)
{
	size_t visible = s->layout.table_rows;
	return s->menu >= visible ? s->menu - visible + 1 : 0;
}

static void menu_line(struct top_state *s, size_t line, const char *text)
{
	size_t visible = s->layout.table_rows, first = top_pages_menu_first(s);
	enum top_style style = line == s->menu ? TOP_SELECTED : TOP_PLAIN;
	if (line < first || line >= first + visible)
		return;
	top_frame_add(&s->frame, style, "  ");
	top_frame_add_field(&s->frame, style, text, 40, true);
	top_frame_end_line(&s->frame);
}

size_t top_pages_orders(const struct holder_column *orders[HOLDER_COLUMNS_MAX])
{
	size_t n = 0, all = holders_top_columns(orders);
	for (size_t i = 0; i < all; i++)
		if (orders[i]->sort_name)
			orders[n++] = orders[i];
	return n;
}

static void draw_sort_menu(struct top_state *s)
{
	heading(s, "SORT BY: Enter selects, Escape cancels");
	const struct holder_column *orders[HOLDER_COLUMNS_MAX];
	size_t n = top_pages_orders(orders);
	for (size_t i = 0; i < n; i++)
		menu_line(s, i, orders[i]->sort_name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static size_t find_user(const struct top_state *s, const char *user)
{
	size_t k = 0;
	while (k < s->n_users && strcmp(s->users[k], user) != 0)
		k++;
	return k;
}

void top_pages_list_users(struct top_state *s)
{
	s->n_users = 0;
	for (size_t i = 0; i < s->now.all->n_processes && s->n_users < TOP_USERS_MAX; i++) {
		const char *user = s->now.all->processes[i].id.user;
		if (find_user(s, user) == s->n_users)
			str_copy(s->users[s->n_users++], USER_CAP, user);
	}
	qsort(s->users, s->n_users, sizeof(s->users[0]), by_name);
	size_t now = find_user(s, s->model.user);
	s->menu = now < s->n_users ? now + 1 : 0;
}

static void draw_user_menu(struct top_state *s)
{
	heading(s, "ONLY PROCESSES OF: Enter selects, Escape cancels");
	menu_line(s, 0, "all users");
	for (size_t i = 0; i < s->n_users; i++)
		menu_line(s, i + 1, process_shown_user(s->users[i]));
}

static void fact(struct top_state *s, const char *label, const char *text)
{
	if (!*text)
		return;
	top_frame_add(&s->frame, TOP_PLAIN, "  ");
	top_frame_add_field(&s->frame, TOP_DIM, label, 12, true);
	top_frame_add(&s->frame, TOP_PLAIN, text);
	top_frame_end_line(&s->frame);
}

static void moment_fact(struct top_state *s, const char *label, int64_t at_ms)
{
	char text[96];
	if (at_ms < 0)
		return;
	snprintf(text, sizeof(text), "%s (%s ago)", moment_text(at_ms, false).text,
		duration_text(s->now.all->now_ms > at_ms ? s->now.all->now_ms - at_ms : 0)
			.text);
	fact(s, label, text);
}

const struct present_process *top_pages_target(const struct top_state *s)
{
	for (size_t i = 0; i < s->now.all->n_processes; i++) {
		const struct present_process *p = &s->now.all->processes[i];
		if (p->id.pid == s->target.pid && p->id.start_ticks == s->target.start_ticks &&
			p->card == s->target_card)
			return p;
	}
	return NULL;
}

static void use_fact(struct top_state *s, const struct present_process *p)
{
	char context[32] = "", text[256];
	struct brief host = size_text((double)p->rss_bytes);
	if (p->context != CONTEXT_MORE)
		snprintf(context, sizeof(context), " (%s)", context_texts[p->context]);
	snprintf(text, sizeof(text),
		"%s of the card, %s CPU; memory %s on the card%s, %s on the host",
		top_words_number(p->sm_pct, " %").text, top_words_number(p->cpu_pct, " %").text,
		size_text((double)p->mem_bytes).text, context, host.text);
	fact(s, "uses", text);
}

static void idle_fact(struct top_state *s, const struct present_process *p)
{
	char text[96];
	if (present_idle_ms(s->now.all, p) < 0)
		return;
	moment_fact(s, "idle since", p->idle_since_ms);
	if (p->idle_longer)
		fact(s, "", "or longer: there is no reading from before");
	if (p->was_idle_since_ms < 0)
		return;
	struct brief when = moment_text(p->was_idle_since_ms, false);
	snprintf(text, sizeof(text), "since %s%s, when the recorder last ran", when.text,
		p->was_idle_longer ? " or longer" : "");
	fact(s, "was idle", text);
}

static void draw_use(struct top_state *s, const struct present_process *p)
{
	char text[160];
	struct brief name = card_label(&s->now.all->cards[p->card].id);
	snprintf(text, sizeof(text), "%s, %s", name.text, s->now.all->cards[p->card].id.name);
	fact(s, "card", text);
	moment_fact(s, "there since", p->held_since_ms);
	use_fact(s, p);
	moment_fact(s, "last active", p->last_active_ms);
	if (p->active)
		fact(s, "now", "computes");
	else
		idle_fact(s, p);
	if (!s->use_known) {
		fact(s, "history", "unknown: neither the driver nor a store has it");
		return;
	}
	top_frame_add(&s->frame, TOP_PLAIN, "  ");
	top_frame_add_field(&s->frame, TOP_DIM, "last hour", 12, true);
	top_frame_add_spark(&s->frame, TOP_ACTIVE, s->use, TOP_DETAIL_MINUTES);
	top_frame_end_line(&s->frame);
}

static void draw_details(struct top_state *s)
{
	const struct present_process *p = top_pages_target(s);
	const struct process_id *id = &s->target;
	char text[160];
	struct str line = { 0 };
	/* An argument with blanks is in quotes. */
	for (size_t at = 0; at < s->arguments.len;) {
		const char *word = s->arguments.data + at;
		const char *quote = *word && !strchr(word, ' ') ? "" : "'";
		str_addf(&line, "%s%s%s%s", line.len ? " " : "", quote, word, quote);
		at += strlen(word) + 1;
	}
	snprintf(text, sizeof(text), "PROCESS %u: Escape goes back, k sends a signal", id->pid);
	heading(s, text);
	fact(s, "command", id->command);
	fact(s, "arguments", str_text(&line));
	str_finish(&line);
	fact(s, "user", process_shown_user(id->user));
	fact(s, "notebook", id->origin.notebook_path);
	fact(s, *id->origin.notebook_path ? "kernel" : "notebook", id->notebook);
	fact(s, "job", id->job);
	fact(s, "job name", id->origin.job_name);
	fact(s, "task of an array", id->origin.job_task);
	fact(s, "account", id->origin.account);
	fact(s, "container", id->container);
	fact(s, "pod", id->pod);
	fact(s, "unit", id->unit);
	fact(s, "login", id->origin.login);
	fact(s, "session", id->origin.session);
	fact(s, "parents", id->origin.parents);
	fact(s, "python env", id->origin.python_env);
	fact(s, "tag", id->origin.tag);
	moment_fact(s, "started", id->started_ms);
	if (p)
		draw_use(s, p);
	else
		fact(s, "card",
			s->target_card == SIZE_MAX ? "none: a process that it started is on one"
						   : "it has left the card");
}

/* A fact of numbers of the card: each # of the format is one of them, or "-". */
static void card_fact(struct top_state *s, const char *label, const char *format,
	const double *values, size_t n)
{
	char text[160] = "";
	size_t len = 0;
	for (const char *at = format; *at && len + sizeof(struct brief) < sizeof(text); at++) {
		if (*at != '#') {
			text[len++] = *at;
			text[len] = '\0';
			continue;
		}
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s",
			top_words_number(n ? *values : NAN, "").text);
		values += n > 0;
		n -= n > 0;
	}
	fact(s, label, text);
}
#define CARD_FACT(s, label, format, ...)                                                       \
	card_fact(s, label, format, (const double[]){ __VA_ARGS__ },                           \
		sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double))

static void draw_card(struct top_state *s)
{
	char text[160];
	double minutes[TOP_DETAIL_MINUTES];
	if (s->target_card >= s->now.all->n_cards)
		return;
	const struct present_card *c = &s->now.all->cards[s->target_card];
	const double *v = c->values;
	struct brief name = card_label(&c->id);
	snprintf(text, sizeof(text), "CARD %s: Escape goes back", name.text);
	heading(s, text);
	fact(s, "name", c->id.name);
	fact(s, "uuid", c->id.uuid);
	fact(s, "state", top_words_state(c));
	moment_fact(s, "since", c->state_since_ms);
	snprintf(text, sizeof(text), "%s of %s", size_text(v[METRIC_MEMORY_USED]).text,
		size_text(v[METRIC_MEMORY_TOTAL]).text);
	fact(s, "memory", text);
	CARD_FACT(s, "use", "# %", v[METRIC_UTILIZATION_GPU]);
	CARD_FACT(s, "power", "# of # W", v[METRIC_POWER_DRAW], v[METRIC_POWER_ENFORCED]);
	CARD_FACT(s, "cooling", "# degrees, fan # %", v[METRIC_TEMPERATURE_GPU],
		v[METRIC_FAN_SPEED]);
	CARD_FACT(s, "clocks", "SM # of # MHz, memory # of # MHz", v[METRIC_CLOCK_SM],
		v[METRIC_CLOCK_MAX_SM], v[METRIC_CLOCK_MEMORY], v[METRIC_CLOCK_MAX_MEMORY]);
	CARD_FACT(s, "PCIe", "generation # of #, # of # lanes, # replays",
		v[METRIC_PCIE_GEN_CURRENT], v[METRIC_PCIE_GEN_MAX],
		v[METRIC_PCIE_WIDTH_CURRENT], v[METRIC_PCIE_WIDTH_MAX], v[METRIC_PCIE_REPLAYS]);
	CARD_FACT(s, "ECC errors", "# corrected, # not, since the driver was loaded",
		v[METRIC_ECC_CORRECTED_VOLATILE], v[METRIC_ECC_UNCORRECTED_VOLATILE]);
	top_history_get(&s->history, s->target_card, s->clock_ms, minutes, TOP_DETAIL_MINUTES);
	top_frame_add(&s->frame, TOP_PLAIN, "  ");
	top_frame_add_field(&s->frame, TOP_DIM, "last hour", 12, true);
	top_frame_add_spark(&s->frame, TOP_ACTIVE, minutes, TOP_DETAIL_MINUTES);
	top_frame_end_line(&s->frame);
}

static void draw_question(struct top_state *s)
{
	struct top_frame *f = &s->frame;
	heading(s, "SEND A SIGNAL");
	top_frame_end_line(f);
	top_frame_addf(f, TOP_STRONG, "  Send %s to process %u of %s?",
		top_signals[s->signal].name, s->target.pid, process_shown_user(s->target.user));
	top_frame_end_line(f);
	top_frame_end_line(f);
	fact(s, "command", s->target.command);
	moment_fact(s, "started", s->target.started_ms);
	top_frame_end_line(f);
	top_frame_add(f, TOP_PLAIN, " ");
	for (size_t i = 0; i < n_top_signals; i++) {
		top_frame_add(f, TOP_PLAIN, " ");
		top_frame_add(f, i == s->signal ? TOP_SELECTED : TOP_DIM, top_signals[i].name);
	}
	top_frame_end_line(f);
	top_frame_end_line(f);
	top_frame_add(f, TOP_KEY,
		"  y sends it; left and right choose another; any other key cancels");
	top_frame_end_line(f);
}

void top_pages_draw(struct top_state *s)
{
	static void (*const pages[])(struct top_state *) = { [TOP_HELP] = draw_help,
		[TOP_SORT_MENU] = draw_sort_menu,
		[TOP_USER_MENU] = draw_user_menu,
		[TOP_SIGNAL] = draw_question,
		[TOP_DETAILS] = draw_details,
		[TOP_CARD] = draw_card };
	pages[s->page](s);
}
