/* Formats the result of gua track: outline, own figures, advice, tables, and the short text
 * for people. */
#include "render/track.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include "base/size.h"
#include "base/array.h"
#include "base/duration.h"
#include "model/columns.h"
#include "render/rows.h"
#include "render/text.h"

/* An outline: nested groups of named values, printed as indented text, as JSON or as CSV. A
 * value has one name for people and one for programs. */

enum outline_kind { OUTLINE_OPEN, OUTLINE_CLOSE, OUTLINE_REAL, OUTLINE_COUNT, OUTLINE_TEXT };

struct outline_item {
	enum outline_kind kind;
	const char *key, *label; /* constant texts */
	double number;		 /* NAN: unknown */
	const char *text;	 /* OUTLINE_TEXT: borrowed until the outline is printed */
};

struct outline {
	struct outline_item *items;
	size_t n, cap;
	bool failed;		/* out of memory */
	const char *replace[2]; /* a word in names and its other spelling, or NULL */
};

enum { NAME_CAP = 96, PATH_CAP = 256 };

static void add(struct outline *o, struct outline_item item)
{
	if (array_reserve(&o->items, &o->cap, o->n + 1))
		o->items[o->n++] = item;
	else
		o->failed = true;
}

static void outline_open(struct outline *o, const char *key, const char *label)
{
	add(o, (struct outline_item){ OUTLINE_OPEN, key, label, NAN, NULL });
}

static void outline_close(struct outline *o)
{
	add(o, (struct outline_item){ OUTLINE_CLOSE, "", "", NAN, NULL });
}

static void outline_real(struct outline *o, const char *key, const char *label, double number)
{
	add(o, (struct outline_item){ OUTLINE_REAL, key, label, number, NULL });
}

static void outline_count(struct outline *o, const char *key, const char *label, int64_t number)
{
	double known = number < 0 ? NAN : (double)number;
	add(o, (struct outline_item){ OUTLINE_COUNT, key, label, known, NULL });
}

static void outline_text(
	struct outline *o, const char *key, const char *label, const char *text)
{
	add(o, (struct outline_item){ OUTLINE_TEXT, key, label, NAN, text });
}

static void outline_finish(struct outline *o)
{
	free(o->items);
	*o = (struct outline){ 0 };
}

/* The name with the outline's word replaced; the case of the first letter is kept. */
static const char *spell(char *dst, const struct outline *o, const char *name)
{
	const char *found = NULL;
	size_t len = o->replace[0] ? strlen(o->replace[0]) : 0;
	for (const char *at = name; len && *at && !found; at++)
		if (strncasecmp(at, o->replace[0], len) == 0)
			found = at;
	if (!found)
		return name;
	snprintf(dst, NAME_CAP, "%.*s%c%s%s", (int)(found - name), name, *found,
		o->replace[1] + 1, found + len);
	return dst;
}

static void outline_print_text(struct str *out, const struct outline *o)
{
	size_t depth = 0;
	char name[NAME_CAP], value[64];
	for (size_t i = 0; i < o->n; i++) {
		const struct outline_item *item = &o->items[i];
		if (item->kind == OUTLINE_CLOSE) {
			depth--;
			continue;
		}
		str_add_repeat(out, "   ", depth);
		str_addf(out, "%s:", spell(name, o, item->label));
		if (item->kind == OUTLINE_OPEN) {
			depth++;
		} else if (item->kind == OUTLINE_TEXT) {
			str_addf(out, " %s", item->text ? item->text : "unknown");
		} else {
			/* Reals have up to three decimals, without trailing zeros, but always a
			 * point. */
			bool real = item->kind == OUTLINE_REAL;
			json_number_text(value, sizeof(value), item->number, real ? 3 : 0);
			size_t len = strlen(value);
			if (len == 0)
				snprintf(value, sizeof(value), "unknown");
			else if (real && !strchr(value, '.') && len + 2 < sizeof(value))
				memcpy(value + len, ".0", 3);
			str_addf(out, " %s", value);
		}
		str_add(out, "\n");
	}
	out->failed |= o->failed;
}

static void outline_print_json(struct json *j, const struct outline *o)
{
	char name[NAME_CAP];
	for (size_t i = 0; i < o->n; i++) {
		const struct outline_item *item = &o->items[i];
		const char *key = spell(name, o, item->key);
		if (item->kind == OUTLINE_OPEN)
			json_open(j, key, '{');
		else if (item->kind == OUTLINE_CLOSE)
			json_close(j, '}');
		else if (item->kind == OUTLINE_TEXT)
			json_text(j, key, item->text);
		else
			json_number(j, key, item->number, item->kind == OUTLINE_REAL ? 9 : 0);
	}
	j->out->failed |= o->failed;
}

