/* gua doctor: checks whether this host can be audited, and why not. Changes nothing. */
#include <jansson.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include "base/names.h"
#include "cmd/cmd_lease.h"
#include "cmd/share/cmd_live.h"
#include "cmd/share/configure.h"
#include "driver/capture/capture.h"
#include "driver/host/apart.h"
#include "driver/host/worker.h"
#include "policy/channel.h"
#include "policy/rules.h"
#include "proc/reader.h"
#include "render/text.h"
#include "store/identify.h"
#include "store/statusfile.h"
#include "version.h"

/* The host to check. */
struct host {
	const char *root; /* prefix of /proc, /sys, /dev and /etc; "" for the real ones */
	const char *db;	  /* the store's path */
	int64_t now_ms;
};

/* A source that is examined. */
struct patient {
	const struct source_kind *kind;
	struct apart *apart; /* the process that asks it */
	struct worker *worker;
	struct diagnosis diagnosis; /* its source is owned by the worker */
};

struct patients {
	struct patient all[SOURCE_KINDS_MAX];
	size_t n;
};

enum { TEXT_FILE = 65536, LOW_SPACE_MIB = 100 };

/* The value of PRETTY_NAME in os-release(5), without quotes. */
static void read_system_name(const char *root, char *dst, size_t cap)
{
	char text[8192];
	str_copy(dst, cap, "unknown system");
	if (file_read_below(root, "/etc/os-release", text, sizeof(text)) <= 0)
		return;
	const char *found = strstr(text, "PRETTY_NAME=");
	if (!found)
		return;
	found += strlen("PRETTY_NAME=");
	found += strspn(found, "\"'");
	str_escape(dst, cap, found, strcspn(found, "\"'\n"));
}

/* Whether some mount is of this kind (proc(5), mountinfo). */
static bool has_mount(const char *root, const char *kind)
{
	char text[TEXT_FILE], word[32];
	snprintf(word, sizeof(word), " - %s ", kind);
	return file_read_below(root, "/proc/self/mountinfo", text, sizeof(text)) > 0 &&
	       strstr(text, word);
}

/* Checks hidepid, which hides the processes of other users from everyone but root. It is an
 * option of the superblock of /proc's file system (proc(5), mountinfo). */
static bool examine_hidepid(const struct host *x, struct findings *f)
{
	char text[TEXT_FILE], value[32], *rest = text;
	const char *options = NULL;
	if (file_read_below(x->root, "/proc/self/mountinfo", text, sizeof(text)) <= 0)
		return false;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		char *dash = strstr(line, " - proc ");
		if (dash && strstr(line, " /proc "))
			options = dash; /* the last one mounted is the visible one */
	}
	const char *hidepid = options ? strstr(options, "hidepid=") : NULL;
	if (!hidepid || strncmp(hidepid, "hidepid=0", 9) == 0 ||
		strncmp(hidepid, "hidepid=off", 11) == 0)
		return false;
	str_escape(value, sizeof(value), hidepid, strcspn(hidepid, ", \n"));
	if (geteuid() == 0)
		finding_add(f, FINDING_OK, "processes",
			"/proc is mounted with %s, which does not restrict root", value);
	else
		finding_advise(finding_add(f, FINDING_WARNING, "processes",
				       "/proc is mounted with %s: holders that belong to other "
				       "users cannot be named",
				       value),
			"run the recorder as root, or as a member of the group in /proc's gid= "
			"option");
	return true;
}

/* Checks the pid namespace. The initial one has a fixed number (proc_ns.h,
 * PROC_PID_INIT_INO). */
static bool examine_namespace(const struct host *x, struct findings *f)
{
	char path[PATH_MAX], target[64];
	ssize_t n = file_path(path, "%s/proc/self/ns/pid", x->root)
			    ? readlink(path, target, sizeof(target) - 1)
			    : -1;
	if (n <= 0)
		return false;
	target[n] = '\0';
	if (strcmp(target, "pid:[4026531836]") == 0)
		return false;
	bool container = file_is_below(x->root, "/.dockerenv") ||
			 file_is_below(x->root, "/run/.containerenv");
	finding_advise(finding_add(f, FINDING_WARNING, "processes",
			       "this is %s with a pid namespace of its own: processes outside "
			       "of it cannot be seen or named",
			       container ? "a container" : "a place"),
		"record on the host itself, or give the container the host's pids "
		"(--pid=host)");
	return true;
}

