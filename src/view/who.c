/* Finds, sorts and describes the holders of the cards. */
#include "view/who.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/size.h"
#include "base/timetext.h"
#include "render/json.h"

enum { WHAT_CAP = COMMAND_CAP + LABEL_CAP + 32 };

/* Describes a holder: its most specific name, and the command. */
static void show_what(char dst[WHAT_CAP], const struct present_process *p)
{
	const char *label = process_label_of(&p->id), *command = p->id.command;
	const char *context = context_texts[p->context];
	snprintf(dst, WHAT_CAP, "%s%s%s%s%s%s", *context ? "(" : "", context,
		*context ? ") " : "", label, *label ? " " : "",
		*command ? command
		: *label ? ""
			 : "-");
}

/* "10 min"; "> 9 s (2 h)": for at least 9 s, and for 2 h when the last recorder ended. */
static void show_idle(char *dst, size_t cap, const struct present_process *p,
	const struct present_card *c, const struct live *live)
{
	char age[40], then[40];
	int64_t now_ms = live_now_ms(live);
	int64_t ms = now_ms > p->idle_since_ms ? now_ms - p->idle_since_ms : 0;
	duration_text(age, sizeof(age), ms);
	duration_text(then, sizeof(then), live_recorded_until(live) - p->was_idle_since_ms);
	if (p->active)
		text_copy(dst, cap, "active");
	else if (p->idle_since_ms < 0)
		text_copy(dst, cap, c->state == CARD_USE_UNKNOWN ? "use unknown" : "-");
	else if (present_was_idle(p))
		snprintf(dst, cap, "%s%s (%s%s)", p->idle_longer ? "> " : "", age,
			p->was_idle_longer ? "> " : "", then);
	else
		snprintf(dst, cap, "%s%s", p->idle_longer ? "> " : "", age);
}

/* The sort key of holders: a smaller value means idle for longer, as far as is known. */
static int64_t idle_order(const struct present_process *p)
{
	if (p->active)
		return INT64_MAX;
	if (present_was_idle(p))
		return p->was_idle_since_ms;
	return p->idle_since_ms < 0 ? INT64_MAX - 1 : p->idle_since_ms;
}

/* Order: longest idle first, then unknown, then active; then by card, most memory first. */
static int compare(const void *left, const void *right)
{
	const struct present_process *a = *(const struct present_process *const *)left;
	const struct present_process *b = *(const struct present_process *const *)right;
	int64_t since_a = idle_order(a), since_b = idle_order(b);
	if (since_a != since_b)
		return since_a < since_b ? -1 : 1;
	if (a->card != b->card)
		return a->card < b->card ? -1 : 1;
	if (a->mem_bytes != b->mem_bytes)
		return a->mem_bytes > b->mem_bytes ? -1 : 1;
	return a->id.pid < b->id.pid ? -1 : 1;
}

static bool is_wanted(
	const struct who_question *q, const struct present_process *p, int64_t now_ms)
{
	if (!p->holder || !filter_process(q->filter, p))
		return false;
	return q->idle_ms < 0 ||
	       (!p->active && p->idle_since_ms >= 0 && now_ms - p->idle_since_ms >= q->idle_ms);
}