static void outline_print_csv(struct str *out, const struct outline *o)
{
	char path[PATH_CAP] = "", name[NAME_CAP], value[64];
	str_add(out, "key,value\r\n");
	for (size_t i = 0; i < o->n; i++) {
		const struct outline_item *item = &o->items[i];
		size_t len = strlen(path);
		if (item->kind == OUTLINE_CLOSE) {
			char *dot = strrchr(path, '.');
			*(dot ? dot : path) = '\0';
			continue;
		}
		snprintf(path + len, sizeof(path) - len, "%s%s", len ? "." : "",
			spell(name, o, item->key));
		if (item->kind == OUTLINE_OPEN)
			continue;
		json_number_text(
			value, sizeof(value), item->number, item->kind == OUTLINE_REAL ? 9 : 0);
		rows_own_text(out, path);
		str_add(out, ",");
		rows_own_text(out, item->kind == OUTLINE_TEXT ? item->text : value);
		str_add(out, "\r\n");
		path[len] = '\0';
	}
	out->failed |= o->failed;
}

#define COUNT(array) (sizeof(array) / sizeof(array[0]))
/* Margin that is added to the measured values. */
#define MARGIN 0.2
/* Memory below 10 GiB is rounded up to a multiple of this. */
enum { STEP_MIB = 100 };
/* The unit of CPU time. */
#define TICK_S 0.01

/* Figures that gpu-tracker does not have: groups of members of struct track_result. */
#define OF(member) offsetof(struct track_result, member)
static const struct figure {
	enum outline_kind kind;
	const char *key, *label;
	size_t of;
} cpu_figures[] = {
	{ OUTLINE_REAL, "user_seconds", "User seconds", OF(user_s[TRACK_COMBINED]) },
	{ OUTLINE_REAL, "system_seconds", "System seconds", OF(system_s[TRACK_COMBINED]) },
}, io_figures[] = {
	{ OUTLINE_COUNT, "read_bytes", "Read bytes", OF(read_bytes) },
	{ OUTLINE_COUNT, "written_bytes", "Written bytes", OF(written_bytes) },
	{ OUTLINE_COUNT, "minor_faults", "Minor page faults", OF(minor_faults) },
	{ OUTLINE_COUNT, "major_faults", "Major page faults", OF(major_faults) },
	{ OUTLINE_COUNT, "voluntary_switches", "Voluntary context switches",
		OF(voluntary_switches) },
	{ OUTLINE_COUNT, "involuntary_switches", "Involuntary context switches",
		OF(involuntary_switches) },
}, gpu_figures[] = {
	{ OUTLINE_REAL, "active_seconds", "Active seconds", OF(gpu_active_s) },
	{ OUTLINE_REAL, "idle_held_seconds", "Idle-held seconds", OF(gpu_idle_held_s) },
	{ OUTLINE_REAL, "energy_joules", "Energy of the cards (J)", OF(energy_j) },
	{ OUTLINE_REAL, "tree_energy_joules", "Energy by share of use (J)", OF(tree_energy_j) },
	{ OUTLINE_COUNT, "context_bytes", "Bare context in the memory peak (bytes)",
		OF(gpu_context_bytes) },
};
#undef OF

/* Adds the figures to the open group, and closes it. */
static void add_figures(
	struct outline *o, const struct track_result *r, const struct figure *figures, size_t n)
{
	for (const struct figure *f = figures; f < figures + n; f++) {
		int64_t count;
		memcpy(&count, (const char *)r + f->of, sizeof(count));
		if (f->kind == OUTLINE_COUNT)
			outline_count(o, f->key, f->label, count);
		else
			outline_real(o, f->key, f->label, table_get_double(r, f->of).number);
	}
	outline_close(o);
}