/* Whether the processes on the cards of the sources can be read. */
static void examine_processes(
	const struct host *x, const struct patients *p, struct findings *f)
{
	uint32_t *pids = NULL;
	size_t n = 0, cap = 0;
	struct reader *reader = NULL;
	char text[256];
	bool all = true;
	for (size_t i = 0; i < p->n; i++) {
		const struct source *s = p->all[i].diagnosis.source;
		for (size_t k = 0; s && k < s->n_cards; k++) {
			const struct card_reading *r = &s->cards[k];
			if (r->status != CARD_STATUS_OK || !r->processes_known ||
				r->own_processes)
				continue;
			all = all && array_reserve(&pids, &cap, n + r->n_processes);
			for (size_t at = 0; all && at < r->n_processes; at++)
				pids[n++] = r->processes[at].pid;
		}
	}
	if (all && n && reader_open(&reader, x->root, 0, NULL) == 0) {
		reader_expect(reader, pids, n);
		if (reader_trouble(reader, text, sizeof(text)))
			finding_advise(finding_add(f, FINDING_WARNING, "processes", "%s", text),
				"find out what it waits for (as root: cat /proc/PID/stack): "
				"usually a file system or a driver that does not answer");
	}
	reader_close(reader);
	free(pids);
}

static void examine_store(const struct host *x, struct findings *f)
{
	struct err e = { 0 };
	struct published now = { 0 };
	char dir[PATH_MAX], origin[ORIGIN_CAP];
	struct statvfs v;
	int kind = identify_store(x->db, &e);
	if (kind < 0)
		finding_advise(finding_add(f, FINDING_PROBLEM, "store", "%s", e.text),
			"choose another file with --db PATH");
	else if (kind == STORE_OURS && identify_origin(x->db, origin, &e) == ERR_WORLD)
		finding_advise(finding_add(f, FINDING_PROBLEM, "store",
				       "%s is damaged, or cannot be read", x->db),
			"stop the recorder, then move the file away or restore a copy of it; a "
			"recorder that finds no store makes a new one");
	else if (kind == STORE_OURS && statusfile_read(&now, x->db, &e) == 0 && now.pid == 0)
		finding_advise(finding_add(f, FINDING_WARNING, "store",
				       "%s is a store of gua, and no recorder is running on it",
				       x->db),
			"'gua status' says how the last one ended; start the service with "
			"'systemctl start gua', a recorder of your own with 'gua start'");
	else if (kind == STORE_OURS)
		finding_add(f, FINDING_OK, "store", "%s is a store of gua%s", x->db,
			now.pid ? ", and a recorder is running on it" : "");
	else
		finding_add(f, FINDING_OK, "store", "%s: nothing is recorded yet", x->db);
	for (size_t i = 0; now.pid && i < now.n_faults; i++)
		finding_advise(
			finding_add(f, FINDING_PROBLEM, "recorder", "%s", now.faults[i].text),
			"'gua status' says since when; the recorder goes on by itself once "
			"this is over");
	file_nearest_directory(dir, sizeof(dir), x->db);
	if (statvfs(dir, &v) != 0) {
		finding_add(f, FINDING_WARNING, "free space", "cannot be read for %s: %s", dir,
			strerror(errno));
		return;
	}
	double bytes = (double)v.f_bavail * (double)v.f_frsize;
	bool low = bytes < LOW_SPACE_MIB * 1048576.0;
	struct finding *row = finding_add(f, low ? FINDING_WARNING : FINDING_OK, "free space",
		"%s where the store is (%s)", size_text(bytes).text, dir);
	if (low)
		finding_advise(row, "make room, or put the store elsewhere with --db PATH; a "
				    "year of 12 cards takes about 30 MiB");
	if (now.pid == 0 && faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) != 0)
		finding_advise(finding_add(f, FINDING_WARNING, "store",
				       "%s cannot be written: %s", dir, strerror(errno)),
			"to record, run gua as its owner or choose another place with --db "
			"PATH");
}

/* What is wrong in the configuration; whether notices of gua enforce reach users, if it sends
 * any; and leases, whose numbers it explains. */
