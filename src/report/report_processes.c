/* The tables of processes, of the longest idle spells, and of memory that no living process
 * explains, with the sentences about them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/str.h"
#include "base/moment.h"
#include "audit/audit.h"
#include "report/report_parts.h"

enum { WHERE_CAP = 192 }; /* size of the text for a card with its host */

/* Precedes a process that holds no more than a bare context. */
#define CONTEXT_MARK "[ctx] "

/* The data of a row. */
struct process_row {
	struct audit_process process;
	const char *host, *user, *uuid;
	int card_index;
	char where[WHERE_CAP], what[REPORT_WHAT_CAP + sizeof(CONTEXT_MARK)];
};

static struct cell process_user(const void *row, size_t of)
{
	(void)of;
	return table_text(process_shown_user(((const struct process_row *)row)->user));
}

/* Writes a card, with its host if there are several hosts. */
static void show_where(char dst[WHERE_CAP], const struct audit *a, size_t card)
{
	char label[CARD_LABEL_CAP];
	bool several = a->n_hosts > 1;
	card_label(label, sizeof(label), &a->cards[card].id);
	snprintf(dst, WHERE_CAP, "%s%s%s",
		several ? a->hosts[a->cards[card].host].hostname : "", several ? " " : "",
		label);
}

static struct cell process_pid(const void *row, size_t of)
{
	(void)of;
	return table_number(((const struct process_row *)row)->process.pid);
}

static struct cell process_card_index(const void *row, size_t of)
{
	(void)of;
	return table_number(((const struct process_row *)row)->card_index);
}

static struct cell process_context(const void *row, size_t of)
{
	(void)of;
	return table_number(((const struct process_row *)row)->process.context);
}

static struct cell process_ms(const void *row, size_t state)
{
	return table_number((double)((const struct process_row *)row)->process.sums.ms[state]);
}

static struct cell process_sum(const void *row, size_t of)
{
	(void)of;
	return table_number(
		(double)audit_holder_ms(((const struct process_row *)row)->process.sums.ms));
}

static struct cell process_share(const void *row, size_t of)
{
	const struct audit_sums *sums = &((const struct process_row *)row)->process.sums;
	(void)of;
	return table_number((double)(sums->active_share_ms + sums->idle_share_ms));
}

static struct cell process_money(const void *row, size_t part)
{
	const struct audit_sums *sums = &((const struct process_row *)row)->process.sums;
	return table_number(report_bill_money(&sums->cost, part));
}

#define OF(member) offsetof(struct process_row, member)
static const struct column process_columns[] = {
	{ .key = "pid", .title = "pid", VALUE(COUNT, process_pid, 0) },
	{ .key = "started", VALUE(MOMENT, table_get_known, OF(process.started_ms)) },
	{ .key = "user", TEXT(table_get_string, OF(user)) },
	{ .title = "user", .width = -12, TEXT(process_user, 0) },
	{ .key = "command", TEXT(table_get_string, OF(process.texts[PROCESS_COMMAND])) },
	{ .title = "what", .width = 16, .flexible = true, TEXT(table_get_chars, OF(what)) },
	{ .key = "host", TEXT(table_get_string, OF(host)) },
	{ .key = "gpu", TEXT(table_get_string, OF(uuid)) },
	{ .key = "gpu_index", VALUE(COUNT, process_card_index, 0) },
	{ .title = "gpu", .width = -14, TEXT(table_get_chars, OF(where)) },
	{ .key = "gpu_seconds", .title = "held", .width = 6, VALUE(GPU_MS, process_sum, 0) },
	{ .key = "active_gpu_seconds", VALUE(GPU_MS, process_ms, HOLDER_ACTIVE) },
	{ .key = "idle_held_gpu_seconds",
		.title = "idle",
		.width = 6,
		VALUE(GPU_MS, process_ms, HOLDER_IDLE_HELD) },
	{ .key = "squatting_gpu_seconds",
		.title = "idle on\nbusy GPU",
		VALUE(GPU_MS, process_ms, HOLDER_SQUATTING) },
	{ .key = "truly_idle_gpu_seconds", VALUE(GPU_MS, process_ms, HOLDER_TRULY_IDLE) },
	{ .key = "use_unknown_gpu_seconds", VALUE(GPU_MS, process_ms, HOLDER_USE_UNKNOWN) },
	{ .key = "share_gpu_seconds", VALUE(GPU_MS, process_share, 0) },
	{ .key = "context_only", VALUE(BOOL, process_context, 0) },
	{ .key = "last_active",
		.title = "last active",
		VALUE(MOMENT, table_get_known, OF(process.sums.last_active_ms)) },
	{ .key = "peak_mem_bytes",
		.title = "peak mem",
		.width = 8,
		.optional = true,
		VALUE(KIB, table_get_known, OF(process.sums.peak_mem_kib)) },
	{ .key = "notebook", TEXT(table_get_string, OF(process.texts[PROCESS_NOTEBOOK])) },
	{ .key = "notebook_path",
		TEXT(table_get_string, OF(process.texts[PROCESS_NOTEBOOK_PATH])) },
	{ .key = "job", TEXT(table_get_string, OF(process.texts[PROCESS_JOB])) },
	{ .key = "job_name", TEXT(table_get_string, OF(process.texts[PROCESS_JOB_NAME])) },
	{ .key = "account", TEXT(table_get_string, OF(process.texts[PROCESS_ACCOUNT])) },
	{ .key = "container", TEXT(table_get_string, OF(process.texts[PROCESS_CONTAINER])) },
	{ .key = "pod", TEXT(table_get_string, OF(process.texts[PROCESS_POD])) },
	{ .key = "unit", TEXT(table_get_string, OF(process.texts[PROCESS_UNIT])) },
	{ .key = "login", TEXT(table_get_string, OF(process.texts[PROCESS_LOGIN])) },
	{ .key = "session", TEXT(table_get_string, OF(process.texts[PROCESS_SESSION])) },
	{ .key = "parents", TEXT(table_get_string, OF(process.texts[PROCESS_PARENTS])) },
	{ .key = "python_env", TEXT(table_get_string, OF(process.texts[PROCESS_PYTHON_ENV])) },
	{ .key = "tag", TEXT(table_get_string, OF(process.texts[PROCESS_TAG])) },
	{ .key = "active_cost",
		.json = "cost.active",
		VALUE(MONEY, process_money, COST_ACTIVE) },
	{ .key = "idle_held_cost",
		.json = "cost.idle_held",
		VALUE(MONEY, process_money, COST_IDLE_HELD) },
	{ .key = "use_unknown_cost",
		.json = "cost.use_unknown",
		VALUE(MONEY, process_money, COST_USE_UNKNOWN) },
	{ .key = "cost", .json = "cost.total", VALUE(MONEY, process_money, COSTS) },
	{ .key = "squatting_cost", VALUE(MONEY, process_money, COST_SQUATTING) },
};
#undef OF