/* Swap, I/O, faults, switches, processes, exit status, GPU time and energy. */
static void add_more(
	struct outline *o, const struct track_result *r, const struct track_style *style)
{
	int64_t swap = r->ram[TRACK_COMBINED].swap_bytes;
	bool ended = r->exited && r->exit_status != -1;
	const struct track_unit *unit = track_size_unit(style->ram_unit, (double)swap);
	outline_open(o, "cpu_time", "CPU time");
	add_figures(o, r, cpu_figures, COUNT(cpu_figures));
	outline_open(o, "max_swap", "Max swap");
	outline_text(o, "unit", "Unit", unit->name);
	outline_real(o, "combined", "Combined", swap < 0 ? NAN : (double)swap * unit->factor);
	outline_close(o);
	outline_open(o, "allocation", "Allocation");
	outline_count(o, "cores", "Cores", r->core_limit);
	outline_count(o, "memory_bytes", "Memory (bytes)", r->ram_limit_bytes);
	outline_close(o);
	outline_open(o, "io", "I/O");
	add_figures(o, r, io_figures, COUNT(io_figures));
	outline_open(o, "processes", "Processes");
	outline_count(o, "seen", "Seen", r->processes_seen);
	outline_count(o, "peak_alive", "Peak alive", r->processes_peak);
	outline_count(o, "samples", "Samples", r->samples);
	if (ended && WIFSIGNALED(r->exit_status))
		outline_count(o, "exit_signal", "Exit signal", WTERMSIG(r->exit_status));
	else
		outline_count(o, "exit_status", "Exit status",
			ended ? WEXITSTATUS(r->exit_status) : -1);
	outline_close(o);
	if (r->gpu_known) {
		outline_open(o, "gpu_time", "GPU time");
		add_figures(o, r, gpu_figures, COUNT(gpu_figures));
	}
	if (r->gpu_note[0])
		outline_text(o, "gpu_note", "GPU note", r->gpu_note);
}

/* The cards that the tree had memory on or used: how many, and their memory. */
struct used {
	size_t n;
	int64_t bytes; /* -1 unknown */
};

static struct used used_cards(const struct track_result *r)
{
	struct used used = { 0 };
	for (size_t i = 0; i < r->n_cards; i++) {
		const struct track_card *c = &r->cards[i];
		int64_t bytes = c->id.mem_total_bytes;
		if (c->max_tree_bytes <= 0 && !(c->active_s > 0))
			continue;
		used.n++;
		used.bytes = used.bytes < 0 || bytes < 0 ? -1 : used.bytes + bytes;
	}
	return used;
}

/* Rounds up to a whole number of steps, at least one. */
static long long in_steps(double value, long long step)
{
	long long steps = (long long)ceil(value / (double)step);
	return steps < 1 ? step : steps * step;
}

/* The memory that the tree's job is charged for; -1 if a process could not be read, because the
 * sum would be too small. */
static int64_t memory_of_all(const struct track_result *r)
{
	for (size_t i = 0; i < r->n_processes; i++)
		if (r->processes[i].unreadable)
			return -1;
	return r->ram_charged_bytes;
}

/* A run that failed, or that was seen only in part, may have needed less than a complete
 * one. */
static const char *basis_of(const struct track_result *r, const struct track_style *style)
{
	if (r->use_instead[0])
		return r->use_instead;
	if (r->launched)
		return "from 1 run, with the job's tasks on this host";
	if (style->followed)
		return "from a part of 1 run";
	return r->exited && r->exit_status == 0 ? "from 1 run" : "from 1 run, which failed";
}

void track_advise(struct track_advice *advice, const struct track_result *r,
	const struct track_style *style)
{
	size_t gpus = used_cards(r).n;
	/* The cores of the busiest interval. CPU time is counted in ticks of 10 ms: in a run of
	 * a few milliseconds, one or two of them would look like several cores. */
	double cores = r->cpu[TRACK_COMBINED].max_sum_pct / 100;
	double doubt = r->elapsed_s < 1 ? 2 * TICK_S / r->elapsed_s : 0;
	double sure = ceil(cores - doubt - 0.1);
	*advice = (struct track_advice){ .cpus = sure > 1 ? (int64_t)sure : 1, .gres = "none" };
	snprintf(advice->basis, sizeof(advice->basis), "%s", basis_of(r, style));
	if (r->use_instead[0]) {
		advice->cpus = -1;
		return;
	}
	/* Memory with its margin, in steps of 100 MiB, above 10 GiB of 1 GiB; empty if it is
	 * unknown.
	 */
	int64_t bytes = memory_of_all(r);
	double mib = (double)bytes * (1 + MARGIN) / (1 << 20);
	advice->mem[0] = '\0';
	if (bytes >= 0) {
		if (mib <= 10 * 1024)
			snprintf(advice->mem, sizeof(advice->mem), "%lldM",
				in_steps(mib, STEP_MIB));
		else
			snprintf(advice->mem, sizeof(advice->mem), "%lldG",
				in_steps(mib / 1024, 1));
	}
	/* Slurm's HH:MM:SS, in steps of 5 minutes, above 1 h of 15 minutes. A job needs time
	 * for its own start too. */
	double wanted = r->elapsed_s * (1 + MARGIN) / 60;
	long long minutes = in_steps(wanted, wanted <= 60 ? 5 : 15);
	snprintf(advice->time, sizeof(advice->time), "%02lld:%02lld:00", minutes / 60,
		minutes % 60);
	if (gpus)
		snprintf(advice->gres, sizeof(advice->gres), "gpu:%zu", gpus);
	snprintf(advice->command, sizeof(advice->command),
		"%s%s%s--cpus-per-task=%lld%s%s --time=%s", advice->mem[0] ? "--mem=" : "",
		advice->mem, advice->mem[0] ? " " : "", (long long)advice->cpus,
		gpus ? " --gres=" : "", gpus ? advice->gres : "", advice->time);
	snprintf(advice->margin, sizeof(advice->margin),
		"memory and time are the measured values plus %.0f %%, rounded up; CPUs are "
		"those of the busiest interval",
		MARGIN * 100);
}

