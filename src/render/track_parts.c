/* Figures beyond gpu-tracker's: what else the tree used, and what to ask for next time. */
#include "render/track_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "render/rows.h"
#include "render/text.h"

#define COUNT(array) (sizeof(array) / sizeof(array[0]))
/* What is added to what was measured. */
#define MARGIN 0.2

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

static size_t cards_used(const struct track_result *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n_cards; i++)
		n += r->cards[i].max_tree_bytes > 0 || r->cards[i].active_s > 0;
	return n;
}

/* Slurm's HH:MM:SS, whole minutes, at least one. */
static void slurm_time(char *dst, size_t cap, double seconds)
{
	long long minutes = (long long)ceil(seconds / 60);
	minutes = minutes < 1 ? 1 : minutes;
	snprintf(dst, cap, "%02lld:%02lld:00", minutes / 60, minutes % 60);
}

/* The tree's memory, or -1: a sum without a process that cannot be read is too small. */
static int64_t memory_of_all(const struct track_result *r)
{
	for (size_t i = 0; i < r->n_processes; i++)
		if (r->processes[i].unreadable)
			return -1;
	return r->ram[TRACK_COMBINED].total_bytes;
}

/* Memory with its margin; empty when nobody knows how much it was. */
static void slurm_mem(char *dst, size_t cap, int64_t bytes)
{
	long long mib = (long long)ceil((double)bytes * (1 + MARGIN) / (1 << 20));
	dst[0] = '\0';
	if (bytes >= 0)
		snprintf(dst, cap, "%lldM", mib < 1 ? 1 : mib);
}

void track_add_advice(
	struct outline *o, const struct track_result *r, struct track_advice *advice)
{
	int64_t cpus = (int64_t)ceil(r->cpu[TRACK_COMBINED].max_sum_pct / 100 - 0.1);
	size_t gpus = cards_used(r);
	cpus = cpus < 1 ? 1 : cpus;
	slurm_mem(advice->mem, sizeof(advice->mem), memory_of_all(r));
	slurm_time(advice->time, sizeof(advice->time), r->elapsed_s * (1 + MARGIN));
	snprintf(advice->gres, sizeof(advice->gres), "gpu:%zu", gpus);
	snprintf(advice->command, sizeof(advice->command),
		"%s%s%s--cpus-per-task=%lld%s%s --time=%s", advice->mem[0] ? "--mem=" : "",
		advice->mem, advice->mem[0] ? " " : "", (long long)cpus, gpus ? " --gres=" : "",
		gpus ? advice->gres : "", advice->time);
	snprintf(advice->margin, sizeof(advice->margin),
		"memory and time are what was measured plus %.0f %%; CPUs are the busiest "
		"interval",
		MARGIN * 100);
	outline_open(o, "slurm_advice", "Slurm advice");
	outline_text(o, "options", "Options", advice->command);
	if (advice->mem[0])
		outline_text(o, "mem", "Mem", advice->mem);
	else
		outline_real(o, "mem", "Mem", NAN);
	outline_count(o, "cpus_per_task", "CPUs per task", cpus);
	outline_text(o, "gres", "Gres", gpus ? advice->gres : "none");
	outline_text(o, "time", "Time", advice->time);
	outline_text(o, "margin", "Margin", advice->margin);
	outline_close(o);
}

static const struct column card_columns[] = {
	{ "index", "gpu", COLUMN_TEXT, 0, false },
	{ "uuid", NULL, COLUMN_TEXT, 0, false },
	{ "name", "name", COLUMN_TEXT, 0, true },
	{ "max_used_mb", "card mem", COLUMN_KIB, 8, false },
	{ "max_tree_mb", "tree mem", COLUMN_KIB, 8, false },
	{ "mean_util_pct", "util", COLUMN_PCT, 6, false },
	{ "mean_tree_pct", "tree", COLUMN_PCT, 6, false },
	{ "active_seconds", "active s", COLUMN_MS, 8, false },
	{ "idle_held_seconds", "held s", COLUMN_MS, 7, false },
	{ "max_util_pct", NULL, COLUMN_PCT, 0, false },
	{ "max_tree_pct", NULL, COLUMN_PCT, 0, false },
	{ "energy_joules", NULL, COLUMN_MJ, 0, false },
	{ "tree_energy_joules", NULL, COLUMN_MJ, 0, false },
	{ "status", NULL, COLUMN_TEXT, 0, false },
};

static struct cell kib(int64_t bytes)
{
	return cell_number(bytes < 0 ? NAN : (double)bytes / 1024);
}