void report_processes_add(
	struct report *r, const struct audit *a, const struct report_request *q)
{
	struct table *t = &r->breakdown.table;
	size_t n = q->top && q->top < a->n_processes ? q->top : a->n_processes;
	*t = (struct table)TABLE_OF(process_columns);
	r->breakdown.rows = calloc(n + 1, sizeof(*r->breakdown.rows));
	r->failed |= !r->breakdown.rows;
	for (size_t i = 0; i < n; i++) {
		const struct audit_process *p = &a->processes[i];
		const struct audit_card *card = &a->cards[p->card];
		struct process_row row = { .process = *p,
			.host = a->hosts[p->host].hostname,
			.user = a->identities[p->identity].identity,
			.uuid = card->id.uuid,
			.card_index = card->id.index };
		show_where(row.where, a, p->card);
		str_copy(row.what, sizeof(row.what), p->context ? CONTEXT_MARK : "");
		report_show_what(row.what + strlen(row.what), p->texts);
		table_add(t, &row);
	}
}

/* The data of a row. */
struct spell_row {
	struct audit_spell spell;
	const char *host, *uuid;
	int card_index;
	double price; /* of the card; NAN: none */
	char where[WHERE_CAP], what[REPORT_WHAT_CAP];
};

static const struct spell *spell_of(const void *row)
{
	return &((const struct spell_row *)row)->spell.spell;
}

static struct cell spell_user(const void *row, size_t of)
{
	(void)of;
	return table_text(process_shown_user(((const struct spell_row *)row)->spell.user));
}

static struct cell spell_pid(const void *row, size_t of)
{
	(void)of;
	return table_number(((const struct spell_row *)row)->spell.pid);
}

static struct cell spell_card_index(const void *row, size_t of)
{
	(void)of;
	return table_number(((const struct spell_row *)row)->card_index);
}

static struct cell spell_end(const void *row, size_t of)
{
	(void)of;
	bool open = spell_of(row)->how == SPELL_OPEN;
	return table_number(open ? (double)NAN : (double)spell_of(row)->end_ms);
}

static struct cell spell_how(const void *row, size_t of)
{
	enum spell_end how = spell_of(row)->how;
	(void)of;
	return table_text(how < SPELL_ENDS ? spell_end_names[how] : NULL);
}

/* How the spell ended, for people. */
static struct cell spell_fate(const void *row, size_t of)
{
	static const char *const words[] = { [SPELL_ACTIVE] = "used",
		[SPELL_RELEASED] = "released",
		[SPELL_EXITED] = "exited",
		[SPELL_STOPPED] = "not seen",
		[SPELL_GONE] = "released",
		[SPELL_OPEN] = "goes on" };
	(void)of;
	return table_text(words[spell_of(row)->how]);
}