/* A text, or unknown if it is empty. */
static void add_known(struct outline *o, const char *key, const char *label, const char *text)
{
	if (*text)
		outline_text(o, key, label, text);
	else
		outline_real(o, key, label, NAN);
}

/* The bytes at `of`, in KiB. */
static struct cell get_bytes(const void *row, size_t of)
{
	struct cell bytes = table_get_known(row, of);
	return table_number(bytes.number / 1024);
}

/* The seconds or joules at `of`, in thousandths. */
static struct cell get_milli(const void *row, size_t of)
{
	struct cell whole = table_get_double(row, of);
	return table_number(whole.number * 1000);
}

/* The rows of cards are struct track_card with the label. */
struct track_card_row {
	struct track_card card;
	char label[32];
	const char *status;
};

#define OF(member) offsetof(struct track_card_row, member)
#define BYTES(member) VALUE(KIB, get_bytes, OF(member))
#define SECONDS(member) VALUE(MS, get_milli, OF(member))
static const struct column card_columns[] = {
	{ "index", "gpu", CHARS(label) },
	{ "uuid", CHARS(card.id.uuid) },
	{ "name", "name", CHARS(card.id.name), .flexible = true },
	{ "max_used_bytes", "card mem", BYTES(card.max_used_bytes), .width = 8 },
	{ "max_tree_bytes", "tree mem", BYTES(card.max_tree_bytes), .width = 8 },
	{ "mean_util_pct", "util", NUMBER(PCT, card.mean_util_pct), .width = 6 },
	{ "mean_tree_pct", "tree", NUMBER(PCT, card.mean_tree_pct), .width = 6 },
	{ "active_seconds", "active s", SECONDS(card.active_s), .width = 8 },
	{ "idle_held_seconds", "held s", SECONDS(card.idle_held_s), .width = 7 },
	{ "max_util_pct", NUMBER(PCT, card.max_util_pct) },
	{ "max_tree_pct", NUMBER(PCT, card.max_tree_pct) },
	{ "energy_joules", VALUE(MJ, get_milli, OF(card.energy_j)) },
	{ "tree_energy_joules", VALUE(MJ, get_milli, OF(card.tree_energy_j)) },
	{ "status", STRING(status) },
};
#undef OF

static struct table make_cards(const struct track_result *r)
{
	struct table t = TABLE_OF(card_columns);
	for (size_t i = 0; i < r->n_cards; i++) {
		struct track_card_row row = { .card = r->cards[i],
			.status = card_status_names[r->cards[i].status] };
		str_copy(row.label, sizeof(row.label), card_label(&row.card.id).text);
		table_add(&t, &row);
	}
	return t;
}

/* A row of the process table: one process, or the sum of all processes without a row. */
struct track_process_row {
	int64_t pid;		  /* -1: not one process */
	double ppid, max_threads; /* NAN: not one process */
	const char *command;
	double cpu_s;
	struct track_process process;
	char user[256];
};

#define OF(member) offsetof(struct track_process_row, member)
static const struct column process_columns[] = {
	{ "pid", "pid", KNOWN(COUNT, pid), .width = 7 },
	{ "ppid", NUMBER(COUNT, ppid) },
	{ "user", "user", CHARS(user), .width = -12 },
	{ "command", "command", STRING(command), .flexible = true },
	{ "cpu_seconds", "cpu s", SECONDS(cpu_s), .width = 8 },
	{ "max_total_bytes", "memory", BYTES(process.max_total_bytes), .width = 8 },
	{ "max_gpu_bytes", "gpu mem", BYTES(process.max_gpu_bytes), .width = 8 },
	{ "started_seconds", SECONDS(process.started_s) },
	{ "ended_seconds", SECONDS(process.ended_s) },
	{ "user_seconds", SECONDS(process.user_s) },
	{ "system_seconds", SECONDS(process.system_s) },
	{ "max_private_bytes", BYTES(process.max_private_bytes) },
	{ "max_rss_bytes", BYTES(process.max_rss_bytes) },
	{ "max_threads", NUMBER(COUNT, max_threads) },
};
#undef OF