static void examine_configured(const struct host *x, struct findings *f)
{
	struct configuration conf = { .root = x->root };
	struct err e = { 0 };
	char missed[CHANNEL_REACH_CAP], wrong[PATH_MAX + 256];
	bool tells = false;
	if (configure_read(&conf, NULL, &e) == 0) {
		if (channel_check(&conf.values.notices, &e) != 0)
			settings_blame(&conf.settings, "notices", "channels", e.text);
		if (conf.settings.n_errors) {
			settings_error_text(&conf.settings, 0, wrong, sizeof(wrong));
			finding_advise(
				finding_add(f, FINDING_PROBLEM, "configuration", "%s", wrong),
				"'gua config --check' lists every error");
		}
		const struct policy policy = { .config = &conf.values };
		for (size_t i = 0; i < rules_count(&policy); i++)
			tells |= rules_level(rules_get(&policy, i)) != LEVEL_OBSERVE;
		tells = tells && strcmp(conf.values.policy.mode, "enforce") == 0;
		if (tells && channel_misses(&conf.values.notices, missed))
			finding_advise(finding_add(f, FINDING_WARNING, "notices", "%s", missed),
				"try it with 'gua enforce test-notice USER'");
		else if (tells)
			finding_add(f, FINDING_OK, "notices",
				"gua enforce has a channel that reaches every user");
		cmd_lease_examine(f, &(struct lease_place){ .root = x->root,
					     .config = &conf.values.leases,
					     .now_ms = x->now_ms });
	}
	configure_finish(&conf);
}

/* gua doctor --capture: writes what the driver answers on this host to a file that a user can
 * read and send. Names of users, commands, jobs and so on are replaced. */

enum { CAPTURE_ROUNDS = 6 };

/* What the file is, and the lines about the system. */
static void add_head(const struct nvml_capture_options *o, struct str *out)
{
	char name[128];
	struct utsname u;
	str_add(out, NVML_CAPTURE_HEAD
		"\n"
		"# Made by gua doctor --capture: what NVIDIA's driver answers on a host. "
		"Please read it\n"
		"# before you send it. Names of users, commands, jobs, containers and hosts, "
		"UUIDs and\n"
		"# serial numbers are replaced; pids, times, models and versions are not. "
		"gua-capture(5)\n"
		"# explains the lines.\n");
	str_addf(out, "made %s\ngua %s\n", moment_iso(clock_wall_ms(o->clock)).text,
		GUA_VERSION);
	read_system_name(o->root, name, sizeof(name));
	for (char *quote; (quote = strchr(name, '"')) != NULL;)
		*quote = '\'';
	str_addf(out, "system \"%s\"\n", name);
	if (uname(&u) == 0)
		str_addf(out, "kernel \"%s %s %s\"\n", u.sysname, u.release, u.machine);
	str_addf(out, "cgroup %s\n",
		has_mount(o->root, "cgroup")	? "v1"
		: has_mount(o->root, "cgroup2") ? "v2"
						: "unknown");
	str_addf(out, "as %s\n", geteuid() == 0 ? "root" : "a user");
}

/* The kind before a colon stays: "docker:container-1". Only gua's own words are kinds, because
 * the name of a unit may have a colon. */
static void add_field(struct names *names, enum process_text which, const struct process_id *id,
	struct str *out)
{
	const char *text = process_text(id, which), *colon = strchr(text, ':');
	const char *name = process_fields[which].name;
	bool labelled = colon && (which == PROCESS_NOTEBOOK || which == PROCESS_JOB ||
					 which == PROCESS_CONTAINER);
	if (!*text)
		return;
	str_addf(out, " %s \"%.*s%s-%u\"", name, labelled ? (int)(colon + 1 - text) : 0, text,
		name, names_find(names, 0, text, NULL) + 1);
}