static void make_cards(struct table *t, const struct track_result *r)
{
	*t = (struct table){ .columns = card_columns, .n_columns = COUNT(card_columns) };
	for (size_t i = 0; i < r->n_cards; i++) {
		const struct track_card *c = &r->cards[i];
		char label[32];
		card_label(label, sizeof(label), &c->id);
		struct cell cells[COUNT(card_columns)] = {
			cell_text(label),
			cell_text(c->id.uuid),
			cell_text(c->id.name),
			kib(c->max_used_bytes),
			kib(c->max_tree_bytes),
			cell_number(c->mean_util_pct),
			cell_number(c->mean_tree_pct),
			cell_number(c->active_s * 1000),
			cell_number(c->idle_held_s * 1000),
			cell_number(c->max_util_pct),
			cell_number(c->max_tree_pct),
			cell_number(c->energy_j * 1000),
			cell_number(c->tree_energy_j * 1000),
			cell_text(card_status_names[c->status]),
		};
		table_add(t, cells);
	}
}

static const struct column process_columns[] = {
	{ "pid", "pid", COLUMN_COUNT, 7, false },
	{ "ppid", NULL, COLUMN_COUNT, 0, false },
	{ "user", "user", COLUMN_TEXT, -12, false },
	{ "command", "command", COLUMN_TEXT, 0, true },
	{ "cpu_seconds", "cpu s", COLUMN_MS, 8, false },
	{ "max_total_mb", "memory", COLUMN_KIB, 8, false },
	{ "max_gpu_mb", "gpu mem", COLUMN_KIB, 8, false },
	{ "started_seconds", NULL, COLUMN_MS, 0, false },
	{ "ended_seconds", NULL, COLUMN_MS, 0, false },
	{ "user_seconds", NULL, COLUMN_MS, 0, false },
	{ "system_seconds", NULL, COLUMN_MS, 0, false },
	{ "max_private_mb", NULL, COLUMN_KIB, 0, false },
	{ "max_rss_mb", NULL, COLUMN_KIB, 0, false },
	{ "max_threads", NULL, COLUMN_COUNT, 0, false },
};

/* Places in that table. */
enum {
	PROCESS_USER = 2,
	PROCESS_COMMAND = 3,
	PROCESS_CPU = 4,
	PROCESS_USER_TIME = 9,
	PROCESS_SYSTEM_TIME = 10,
};

/* The name of a process' user, escaped; empty when it is not known. */
static void find_user(char *dst, size_t cap, const struct process_id *id, struct users *users)
{
	dst[0] = '\0';
	if (users && id->uid >= 0)
		users_name(users, (uint32_t)id->uid, 0, dst, cap);
}

/* One row for the processes that have none: of those only the CPU time was kept. */
static void add_others(struct table *t, const struct track_result *r)
{
	char command[64];
	const struct track_process *o = &r->others;
	struct cell cells[COUNT(process_columns)];
	snprintf(command, sizeof(command), "(%lld others)", (long long)r->n_others);
	for (size_t i = 0; i < COUNT(cells); i++)
		cells[i] = cell_number(NAN);
	cells[PROCESS_USER] = cell_text("");
	cells[PROCESS_COMMAND] = cell_text(command);
	cells[PROCESS_CPU] = cell_number((o->user_s + o->system_s) * 1000);
	cells[PROCESS_USER_TIME] = cell_number(o->user_s * 1000);
	cells[PROCESS_SYSTEM_TIME] = cell_number(o->system_s * 1000);
	table_add(t, cells);
}

static void make_processes(struct table *t, const struct track_result *r, struct users *users)
{
	char user[256];
	*t = (struct table){ .columns = process_columns, .n_columns = COUNT(process_columns) };
	for (size_t i = 0; i < r->n_processes; i++) {
		const struct track_process *p = &r->processes[i];
		find_user(user, sizeof(user), &p->id, users);
		struct cell cells[COUNT(process_columns)] = {
			cell_number(p->id.pid),
			cell_number((double)p->ppid),
			cell_text(user),
			cell_text(p->id.command),
			cell_number((p->user_s + p->system_s) * 1000),
			kib(p->max_total_bytes),
			kib(p->max_gpu_bytes),
			cell_number(p->started_s * 1000),
			cell_number(p->ended_s * 1000),
			cell_number(p->user_s * 1000),
			cell_number(p->system_s * 1000),
			kib(p->max_private_bytes),
			kib(p->max_rss_bytes),
			cell_number((double)p->max_threads),
		};
		table_add(t, cells);
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
	json_open(j, key, '[');
	for (size_t i = 0; i < t->n_rows; i++)
		json_row(j, t->columns, t->n_columns, table_cell(t, i, 0));
	json_close(j, ']');
	j->out->failed |= t->failed;
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

void track_processes_text(struct str *out, const struct track_result *r, struct users *users)
{
	struct table t;
	make_processes(&t, r, users);
	print_text(out, "Process table", &t);
}

void track_processes_json(struct json *j, const struct track_result *r, struct users *users)
{
	struct table t;
	make_processes(&t, r, users);
	print_json(j, "process_table", &t);
}
