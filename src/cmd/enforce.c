/* gua enforce: warns, then ends, sessions that hold cards idle for too long. */
#include "cmd/enforce.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/moment.h"
#include "cmd/share/choose_db.h"
#include "cmd/share/hand_over.h"
#include "policy/user_talk.h"
#include "store/policy/policy_file.h"

#define AT(field) .offset = offsetof(struct enforce_options, field)
static const struct option_row rows[] = {
	{ OPTION_TEXT, 0, "db", "FILE", "store to read", AT(db) },
	{ OPTION_TEXT, 0, "policy-db", "FILE",
		"policy's own file (default: policy.db beside the store)", AT(policy_db) },
	WINDOW_OPTIONS(struct enforce_options, window, "30d ago", "now"),
	{ OPTION_FLAG, 0, "json", .help = "print JSON", AT(json) },
	{ OPTION_FLAG, 0, "utc", .help = "times in UTC instead of local time", AT(utc) },
	{ OPTION_FLAG, 0, "once", .help = "run: one pass, then exit", AT(once) },
	CONFIGURE_ROWS(struct enforce_options, conf),
	NOW_OPTION(struct enforce_options, now),
	{ OPTION_TEXT, 0, "clock", "HOW", "real, virtual, or a clock file", AT(clock),
		.hidden = true },
	{ OPTION_TEXT, 0, "root", "DIR", "look for etc below DIR", AT(root), .hidden = true },
	{ 0 },
};

static const struct subcommand {
	const char *name;
	int (*run)(struct enforce *x); /* NULL: of struct enforce_parts */
	bool operand;		       /* has one */
} subcommands[] = {
	{ "run", NULL, false },
	{ "test-notice", NULL, true },
	{ "simulate", enforce_simulate, false },
	{ "explain", enforce_explain, true },
	{ "status", enforce_status, false },
	{ "log", enforce_log, false },
	{ "arm", enforce_arm, false },
	{ "disarm", enforce_disarm, false },
	{ "release", enforce_release, false },
};
enum { N_SUBCOMMANDS = sizeof(subcommands) / sizeof(subcommands[0]) };
#define SUBCOMMANDS "run|test-notice|simulate|explain|status|log|arm|disarm|release"

void enforce_moment(const struct enforce *x, char *dst, size_t cap, int64_t ms)
{
	if (ms < 0)
		snprintf(dst, cap, "-");
	else
		moment_text(dst, cap, ms, x->o->utc);
}

static const struct subcommand *find(const char *name, struct err *e)
{
	const char *best = NULL;
	size_t len = strlen(name), least = nearest_far(len) + 1;
	for (size_t i = 0; i < N_SUBCOMMANDS; i++) {
		const char *own = subcommands[i].name;
		if (strcmp(own, name) == 0)
			return &subcommands[i];
		size_t d = nearest_distance(own, strlen(own), name, len);
		if (d < least && 2 * d <= len) {
			least = d;
			best = own;
		}
	}
	if (best)
		err_set(e, ERR_USAGE, "there is no 'gua enforce %s'; did you mean '%s'?", name,
			best);
	else
		err_set(e, ERR_USAGE,
			"there is no 'gua enforce %s'; write one of: " SUBCOMMANDS, name);
	return NULL;
}

/* Where gua-enforce.service keeps its file. A link to it beside the store is for readers: who
 * writes does not follow links. */
#define SERVICE_DIRECTORY "/var/lib/gua-enforce"

int enforce_socket(
	char path[PATH_MAX], const struct config_policy *config, const char *db, struct err *e)
{
	struct chosen_db chosen = { .path = "" };
	user_talk_path(path, PATH_MAX, config->socket, db ? db : SYSTEM_DB);
	if (db || config->socket || access(path, F_OK) == 0)
		return 0;
	int rc = choose_db_to_read(&chosen, e);
	if (rc == 0)
		user_talk_path(path, PATH_MAX, NULL, chosen.path);
	return rc;
}

