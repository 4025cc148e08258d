/* Formats the result of gua track: outline, own figures, advice, tables, and the short text
 * for people. */
#include "render/track.h"

#include <sys/wait.h>

#include "model/columns.h"
#include "render/rows.h"
#include "render/text.h"

/* Margin that is added to the measured values. */
#define MARGIN 0.2
/* Memory below 10 GiB is rounded up to a multiple of this. */
enum { STEP_MIB = 100 };
/* The unit of CPU time. */
#define TICK_S 0.01

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

/* A run that failed, or that was seen only in part, may have needed less than a whole one. */
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
	 * unknown. */
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
	int64_t pid; /* -1: not one process */
	double cpu_s;
	struct track_process process;
	char user[256];
};

#define OF(member) offsetof(struct track_process_row, member)
static const struct column process_columns[] = {
	{ "pid", "pid", KNOWN(COUNT, pid), .width = 7 },
	{ "ppid", KNOWN(COUNT, process.ppid) },
	{ "user", "user", CHARS(user), .width = -12 },
	{ "command", "command", CHARS(process.id.command), .flexible = true },
	{ "cpu_seconds", "cpu s", SECONDS(cpu_s), .width = 8 },
	{ "max_total_bytes", "memory", BYTES(process.max_total_bytes), .width = 8 },
	{ "max_gpu_bytes", "gpu mem", BYTES(process.max_gpu_bytes), .width = 8 },
	{ "started_seconds", SECONDS(process.started_s) },
	{ "ended_seconds", SECONDS(process.ended_s) },
	{ "user_seconds", SECONDS(process.user_s) },
	{ "system_seconds", SECONDS(process.system_s) },
	{ "max_private_bytes", BYTES(process.max_private_bytes) },
	{ "max_rss_bytes", BYTES(process.max_rss_bytes) },
	{ "max_threads", KNOWN(COUNT, process.max_threads) },
};
#undef OF

