/* gua-fleet: asks the engine of a fleet. It is a separate program because it links libcurl. */
#include <malloc.h>

#include "base/scratch.h"
#include "cmd/cmd_report.h"
#include "cmd/share/terminal.h"
#include "fleet/fleet_audit.h"
#include "fleet/remotes.h"
#include "fleet/roster.h"

/* Zero-initialise. */
struct fleet_ssh {
	struct scratch scratch;
	struct remotes remotes;
	struct asked_hosts asked; /* which hosts were asked, and with what result */
};

/* The engine of a report; it is connected when the report asks. */
struct session {
	struct fleet fleet;
	struct roster expected;
	const char *metrics;  /* whose; NULL or "auto": what is there */
	struct fleet_ssh ssh; /* used instead of an engine */
};

/* Largest answer in bytes: enough for 100,000 hosts. */
#define BODY_MAX ((int64_t)4 << 30)

static void show_progress(void *context, size_t n_done, size_t n_all, unsigned long long bytes)
{
	(void)context;
	fprintf(stderr, "\r\033[Kasking the engine: %zu of %zu queries answered, %.1f MiB",
		n_done, n_all, (double)bytes / (1 << 20));
	fflush(stderr);
}

/* Removes the line of progress. */
static void fleet_engine_quiet(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

/* Refuses questions that metrics cannot answer. */
static int fleet_engine_check(const struct audit_question *q, struct err *e)
{
	bool of_cards = identity_by_has(&q->by, IDENTITY_CARD) ||
			identity_by_has(&q->by, IDENTITY_MODEL);
	bool of_users = identity_by_has(&q->by, IDENTITY_USER) ||
			identity_by_has(&q->by, IDENTITY_GROUP);
	bool others = q->want_processes;
	for (size_t i = 0; i < q->by.n; i++)
		others |= identity_kinds[q->by.kinds[i]].column &&
			  q->by.kinds[i] != IDENTITY_USER;
	if (q->only.lists[ONLY_NOTEBOOK].n || q->only.lists[ONLY_JOB].n)
		return err_set(e, ERR_USAGE,
			"the metrics of a fleet have no %ss: --%s needs the store of a host",
			q->only.lists[ONLY_JOB].n ? "job" : "notebook",
			q->only.lists[ONLY_JOB].n ? "job" : "notebook");
	if (q->present_of)
		return err_set(e, ERR_USAGE,
			"the metrics of a fleet do not say what a user holds now: --digest "
			"with --user needs the store of a host");
	if (others)
		return err_set(e, ERR_USAGE,
			"the metrics of a fleet have no processes: with --from, --by takes "
			"user, group, host, card and model; a host's own store has the rest");
	if (of_cards && of_users)
		return err_set(e, ERR_USAGE,
			"the metrics of a fleet say who used a host, not on which card: with "
			"--from, --by does not combine users or groups with cards or models");
	return 0;
}

/* The same for samples of other exporters, which name pods and jobs, and say on which card. */
static int fleet_engine_check_sampled(const struct audit_question *q, struct err *e)
{
	static const enum identity known[] = { IDENTITY_USER, IDENTITY_GROUP, IDENTITY_JOB,
		IDENTITY_CONTAINER, IDENTITY_NAMESPACE, IDENTITY_WORKLOAD, IDENTITY_POD,
		IDENTITY_CARD, IDENTITY_MODEL, IDENTITY_HOST };
	bool good = !q->want_processes && !q->only.lists[ONLY_NOTEBOOK].n && !q->present_of;
	for (size_t i = 0; i < q->by.n; i++) {
		bool found = false;
		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
			found |= q->by.kinds[i] == known[k];
		good &= found;
	}
	return good ? 0
		    : err_set(e, ERR_USAGE,
			      "these metrics have no processes and no notebooks: --by takes "
			      "user, group, job, container, namespace, workload, pod, host, "
			      "card and model; gua records the rest on each host");
}

/* Shows progress if standard error is a terminal. */
static int fleet_engine_connect(struct fleet *f, const struct fleet_values *v,
	const struct config_fleet *c, struct err *e)
{
	const char *url = v->from && *v->from ? v->from : c->url;
	if (!url || !*url)
		return err_set(e, ERR_USAGE,
			"no engine is known: give --from http://HOST:9090, or url in [fleet] "
			"of gua.conf");
	struct client_options o = {
		.conf = *c, .headers = &v->headers, .params = &v->params, .body_max = BODY_MAX
	};
	o.conf.url = url;
	int rc = fleet_open(f, &o, e);
	if (rc == 0 && isatty(STDERR_FILENO))
		client_watch(f->client, show_progress, NULL);
	return rc;
}

enum { LIST_MAX_BYTES = 1 << 20 };

static void show_fetching(size_t n_done, size_t n_all)
{
	fprintf(stderr, "\r\033[Kasking the hosts: %zu of %zu are done", n_done, n_all);
	fflush(stderr);
}

static int take_stores(struct fleet_ssh *s, struct store_list *stores, struct err *e)
{
	struct asked_failure *failed = calloc(s->remotes.n + 1, sizeof(*failed));
	int rc = failed ? 0 : err_memory(e);
	s->asked.failed = failed;
	s->asked.n_asked = s->remotes.n;
	s->asked.directory = s->scratch.path;
	for (size_t i = 0; i < s->remotes.n && rc == 0; i++) {
		const struct remote *host = &s->remotes.items[i];
		if (*host->why)
			log_notice("%s: %s", host->name, host->why);
		if (host->state == REMOTE_FETCHED)
			rc = store_list_add(stores, host->path, e);
		if (host->state != REMOTE_FAILED)
			s->asked.n_answered++;
		else
			failed[s->asked.n_failed++] =
				(struct asked_failure){ host->name, host->why };
	}
	if (rc == 0 && s->asked.n_answered == 0)
		rc = err_set(e, ERR_WORLD, "none of the hosts could be read");
	return rc;
}

/* Fetches the stores, and adds their paths. Each host that failed is named in the log.
 * ERR_WORLD: none answered. */
static int fetch(void *context, const struct report_hosts *hosts, struct store_list *stores,
	struct err *e)
{
	struct session *session = context;
	struct fleet_ssh *s = &session->ssh;
	struct file_content f = { 0 };
	const char *directory = secure_getenv("TMPDIR");
	int rc = strcmp(hosts->file, "-") == 0
			 ? file_read_all("/dev/stdin", LIST_MAX_BYTES, &f.data, &f.len, e)
			 : file_read_regular(hosts->file, LIST_MAX_BYTES, &f, e);
	if (rc == 0)
		rc = remotes_read(&s->remotes, f.data, e);
	free(f.data);
	if (rc)
		err_prefix(e, "--ssh");
	else
		rc = scratch_open(
			&s->scratch, directory && *directory == '/' ? directory : "/tmp", e);
	const struct remotes_wish wish = { .since_ms = hosts->since_ms,
		.until_ms = hosts->until_ms,
		.timeout_ms = hosts->timeout_ms,
		.directory = s->scratch.path,
		.env = (const char *const *)environ,
		.progress = isatty(STDERR_FILENO) ? show_fetching : NULL };
	if (rc == 0)
		rc = remotes_fetch(&s->remotes, &wish, e);
	fleet_engine_quiet();
	return rc ? rc : take_stores(s, stores, e);
}

enum { BACK_MS = 86400000 };

static int show(const struct call *call, struct err *e)
{
	const struct fleet_status_values *v = call->values;
	const struct config *c = &call->conf->values;
	struct fleet f = { 0 };
	struct roster r = { 0 };
	struct audit samples = { 0 };
	struct str out = { 0 };
	int64_t now_ms = 0, back_ms = v->back_ms ? v->back_ms : BACK_MS;
	const struct roster_style style = { .text = { .columns = 80,
						    .ascii = !terminal_is_utf8(),
						    .color = terminal_has_color(),
						    .utc = v->utc },
		.all = v->all };
	int rc = cmd_now(v->now, &now_ms, e) || roster_expect(&r, c->fleet.expect, e) ||
		 fleet_engine_connect(&f, &v->fleet, &c->fleet, e) ||
		 roster_read(&r, &f, now_ms, back_ms, e);
	const struct audit_question q = {
		.since_ms = now_ms - back_ms, .until_ms = now_ms, .now_ms = now_ms, .utc = true
	};
	/* The hosts that have no gua, from the samples of other exporters in the look-back. */
	const struct fleet_question question = { &q, &r, "others", fleet_engine_check,
		fleet_engine_check_sampled };
	if (rc == 0) {
		client_bound(f.client, BODY_MAX);
		rc = fleet_audit_run(&samples, &f, &question, e) ||
		     roster_settle(&r, &f, &samples, e);
	}
	fleet_engine_quiet();
	if (rc == 0 && v->json)
		roster_json(&out, &r, &f);
	else if (rc == 0)
		roster_text(&out, &r, &f, &style);
	rc = rc ? e->code : cmd_print(call->self, &out);
	bool well = r.n_seen && r.counts[ROSTER_OK] == r.n_seen && !r.counts[ROSTER_MISSING];
	if (rc == 0 && v->check && !well)
		rc = 1;
	roster_finish(&r);
	audit_finish(&samples);
	fleet_close(&f);
	return rc;
}

static int status_main(int argc, char **argv)
{
	struct command own = cmd_fleet;
	own.operands = NULL;
	own.run = show;
	return cmd_run(&own, argc, argv);
}

static int open_session(
	void *context, const struct fleet_values *v, const struct config *c, struct err *e)
{
	struct session *session = context;
	session->metrics = v->metrics ? v->metrics : "auto";
	int rc = roster_expect(&session->expected, c->fleet.expect, e);
	return rc ? rc : fleet_engine_connect(&session->fleet, v, &c->fleet, e);
}

static int audit(void *context, struct audit *a, const struct audit_question *q, struct err *e)
{
	struct session *session = context;
	const struct fleet_question question = { q, &session->expected, session->metrics,
		fleet_engine_check, fleet_engine_check_sampled };
	int rc = fleet_audit_run(a, &session->fleet, &question, e);
	fleet_engine_quiet();
	return rc;
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
	struct command own = cmd_report;
	own.parts = &engine;
	int status = cmd_run(&own, argc, argv);
	/* The report covers less than was asked for. */
	if (status == 0 && session.ssh.asked.n_failed)
		status = 1;
	scratch_close(&session.ssh.scratch);
	free((void *)(uintptr_t)session.ssh.asked.failed);
	remotes_finish(&session.ssh.remotes);
	fleet_close(&session.fleet);
	roster_finish(&session.expected);
	return status;
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	file_hold_standard();
	mallopt(M_MMAP_THRESHOLD, 128 * 1024); /* what is freed goes back at once */
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