/* Adds one row for all processes without a row; only their CPU time is known. */
static void add_others(struct table *t, const struct track_result *r)
{
	char command[64];
	const struct track_process *o = &r->others;
	struct track_process_row row = {
		.pid = -1,
		.ppid = NAN,
		.max_threads = NAN,
		.command = command,
		.cpu_s = o->user_s + o->system_s,
		.process = { .user_s = o->user_s,
			.system_s = o->system_s,
			.started_s = NAN,
			.ended_s = NAN,
			.max_total_bytes = -1,
			.max_private_bytes = -1,
			.max_rss_bytes = -1,
			.max_gpu_bytes = -1 },
	};
	snprintf(command, sizeof(command), "(%lld others)", (long long)r->n_others);
	table_add(t, &row);
}

/* With user names from `users`; without names if it is NULL. */
static struct table make_processes(const struct track_result *r, struct user_names *users)
{
	struct table t = TABLE_OF(process_columns);
	for (size_t i = 0; i < r->n_processes; i++) {
		const struct track_process *p = &r->processes[i];
		struct track_process_row row = { .pid = p->id.pid,
			.ppid = (double)p->ppid,
			.max_threads = (double)p->max_threads,
			.command = p->id.command,
			.cpu_s = p->user_s + p->system_s,
			.process = *p };
		if (users && p->id.uid >= 0)
			user_names_get(
				users, (uint32_t)p->id.uid, 0, row.user, sizeof(row.user));
		table_add(&t, &row);
	}
	if (r->n_others)
		add_others(&t, r);
	return t;
}

static void print_table(struct str *out, const char *title, struct table t)
{
	struct text_style style = { .columns = 80, .ascii = true };
	if (t.n_rows) {
		str_addf(out, "%s:\n", title);
		text_add_table(out, &t, &style);
	}
	out->failed |= t.failed;
	table_finish(&t);
}

/* The beginning of a line of the short text. */
#define LABEL "%-12s"

static struct brief size_in(int64_t bytes, const char *unit)
{
	const struct track_unit *u = track_size_unit(unit, (double)bytes);
	if (bytes < 0)
		return str_brief("unknown");
	return strcmp(unit, "auto") == 0
		       ? size_text((double)bytes)
		       : str_brief("%.3f %s", (double)bytes * u->factor, u->name);
}

/* "1.02 s", "12 min 5 s", "3 h 20 min". */
static struct brief time_in(double seconds, const char *unit)
{
	const struct track_unit *u = track_time_unit(unit, seconds);
	long long whole = isnan(seconds) ? 0 : (long long)seconds;
	if (isnan(seconds))
		return str_brief("unknown");
	if (strcmp(unit, "auto") != 0)
		return str_brief("%.3f %s", seconds * u->factor, u->name);
	if (seconds < 60)
		return str_brief("%.2f s", seconds);
	return seconds < 3600 ? str_brief("%lld min %lld s", whole / 60, whole % 60)
			      : duration_text(whole * 1000);
}

/* By a tenth, and by more than Slurm's options are rounded to. */
static bool is_much_more(int64_t bytes, int64_t than_bytes)
{
	return bytes - than_bytes > STEP_MIB * (1 << 20) &&
	       bytes - than_bytes > than_bytes / 10;
}

static void say_cpu_and_ram(
	struct str *out, const struct track_result *r, const struct track_style *style)
{
	const struct track_cpu *cpu = &r->cpu[TRACK_COMBINED];
	const struct track_ram *ram = &r->ram[TRACK_COMBINED];
	double cpu_s = r->user_s[TRACK_COMBINED] + r->system_s[TRACK_COMBINED];
	int64_t all = r->ram_limit_bytes >= 0 ? r->ram_limit_bytes : r->ram_capacity_bytes;
	str_addf(out, LABEL "%s; %.2f cores on average, %.2f at most, of %lld\n", "CPU",
		time_in(cpu_s, style->time_unit).text, cpu->mean_sum_pct / 100,
		cpu->max_sum_pct / 100, (long long)r->expected_cores);
	if (ram->total_bytes < 0)
		str_addf(out, LABEL "unknown", "RAM");
	else
		str_addf(out, LABEL "%s at most, of %s", "RAM",
			size_in(ram->total_bytes, style->ram_unit).text,
			size_in(all, style->ram_unit).text);
	/* Why --mem is much more than this line says. */
	if (ram->total_bytes >= 0 && is_much_more(r->ram_charged_bytes, ram->total_bytes))
		str_addf(out, "; %s with shared files whole",
			size_in(r->ram_charged_bytes, style->ram_unit).text);
	if (ram->swap_bytes > 0)
		str_addf(out, "; swap %s at most",
			size_in(ram->swap_bytes, style->ram_unit).text);
	str_add(out, "\n");
}

