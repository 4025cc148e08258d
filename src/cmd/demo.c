/* gua demo: records a simulated lab on a simulated clock, and prints the report. */
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "record/recorder.h"
#include "query/audit.h"
#include "query/report.h"
#include "render/report.h"

/* Monday 2026-11-02 08:00 UTC: a fixed start, so that the output is the same each time. */
#define DEMO_START_MS 1793606400000LL
#define HOUR_MS 3600000LL

struct values {
	const char *db, *scenario;
	int64_t ticks, interval_ms;
};

static const struct option_row options[] = {
	{ OPTION_COUNT, 0, "ticks", "N", "how many ticks to record (default 30)",
		.offset = offsetof(struct values, ticks), .min = 1, .max = 1000 },
	{ OPTION_DURATION, 'i', "interval", "D", "time between ticks, simulated (default 1m)",
		.offset = offsetof(struct values, interval_ms), .min = 1000, .max = 86400e3 },
	{ OPTION_TEXT, 0, "db", "PATH", "keep the store in PATH (default: a temporary file)",
		.offset = offsetof(struct values, db) },
	{ OPTION_TEXT, 0, "scenario", "FILE", "play FILE instead of the built-in lab",
		.offset = offsetof(struct values, scenario) },
	{ 0 },
};

static int make_temporary(char *path, size_t cap, struct err *e)
{
	const char *directory = getenv("TMPDIR");
	snprintf(path, cap, "%s/gua-demo-XXXXXX.db",
		directory && *directory ? directory : "/tmp");
	int fd = mkstemps(path, 3);
	if (fd < 0)
		return err_set(e, ERR_WORLD, "cannot create %s: %s", path, strerror(errno));
	close(fd);
	return 0;
}

/* Removes the files of a failed demo. */
static void remove_temporary(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	char name[PATH_MAX + 8];
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

static void say_where(const char *path)
{
	char safe[PATH_MAX];
	text_escape(safe, sizeof(safe), path, strlen(path));
	fprintf(stderr, "simulated data, in %s\n", safe);
}

/* Records on a virtual clock. Long intervals are sampled less often, so that a simulated month
 * takes no longer than a simulated minute. */
static int record(const struct values *v, struct clock *clock, struct err *e)
{
	int64_t drain_ms = v->interval_ms / 6 > 5000 ? v->interval_ms / 6 : 5000;
	int64_t period_us = v->interval_ms * 1000 / 180;
	struct recorder_options o = {
		.db = v->db,
		.source = { .name = "sim",
			.scenario = v->scenario,
			.root = "",
			.clock = clock,
			.sample_period_us = period_us > 1000000 ? period_us : 0 },
		.rules = RULES_DEFAULT,
		.interval_ms = v->interval_ms,
		.drain_ms = drain_ms,
		.glance_ms = v->interval_ms > 60000 ? drain_ms : 1000,
		.deadline_ms = 60000,
		.retry_ms = v->interval_ms,
		.max_ticks = v->ticks,
		.slot_seconds = v->interval_ms > HOUR_MS ? 3600 : 0,
		.keep = RETENTION_DEFAULT,
		.stop_fd = -1,
		.lock_fd = -1,
	};
	log_setup(LOG_LEVEL_ERROR, LOG_STYLE_PLAIN);
	clock_init_virtual(clock, DEMO_START_MS);
	return recorder_run(&o, e);
}

static int print_report(
	const struct command *self, const char *db, int64_t now_ms, struct err *e)
{
	const char *const paths[] = { db };
	struct audit_question q = {
		.paths = paths,
		.n_paths = 1,
		.since_ms = 0,
		.until_ms = now_ms,
		.now_ms = now_ms,
		.utc = true,
	};
	struct audit a = { 0 };
	if (audit_run(&a, &q, e) == 0 && a.n_cards == 0)
		err_set(e, ERR_WORLD, "the scenario has no cards");
	if (e->code) {
		audit_finish(&a);
		return cmd_fail(self, e);
	}
	setlocale(LC_CTYPE, "");
	struct report_style style = {
		.text = { .columns = 80,
			.utc = true,
			.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0 },
		.bar_cells = 60,
	};
	struct report_request request = { .top = 10, .cost = NAN, .currency = "", .utc = true };
	struct report r;
	struct str out = { 0 };
	report_make(&r, &a, &request);
	report_text(&out, &r, &style);
	report_finish(&r);
	audit_finish(&a);
	return cmd_print(self, &out);
}

static int run(const struct command *self, int argc, char **argv)
{
	int status = 0;
	struct err e = { 0 };
	struct clock clock;
	char path[PATH_MAX];
	struct values v = { .ticks = 30, .interval_ms = 60000 };
	if (cmd_options_only(self, argc, argv, &v, &status))
		return status;
	if (v.db && access(v.db, F_OK) == 0) {
		err_set(&e, ERR_WORLD,
			"%s already exists; give --db a new file for the invented data", v.db);
		return cmd_fail(self, &e);
	}
	if (!v.db && make_temporary(path, sizeof(path), &e))
		return cmd_fail(self, &e);
	v.db = v.db ? v.db : path;
	if (record(&v, &clock, &e))
		status = cmd_fail(self, &e);
	else
		status = print_report(self, v.db, clock_wall_ms(&clock), &e);
	if (e.code && v.db == path)
		remove_temporary(path);
	else if (!e.code)
		say_where(v.db);
	return status;
}

const struct command cmd_demo = {
	.name = "demo",
	.summary = "record a simulated lab and print the report; no GPU needed",
	.usage = "[--ticks N] [--interval D] [--db PATH]",
	.details = "All data is invented. The clock is simulated too, so the command finishes "
		   "at once, and\n"
		   "its output is the same each time.",
	.options = options,
	.run = run,
};
