/* Prints the values that gpu-tracker does not have: more about what the tree used, and the
 * Slurm options for the next run. */
#include "render/track_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "render/rows.h"
#include "render/text.h"

#define COUNT(array) (sizeof(array) / sizeof(array[0]))
/* Margin that is added to the measured values. */
#define MARGIN 0.2
/* The unit of CPU time. */
#define TICK_S 0.01

static void add_processes(struct outline *o, const struct track_result *r)
{
	outline_open(o, "processes", "Processes");
	outline_count(o, "seen", "Seen", r->processes_seen);
	outline_count(o, "peak_alive", "Peak alive", r->processes_peak);
	outline_count(o, "samples", "Samples", r->samples);
	if (r->exited && r->exit_status != -1 && WIFSIGNALED(r->exit_status))
		outline_count(o, "exit_signal", "Exit signal", WTERMSIG(r->exit_status));
	else
		outline_count(o, "exit_status", "Exit status",
			r->exited && r->exit_status != -1 ? WEXITSTATUS(r->exit_status) : -1);
	outline_close(o);
}

static void add_io(struct outline *o, const struct track_result *r)
{
	outline_open(o, "io", "I/O");
	outline_count(o, "read_bytes", "Read bytes", r->read_bytes);
	outline_count(o, "written_bytes", "Written bytes", r->written_bytes);
	outline_count(o, "minor_faults", "Minor page faults", r->minor_faults);
	outline_count(o, "major_faults", "Major page faults", r->major_faults);
	outline_count(
		o, "voluntary_switches", "Voluntary context switches", r->voluntary_switches);
	outline_count(o, "involuntary_switches", "Involuntary context switches",
		r->involuntary_switches);
	outline_close(o);
}

static void add_gpu_time(struct outline *o, const struct track_result *r)
{
	outline_open(o, "gpu_time", "GPU time");
	outline_real(o, "active_seconds", "Active seconds", r->gpu_active_s);
	outline_real(o, "idle_held_seconds", "Idle-held seconds", r->gpu_idle_held_s);
	outline_real(o, "energy_joules", "Energy of the cards (J)", r->energy_j);
	outline_real(o, "tree_energy_joules", "Energy by share of use (J)", r->tree_energy_j);
	outline_count(o, "context_bytes", "Bare context in the memory peak (bytes)",
		r->gpu_context_bytes);
	outline_close(o);
	if (r->gpu_note[0])
		outline_text(o, "gpu_note", "GPU note", r->gpu_note);
}

void track_add_more(
	struct outline *o, const struct track_result *r, const struct track_style *style)
{
	int64_t swap = r->ram[TRACK_COMBINED].swap_bytes;
	const struct track_unit *unit = track_size_unit(style->ram_unit, (double)swap);
	outline_open(o, "cpu_time", "CPU time");
	outline_real(o, "user_seconds", "User seconds", r->user_s[TRACK_COMBINED]);
	outline_real(o, "system_seconds", "System seconds", r->system_s[TRACK_COMBINED]);
	outline_close(o);
	outline_open(o, "max_swap", "Max swap");
	outline_text(o, "unit", "Unit", unit->name);
	outline_real(o, "combined", "Combined", swap < 0 ? NAN : (double)swap * unit->factor);
	outline_close(o);
	add_io(o, r);
	add_processes(o, r);
	if (r->gpu_known)
		add_gpu_time(o, r);
	else if (r->gpu_note[0])
		outline_text(o, "gpu_note", "GPU note", r->gpu_note);
}

bool track_card_is_used(const struct track_card *c)
{
	return c->max_tree_bytes > 0 || c->active_s > 0;
}

static size_t cards_used(const struct track_result *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n_cards; i++)
		n += track_card_is_used(&r->cards[i]);
	return n;
}

/* Rounds up to a whole number of steps, at least one. */
static long long in_steps(double value, long long step)
{
	long long steps = (long long)ceil(value / (double)step);
	return steps < 1 ? step : steps * step;
}

/* Slurm's HH:MM:SS, in steps of 5 minutes, above 1 h of 15 minutes. A job needs time for its
 * own start too. */
static void slurm_time(char *dst, size_t cap, double seconds)
{
	double wanted = seconds / 60;
	long long minutes = in_steps(wanted, wanted <= 60 ? 5 : 15);
	snprintf(dst, cap, "%02lld:%02lld:00", minutes / 60, minutes % 60);
}

/* The tree's memory; -1 if a process could not be read, because the sum would be too small. */
static int64_t memory_of_all(const struct track_result *r)
{
	for (size_t i = 0; i < r->n_processes; i++)
		if (r->processes[i].unreadable)
			return -1;
	return r->ram[TRACK_COMBINED].total_bytes;
}