/* Appends the processes that the driver named, with what /proc knows of them. */
static void add_processes(const struct captured *seen, const char *root, struct str *out)
{
	static const enum process_text kept[] = { PROCESS_COMMAND, PROCESS_NOTEBOOK,
		PROCESS_JOB, PROCESS_CONTAINER, PROCESS_POD, PROCESS_UNIT };
	struct names users = { 0 }, names[PROCESS_TEXTS] = { 0 }; /* made-up names */
	struct reader *reader = NULL;
	if (seen->n_pids == 0 || reader_open(&reader, root, 0, NULL) != 0)
		return;
	reader_expect(reader, seen->pids, seen->n_pids);
	for (size_t i = 0; i < seen->n_pids; i++) {
		struct process_id id;
		bool brief = false;
		reader_describe(reader, seen->pids[i], &id, &brief);
		str_addf(out, "process %" PRIu32, id.pid);
		if (strcmp(id.user, USER_DEAD) == 0) {
			str_add(out, " gone\n");
			continue;
		}
		if (id.started_ms >= 0)
			str_addf(out, " age_ms %" PRId64,
				seen->begin_ms > id.started_ms ? seen->begin_ms - id.started_ms
							       : 0);
		if (strcmp(id.user, "root") == 0 || strcmp(id.user, USER_UNKNOWN) == 0)
			str_addf(out, " user \"%s\"", id.user);
		else
			str_addf(out, " user \"user-%u\"",
				names_find(&users, 0, id.user, NULL) + 1);
		for (size_t k = 0; k < sizeof(kept) / sizeof(kept[0]); k++)
			add_field(&names[kept[k]], kept[k], &id, out);
		str_add(out, "\n");
	}
	reader_close(reader);
	names_finish(&users);
	for (size_t i = 0; i < PROCESS_TEXTS; i++)
		names_finish(&names[i]);
}

static void print_result(
	const struct captured *seen, const char *path, size_t size, struct str *out)
{
	char safe[512];
	str_escape(safe, sizeof(safe), path, strlen(path));
	str_addf(out, "Wrote %s: %zu KiB, %u call%s of the driver, %u card%s, %zu process%s.\n",
		safe, (size + 1023) / 1024, seen->n_calls, seen->n_calls == 1 ? "" : "s",
		seen->n_cards, seen->n_cards == 1 ? "" : "s", seen->n_pids,
		seen->n_pids == 1 ? "" : "es");
	if (seen->stuck[0])
		str_addf(out, "%s; the capture says so, and has the rest.\n", seen->stuck);
	if (seen->n_calls == 0)
		str_add(out, "The driver's library could not be loaded; 'gua doctor' says "
			     "why.\n");
	str_add(out,
		"Names of users, commands, jobs, containers and hosts, UUIDs and serial "
		"numbers are\nreplaced. Please read the file before you send it: it is plain "
		"text, see man\ngua-capture.\n");
}

struct doctor_options {
	bool json;
	struct source_options from; /* without clock and host */
	const char *capture, *db, *clock;
	int64_t timeout_ms;
};

#define AT(member) .offset = offsetof(struct doctor_options, member)
static const struct option_row doctor_table[] = {
	{ OPTION_FLAG, 0, "json", .help = "print JSON", AT(json) },
	{ OPTION_TEXT, 0, "capture", "FILE",
		"write all answers of the driver to FILE, for a bug report", AT(capture) },
	{ OPTION_TEXT, 0, "db", "PATH", "the store to look at", AT(db) },
	SOURCE_ROWS(struct doctor_options, from, SOURCE_HELP, source_words),
	DRIVER_TIMEOUT_ROW(struct doctor_options, timeout_ms),
	CLOCK_ROW(struct doctor_options, clock),
	{ 0 },
};

static const char *const result_names[] = { "ok", "warning", "problem" };

/* Reads samples and processes once, to find out which calls of the driver work. */
static int ask_all(struct source *s, void *nothing, struct err *e)
{
	(void)nothing;
	s->drains = DRAIN_POWER;
	int rc = source_drain(s, NULL, e);
	return rc ? rc : source_look(s, NULL, e);
}

/* Asks a source in its own worker, so that a source that is stuck does not block the others. */
static void ask_source(
	struct patient *p, const struct source_options *common, int64_t deadline_ms)
{
	struct diagnosis *d = &p->diagnosis;
	struct source_options options = *common;
	options.name = source_is_captured(common->name) ? common->name : p->kind->name;
	d->name = options.name;
	d->root = options.root;
	d->before = p->kind->look ? p->kind->look(d->root) : NULL;
	const struct apart_manner manner = apart_manner_of(deadline_ms);
	if (apart_new(&p->apart, &options, &manner, &d->why) != 0)
		return;
	options.host = apart_host(p->apart);
	if (worker_new(&p->worker, &options, deadline_ms, &d->why) != 0)
		return;
	worker_own(p->worker, ask_all, NULL, NULL);
	int rc = worker_run(p->worker, JOB_OWN, &d->why);
	d->hangs = rc == ERR_BUSY;
	d->source = rc ? NULL : worker_source(p->worker);
}

