/* Finds, sorts and describes the holders of the cards, and writes messages to their users. */
#include "view/who.h"

#include "present/holders.h"
#include "render/json.h"
#include "render/rows.h"

/* Order: longest idle first, then unknown, then active; then by card, most memory first. */
static int compare(const void *left, const void *right)
{
	const struct present_process *a = *(const struct present_process *const *)left;
	const struct present_process *b = *(const struct present_process *const *)right;
	int64_t since_a = holders_idle_order(a), since_b = holders_idle_order(b);
	if (since_a != since_b)
		return since_a < since_b ? -1 : 1;
	if (a->card != b->card)
		return a->card < b->card ? -1 : 1;
	if (a->mem_bytes != b->mem_bytes)
		return a->mem_bytes > b->mem_bytes ? -1 : 1;
	return a->id.pid < b->id.pid ? -1 : 1;
}

/* Adds a card that is reserved, if it is asked for. */
static void find_reserved(struct who *f, const struct who_question *q, size_t card)
{
	const struct present_card *c = &f->now->cards[card];
	struct present_process *p = &f->reserved[f->n_reserved];
	*p = (struct present_process){ .card = card,
		.mem_bytes = -1,
		.sm_pct = NAN,
		.held_since_ms = c->leased_since_ms,
		.last_active_ms = -1,
		.idle_since_ms = c->state_since_ms };
	str_copy(p->id.user, sizeof(p->id.user), c->lease_owner);
	str_copy(p->id.job, sizeof(p->id.job), c->lease_job);
	str_copy(p->id.origin.job_task, TASK_CAP, c->lease_task);
	bool long_enough =
		q->idle_ms < 0 ||
		(c->state_since_ms >= 0 && f->now->now_ms - c->state_since_ms >= q->idle_ms);
	f->n_reserved +=
		c->state == CARD_RESERVED && long_enough && filter_process(q->filter, p);
}

int who_find(
	struct who *f, const struct present *now, const struct who_question *q, struct err *e)
{
	*f = (struct who){ .now = now };
	size_t *picked = calloc(now->n_cards + 1, sizeof(*picked));
	f->holders = calloc(now->n_processes + 1, sizeof(const struct present_process *));
	f->reserved = calloc(now->n_cards + 1, sizeof(*f->reserved));
	int n_picked = picked && f->holders && f->reserved
			       ? filter_cards(q->filter, now, picked, e)
			       : err_memory(e);
	for (int i = 0; i < n_picked; i++) {
		const struct present_card *c = &now->cards[picked[i]];
		find_reserved(f, q, picked[i]);
		for (size_t k = 0; k < c->n_processes; k++) {
			const struct present_process *p = &now->processes[c->first_process + k];
			bool long_enough =
				q->idle_ms < 0 ||
				(!p->active && p->idle_since_ms >= 0 &&
					now->now_ms - p->idle_since_ms >= q->idle_ms);
			if (p->holder && long_enough && filter_process(q->filter, p))
				f->holders[f->n++] = p;
		}
	}
	free(picked);
	qsort(f->holders, f->holders ? f->n : 0, sizeof(const struct present_process *),
		compare);
	return n_picked < 0 ? n_picked : 0;
}

void who_finish(struct who *f)
{
	free(f->holders);
	free(f->reserved);
	*f = (struct who){ 0 };
}

/* The holders as rows of these columns. Call table_finish(). */
static struct table list(const struct who *w, const struct column *columns, size_t n)
{
	struct table t = { .columns = columns, .n_columns = n };
	struct holder_row row;
	for (size_t i = 0; i < w->n; i++) {
		holders_row(&row, w->now, w->holders[i]);
		table_add(&t, &row);
	}
	return t;
}