/* `of` selects a length. */
enum { LENGTH_WHOLE, LENGTH_IDLE, LENGTH_SQUATTING, LENGTH_UNOBSERVED };

static struct cell spell_length(const void *row, size_t of)
{
	const struct spell *s = spell_of(row);
	const int64_t lengths[] = { [LENGTH_WHOLE] = s->end_ms - s->begin_ms,
		[LENGTH_IDLE] = spell_idle_ms(s),
		[LENGTH_SQUATTING] = s->squatting_ms,
		[LENGTH_UNOBSERVED] = spell_unobserved_ms(s) };
	return table_number((double)lengths[of]);
}

/* The cost of the card's time, even if other processes were on the card. */
static struct cell spell_cost(const void *row, size_t of)
{
	const struct spell_row *r = row;
	(void)of;
	return table_number(r->price * (double)r->spell.window_ms / 3600e3);
}

#define OF(member) offsetof(struct spell_row, member)
#define PROCESS_OF(text) TEXT(table_get_string, OF(spell.texts[text]))
static const struct column spell_columns[] = {
	{ .key = "user", TEXT(table_get_string, OF(spell.user)) },
	{ .title = "user", .width = -12, TEXT(spell_user, 0) },
	{ .title = "what", .width = 10, .flexible = true, TEXT(table_get_chars, OF(what)) },
	{ .key = "pid", VALUE(COUNT, spell_pid, 0) },
	{ .key = "started", VALUE(MOMENT, table_get_known, OF(spell.started_ms)) },
	{ .key = "host", TEXT(table_get_string, OF(host)) },
	{ .key = "gpu", TEXT(table_get_string, OF(uuid)) },
	{ .key = "gpu_index", VALUE(COUNT, spell_card_index, 0) },
	{ .title = "gpu", .width = -14, TEXT(table_get_chars, OF(where)) },
	{ .key = "peak_mem_bytes",
		.title = "memory",
		VALUE(KIB, table_get_known, OF(spell.spell.mem_peak_kib)) },
	{ .key = "begin",
		.title = "idle since",
		VALUE(MOMENT, table_get_known, OF(spell.spell.begin_ms)) },
	{ .key = "end", VALUE(MOMENT, spell_end, 0) },
	{ .key = "seconds", .title = "length", VALUE(LENGTH, spell_length, LENGTH_WHOLE) },
	{ .key = "idle_seconds", VALUE(MS, spell_length, LENGTH_IDLE) },
	{ .key = "squatting_seconds", VALUE(MS, spell_length, LENGTH_SQUATTING) },
	{ .key = "unobserved_seconds", VALUE(MS, spell_length, LENGTH_UNOBSERVED) },
	{ .key = "gpu_seconds",
		.title = "GPU-h",
		VALUE(GPU_MS, table_get_known, OF(spell.window_ms)) },
	{ .key = "idle_cost", .title = "cost", .optional = true, VALUE(MONEY, spell_cost, 0) },
	{ .key = "energy_joules", VALUE(MJ, table_get_known, OF(spell.spell.energy_mj)) },
	{ .key = "how_ended", TEXT(spell_how, 0) },
	{ .title = "then", .optional = true, TEXT(spell_fate, 0) },
	{ .key = "command", PROCESS_OF(PROCESS_COMMAND) },
	{ .key = "notebook", PROCESS_OF(PROCESS_NOTEBOOK) },
	{ .key = "notebook_path", PROCESS_OF(PROCESS_NOTEBOOK_PATH) },
	{ .key = "job", PROCESS_OF(PROCESS_JOB) },
	{ .key = "job_name", PROCESS_OF(PROCESS_JOB_NAME) },
	{ .key = "account", PROCESS_OF(PROCESS_ACCOUNT) },
	{ .key = "container", PROCESS_OF(PROCESS_CONTAINER) },
	{ .key = "pod", PROCESS_OF(PROCESS_POD) },
	{ .key = "unit", PROCESS_OF(PROCESS_UNIT) },
	{ .key = "login", PROCESS_OF(PROCESS_LOGIN) },
	{ .key = "session", PROCESS_OF(PROCESS_SESSION) },
	{ .key = "tag", PROCESS_OF(PROCESS_TAG) },
};
#undef OF

/* Shows a notebook by the name of its file: space is short, and all notebooks have the same
 * command. */
static void show_what(char dst[REPORT_WHAT_CAP], const struct audit_spell *s)
{
	const char *path = s->texts[PROCESS_NOTEBOOK_PATH];
	const char *slash = path ? strrchr(path, '/') : NULL;
	if (path && *path)
		str_copy(dst, REPORT_WHAT_CAP, slash && slash[1] ? slash + 1 : path);
	else
		report_show_what(dst, s->texts);
}