int who_find(struct who *f, struct live *live, const struct who_question *q, struct err *e)
{
	size_t n_cards, n_processes;
	*f = (struct who){ .live = live };
	f->cards = live_cards(f->live, &n_cards);
	const struct present_process *all = live_processes(f->live, &n_processes);
	size_t *picked = calloc(n_cards + 1, sizeof(*picked));
	f->holders = calloc(n_processes + 1, sizeof(const struct present_process *));
	int n_picked = picked && f->holders
			       ? filter_cards(q->filter, f->cards, n_cards, picked, e)
			       : err_memory(e);
	for (int i = 0; i < n_picked; i++) {
		const struct present_card *c = &f->cards[picked[i]];
		for (size_t k = 0; k < c->n_processes; k++) {
			const struct present_process *p = &all[c->first_process + k];
			if (is_wanted(q, p, live_now_ms(f->live)))
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
	*f = (struct who){ 0 };
}

/* Since when it holds the card; if that was not seen, since it started. */
static int64_t since_ms(const struct present_process *p)
{
	return p->held_since_ms >= 0 ? p->held_since_ms : p->id.started_ms;
}

/* The data of a row. */
struct who_row {
	const struct present_process *process;
	char card[CARD_LABEL_CAP], idle[96], what[WHAT_CAP];
};

static struct cell get_user(const void *row, size_t of)
{
	(void)of;
	return cell_text(user_shown(((const struct who_row *)row)->process->id.user));
}

static struct cell get_pid(const void *row, size_t of)
{
	(void)of;
	return cell_number(((const struct who_row *)row)->process->id.pid);
}

static struct cell get_memory(const void *row, size_t of)
{
	struct cell bytes = cell_known(((const struct who_row *)row)->process->mem_bytes);
	(void)of;
	return cell_number(bytes.number / 1024);
}

static struct cell get_since(const void *row, size_t of)
{
	(void)of;
	return cell_known(since_ms(((const struct who_row *)row)->process));
}

static struct cell get_text(const void *row, size_t which)
{
	const char *text = process_text(&((const struct who_row *)row)->process->id, which);
	return *text ? cell_text(text) : cell_number(NAN);
}

#define COLUMN(name, what, getter) .title = name, .kind = COLUMN_##what, .get = getter
#define OF(member) .of = offsetof(struct who_row, member)
static const struct column columns[] = {
	{ COLUMN("user", TEXT, get_user), .width = -14 },
	{ COLUMN("card", TEXT, get_chars), OF(card) },
	{ COLUMN("pid", COUNT, get_pid) },
	{ COLUMN("memory", KIB, get_memory) },
	{ COLUMN("idle for", TEXT, get_chars), OF(idle) },
	{ COLUMN("since", MOMENT, get_since) },
	{ COLUMN("login", TEXT, get_text), .of = PROCESS_LOGIN, .optional = true },
	{ COLUMN("tag", TEXT, get_text), .of = PROCESS_TAG, .optional = true, .width = -20 },
	{ COLUMN("what", TEXT, get_chars), OF(what), .flexible = true },
};

void who_text(struct str *out, const struct who *f, const struct text_style *style)
{
	struct table t = { .columns = columns,
		.n_columns = sizeof(columns) / sizeof(columns[0]) };
	for (size_t i = 0; i < f->n; i++) {
		const struct present_process *p = f->holders[i];
		struct who_row row = { .process = p };
		card_label(row.card, sizeof(row.card), &f->cards[p->card].id);
		show_idle(row.idle, sizeof(row.idle), p, &f->cards[p->card], f->live);
		show_what(row.what, p);
		table_add(&t, &row);
	}
	text_add_table(out, &t, style);
	table_finish(&t);
}

/* Adds a label; "" becomes null. */
static void add_label(struct json *j, const char *key, const char *text)
{
	json_text(j, key, *text ? text : NULL);
}

static void add_holder_json(struct json *j, const struct present_process *p,
	const struct present_card *c, int64_t now_ms)
{
	bool idle = !p->active && p->idle_since_ms >= 0;
	json_open(j, NULL, '{');
	json_text(j, "user", p->id.user);
	json_number(j, "uid", p->id.uid < 0 ? NAN : (double)p->id.uid, 0);
	json_number(j, "pid", p->id.pid, 0);
	json_number(j, "card", c->id.index, 0);
	json_number(j, "mig_index", c->id.mig_index < 0 ? NAN : (double)c->id.mig_index, 0);
	json_text(j, "uuid", c->id.uuid);
	json_text(j, "card_state", card_state_names[c->state]);
	json_number(j, "mem_bytes", p->mem_bytes < 0 ? NAN : (double)p->mem_bytes, 0);
	add_label(j, "context", context_texts[p->context]);
	if (p->active || idle)
		json_bool(j, "active", p->active);
	else
		json_text(j, "active", NULL);
	json_number(j, "sm_pct", p->sm_pct, 1);
	json_moment(j, "idle_since", idle ? p->idle_since_ms : -1);
	json_number(
		j, "idle_seconds", idle ? (double)(now_ms - p->idle_since_ms) / 1000 : NAN, 3);
	json_bool(j, "idle_is_lower_bound", idle && p->idle_longer);
	json_moment(j, "was_idle_since", present_was_idle(p) ? p->was_idle_since_ms : -1);
	json_bool(j, "was_idle_is_lower_bound", present_was_idle(p) && p->was_idle_longer);
	json_moment(j, "last_active", p->last_active_ms);
	json_moment(j, "held_since", p->held_since_ms);
	json_moment(j, "started", p->id.started_ms);
	for (size_t i = 0; i < PROCESS_TEXTS; i++)
		add_label(j, process_fields[i].name, process_text(&p->id, i));
	json_close(j, '}');
}

void who_json(struct str *out, const struct who *f)
{
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-who-1");
	json_text(&j, "host", live_hostname(f->live));
	json_moment(&j, "time", live_now_ms(f->live));
	add_label(&j, "note", live_note(f->live));
	json_moment(&j, "recorded_until", live_recorded_until(f->live));
	json_open(&j, "holders", '[');
	for (size_t i = 0; i < f->n; i++)
		add_holder_json(&j, f->holders[i], &f->cards[f->holders[i]->card],
			live_now_ms(f->live));
	json_close(&j, ']');
	json_close(&j, '}');
}

/* Adds a note about what could not be read of a card. */
static void add_card_note(struct str *out, const struct present_card *c)
{
	char card[CARD_LABEL_CAP], text[256], size[SIZE_TEXT_CAP];
	double orphan = c->values[METRIC_GUA_ORPHAN_MEMORY];
	card_label(card, sizeof(card), &c->id);
	if (c->status != CARD_STATUS_OK)
		str_addf(out, "card %s is %s: its holders are not known\n", card,
			card_status_names[c->status]);
	else if (!c->processes_known)
		str_addf(out, "the driver does not list the processes on card %s\n", card);
	else if (c->state == CARD_SUSPECT) {
		present_suspect_text(text, sizeof(text), c);
		str_addf(out, "%s\n", text);
	} else if (orphan >= (double)ORPHAN_LEAST_BYTES) {
		size_text(size, orphan);
		str_addf(out,
			"card %s has %s in use that no listed process explains: see man "
			"gua-memory\n",
			card, size);
	}
}

/* Whether options restrict the holders that are listed. */
static bool is_narrow(const struct who_question *q)
{
	const struct filter_values *v = q->filter->values;
	return q->idle_ms >= 0 || v->users.n || v->pids.n || v->ids.n || v->states.n ||
	       v->min_mem;
}

void who_notes(struct str *out, const struct who *f, const struct who_question *q, bool text)
{
	size_t n;
	bool some_then = false;
	const struct present_card *cards = live_cards(f->live, &n);
	for (size_t i = 0; i < n; i++)
		if (filter_card(q->filter, &cards[i]))
			add_card_note(out, &cards[i]);
	for (size_t i = 0; i < f->n; i++)
		some_then |= present_was_idle(f->holders[i]);
	if (*live_note(f->live))
		str_addf(out, "%s%s\n", live_note(f->live),
			some_then && text ? "; in brackets: how long it was idle then" : "");
	if (f->n == 0 && text)
		str_add(out,
			is_narrow(q) ? "no process matches\n" : "no process holds a card\n");
}