void who_text(struct str *out, const struct who *w, const struct text_style *style)
{
	struct column columns[HOLDER_COLUMNS_MAX];
	struct table t = list(w, columns, holders_text_columns(columns));
	struct holder_row row;
	for (size_t i = 0; i < w->n_reserved; i++) {
		const struct present_process *p = &w->reserved[i];
		const struct present_card *c = &w->now->cards[p->card];
		char more[32] = "";
		holders_row(&row, w->now, p);
		if (c->n_leases > 1)
			snprintf(more, sizeof(more), " and %zu more", c->n_leases - 1);
		snprintf(row.idle, sizeof(row.idle), "reserved%s%s",
			c->state_since_ms >= 0 ? c->state_longer ? " > " : " " : "",
			c->state_since_ms >= 0
				? duration_text(w->now->now_ms - c->state_since_ms).text
				: "");
		snprintf(row.what, sizeof(row.what), "%s%s: not used",
			*c->lease_task ? c->lease_task : c->lease_job, more);
		table_add(&t, &row);
	}
	text_add_table(out, &t, style);
	table_finish(&t);
}

void who_json(struct str *out, const struct who *w)
{
	struct json j = { .out = out, .lines = 2 };
	const struct present_host *host = &w->now->hosts[0];
	struct column columns[HOLDER_COLUMNS_MAX];
	struct table t = list(w, columns, holders_data_columns(columns, false));
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-who-1");
	json_text(&j, "host", host->hostname);
	json_moment(&j, "time", w->now->now_ms);
	json_label(&j, "note", host->note);
	json_moment(&j, "recorded_until", host->recorded_until_ms);
	rows_json_table(&j, "holders", &t);
	rows_json_reserved(&j, w->now);
	json_close(&j, '}');
	table_finish(&t);
}

void who_csv(struct str *out, const struct who *w)
{
	struct column columns[HOLDER_COLUMNS_MAX];
	struct table t = list(w, columns, holders_data_columns(columns, true));
	rows_table(out, &t);
	table_finish(&t);
}

/* Adds a note about what could not be read of a card. */
static void add_card_note(struct str *out, const struct present_card *c)
{
	char text[256];
	double orphan = c->values[METRIC_GUA_ORPHAN_MEMORY];
	struct brief card = card_label(&c->id);
	if (c->status != CARD_STATUS_OK)
		str_addf(out, "card %s is %s: its holders are not known\n", card.text,
			card_status_names[c->status]);
	else if (!c->processes_known)
		str_addf(out, "the driver does not list the processes on card %s\n", card.text);
	else if (c->state == CARD_SUSPECT) {
		present_suspect_text(text, sizeof(text), c);
		str_addf(out, "%s\n", text);
	} else if (orphan >= (double)ORPHAN_LEAST_BYTES)
		str_addf(out,
			"card %s has %s in use that no listed process explains: see man "
			"gua-memory\n",
			card.text, size_text(orphan).text);
}

void who_notes(struct str *out, const struct who *f, const struct who_question *q, bool text)
{
	bool some_then = false;
	const char *note = f->now->hosts[0].note;
	const struct present_card *cards = f->now->cards;
	const struct filter_values *v = q->filter->values;
	bool narrow = q->idle_ms >= 0 || v->users.n || v->pids.n || v->ids.n || v->states.n ||
		      v->min_mem;
	for (size_t i = 0; i < f->now->n_cards; i++)
		if (filter_card(q->filter, &cards[i]))
			add_card_note(out, &cards[i]);
	for (size_t i = 0; i < f->n; i++)
		some_then |= present_was_idle(f->holders[i]);
	if (*note)
		str_addf(out, "%s%s\n", note,
			some_then && text ? "; in brackets: how long it was idle then" : "");
	if (f->n + f->n_reserved == 0 && text)
		str_add(out, narrow ? "no process matches\n" : "no process holds a card\n");
}

enum { COLUMNS = 72 };