static int choose_files(struct enforce *x, struct err *e)
{
	struct chosen_db chosen = { .path = "" };
	int rc = x->o->db ? 0 : choose_db_to_read(&chosen, e);
	if (rc)
		return rc;
	str_copy(x->db, sizeof(x->db), x->o->db ? x->o->db : chosen.path);
	if (x->o->policy_db)
		str_copy(x->policy_db, sizeof(x->policy_db), x->o->policy_db);
	else if (strcmp(x->db, SYSTEM_DB) == 0 && access(SERVICE_DIRECTORY, F_OK) == 0)
		str_copy(x->policy_db, sizeof(x->policy_db), SERVICE_DIRECTORY "/policy.db");
	else
		policy_file_path(x->policy_db, sizeof(x->policy_db), x->db);
	return 0;
}

/* What was written after "gua enforce". */
static int read_operands(
	struct enforce *x, char **words, const struct subcommand **sub, struct err *e)
{
	if (!words[0])
		return err_set(e, ERR_USAGE, "say what to do: " SUBCOMMANDS);
	*sub = find(words[0], e);
	if (!*sub)
		return ERR_USAGE;
	x->operand = words[1];
	if (x->operand && ((*sub)->operand ? words[2] : words[1]))
		return err_set(e, ERR_USAGE, "unexpected argument '%s'",
			(*sub)->operand ? words[2] : words[1]);
	return 0;
}

/* The function of a subcommand; NULL: this program does not have it. */
static int (*function_of(const struct subcommand *sub, const struct enforce_parts *parts))(
	struct enforce *x)
{
	if (sub->run || !parts)
		return sub->run;
	return strcmp(sub->name, "run") == 0 ? parts->run : parts->test_notice;
}

static int no_program(const struct command *self)
{
	struct err e = { 0 };
	err_set(&e, ERR_WORLD,
		"the program gua-enforce is not installed; install the package gua-enforce, or "
		"build gua with the option enforce");
	return cmd_fail(self, &e);
}

static int configure_and_run(struct enforce *x, int (*run)(struct enforce *x))
{
	int status = 0;
	x->conf.root = x->o->root;
	if (configure(x->self, &x->conf, &x->o->conf, x->o, &status) == 0) {
		x->policy = (struct policy){ .config = &x->conf.values, .utc = x->o->utc };
		x->policy.enforce = strcmp(x->conf.values.policy.mode, "enforce") == 0;
		status = run(x);
	}
	configure_finish(&x->conf);
	return status;
}

int enforce_command(
	const struct command *self, int argc, char **argv, const struct enforce_parts *parts)
{
	struct enforce_options o = { 0 };
	struct enforce x = { .self = self, .o = &o };
	const struct subcommand *sub = NULL;
	struct err e = { 0 };
	int status = 0;
	int first = cmd_options(self, argc, argv, &o, &status);
	if (!first)
		return status;
	int rc = read_operands(&x, argv + first, &sub, &e);
	if (rc == 0)
		rc = cmd_now(o.now, &x.now_ms, &e);
	if (rc == 0)
		rc = choose_files(&x, &e);
	if (rc)
		return cmd_fail(self, &e);
	int (*run)(struct enforce * x) = function_of(sub, parts);
	if (!run && !parts)
		hand_over(self->name, argv);
	return run ? configure_and_run(&x, run) : no_program(self);
}

static int run_command(const struct command *self, int argc, char **argv)
{
	return enforce_command(self, argc, argv, NULL);
}

const struct command cmd_enforce = {
	.name = "enforce",
	.summary = "warn, then end, sessions that hold cards idle for too long",
	.usage = "run | simulate | explain PID | status | log |\n"
		 "       arm --until DATE | disarm | release | test-notice USER [OPTIONS]",
	.details =
		"run         the service: judges every minute, warns and ends\n"
		"simulate    what the rules would have done in the past\n"
		"explain     rule by rule, what happens to the session of a process, and why;\n"
		"            of one's own processes without the right to read the store\n"
		"status      the mode, and the sessions that were warned\n"
		"log         every step that was taken, or would have been (the last 30 days)\n"
		"arm         allow ending until a day or for a time (--until 2026-12-31, 7d)\n"
		"disarm      forbid ending again\n"
		"release     go on after the breaker has stopped everything\n"
		"test-notice send a notice to a user through each channel",
	.options = rows,
	.operands = SUBCOMMANDS,
	.run = run_command,
};