/* With user names from `users`; without names if it is NULL. */
static struct table make_processes(const struct track_result *r, struct user_names *users)
{
	struct table t = TABLE_OF(process_columns);
	for (size_t i = 0; i < r->n_processes; i++) {
		const struct track_process *p = &r->processes[i];
		struct track_process_row row = {
			.pid = p->id.pid, .cpu_s = p->user_s + p->system_s, .process = *p
		};
		if (users && p->id.uid >= 0)
			user_names_get(
				users, (uint32_t)p->id.uid, 0, row.user, sizeof(row.user));
		table_add(&t, &row);
	}
	if (!r->n_others)
		return t;
	/* One row for all processes without a row; only their CPU time is known. */
	struct track_process_row row = { .pid = -1,
		.cpu_s = r->others.user_s + r->others.system_s,
		.process = { .ppid = -1,
			.user_s = r->others.user_s,
			.system_s = r->others.system_s,
			.started_s = NAN,
			.ended_s = NAN,
			.max_total_bytes = -1,
			.max_private_bytes = -1,
			.max_rss_bytes = -1,
			.max_gpu_bytes = -1,
			.max_threads = -1 } };
	snprintf(row.process.id.command, sizeof(row.process.id.command), "(%lld others)",
		(long long)r->n_others);
	table_add(&t, &row);
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
		/* Two lines without numbers, and why. -v shows the whole explanation. */
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
			str_addf(out, ": no card was used; this host has %lld%s",
				(long long)r->gpu_count,
				r->n_cards || !r->gpu_count
					? ""
					: ", which CUDA_VISIBLE_DEVICES or permissions hide");
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

/* The outline: nested groups of named values, printed as indented text, as JSON or as CSV. A
 * value has one name for people and one for programs, and is a member of this. */
struct facts {
	struct track_result r;
	struct track_unit ram, swap, gpu_ram, time; /* that sizes and times are shown in */
	bool by_signal, by_exit, has_note, advised;
	int64_t exit_signal, exit_status; /* -1: not known */
	struct track_advice advice;
	int64_t charged_bytes, runs;
};

enum item_kind {
	ITEM_OPEN,
	ITEM_CLOSE,
	ITEM_COUNT, /* an int64_t; -1: not known */
	ITEM_BYTES, /* the same in a unit */
	ITEM_REAL,  /* a double; NAN: not known */
	ITEM_UNIT,  /* the name of the unit */
	ITEM_CHARS, /* an array of char; "": not known */
};

#define OF(member) offsetof(struct facts, member)
#define OPEN(name, title) ITEM_OPEN, .key = name, .label = title
#define CLOSE COLUMN(.kind = ITEM_CLOSE)
#define UNIT(in) ITEM_UNIT, "unit", "Unit", .unit = OF(in)
#define COUNTED(key, label, member) ITEM_COUNT, key, label, .of = OF(member)
#define SIZED(key, label, member, in) ITEM_BYTES, key, label, .of = OF(member), .unit = OF(in)
#define REAL(key, label, member) ITEM_REAL, key, label, .of = OF(member)
#define WORDS(key, label, member) ITEM_CHARS, key, label, .of = OF(member)
#define RAM_OF(key, label, group)                                                              \
	COLUMN(OPEN(key, label)),                                                              \
		COLUMN(SIZED("total_rss", "Total RSS", r.ram[group].total_bytes, ram)),        \
		COLUMN(SIZED("private_rss", "Private RSS", r.ram[group].private_bytes, ram)),  \
		COLUMN(SIZED("shared_rss", "Shared RSS", r.ram[group].shared_bytes, ram)),     \
		CLOSE
/* Hardware percent: of all `parts`, cores or cards. */
#define USE_OF(key, label, use, parts)                                                         \
	COLUMN(OPEN(key, label)),                                                              \
		COLUMN(REAL("max_sum_percent", "Max sum percent", use.max_sum_pct)),           \
		COLUMN(REAL("max_hardware_percent", "Max hardware percent", use.max_sum_pct),  \
			.per = OF(parts)),                                                     \
		COLUMN(REAL("mean_sum_percent", "Mean sum percent", use.mean_sum_pct)),        \
		COLUMN(REAL("mean_hardware_percent", "Mean hardware percent",                  \
			       use.mean_sum_pct),                                              \
			.per = OF(parts)),                                                     \
		CLOSE
static const struct item {
	enum item_kind kind;
	const char *key, *label;
	size_t of;
	/* 0: none. The unit; an int64_t that the number is divided by; whether the value, or
	 * the group, is shown. */
	size_t unit, per, when;
	const char *none; /* in text for a value that is not there, instead of unknown */
} items[] = {
	/* As gpu-tracker has it. */
	{ OPEN("max_ram", "Max RAM") },
	{ UNIT(ram) },
	{ SIZED("system_capacity", "System capacity", r.ram_capacity_bytes, ram) },
	{ SIZED("system", "System", r.ram_system_max_bytes, ram) },
	RAM_OF("main", "Main", TRACK_MAIN),
	RAM_OF("descendants", "Descendants", TRACK_DESCENDANTS),
	RAM_OF("combined", "Combined", TRACK_COMBINED),
	CLOSE,
	{ OPEN("max_gpu_ram", "Max GPU RAM") },
	{ UNIT(gpu_ram) },
	{ SIZED("system_capacity", "System capacity", r.gpu_capacity_bytes, gpu_ram) },
	{ SIZED("system", "System", r.gpu_system_max_bytes, gpu_ram) },
	{ SIZED("main", "Main", r.gpu_ram[TRACK_MAIN], gpu_ram) },
	{ SIZED("descendants", "Descendants", r.gpu_ram[TRACK_DESCENDANTS], gpu_ram) },
	{ SIZED("combined", "Combined", r.gpu_ram[TRACK_COMBINED], gpu_ram) },
	CLOSE,
	{ OPEN("cpu_utilization", "CPU utilization") },
	{ COUNTED("system_core_count", "System core count", r.core_count) },
	{ COUNTED("n_expected_cores", "Number of expected cores", r.expected_cores) },
	USE_OF("system", "System", r.cpu_system, r.core_count),
	USE_OF("main", "Main", r.cpu[TRACK_MAIN], r.expected_cores),
	USE_OF("descendants", "Descendants", r.cpu[TRACK_DESCENDANTS], r.expected_cores),
	USE_OF("combined", "Combined", r.cpu[TRACK_COMBINED], r.expected_cores),
	{ COUNTED("main_n_threads", "Main number of threads", r.max_threads[TRACK_MAIN]) },
	{ COUNTED("descendants_n_threads", "Descendants number of threads",
		r.max_threads[TRACK_DESCENDANTS]) },
	{ COUNTED("combined_n_threads", "Combined number of threads",
		r.max_threads[TRACK_COMBINED]) },
	CLOSE,
	{ OPEN("gpu_utilization", "GPU utilization") },
	{ COUNTED("system_gpu_count", "System GPU count", r.gpu_count) },
	{ COUNTED("n_expected_gpus", "Number of expected GPUs", r.expected_gpus) },
	USE_OF("gpu_percentages", "GPU percentages", r.gpu_util, r.expected_gpus),
	CLOSE,
	{ OPEN("compute_time", "Compute time") },
	{ UNIT(time) },
	{ REAL("time", "Time", r.elapsed_s), .unit = OF(time) },
	CLOSE,
	/* What gpu-tracker does not have. */
	{ OPEN("cpu_time", "CPU time") },
	{ REAL("user_seconds", "User seconds", r.user_s[TRACK_COMBINED]) },
	{ REAL("system_seconds", "System seconds", r.system_s[TRACK_COMBINED]) },
	CLOSE,
	{ OPEN("max_swap", "Max swap") },
	{ UNIT(swap) },
	{ SIZED("combined", "Combined", r.ram[TRACK_COMBINED].swap_bytes, swap) },
	CLOSE,
	{ OPEN("allocation", "Allocation") },
	{ COUNTED("cores", "Cores", r.core_limit), .none = "no limit" },
	{ COUNTED("memory_bytes", "Memory (bytes)", r.ram_limit_bytes), .none = "no limit" },
	CLOSE,
	{ OPEN("io", "I/O") },
	{ COUNTED("read_bytes", "Read bytes", r.read_bytes) },
	{ COUNTED("written_bytes", "Written bytes", r.written_bytes) },
	{ COUNTED("minor_faults", "Minor page faults", r.minor_faults) },
	{ COUNTED("major_faults", "Major page faults", r.major_faults) },
	{ COUNTED("voluntary_switches", "Voluntary context switches", r.voluntary_switches) },
	{ COUNTED("involuntary_switches", "Involuntary context switches",
		r.involuntary_switches) },
	CLOSE,
	{ OPEN("processes", "Processes") },
	{ COUNTED("seen", "Seen", r.processes_seen) },
	{ COUNTED("peak_alive", "Peak alive", r.processes_peak) },
	{ COUNTED("samples", "Samples", r.samples) },
	{ COUNTED("exit_signal", "Exit signal", exit_signal), .when = OF(by_signal) },
	{ COUNTED("exit_status", "Exit status", exit_status), .when = OF(by_exit) },
	CLOSE,
	{ OPEN("gpu_time", "GPU time"), .when = OF(r.gpu_known) },
	{ REAL("active_seconds", "Active seconds", r.gpu_active_s) },
	{ REAL("idle_held_seconds", "Idle-held seconds", r.gpu_idle_held_s) },
	{ REAL("energy_joules", "Energy of the cards (J)", r.energy_j) },
	{ REAL("tree_energy_joules", "Energy by share of use (J)", r.tree_energy_j) },
	{ COUNTED("context_bytes", "Bare context in the memory peak (bytes)",
		r.gpu_context_bytes) },
	CLOSE,
	{ WORDS("gpu_note", "GPU note", r.gpu_note), .when = OF(has_note) },
	{ OPEN("slurm_advice", "Slurm advice"), .when = OF(advised) },
	{ WORDS("options", "Options", advice.command) },
	{ WORDS("mem", "Mem", advice.mem) },
	{ COUNTED("cpus_per_task", "CPUs per task", advice.cpus) },
	{ WORDS("gres", "Gres", advice.gres) },
	{ WORDS("time", "Time", advice.time) },
	{ WORDS("margin", "Margin", advice.margin) },
	{ COUNTED("charged_bytes", "Charged memory (bytes)", charged_bytes) },
	{ COUNTED("runs", "Runs", runs) },
	{ WORDS("basis", "Basis", advice.basis) },
	CLOSE,
};
#undef OF

static struct facts facts_of(const struct track_result *r, const struct track_style *style)
{
	int64_t ram = r->ram[TRACK_COMBINED].total_bytes, gpu_ram = r->gpu_ram[TRACK_COMBINED],
		swap = r->ram[TRACK_COMBINED].swap_bytes;
	bool ended = r->exited && r->exit_status != -1;
	bool by_signal = ended && WIFSIGNALED(r->exit_status);
	gpu_ram = gpu_ram > 0 ? gpu_ram : r->gpu_system_max_bytes;
	struct facts f = { .r = *r,
		.ram = *track_size_unit(style->ram_unit, (double)ram),
		.swap = *track_size_unit(style->ram_unit, (double)swap),
		.gpu_ram = *track_size_unit(style->gpu_ram_unit, (double)gpu_ram),
		.time = *track_time_unit(style->time_unit, r->elapsed_s),
		.by_signal = by_signal,
		.by_exit = !by_signal,
		.has_note = r->gpu_note[0],
		.advised = style->advice,
		.exit_signal = by_signal ? WTERMSIG(r->exit_status) : -1,
		.exit_status = ended ? WEXITSTATUS(r->exit_status) : -1,
		.charged_bytes = r->use_instead[0] ? -1 : memory_of_all(r),
		.runs = 1 };
	track_advise(&f.advice, r, style);
	if (f.advice.cpus < 0 || !r->gpu_known)
		f.advice.gres[0] = '\0';
	return f;
}

/* The outline of one run: the items that are shown, with their values. */
struct outline {
	struct value {
		const struct item *item;
		double number;	  /* NAN: a text, or unknown */
		const char *text; /* of the facts; NULL: a number, or unknown */
	} values[sizeof(items) / sizeof(items[0])];
	size_t n;
	bool legacy_spelling;
};

static struct value value_of(const struct facts *f, const struct item *i)
{
	struct value v = { .item = i, .number = NAN };
	struct track_unit unit = { .factor = 1 };
	double parts = i->per ? table_get_known(f, i->per).number : 1;
	if (i->unit)
		memcpy(&unit, (const char *)f + i->unit, sizeof(unit));
	if (i->kind == ITEM_COUNT || i->kind == ITEM_BYTES)
		v.number = table_get_known(f, i->of).number * unit.factor;
	else if (i->kind == ITEM_REAL && parts > 0)
		v.number = table_get_double(f, i->of).number * unit.factor / parts;
	else if (i->kind == ITEM_UNIT)
		v.text = unit.name;
	else if (i->kind == ITEM_CHARS && ((const char *)f)[i->of])
		v.text = (const char *)f + i->of;
	return v;
}

static void fill_outline(struct outline *o, const struct facts *f)
{
	const struct item *end = items + sizeof(items) / sizeof(items[0]);
	for (const struct item *i = items; i < end; i++) {
		bool group = i->kind == ITEM_OPEN;
		if (!i->when || ((const char *)f)[i->when])
			o->values[o->n++] = value_of(f, i);
		else
			while (group && i->kind != ITEM_CLOSE)
				i++;
	}
}

enum { NAME_CAP = 96, PATH_CAP = 256 };

/* The name in the spelling of gpu-tracker before version 4, "descendents", or as it is. */
static const char *spell(char dst[NAME_CAP], const struct outline *o, const char *name)
{
	str_copy(dst, NAME_CAP, name);
	char *found = o->legacy_spelling ? strstr(dst, "ants") : NULL;
	if (found)
		*found = 'e';
	return dst;
}

static void print_text(struct str *out, const struct outline *o)
{
	size_t depth = 0;
	char name[NAME_CAP], number[64];
	for (const struct value *v = o->values; v < o->values + o->n; v++) {
		bool real = v->item->kind == ITEM_REAL || v->item->kind == ITEM_BYTES;
		if (v->item->kind == ITEM_CLOSE) {
			depth--;
			continue;
		}
		str_add_repeat(out, "   ", depth);
		str_addf(out, "%s:", spell(name, o, v->item->label));
		/* Reals have at most three decimals, no trailing zeros, but always a point. */
		json_number_text(number, sizeof(number), v->number, real ? 3 : 0);
		if (v->item->kind == ITEM_OPEN)
			depth++;
		else if (v->text || !*number)
			str_addf(out, " %s",
				v->text		? v->text
				: v->item->none ? v->item->none
						: "unknown");
		else
			str_addf(
				out, " %s%s", number, real && !strchr(number, '.') ? ".0" : "");
		str_add(out, "\n");
	}
}

static int decimals_of(const struct value *v)
{
	return v->item->kind == ITEM_COUNT ? 0 : 9;
}

static void print_json(struct json *j, const struct outline *o)
{
	char name[NAME_CAP];
	for (const struct value *v = o->values; v < o->values + o->n; v++) {
		if (v->item->kind == ITEM_CLOSE)
			json_close(j, '}');
		else if (v->item->kind == ITEM_OPEN)
			json_open(j, spell(name, o, v->item->key), '{');
		else if (v->text)
			json_text(j, spell(name, o, v->item->key), v->text);
		else
			json_number(j, spell(name, o, v->item->key), v->number, decimals_of(v));
	}
}

static void print_csv(struct str *out, const struct outline *o)
{
	char path[PATH_CAP] = "", name[NAME_CAP], number[64];
	str_add(out, "key,value\r\n");
	for (const struct value *v = o->values; v < o->values + o->n; v++) {
		size_t len = strlen(path);
		if (v->item->kind == ITEM_CLOSE) {
			char *dot = strrchr(path, '.');
			*(dot ? dot : path) = '\0';
			continue;
		}
		snprintf(path + len, sizeof(path) - len, "%s%s", len ? "." : "",
			spell(name, o, v->item->key));
		if (v->item->kind == ITEM_OPEN)
			continue;
		json_number_text(number, sizeof(number), v->number, decimals_of(v));
		rows_own_text(out, path);
		str_add(out, ",");
		rows_own_text(out, v->text ? v->text : number);
		str_add(out, "\r\n");
		path[len] = '\0';
	}
}

void track_render(
	struct str *out, const struct track_result *r, const struct track_style *style)
{
	struct facts facts = facts_of(r, style);
	struct outline o = { .legacy_spelling = style->legacy_spelling };
	fill_outline(&o, &facts);
	if (style->format == TRACK_JSON) {
		struct json j = { .out = out, .lines = 4 };
		struct table cards = make_cards(r), processes = { 0 };
		json_open(&j, NULL, '{');
		print_json(&j, &o); /* first, in gpu-tracker's order */
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
		print_csv(out, &o);
	} else {
		if (style->verbose) {
			print_text(out, &o);
			print_table(out, "Cards", make_cards(r));
		} else {
			short_text(out, r, style);
		}
		if (style->processes)
			print_table(out, "Process table", make_processes(r, style->users));
	}
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
