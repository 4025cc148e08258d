/* gua keep: a user asks to keep a session that policy would warn about or end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timetext.h"
#include "cmd/choose_db.h"
#include "cmd/cmd.h"
#include "cmd/configure.h"
#include "policy/keep_spool.h"
#include "proc/proc.h"
#include "proc/system.h"
#include "render/json.h"

struct keep_options {
	const char *db, *reason, *root, *drop;
	int64_t for_ms;
	struct configure_options conf;
	bool json, utc;
};

#define AT(field) .offset = offsetof(struct keep_options, field)
static const struct option_row rows[] = {
	{ OPTION_DURATION, 0, "for", "D", "how long to keep it: 4h", AT(for_ms), .min = 60e3,
		.max = 28 * 86400e3 },
	{ OPTION_TEXT, 0, "reason", "TEXT", "why, for the administrator", AT(reason) },
	{ OPTION_TEXT, 0, "drop", "PID", "do not keep it any more", AT(drop) },
	{ OPTION_TEXT, 0, "db", "FILE", "the recorder's store", AT(db) },
	{ OPTION_FLAG, 0, "json", .help = "print JSON", AT(json) },
	{ OPTION_FLAG, 0, "utc", .help = "times in UTC instead of local time", AT(utc) },
	CONFIGURE_ROWS(struct keep_options, conf),
	{ OPTION_TEXT, 0, "root", "DIR", "look for etc below DIR", AT(root), .hidden = true },
	{ 0 },
};

struct keep {
	const struct command *self;
	const struct keep_options *o;
	struct configuration conf;
	char spool[PATH_MAX];
	int proc;
};

static int find_spool(struct keep *k, struct err *e)
{
	struct chosen_db chosen = { .path = "" };
	int rc = k->o->db ? 0 : choose_db_to_read(&chosen, e);
	if (rc == 0)
		keep_spool_path(k->spool, sizeof(k->spool), &k->conf.values.policy,
			k->o->db ? k->o->db : chosen.path);
	return rc;
}

static int parse_pid(const char *text, uint32_t *pid, struct err *e)
{
	char *end = NULL;
	unsigned long long number = strtoull(text, &end, 10);
	if (!number || *end || number > INT32_MAX || *text == '-')
		return err_set(e, ERR_USAGE, "'%s' is not a pid", text);
	*pid = (uint32_t)number;
	return 0;
}

/* The request, for a process that is alive and the caller's. */
static int make_request(
	const struct keep *k, const char *operand, struct keep_request *r, struct err *e)
{
	struct proc_status status;
	int rc = parse_pid(operand, &r->pid, e);
	if (rc)
		return rc;
	if (!r->drop && k->o->for_ms == 0)
		return err_set(e, ERR_USAGE, "say for how long, as in --for 4h");
	if (!r->drop && (!k->o->reason || !*k->o->reason))
		return err_set(e, ERR_USAGE, "say why, as in --reason 'waiting for data'");
	r->for_ms = k->o->for_ms;
	if (k->o->reason && !text_copy(r->reason, sizeof(r->reason), k->o->reason))
		return err_set(e, ERR_USAGE, "--reason takes at most %d characters",
			KEEP_REASON_CAP - 1);
	r->start_ticks = proc_start_ticks(k->proc, r->pid);
	if (!r->start_ticks)
		return err_set(e, ERR_NOTHING, "there is no process %u", r->pid);
	if (getuid() != 0 && proc_read_status(k->proc, r->pid, &status) == 0 &&
		status.uid != (int64_t)getuid())
		return err_set(e, ERR_WORLD, "process %u belongs to another user", r->pid);
	return 0;
}

static int ask(struct keep *k, const char *operand, struct err *e)
{
	struct keep_request r = { .drop = k->o->drop != NULL };
	struct str out = { 0 };
	char length[48];
	int rc = make_request(k, operand, &r, e);
	if (rc == 0)
		rc = keep_spool_ask(k->spool, &r, e);
	if (rc)
		return rc;
	duration_text(length, sizeof(length), r.for_ms);
	if (r.drop)
		str_addf(&out, "Asked not to keep process %u any more.", r.pid);
	else
		str_addf(
			&out, "Asked to keep the session of process %u for %s.", r.pid, length);
	str_add(&out, " gua enforce answers within a minute: 'gua keep' shows it.\n");
	return cmd_print(k->self, &out) ? ERR_WORLD : 0;
}