/* Memory with its margin, in steps of 100 MiB, above 10 GiB of 1 GiB; empty if it is unknown.
 */
static void slurm_mem(char *dst, size_t cap, int64_t bytes)
{
	double mib = (double)bytes * (1 + MARGIN) / (1 << 20);
	dst[0] = '\0';
	if (bytes < 0)
		return;
	if (mib <= 10 * 1024)
		snprintf(dst, cap, "%lldM", in_steps(mib, 100));
	else
		snprintf(dst, cap, "%lldG", in_steps(mib / 1024, 1));
}

/* The cores of the busiest interval. CPU time is counted in ticks of 10 ms: in a run of a few
 * milliseconds, one or two of them would look like several cores. */
static int64_t slurm_cpus(const struct track_result *r)
{
	double cores = r->cpu[TRACK_COMBINED].max_sum_pct / 100;
	double doubt = r->elapsed_s < 1 ? 2 * TICK_S / r->elapsed_s : 0;
	double sure = ceil(cores - doubt - 0.1);
	return sure > 1 ? (int64_t)sure : 1;
}

/* A run that failed, or of which only a part was seen, may need less than a whole one. */
static const char *basis_of(const struct track_result *r, const struct track_style *style)
{
	if (style->followed)
		return "from a part of 1 run";
	return r->exited && r->exit_status == 0 ? "from 1 run" : "from 1 run, which failed";
}

void track_advise(struct track_advice *advice, const struct track_result *r,
	const struct track_style *style)
{
	size_t gpus = cards_used(r);
	*advice = (struct track_advice){ .cpus = slurm_cpus(r), .gres = "none" };
	slurm_mem(advice->mem, sizeof(advice->mem), memory_of_all(r));
	slurm_time(advice->time, sizeof(advice->time), r->elapsed_s * (1 + MARGIN));
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
	snprintf(advice->basis, sizeof(advice->basis), "%s", basis_of(r, style));
}

void track_add_advice(struct outline *o, const struct track_result *r,
	const struct track_style *style, struct track_advice *advice)
{
	track_advise(advice, r, style);
	outline_open(o, "slurm_advice", "Slurm advice");
	outline_text(o, "options", "Options", advice->command);
	if (advice->mem[0])
		outline_text(o, "mem", "Mem", advice->mem);
	else
		outline_real(o, "mem", "Mem", NAN);
	outline_count(o, "cpus_per_task", "CPUs per task", advice->cpus);
	outline_text(o, "gres", "Gres", advice->gres);
	outline_text(o, "time", "Time", advice->time);
	outline_text(o, "margin", "Margin", advice->margin);
	outline_count(o, "runs", "Runs", 1);
	outline_text(o, "basis", "Basis", advice->basis);
	outline_close(o);
}

/* The bytes at `of`, in KiB. */
static struct cell get_bytes(const void *row, size_t of)
{
	struct cell bytes = get_known(row, of);
	return cell_number(bytes.number / 1024);
}

/* The seconds or joules at `of`, in thousandths. */
static struct cell get_milli(const void *row, size_t of)
{
	struct cell whole = get_double(row, of);
	return cell_number(whole.number * 1000);
}

/* The rows of cards are struct track_card with the label. */
struct track_card_row {
	struct track_card card;
	char label[32];
};

static struct cell card_status(const void *row, size_t of)
{
	(void)of;
	return cell_text(card_status_names[((const struct track_card_row *)row)->card.status]);
}

#define OF(member) offsetof(struct track_card_row, member)
#define TEXT(getter, member) .kind = COLUMN_TEXT, .get = getter, .of = member
#define VALUE(unit, getter, member) .kind = COLUMN_##unit, .get = getter, .of = member
static const struct column card_columns[] = {
	{ .key = "index", .title = "gpu", TEXT(get_chars, OF(label)) },
	{ .key = "uuid", TEXT(get_chars, OF(card.id.uuid)) },
	{ .key = "name", .title = "name", .flexible = true, TEXT(get_chars, OF(card.id.name)) },
	{ .key = "max_used_bytes",
		.title = "card mem",
		.width = 8,
		VALUE(KIB, get_bytes, OF(card.max_used_bytes)) },
	{ .key = "max_tree_bytes",
		.title = "tree mem",
		.width = 8,
		VALUE(KIB, get_bytes, OF(card.max_tree_bytes)) },
	{ .key = "mean_util_pct",
		.title = "util",
		.width = 6,
		VALUE(PCT, get_double, OF(card.mean_util_pct)) },
	{ .key = "mean_tree_pct",
		.title = "tree",
		.width = 6,
		VALUE(PCT, get_double, OF(card.mean_tree_pct)) },
	{ .key = "active_seconds",
		.title = "active s",
		.width = 8,
		VALUE(MS, get_milli, OF(card.active_s)) },
	{ .key = "idle_held_seconds",
		.title = "held s",
		.width = 7,
		VALUE(MS, get_milli, OF(card.idle_held_s)) },
	{ .key = "max_util_pct", VALUE(PCT, get_double, OF(card.max_util_pct)) },
	{ .key = "max_tree_pct", VALUE(PCT, get_double, OF(card.max_tree_pct)) },
	{ .key = "energy_joules", VALUE(MJ, get_milli, OF(card.energy_j)) },
	{ .key = "tree_energy_joules", VALUE(MJ, get_milli, OF(card.tree_energy_j)) },
	{ .key = "status", TEXT(card_status, 0) },
};
#undef OF