/* Returns why there are no numbers of cards; NULL: there are. */
static const char *why_no_gpu(const struct track_result *r, const struct used *used)
{
	if (!r->gpu_known)
		return r->gpu_note[0] ? "unknown" : "not read";
	if (r->gpu_ram[TRACK_COMBINED] < 0 || isnan(r->gpu_active_s))
		return NULL;
	return used->n ? NULL : "none";
}

static void say_gpu(
	struct str *out, const struct track_result *r, const struct track_style *style)
{
	struct used used = used_cards(r);
	const char *why = why_no_gpu(r, &used);
	if (why) {
		/* Two lines without numbers, and why. The full explanation of the note is shown
		 * with -v. */
		str_addf(out, LABEL "%s", "GPU memory", why);
		if (!r->gpu_known && r->gpu_note[0]) {
			const char *aside = strstr(r->gpu_note, " (");
			size_t len = strcspn(r->gpu_note, ";");
			if (aside && aside < r->gpu_note + len)
				len = (size_t)(aside - r->gpu_note);
			str_addf(out, ": %.*s", (int)len, r->gpu_note);
		} else if (r->gpu_known && r->use_instead[0]) {
			str_add(out, " in this process tree");
		} else if (r->gpu_known) {
			str_addf(out, ": no card was used; this host has %lld",
				(long long)r->gpu_count);
		}
		str_addf(out, "\n" LABEL "%s\n", "GPU time", why);
		return;
	}
	struct brief most = size_in(r->gpu_ram[TRACK_COMBINED], style->gpu_ram_unit);
	str_addf(out, LABEL, "GPU memory");
	if (r->gpu_ram[TRACK_COMBINED] < 0)
		str_add(out, "unknown: the driver does not report it");
	else if (used.n)
		str_addf(out, "%s at most, of %s on %zu card%s", most.text,
			size_in(used.bytes, style->gpu_ram_unit).text, used.n,
			used.n == 1 ? "" : "s");
	else
		str_add(out, most.text);
	str_addf(out, "\n" LABEL "active %s, idle-held %s\n", "GPU time",
		time_in(r->gpu_active_s, style->time_unit).text,
		time_in(r->gpu_idle_held_s, style->time_unit).text);
}

static void short_text(
	struct str *out, const struct track_result *r, const struct track_style *style)
{
	struct track_advice advice;
	str_addf(out, LABEL "%s", "Time", time_in(r->elapsed_s, style->time_unit).text);
	if (!r->exited)
		str_add(out, "; still running\n");
	else if (r->exit_status == -1)
		str_add(out, "\n");
	else if (WIFSIGNALED(r->exit_status))
		str_addf(out, "; killed by signal %d (%s)\n", WTERMSIG(r->exit_status),
			strsignal(WTERMSIG(r->exit_status)));
	else
		str_addf(out, "; exit status %d\n", WEXITSTATUS(r->exit_status));
	say_cpu_and_ram(out, r, style);
	say_gpu(out, r, style);
	if (!style->advice)
		return;
	track_advise(&advice, r, style);
	if (r->use_instead[0])
		str_addf(out, LABEL "no advice: %s\n", "Slurm", r->use_instead);
	else
		str_addf(out, LABEL "%s (%s)\n", "Slurm", advice.command, advice.basis);
}

