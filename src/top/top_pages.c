/* Draws what `gua top` shows instead of the table: help, menus, the question before a signal,
 * the details of one process or card. */
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

__attribute__((format(printf, 3, 4))) static void factf(
	struct top_state *s, const char *label, const char *format, ...)
{
	char text[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fact(s, label, text);
}

static void draw_last_hour(struct top_state *s, const double *minutes)
{
	top_frame_add(&s->frame, TOP_PLAIN, "  ");
	top_frame_add_field(&s->frame, TOP_DIM, "last hour", 12, true);
	top_frame_add_spark(&s->frame, TOP_ACTIVE, minutes, TOP_DETAIL_MINUTES);
	top_frame_end_line(&s->frame);
}

static void moment_fact(struct top_state *s, const char *label, int64_t at_ms)
{
	int64_t ago_ms = s->now.all->now_ms - at_ms;
	if (at_ms >= 0)
		factf(s, label, "%s (%s ago)", moment_text(at_ms, false).text,
			duration_text(ago_ms > 0 ? ago_ms : 0).text);
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

static void draw_use(struct top_state *s, const struct present_process *p)
{
	const struct card_id *card = &s->now.all->cards[p->card].id;
	bool bare = p->context != CONTEXT_MORE, idle = present_idle_ms(s->now.all, p) >= 0;
	factf(s, "card", "%s, %s", card_label(card).text, card->name);
	moment_fact(s, "there since", p->held_since_ms);
	factf(s, "uses", "%s of the card, %s CPU; memory %s on the card%s%s%s, %s on the host",
		top_words_number(p->sm_pct, " %").text, top_words_number(p->cpu_pct, " %").text,
		size_text((double)p->mem_bytes).text, bare ? " (" : "",
		bare ? context_texts[p->context] : "", bare ? ")" : "",
		size_text((double)p->rss_bytes).text);
	moment_fact(s, "last active", p->last_active_ms);
	if (p->active)
		fact(s, "now", "computes");
	if (!p->active && idle) {
		moment_fact(s, "idle since", p->idle_since_ms);
		if (p->idle_longer)
			fact(s, "", "or longer: there is no reading from before");
		if (p->was_idle_since_ms >= 0)
			factf(s, "was idle", "since %s%s, when the recorder last ran",
				moment_text(p->was_idle_since_ms, false).text,
				p->was_idle_longer ? " or longer" : "");
	}
	if (s->use_known)
		draw_last_hour(s, s->use);
	else
		fact(s, "history", "unknown: neither the driver nor a store has it");
}

static void draw_details(struct top_state *s)
{
	const struct present_process *p = top_pages_target(s);
	const struct process_id *id = &s->target;
	struct str line = { 0 };
	/* An argument with blanks is in quotes. */
	for (size_t at = 0; at < s->arguments.len;) {
		const char *word = s->arguments.data + at;
		const char *quote = *word && !strchr(word, ' ') ? "" : "'";
		str_addf(&line, "%s%s%s%s", line.len ? " " : "", quote, word, quote);
		at += strlen(word) + 1;
	}
	struct str title = { 0 };
	str_addf(&title, "PROCESS %u: Escape goes back, k sends a signal", id->pid);
	heading(s, str_text(&title));
	str_finish(&title);
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

static struct brief number(const struct present_card *c, enum metric m)
{
	return top_words_number(c->values[m], "");
}

static void draw_card(struct top_state *s)
{
	double minutes[TOP_DETAIL_MINUTES];
	if (s->target_card >= s->now.all->n_cards)
		return;
	const struct present_card *c = &s->now.all->cards[s->target_card];
	heading(s, str_brief("CARD %.10s: Escape goes back", card_label(&c->id).text).text);
	fact(s, "name", c->id.name);
	fact(s, "uuid", c->id.uuid);
	fact(s, "state", top_words_state(c));
	moment_fact(s, "since", c->state_since_ms);
	factf(s, "memory", "%s of %s", size_text(c->values[METRIC_MEMORY_USED]).text,
		size_text(c->values[METRIC_MEMORY_TOTAL]).text);
	factf(s, "use", "%s %%", number(c, METRIC_UTILIZATION_GPU).text);
	factf(s, "power", "%s of %s W", number(c, METRIC_POWER_DRAW).text,
		number(c, METRIC_POWER_ENFORCED).text);
	factf(s, "cooling", "%s degrees, fan %s %%", number(c, METRIC_TEMPERATURE_GPU).text,
		number(c, METRIC_FAN_SPEED).text);
	factf(s, "clocks", "SM %s of %s MHz, memory %s of %s MHz",
		number(c, METRIC_CLOCK_SM).text, number(c, METRIC_CLOCK_MAX_SM).text,
		number(c, METRIC_CLOCK_MEMORY).text, number(c, METRIC_CLOCK_MAX_MEMORY).text);
	factf(s, "PCIe", "generation %s of %s, %s of %s lanes, %s replays",
		number(c, METRIC_PCIE_GEN_CURRENT).text, number(c, METRIC_PCIE_GEN_MAX).text,
		number(c, METRIC_PCIE_WIDTH_CURRENT).text,
		number(c, METRIC_PCIE_WIDTH_MAX).text, number(c, METRIC_PCIE_REPLAYS).text);
	factf(s, "ECC errors", "%s corrected, %s not, since the driver was loaded",
		number(c, METRIC_ECC_CORRECTED_VOLATILE).text,
		number(c, METRIC_ECC_UNCORRECTED_VOLATILE).text);
	top_history_get(&s->history, s->target_card, s->clock_ms, minutes, TOP_DETAIL_MINUTES);
	draw_last_hour(s, minutes);
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