static void add_text(struct str *out, const struct keep *k, const struct keep_answer *a)
{
	char until[48];
	moment_text(until, sizeof(until), a->until_ms, k->o->utc);
	if (a->kept)
		str_addf(out, "process %u: kept until %s: %s\n", a->pid, until, a->reason);
	else
		str_addf(out, "process %u: %s\n", a->pid, a->why);
}

static void add_json(struct json *j, const struct keep_answer *a)
{
	json_open(j, NULL, '{');
	json_number(j, "pid", a->pid, 0);
	json_bool(j, "kept", a->kept);
	json_moment(j, "until", a->kept ? a->until_ms : -1);
	json_text(j, "reason", a->kept ? a->reason : NULL);
	json_text(j, "why_not", a->kept ? NULL : a->why);
	json_close(j, '}');
}

/* Lists the answers about the caller's processes. */
static int list(struct keep *k, struct err *e)
{
	struct str out = { 0 };
	struct json j = { .out = &out, .lines = 2 };
	size_t found = 0;
	DIR *pids = proc_open_list(k->proc);
	if (!pids)
		return err_set(e, ERR_WORLD, "cannot list processes: %s", strerror(errno));
	if (k->o->json) {
		json_open(&j, NULL, '{');
		json_text(&j, "schema", "gua-keep-1");
		json_open(&j, "kept", '[');
	}
	for (uint32_t pid; (pid = proc_next_listed(pids));) {
		struct keep_answer answer = { .pid = pid };
		bool asked = keep_spool_asked(k->spool, pid);
		if (asked)
			text_copy(answer.why, sizeof(answer.why),
				"asked for; gua enforce has not answered yet");
		else if (keep_spool_answer(k->spool, (uint32_t)getuid(), pid, &answer, NULL) ||
			 answer.start_ticks != proc_start_ticks(k->proc, pid))
			continue; /* none, or about an earlier process of this pid */
		found++;
		if (k->o->json)
			add_json(&j, &answer);
		else
			add_text(&out, k, &answer);
	}
	closedir(pids);
	if (k->o->json) {
		json_close(&j, ']');
		json_close(&j, '}');
	} else if (!found) {
		str_add(&out, "You keep no session.\n");
	}
	return cmd_print(k->self, &out) ? ERR_WORLD : 0;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct keep_options o = { 0 };
	struct keep k = { .self = self, .o = &o, .proc = -1 };
	struct err e = { 0 };
	int status = 0, first = cmd_options(self, argc, argv, &o, &status);
	if (!first)
		return status;
	const char *operand = o.drop ? o.drop : argv[first];
	if (operand && (o.drop ? argv[first] : argv[first + 1])) {
		err_set(&e, ERR_USAGE, "name one process");
		return cmd_fail(self, &e);
	}
	k.conf.root = o.root;
	if (configure(self, &k.conf, &o.conf, &o, &status) == 0) {
		int rc = find_spool(&k, &e);
		if (rc == 0)
			rc = proc_open(&k.proc, "", &e);
		if (rc == 0)
			rc = operand ? ask(&k, operand, &e) : list(&k, &e);
		status = rc == 0 ? 0 : *e.text ? cmd_fail(self, &e) : 1;
	}
	if (k.proc >= 0)
		close(k.proc);
	configuration_finish(&k.conf);
	return status;
}

const struct command cmd_keep = {
	.name = "keep",
	.summary = "keep a session of yours that policy would end; list those you keep",
	.usage = "[PID --for D --reason TEXT | --drop PID] [OPTIONS]",
	.details = "Without a pid: lists what you keep, and what was refused.\n"
		   "The whole session of the process is kept: its job, container, notebook or\n"
		   "POSIX session.",
	.options = rows,
	.run = run,
};