static const struct track_unit sizes[] = {
	{ "bytes", 1 },
	{ "kilobytes", 1e-3 },
	{ "megabytes", 1e-6 },
	{ "gigabytes", 1e-9 },
	{ "terabytes", 1e-12 },
	{ "kibibytes", 1.0 / 1024 },
	{ "mebibytes", 1.0 / (1 << 20) },
	{ "gibibytes", 1.0 / (1 << 30) },
	{ "tebibytes", 1.0 / (1LL << 40) },
};
enum { DECIMAL_SIZES = 5, SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static const struct track_unit times[] = {
	{ "seconds", 1 },
	{ "minutes", 1.0 / 60 },
	{ "hours", 1.0 / 3600 },
	{ "days", 1.0 / 86400 },
};
enum { TIMES = sizeof(times) / sizeof(times[0]) };

/* Finds a unit by name. For "auto": the largest of the first `choices` units in which `value`
 * is at least 1. */
static const struct track_unit *find_unit(const struct track_unit *units, size_t n,
	size_t choices, const char *name, double value)
{
	size_t best = 0;
	if (strcmp(name, "auto") == 0) {
		for (size_t i = 0; i < choices; i++)
			if (value * units[i].factor >= 1)
				best = i;
		return &units[best];
	}
	for (size_t i = 0; i < n; i++)
		if (strcmp(units[i].name, name) == 0)
			return &units[i];
	return NULL;
}

const struct track_unit *track_size_unit(const char *name, double value)
{
	return find_unit(sizes, SIZES, DECIMAL_SIZES, name, value);
}

static void add_units(struct str *out, const struct track_unit *units, size_t n)
{
	str_add(out, "auto ");
	for (size_t i = 0; i < n; i++)
		str_addf(out, "%s ", units[i].name);
}

void track_sizes(struct str *out)
{
	add_units(out, sizes, SIZES);
}

void track_times(struct str *out)
{
	add_units(out, times, TIMES);
}

const struct track_unit *track_time_unit(const char *name, double value)
{
	return find_unit(times, TIMES, TIMES, name, value);
}

/* Converts bytes to a unit; unknown stays unknown. */
static double in_unit(int64_t bytes, const struct track_unit *unit)
{
	return bytes < 0 ? NAN : (double)bytes * unit->factor;
}

static const struct group_name {
	const char *key, *label, *threads_key, *threads_label;
} groups[TRACK_GROUPS] = {
	[TRACK_MAIN] = { "main", "Main", "main_n_threads", "Main number of threads" },
	[TRACK_DESCENDANTS] = { "descendants", "Descendants", "descendants_n_threads",
		"Descendants number of threads" },
	[TRACK_COMBINED] = { "combined", "Combined", "combined_n_threads",
		"Combined number of threads" },
};

static void add_ram(
	struct outline *o, const struct track_result *r, const struct track_style *style)
{
	int64_t most = r->ram[TRACK_COMBINED].total_bytes;
	const struct track_unit *unit = track_size_unit(style->ram_unit, (double)most);
	outline_open(o, "max_ram", "Max RAM");
	outline_text(o, "unit", "Unit", unit->name);
	outline_real(
		o, "system_capacity", "System capacity", in_unit(r->ram_capacity_bytes, unit));
	outline_real(o, "system", "System", in_unit(r->ram_system_max_bytes, unit));
	for (size_t g = 0; g < TRACK_GROUPS; g++) {
		const struct track_ram *ram = &r->ram[g];
		outline_open(o, groups[g].key, groups[g].label);
		outline_real(o, "total_rss", "Total RSS", in_unit(ram->total_bytes, unit));
		outline_real(
			o, "private_rss", "Private RSS", in_unit(ram->private_bytes, unit));
		outline_real(o, "shared_rss", "Shared RSS", in_unit(ram->shared_bytes, unit));
		outline_close(o);
	}
	outline_close(o);
}

static void add_gpu_ram(
	struct outline *o, const struct track_result *r, const struct track_style *style)
{
	int64_t most = r->gpu_ram[TRACK_COMBINED] > 0 ? r->gpu_ram[TRACK_COMBINED]
						      : r->gpu_system_max_bytes;
	const struct track_unit *unit = track_size_unit(style->gpu_ram_unit, (double)most);
	outline_open(o, "max_gpu_ram", "Max GPU RAM");
	outline_text(o, "unit", "Unit", unit->name);
	outline_real(
		o, "system_capacity", "System capacity", in_unit(r->gpu_capacity_bytes, unit));
	outline_real(o, "system", "System", in_unit(r->gpu_system_max_bytes, unit));
	for (size_t g = 0; g < TRACK_GROUPS; g++)
		outline_real(o, groups[g].key, groups[g].label, in_unit(r->gpu_ram[g], unit));
	outline_close(o);
}

/* Adds the four percentages; hardware percent is divided by `parts` cores or cards. */
static void add_percentages(struct outline *o, const char *key, const char *label,
	const struct track_cpu *use, int64_t parts)
{
	double n = parts > 0 ? (double)parts : NAN;
	outline_open(o, key, label);
	outline_real(o, "max_sum_percent", "Max sum percent", use->max_sum_pct);
	outline_real(o, "max_hardware_percent", "Max hardware percent", use->max_sum_pct / n);
	outline_real(o, "mean_sum_percent", "Mean sum percent", use->mean_sum_pct);
	outline_real(
		o, "mean_hardware_percent", "Mean hardware percent", use->mean_sum_pct / n);
	outline_close(o);
}

static void make_outline(struct outline *o, const struct track_result *r,
	const struct track_style *style, struct track_advice *advice)
{
	const struct track_unit *unit = track_time_unit(style->time_unit, r->elapsed_s);
	if (style->legacy_spelling) {
		o->replace[0] = "descendants";
		o->replace[1] = "descendents";
	}
	add_ram(o, r, style);
	add_gpu_ram(o, r, style);
	outline_open(o, "cpu_utilization", "CPU utilization");
	outline_count(o, "system_core_count", "System core count", r->core_count);
	outline_count(o, "n_expected_cores", "Number of expected cores", r->expected_cores);
	add_percentages(o, "system", "System", &r->cpu_system, r->core_count);
	for (size_t g = 0; g < TRACK_GROUPS; g++)
		add_percentages(
			o, groups[g].key, groups[g].label, &r->cpu[g], r->expected_cores);
	for (size_t g = 0; g < TRACK_GROUPS; g++)
		outline_count(
			o, groups[g].threads_key, groups[g].threads_label, r->max_threads[g]);
	outline_close(o);
	outline_open(o, "gpu_utilization", "GPU utilization");
	outline_count(o, "system_gpu_count", "System GPU count", r->gpu_count);
	outline_count(o, "n_expected_gpus", "Number of expected GPUs", r->expected_gpus);
	add_percentages(
		o, "gpu_percentages", "GPU percentages", &r->gpu_util, r->expected_gpus);
	outline_close(o);
	outline_open(o, "compute_time", "Compute time");
	outline_text(o, "unit", "Unit", unit->name);
	outline_real(o, "time", "Time", r->elapsed_s * unit->factor);
	outline_close(o);
	add_more(o, r, style);
	if (style->advice) {
		track_advise(advice, r, style);
		outline_open(o, "slurm_advice", "Slurm advice");
		add_known(o, "options", "Options", advice->command);
		add_known(o, "mem", "Mem", advice->mem);
		outline_count(o, "cpus_per_task", "CPUs per task", advice->cpus);
		add_known(o, "gres", "Gres", advice->cpus < 0 ? "" : advice->gres);
		add_known(o, "time", "Time", advice->time);
		add_known(o, "margin", "Margin", advice->margin);
		outline_count(o, "charged_bytes", "Charged memory (bytes)",
			r->use_instead[0] ? -1 : memory_of_all(r));
		outline_count(o, "runs", "Runs", 1);
		outline_text(o, "basis", "Basis", advice->basis);
		outline_close(o);
	}
}

void track_render(
	struct str *out, const struct track_result *r, const struct track_style *style)
{
	struct outline o = { 0 };
	struct track_advice advice = { 0 };
	make_outline(&o, r, style, &advice);
	if (style->format == TRACK_JSON) {
		struct json j = { .out = out, .lines = 4 };
		struct table cards = make_cards(r), processes = { 0 };
		json_open(&j, NULL, '{');
		outline_print_json(&j, &o); /* first, in gpu-tracker's order */
		json_text(&j, "schema", "gua-track-1");
		rows_json_table(&j, "cards", &cards);
		if (style->processes) {
			processes = make_processes(r, style->users);
			rows_json_table(&j, "process_table", &processes);
		}
		json_close(&j, '}');
		str_add(out, "\n");
		table_finish(&cards);
		table_finish(&processes);
	} else if (style->format == TRACK_CSV) {
		outline_print_csv(out, &o);
	} else {
		if (style->verbose) {
			outline_print_text(out, &o);
			print_table(out, "Cards", make_cards(r));
		} else {
			short_text(out, r, style);
		}
		if (style->processes)
			print_table(out, "Process table", make_processes(r, style->users));
	}
	outline_finish(&o);
}

static void add_size(struct str *out, const char *label, int64_t bytes)
{
	if (bytes >= 0)
		str_addf(out, "  %s %s", label, size_text((double)bytes).text);
}

void track_progress(struct str *out, const struct track_sample *s, int columns)
{
	struct str line = { 0 };
	str_addf(&line, "%.0f s  CPU %.0f%%", s->elapsed_s, s->cpu_pct[TRACK_COMBINED]);
	add_size(&line, "RAM", s->ram_bytes[TRACK_COMBINED]);
	add_size(&line, "GPU memory", s->gpu_ram_bytes[TRACK_COMBINED]);
	if (!isnan(s->gpu_sum_pct))
		str_addf(&line, "  GPU %.0f%%", s->gpu_sum_pct);
	str_addf(&line, "  %lld process%s", (long long)s->processes,
		s->processes == 1 ? "" : "es");
	size_t len = columns > 0 && line.len > (size_t)columns ? (size_t)columns : line.len;
	str_add_bytes(out, str_text(&line), len);
	str_finish(&line);
}