/* A capture is of another host, so nothing of this host is examined. */
static void examine(const struct host *x, const struct patients *p, struct findings *f)
{
	bool captured = p->n && source_is_captured(p->all[0].diagnosis.name);
	char text[TEXT_FILE], name[128];
	struct utsname u;
	read_system_name(x->root, name, sizeof(name));
	if (!captured && uname(&u) == 0)
		finding_add(f, FINDING_OK, "system", "%s, %s %s %s", name, u.sysname, u.release,
			u.machine);
	else if (!captured)
		finding_add(f, FINDING_OK, "system", "%s", name);
	for (size_t i = 0; i < p->n; i++)
		p->all[i].kind->diagnose(&p->all[i].diagnosis, f);
	if (captured)
		return;
	bool hidden = examine_hidepid(x, f);
	/* In another cgroup namespace, the cgroups of pid 1 begin with dots. */
	if (file_read_below(x->root, "/proc/1/cgroup", text, sizeof(text)) > 0 &&
		strstr(text, ":/.."))
		finding_add(f, FINDING_OK, "cgroups",
			"this is a container with a cgroup namespace of its own: pods, "
			"containers and jobs are found by the part of their paths that it "
			"shows; its own pod has no name");
	if (!examine_namespace(x, f) && !hidden)
		finding_add(f, FINDING_OK, "processes",
			"the processes of all users can be seen (as uid %u)",
			(unsigned)geteuid());
	examine_processes(x, p, f);
	examine_store(x, f);
	examine_configured(x, f);
}

static void print_text(const struct findings *f, struct str *out)
{
	enum { INDENT = 29 };
	const struct text_style style = { .columns = 80 };
	for (size_t i = 0; i < f->n; i++) {
		const struct finding *row = &f->rows[i];
		str_addf(out, "%-8s %-19s ", result_names[row->result], row->check);
		text_add_wrapped(out, row->text, INDENT, INDENT, &style);
		if (!row->advice[0])
			continue;
		str_addf(out, "%*s-> ", INDENT, "");
		text_add_wrapped(out, row->advice, INDENT + 3, INDENT + 3, &style);
	}
	str_addf(out, "\n%zu ok, %zu warning%s, %zu problem%s\n", f->count[FINDING_OK],
		f->count[FINDING_WARNING], f->count[FINDING_WARNING] == 1 ? "" : "s",
		f->count[FINDING_PROBLEM], f->count[FINDING_PROBLEM] == 1 ? "" : "s");
}

static void add_cards(json_t *list, const struct source *s)
{
	for (size_t i = 0; s && i < s->n_cards; i++) {
		const struct card_reading *r = &s->cards[i];
		json_t *card = json_pack("{s:s, s:s, s:i, s:s, s:s, s:i}", "uuid", r->id.uuid,
			"name", r->id.name, "index", r->id.index, "pci", r->id.pci, "status",
			card_status_names[r->status], "code", r->code);
		bool mig = r->id.mig_index >= 0;
		json_object_set_new(card, "parent_uuid",
			mig ? json_string(r->id.parent_uuid) : json_null());
		json_object_set_new(
			card, "mig_index", mig ? json_integer(r->id.mig_index) : json_null());
		json_object_set_new(card, "mem_total_bytes",
			r->id.mem_total_bytes >= 0 ? json_integer(r->id.mem_total_bytes)
						   : json_null());
		json_object_set_new(card, "source", json_string(r->source));
		json_array_append_new(list, card);
	}
}

static void print_json(const struct findings *f, const struct patients *p, struct str *out)
{
	json_t *checks = json_array(), *cards = json_array(), *facilities = json_array();
	for (size_t i = 0; i < f->n; i++)
		json_array_append_new(
			checks, json_pack("{s:s, s:s, s:s, s:s}", "check", f->rows[i].check,
					"result", result_names[f->rows[i].result], "text",
					f->rows[i].text, "advice", f->rows[i].advice));
	for (size_t i = 0; i < p->n; i++) {
		struct facility rows[64];
		struct source *s = p->all[i].diagnosis.source;
		size_t n = s ? s->ops->facilities(s, rows, 64) : 0;
		add_cards(cards, s);
		for (size_t k = 0; k < n; k++)
			json_array_append_new(facilities,
				json_pack("{s:s, s:s, s:b, s:b, s:s}", "job", rows[k].job,
					"how", rows[k].how, "fallback", rows[k].fallback,
					"works", rows[k].works, "note", rows[k].note));
	}
	json_t *all = json_pack("{s:s, s:o, s:o, s:o}", "schema", "gua-doctor-1", "checks",
		checks, "cards", cards, "facilities", facilities);
	char *text = json_dumps(all, JSON_INDENT(2));
	str_addf(out, "%s\n", text ? text : "");
	out->failed |= !text;
	free(text);
	json_decref(all);
}