/* Appends a line about what a process holds. */
static void add_holding(struct str *out, const struct who *w, const struct present_process *p,
	const struct text_style *style)
{
	char line[256];
	const char *label = process_label_of(&p->id);
	struct brief idle = duration_text(w->now->now_ms - p->idle_since_ms);
	snprintf(line, sizeof(line), "  GPU %s  %s  idle for %s%s  pid %u",
		card_label(&w->now->cards[p->card].id).text,
		p->mem_bytes >= 0 ? size_text((double)p->mem_bytes).text : "unknown memory",
		p->idle_longer ? "more than " : "", idle.text, (unsigned)p->id.pid);
	size_t room = COLUMNS - str_columns(line) - 2;
	if (*label && str_columns(label) > room) { /* its owner must know which it is */
		str_addf(out, "%s\n    %s", line, label);
	} else {
		str_addf(out, "%s  ", line);
		text_add_cut(out, *label ? label : p->id.command, room, style);
	}
	str_add(out, "\n");
}

/* Adds the commands that release what a user holds, each once. */
static void add_commands(struct str *out, const struct who *w, const char *user)
{
	char command[RELEASE_CAP], line[RELEASE_CAP + 4];
	for (size_t i = 0; i < w->n; i++) {
		const struct present_process *p = w->holders[i];
		if (strcmp(p->id.user, user) != 0 || !present_release(w->now, p, command))
			continue;
		snprintf(line, sizeof(line), "  %s\n", command);
		if (!strstr(str_text(out), line))
			str_add(out, line);
	}
}

static void add_letter(
	struct str *out, const struct who *w, const char *user, const struct text_style *style)
{
	bool notebook = false;
	str_addf(
		out, "To: %s\nSubject: idle GPU memory on %s", user, w->now->hosts[0].hostname);
	/* For a subject: ": a.ipynb", or ": a.ipynb and 2 more". */
	const char *first = "";
	size_t more = 0;
	for (size_t i = 0; i < w->n; i++) {
		const struct process_id *id = &w->holders[i]->id;
		if (strcmp(id->user, user) != 0)
			continue;
		more += *first != '\0';
		if (!*first)
			first = *process_label_of(id) ? process_label_of(id) : id->command;
	}
	str_addf(out, ": %s", *first ? first : "a process");
	if (more)
		str_addf(out, " and %zu more", more);
	str_add(out, "\n\n");
	text_add_wrapped(out,
		"Your processes hold GPU memory and have not used the GPU for a while:", 0, 0,
		style);
	str_add(out, "\n");
	for (size_t i = 0; i < w->n; i++) {
		if (strcmp(w->holders[i]->id.user, user) != 0)
			continue;
		add_holding(out, w, w->holders[i], style);
		notebook |= *w->holders[i]->id.notebook != '\0';
	}
	str_add(out, "\n");
	struct str commands = { 0 };
	add_commands(&commands, w, user);
	text_add_wrapped(out,
		commands.len ? "Nobody else can use this memory. If you no longer need it, "
			       "please save your work and release it:"
			     : "Nobody else can use this memory. If you no longer need it, "
			       "please release it in your program: other processes of the "
			       "same job or container compute, or may compute.",
		0, 0, style);
	str_addf(out, "\n%s%s", str_text(&commands), commands.len ? "\n" : "");
	str_finish(&commands);
	text_add_wrapped(out,
		notebook ? "For a notebook it is enough to shut down its kernel in Jupyter. "
			   "\"man gua-memory\" explains other ways."
			 : "\"man gua-memory\" explains other ways.",
		0, 0, style);
}

void who_message(struct str *out, const struct who *w, const struct text_style *style)
{
	struct text_style narrow = *style;
	narrow.columns = COLUMNS;
	for (size_t i = 0; i < w->n; i++) {
		const char *user = w->holders[i]->id.user;
		bool told = false;
		for (size_t k = 0; k < i; k++)
			told |= strcmp(w->holders[k]->id.user, user) == 0;
		if (told || strcmp(user, USER_DEAD) == 0)
			continue;
		if (out->len) {
			str_add_repeat(out, "-", COLUMNS);
			str_add(out, "\n");
		}
		add_letter(out, w, user, &narrow);
	}
}
