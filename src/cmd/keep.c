/* gua keep: a user asks to keep a session that policy would warn about or end. */
#include "cmd/enforce.h"
#include "policy/user_talk.h"
#include "proc/proc.h"
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
	{ OPTION_TEXT, 0, "drop", "PID|LEASE", "stop keeping it", AT(drop) },
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
	char socket[PATH_MAX];
	int proc;
};

/* How the output calls what is kept. */
static const char *name_of(char dst[LABEL_CAP + 16], const struct facts_asked *what)
{
	if (*what->lease)
		snprintf(dst, LABEL_CAP + 16, "lease %s", what->lease);
	else
		snprintf(dst, LABEL_CAP + 16, "process %u", what->pid);
	return dst;
}

/* Makes the request, for a lease, or a process that exists and belongs to the caller. */
static int make_request(
	const struct keep *k, const char *operand, struct user_request *r, struct err *e)
{
	struct proc_status status;
	bool drop = r->ask == USER_ASK_DROP;
	if (enforce_parse_asked(operand, &r->what, e))
		return e->code;
	if (!drop && k->o->for_ms == 0)
		return err_set(e, ERR_USAGE, "say for how long, as in --for 4h");
	if (!drop && (!k->o->reason || !*k->o->reason))
		return err_set(e, ERR_USAGE, "say why, as in --reason 'waiting for data'");
	r->for_ms = k->o->for_ms;
	if (k->o->reason && !str_copy(r->reason, sizeof(r->reason), k->o->reason))
		return err_set(e, ERR_USAGE, "--reason takes at most %d characters",
			USER_REASON_CAP - 1);
	if (*r->what.lease)
		return 0;
	r->start_ticks = proc_start_ticks(k->proc, r->what.pid);
	if (!r->start_ticks)
		return err_set(e, ERR_NOTHING, "there is no process %u", r->what.pid);
	if (getuid() != 0 && proc_read_status(k->proc, r->what.pid, &status) == 0 &&
		status.uid != (int64_t)getuid())
		return err_set(e, ERR_WORLD, "process %u belongs to another user", r->what.pid);
	return 0;
}

static void add_json(struct str *out, const struct user_answer *a)
{
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-keep-1");
	json_open(&j, "kept", '[');
	for (size_t i = 0; i < a->n_kept; i++) {
		json_open(&j, NULL, '{');
		const struct facts_asked *what = &a->kept[i].what;
		json_number(&j, "pid", what->pid ? what->pid : (double)NAN, 0);
		json_label(&j, "lease", what->lease);
		json_bool(&j, "kept", true);
		json_moment(&j, "until", a->kept[i].until_ms);
		json_text(&j, "reason", a->kept[i].reason);
		json_text(&j, "why_not", NULL);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

/* Asks to keep or drop a session; without an operand, lists what is kept. */
static int ask(struct keep *k, const char *operand, struct err *e)
{
	struct user_request r = { .ask = k->o->drop ? USER_ASK_DROP
					 : operand  ? USER_ASK_KEEP
						    : USER_ASK_LIST };
	struct user_answer answer = { 0 };
	struct str out = { 0 };
	char name[LABEL_CAP + 16];
	if (operand && make_request(k, operand, &r, e))
		return e->code;
	int rc = user_talk_ask(k->socket, &r, &answer, e);
	if (rc) {
		if (operand && *answer.why)
			err_set(e, rc, "%s: %s", name_of(name, &r.what), answer.why);
	} else if (k->o->json) {
		add_json(&out, &answer);
	} else if (k->o->drop) {
		str_addf(&out, "%s: it is no longer kept\n", name_of(name, &r.what));
	} else if (!answer.n_kept) {
		str_add(&out, "You keep no session.\n");
	} else {
		for (size_t i = 0; i < answer.n_kept; i++)
			str_addf(&out, "%s: kept until %s: %s\n",
				name_of(name, &answer.kept[i].what),
				moment_text(answer.kept[i].until_ms, k->o->utc).text,
				answer.kept[i].reason);
	}
	user_talk_finish_answer(&answer);
	return rc ? rc : cmd_print(k->self, &out);
}

static int run(const struct call *call, struct err *e)
{
	const struct keep_options *o = call->values;
	char **words = call->operands;
	struct keep k = { .self = call->self, .o = o, .proc = -1 };
	const struct config_policy *policy = &call->conf->values.policy;
	int status = 0;
	if (*words && (o->drop || words[1]))
		return err_set(e, ERR_USAGE, "name one process or lease");
	call->conf->root = o->root;
	if (configure(call->self, call->conf, &o->conf, &status))
		return status;
	if (enforce_socket(k.socket, policy, o->db, e) || proc_open(&k.proc, "", e))
		return e->code;
	int rc = ask(&k, o->drop ? o->drop : *words, e);
	close(k.proc);
	return rc;
}

const struct command cmd_keep = {
	.name = "keep",
	.summary = "keep a session of yours that policy would end; list those you keep",
	.usage = "[PID|LEASE --for D --reason TEXT | --drop PID|LEASE] [OPTIONS]",
	.details = "Without a pid: lists what you keep.\n"
		   "The whole session of the process is kept: its job, container, notebook or\n"
		   "POSIX session. A lease is one that a rule judges: slurm:4, "
		   "pod:NAMESPACE/NAME.",
	.options = rows,
	.operands = "",
	.values_size = sizeof(struct keep_options),
	.run = run,
};