static int examine_all(
	const struct call *call, const struct source_list *list, const char *db, struct err *e)
{
	const struct doctor_options *o = call->values;
	struct clock clock;
	if (clock_open(&clock, o->clock, 0, e) != 0)
		return e->code;
	struct source_options common = o->from;
	common.nvml_path = cmd_nvml_path(common.nvml_path);
	common.clock = &clock;
	const struct host x = {
		.root = common.root, .db = db, .now_ms = clock_wall_ms(&clock)
	};
	struct patients p = { 0 };
	struct findings *f = calloc(1, sizeof(*f));
	struct str out = { .failed = !f };
	if (f) {
		for (; p.n < list->n; p.n++) {
			p.all[p.n].kind = list->kinds[p.n];
			ask_source(&p.all[p.n], &common, o->timeout_ms);
		}
		examine(&x, &p, f);
		if (o->json)
			print_json(f, &p, &out);
		else
			print_text(f, &out);
	}
	int status = cmd_print(call->self, &out);
	if (status == 0)
		status = f->count[FINDING_PROBLEM] > 0;
	for (size_t i = 0; i < p.n; i++) {
		if (p.all[i].worker)
			worker_end(p.all[i].worker, WORKER_CLOSING_MS);
		apart_free(p.all[i].apart);
		free(p.all[i].diagnosis.before);
	}
	clock_finish(&clock);
	free(f);
	return status;
}

static int capture(const struct command *self, const struct doctor_options *o, struct err *e)
{
	struct str file = { 0 }, said = { 0 };
	struct captured seen = { 0 };
	struct clock clock;
	if (o->json || source_is_invented(o->from.name) ||
		strcmp(o->from.name, SOURCE_NONE) == 0)
		return err_set(
			e, ERR_USAGE, "--capture goes with the driver, and without --json");
	if (clock_open(&clock, o->clock, 0, e) != 0)
		return e->code;
	const struct nvml_capture_options options = { .path = cmd_nvml_path(o->from.nvml_path),
		.option = "--nvml PATH",
		.root = o->from.root,
		.clock = &clock,
		.deadline_ms = o->timeout_ms,
		.rounds = CAPTURE_ROUNDS };
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "gua doctor: asking the driver, which takes %d s ...\n",
			CAPTURE_ROUNDS);
	add_head(&options, &file);
	if (capture_make(&options, &file, &seen, e) == 0) {
		add_processes(&seen, o->from.root, &file);
		str_add(&file, "end\n");
		if (file.failed)
			err_memory(e);
		else if (file_replace(o->capture, str_text(&file), file.len, e) == 0)
			print_result(&seen, o->capture, file.len, &said);
	}
	str_finish(&file);
	capture_finish(&seen);
	clock_finish(&clock);
	return e->code ? e->code : cmd_print(self, &said);
}

static int run_doctor(const struct call *call, struct err *e)
{
	const struct doctor_options *o = call->values;
	struct source_list list;
	struct chosen_db chosen;
	if (source_check(o->from.name, o->from.scenario, false, e) != 0 ||
		source_list_read(&list, o->from.name, false, e) != 0)
		return e->code;
	if (o->capture)
		return capture(call->self, o, e);
	if (!o->db && choose_db_to_read(&chosen, e) != 0)
		return e->code;
	/* The findings report fallbacks, so they need not be logged too. */
	log_setup(LOG_LEVEL_WARNING, LOG_STYLE_PLAIN);
	return examine_all(call, &list, o->db ? o->db : chosen.path, e);
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "say whether this host can be audited and what is in the way",
	.usage = "[OPTIONS]",
	.details = "It changes nothing, and writes no file but that of --capture. The exit "
		   "status is 1 if\nthere is a problem, else 0.",
	.options = doctor_table,
	.values_size = sizeof(struct doctor_options),
	.run = run_doctor,
};
