/* gua-fleet: asks the engine of a fleet. It is a separate program because it links libcurl. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/cmd_fleet.h"
#include "cmd/fleet_engine.h"
#include "cmd/fleet_ssh.h"
#include "cmd/cmd_report.h"
#include "cmd/share/terminal.h"
#include "cmd/share/cmd_window.h"
#include "fleet/roster.h"
#include "fleet/survey.h"

enum { BACK_MS = 86400000 };

static int show(const struct fleet_status_values *v, const struct config *c)
{
	struct err e = { 0 };
	struct fleet f = { 0 };
	struct roster r = { 0 };
	struct str out = { 0 };
	int64_t now_ms = 0;
	const struct roster_style style = { .text = { .columns = 80,
						    .ascii = !terminal_is_utf8(),
						    .color = terminal_has_color(),
						    .utc = v->utc },
		.all = v->all };
	int rc = cmd_now(v->now, &now_ms, &e);
	if (rc == 0)
		rc = roster_expect(&r, c->fleet.expect, &e);
	if (rc == 0)
		rc = fleet_engine_connect(&f, &v->fleet, &c->fleet, &e);
	if (rc == 0)
		rc = roster_read(&r, &f, now_ms, v->back_ms ? v->back_ms : BACK_MS, &e);
	fleet_engine_quiet();
	if (rc == 0 && v->json)
		roster_json(&out, &r, &f);
	else if (rc == 0)
		roster_text(&out, &r, &f, &style);
	int status = rc ? cmd_fail(&cmd_fleet, &e) : cmd_print(&cmd_fleet, &out);
	bool well = r.n_seen && r.counts[ROSTER_OK] == r.n_seen && !r.counts[ROSTER_MISSING];
	if (status == 0 && v->check && !well)
		status = 1;
	roster_finish(&r);
	fleet_close(&f);
	return status;
}

static int status_main(int argc, char **argv)
{
	struct fleet_status_values v = { 0 };
	struct configuration conf = { 0 };
	struct command_line line = { .argc = argc, .argv = argv, .given = conf.given };
	int status = 0;
	if (!cmd_line_only(&cmd_fleet, &line, &v, &status) &&
		!configure(&cmd_fleet, &conf, &v.conf, &v, &status))
		status = show(&v, &conf.values);
	configuration_finish(&conf);
	return status;
}

/* The engine of a report: connected when the report asks. */
struct session {
	struct fleet fleet;
	struct roster expected;
	struct fleet_ssh ssh; /* instead of an engine */
};

static int open_session(
	void *context, const struct fleet_values *v, const struct config *c, struct err *e)
{
	struct session *session = context;
	int rc = roster_expect(&session->expected, c->fleet.expect, e);
	return rc ? rc : fleet_engine_connect(&session->fleet, v, &c->fleet, e);
}

static int audit(void *context, struct audit *a, const struct audit_question *q, struct err *e)
{
	struct session *session = context;
	int rc = fleet_engine_check(q, e);
	if (rc == 0)
		rc = survey_run(a, &session->fleet, q, &session->expected, e);
	fleet_engine_quiet();
	return rc;
}

static int fetch(void *context, const struct report_hosts *hosts, struct store_list *stores,
	struct err *e)
{
	struct session *session = context;
	return fleet_ssh_fetch(&session->ssh, hosts, stores, e);
}

static const struct asked_hosts *asked(void *context)
{
	const struct session *session = context;
	return &session->ssh.asked;
}

static int report_main(int argc, char **argv)
{
	struct session session = { 0 };
	const struct report_engine engine = { open_session, audit, fetch, asked, &session };
	int status = report_run(&cmd_report, argc, argv, &engine);
	/* The report is about less than was asked for. */
	if (status == 0 && session.ssh.asked.n_failed)
		status = 1;
	fleet_ssh_finish(&session.ssh);
	fleet_close(&session.fleet);
	roster_finish(&session.expected);
	return status;
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	file_hold_standard();
	const char *word = argc > 1 ? argv[1] : "";
	if (argc > 0 && strcmp(argv[0], "report") == 0)
		return report_main(argc, argv);
	if (strcmp(word, "report") == 0)
		return report_main(argc - 1, argv + 1);
	if (strcmp(word, "status") == 0)
		return status_main(argc - 1, argv + 1);
	if (*word == '-')
		return status_main(argc, argv);
	err_set(&e, ERR_USAGE,
		*word ? "there is no '%s'; there are status and report"
		      : "say what: status or report%s",
		word);
	return cmd_fail(&cmd_fleet, &e);
}
