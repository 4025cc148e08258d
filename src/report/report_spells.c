/* The part of a report about the longest idle spells: its table, and what must be said about
 * it. To add a column, add a row to the array of columns. */
#include "report/report_parts.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

/* The data of a row. */
struct spell_row {
	struct audit_spell spell;
	const char *host, *uuid;
	int card_index;
	double price; /* of the card; NAN: none */
	char where[REPORT_WHERE_CAP], what[REPORT_WHAT_CAP];
};

static const struct spell *spell_of(const void *row)
{
	return &((const struct spell_row *)row)->spell.spell;
}

static struct cell spell_user(const void *row, size_t of)
{
	(void)of;
	return cell_text(user_shown(((const struct spell_row *)row)->spell.user));
}

static struct cell spell_pid(const void *row, size_t of)
{
	(void)of;
	return cell_number(((const struct spell_row *)row)->spell.pid);
}

static struct cell spell_card_index(const void *row, size_t of)
{
	(void)of;
	return cell_number(((const struct spell_row *)row)->card_index);
}

static struct cell spell_end(const void *row, size_t of)
{
	(void)of;
	bool open = spell_of(row)->how == SPELL_OPEN;
	return cell_number(open ? (double)NAN : (double)spell_of(row)->end_ms);
}

static struct cell spell_how(const void *row, size_t of)
{
	enum spell_end how = spell_of(row)->how;
	(void)of;
	return cell_text(how < SPELL_ENDS ? spell_end_names[how] : NULL);
}

/* For people. */
static struct cell spell_fate(const void *row, size_t of)
{
	static const char *const words[] = { [SPELL_ACTIVE] = "used",
		[SPELL_RELEASED] = "released",
		[SPELL_EXITED] = "exited",
		[SPELL_STOPPED] = "not seen",
		[SPELL_GONE] = "released",
		[SPELL_OPEN] = "goes on" };
	(void)of;
	return cell_text(words[spell_of(row)->how]);
}

/* `of` chooses a length. */
enum { LENGTH_WHOLE, LENGTH_IDLE, LENGTH_SQUATTING, LENGTH_UNOBSERVED };

static struct cell spell_length(const void *row, size_t of)
{
	const struct spell *s = spell_of(row);
	const int64_t lengths[] = { [LENGTH_WHOLE] = s->end_ms - s->begin_ms,
		[LENGTH_IDLE] = spell_idle_ms(s),
		[LENGTH_SQUATTING] = s->squatting_ms,
		[LENGTH_UNOBSERVED] = spell_unobserved_ms(s) };
	return cell_number((double)lengths[of]);
}

/* What the card's time cost, whoever else was on the card. */
static struct cell spell_cost(const void *row, size_t of)
{
	const struct spell_row *r = row;
	(void)of;
	return cell_number(r->price * (double)r->spell.window_ms / 3600e3);
}

#define OF(member) offsetof(struct spell_row, member)
#define PROCESS_OF(text) TEXT(get_string, OF(spell.texts[text]))
static const struct column spell_columns[] = {
	{ .key = "user", TEXT(get_string, OF(spell.user)) },
	{ .title = "user", .width = -12, TEXT(spell_user, 0) },
	{ .title = "what", .width = 10, .flexible = true, TEXT(get_chars, OF(what)) },
	{ .key = "pid", VALUE(COUNT, spell_pid, 0) },
	{ .key = "started", VALUE(MOMENT, get_known, OF(spell.started_ms)) },
	{ .key = "host", TEXT(get_string, OF(host)) },
	{ .key = "gpu", TEXT(get_string, OF(uuid)) },
	{ .key = "gpu_index", VALUE(COUNT, spell_card_index, 0) },
	{ .title = "gpu", .width = -14, TEXT(get_chars, OF(where)) },
	{ .key = "peak_mem_bytes",
		.title = "memory",
		VALUE(KIB, get_known, OF(spell.spell.mem_peak_kib)) },
	{ .key = "begin",
		.title = "idle since",
		VALUE(MOMENT, get_known, OF(spell.spell.begin_ms)) },
	{ .key = "end", VALUE(MOMENT, spell_end, 0) },
	{ .key = "seconds", .title = "length", VALUE(LENGTH, spell_length, LENGTH_WHOLE) },
	{ .key = "idle_seconds", VALUE(MS, spell_length, LENGTH_IDLE) },
	{ .key = "squatting_seconds", VALUE(MS, spell_length, LENGTH_SQUATTING) },
	{ .key = "unobserved_seconds", VALUE(MS, spell_length, LENGTH_UNOBSERVED) },
	{ .key = "gpu_seconds",
		.title = "GPU-h",
		VALUE(GPU_MS, get_known, OF(spell.window_ms)) },
	{ .key = "idle_cost", .title = "cost", .optional = true, VALUE(MONEY, spell_cost, 0) },
	{ .key = "energy_joules", VALUE(MJ, get_known, OF(spell.spell.energy_mj)) },
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

/* A notebook by the name of its file: there is little room, and the command is the same for all
 * of them. */
static void show_what(char dst[REPORT_WHAT_CAP], const struct audit_spell *s)
{
	const char *path = s->texts[PROCESS_NOTEBOOK_PATH];
	const char *slash = path ? strrchr(path, '/') : NULL;
	if (path && *path)
		text_copy(dst, REPORT_WHAT_CAP, slash && slash[1] ? slash + 1 : path);
	else
		report_show_what(dst, s->texts);
}

void report_add_spells(struct table *t, const struct audit *a)
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
		report_show_where(row.where, a, s->card);
		show_what(row.what, s);
		table_add(t, &row);
	}
}

void report_add_spell_sentences(struct report *r, const struct audit *a)
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