static void make_cards(struct table *t, const struct track_result *r)
{
	*t = (struct table){ .columns = card_columns, .n_columns = COUNT(card_columns) };
	for (size_t i = 0; i < r->n_cards; i++) {
		struct track_card_row row = { .card = r->cards[i] };
		card_label(row.label, sizeof(row.label), &row.card.id);
		table_add(t, &row);
	}
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
	{ .key = "pid", .title = "pid", .width = 7, VALUE(COUNT, get_known, OF(pid)) },
	{ .key = "ppid", VALUE(COUNT, get_double, OF(ppid)) },
	{ .key = "user", .title = "user", .width = -12, TEXT(get_chars, OF(user)) },
	{ .key = "command",
		.title = "command",
		.flexible = true,
		TEXT(get_string, OF(command)) },
	{ .key = "cpu_seconds", .title = "cpu s", .width = 8, VALUE(MS, get_milli, OF(cpu_s)) },
	{ .key = "max_total_bytes",
		.title = "memory",
		.width = 8,
		VALUE(KIB, get_bytes, OF(process.max_total_bytes)) },
	{ .key = "max_gpu_bytes",
		.title = "gpu mem",
		.width = 8,
		VALUE(KIB, get_bytes, OF(process.max_gpu_bytes)) },
	{ .key = "started_seconds", VALUE(MS, get_milli, OF(process.started_s)) },
	{ .key = "ended_seconds", VALUE(MS, get_milli, OF(process.ended_s)) },
	{ .key = "user_seconds", VALUE(MS, get_milli, OF(process.user_s)) },
	{ .key = "system_seconds", VALUE(MS, get_milli, OF(process.system_s)) },
	{ .key = "max_private_bytes", VALUE(KIB, get_bytes, OF(process.max_private_bytes)) },
	{ .key = "max_rss_bytes", VALUE(KIB, get_bytes, OF(process.max_rss_bytes)) },
	{ .key = "max_threads", VALUE(COUNT, get_double, OF(max_threads)) },
};
#undef OF

/* The name of a process' user, escaped; empty when it is not known. */
static void find_user(
	char *dst, size_t cap, const struct process_id *id, struct user_names *users)
{
	dst[0] = '\0';
	if (users && id->uid >= 0)
		user_names_get(users, (uint32_t)id->uid, 0, dst, cap);
}

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

static void make_processes(
	struct table *t, const struct track_result *r, struct user_names *users)
{
	*t = (struct table){ .columns = process_columns, .n_columns = COUNT(process_columns) };
	for (size_t i = 0; i < r->n_processes; i++) {
		const struct track_process *p = &r->processes[i];
		struct track_process_row row = { .pid = p->id.pid,
			.ppid = (double)p->ppid,
			.max_threads = (double)p->max_threads,
			.command = p->id.command,
			.cpu_s = p->user_s + p->system_s,
			.process = *p };
		find_user(row.user, sizeof(row.user), &p->id, users);
		table_add(t, &row);
	}
	if (r->n_others)
		add_others(t, r);
}

static void print_text(struct str *out, const char *title, struct table *t)
{
	struct text_style style = { .columns = 80, .ascii = true };
	if (t->n_rows) {
		str_addf(out, "%s:\n", title);
		text_add_table(out, t, &style);
	}
	out->failed |= t->failed;
	table_finish(t);
}

static void print_json(struct json *j, const char *key, struct table *t)
{
	json_table(j, key, t);
	table_finish(t);
}

void track_cards_text(struct str *out, const struct track_result *r)
{
	struct table t;
	make_cards(&t, r);
	print_text(out, "Cards", &t);
}

void track_cards_json(struct json *j, const struct track_result *r)
{
	struct table t;
	make_cards(&t, r);
	print_json(j, "cards", &t);
}

void track_processes_text(
	struct str *out, const struct track_result *r, struct user_names *users)
{
	struct table t;
	make_processes(&t, r, users);
	print_text(out, "Process table", &t);
}

void track_processes_json(
	struct json *j, const struct track_result *r, struct user_names *users)
{
	struct table t;
	make_processes(&t, r, users);
	print_json(j, "process_table", &t);
}