void report_processes_add_spells(struct table *t, const struct audit *a)
{
	*t = (struct table)TABLE_OF(spell_columns);
	for (size_t i = 0; i < a->spells.n; i++) {
		const struct audit_spell *s = &a->spells.items[i];
		const struct audit_card *card = &a->cards[s->card];
		struct spell_row row = { .spell = *s,
			.host = a->hosts[s->host].hostname,
			.uuid = card->id.uuid,
			.card_index = card->id.index,
			.price = card->price };
		show_where(row.where, a, s->card);
		show_what(row.what, s);
		table_add(t, &row);
	}
}

void report_processes_say_spells(struct report *r, const struct audit *a)
{
	bool cut = false, gaps = false;
	size_t stopped = 0;
	r->n_spells_left = a->spells.n_left_out;
	for (size_t i = 0; i < a->spells.n; i++) {
		const struct audit_spell *s = &a->spells.items[i];
		gaps |= spell_unobserved_ms(&s->spell) > 60000;
		cut |= s->window_ms < spell_idle_ms(&s->spell);
		stopped += s->spell.how == SPELL_STOPPED;
	}
	if (a->spells.n && r->bill.currency)
		report_say(r, SENTENCE_SPELL, NULL,
			"cost is GPU-h at the price of the GPU, in %s. It is not a share: who "
			"else was on the GPU does not matter.",
			r->bill.currency);
	if (a->spells.n_left_out)
		report_say(r, SENTENCE_SPELLS, NULL, "%zu more: --longest N shows N of them.",
			a->spells.n_left_out);
	if (cut || gaps)
		report_say(r, SENTENCE_SPELL, NULL,
			"The length is that of the whole spell%s; GPU-h is the idle time %s.",
			gaps ? ", with the time without readings in it" : "",
			cut ? "within the window" : "that was seen");
	if (stopped)
		report_say(r, SENTENCE_SPELL, NULL,
			"How %zu of them ended was not seen, because the recorder stopped.",
			stopped);
}

struct orphan_row {
	const char *host, *uuid;
	int64_t index, pid, mem_kib, since_ms; /* -1 unknown */
};

#define OF(member) table_get_known, .of = offsetof(struct orphan_row, member)
static const struct column orphan_columns[] = {
	{ .key = "host",
		.kind = COLUMN_TEXT,
		.get = table_get_string,
		.of = offsetof(struct orphan_row, host) },
	{ .key = "gpu",
		.kind = COLUMN_TEXT,
		.get = table_get_string,
		.of = offsetof(struct orphan_row, uuid) },
	{ .key = "gpu_index", .kind = COLUMN_COUNT, .get = OF(index) },
	{ .key = "pid", .kind = COLUMN_COUNT, .get = OF(pid) },
	{ .key = "mem_bytes", .kind = COLUMN_KIB, .get = OF(mem_kib) },
	{ .key = "since", .kind = COLUMN_MOMENT, .get = OF(since_ms) },
};
#undef OF

static void say(struct report *r, const struct audit *a, const struct audit_orphan *o)
{
	const struct audit_card *card = &a->cards[o->card];
	bool several = a->n_hosts > 1;
	char label[CARD_LABEL_CAP], since[48], size[SIZE_TEXT_CAP] = "Memory",
					       what[64] = "no process that the driver lists";
	card_label(label, sizeof(label), &card->id);
	moment_text(since, sizeof(since), o->since_ms, r->utc);
	if (o->mem_bytes >= 0)
		size_text(size, (double)o->mem_bytes);
	if (o->pid)
		snprintf(what, sizeof(what), "a process that has ended (pid %u)", o->pid);
	report_say(r, SENTENCE_CARD, NULL,
		"GPU %s%s%s: %s held by %s, since %s. gua-memory(7) says how to free it.",
		label, several ? " on " : "", several ? a->hosts[card->host].hostname : "",
		size, what, since);
}

void report_processes_add_orphans(struct report *r, const struct audit *a)
{
	r->orphans = (struct table)TABLE_OF(orphan_columns);
	for (size_t i = 0; i < a->orphans.n; i++) {
		const struct audit_orphan *o = &a->orphans.items[i];
		const struct audit_card *card = &a->cards[o->card];
		table_add(&r->orphans,
			&(struct orphan_row){ .host = a->hosts[card->host].hostname,
				.uuid = card->id.uuid,
				.index = card->id.index,
				.pid = o->pid ? (int64_t)o->pid : -1,
				.mem_kib = o->mem_bytes < 0 ? -1 : o->mem_bytes / 1024,
				.since_ms = o->since_ms });
		if (!r->of_users)
			say(r, a, o);
	}
}
