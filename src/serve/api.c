/* Answers with the documents of the API: the cards and holders at the last tick of each store,
 * events, the log of gua enforce, reports, the status of a recorder, health, metrics. */
#include "serve/api.h"

#include "export/exposition.h"
#include "export/scrape.h"
#include "model/card.h"
#include "model/table.h"
#include "present/holders.h"
#include "render/documents.h"
#include "render/json.h"
#include "render/report_formats.h"
#include "render/rows.h"
#include "report/event_list.h"
#include "report/report_policy.h"
#include "store/recorder_status.h"

/* How long a request waits for a locked store. */
enum { WAIT_MS = 2000 };

static bool is_csv(const struct answer *a)
{
	return strcmp(a->type, TYPE_CSV) == 0;
}

static void add_card(struct json *j, const struct present *now, const struct present_card *c)
{
	json_open(j, NULL, '{');
	json_text(j, "host", now->hosts[c->host].hostname);
	json_number(j, "card", c->id.index, 0);
	json_known(j, "mig_index", c->id.mig_index);
	json_text(j, "uuid", c->id.uuid);
	json_text(j, "name", c->id.name);
	json_label(j, "pci", c->id.pci);
	json_text(j, "status", card_status_names[c->status]);
	json_moment(j, "last_seen", c->last_seen_ms);
	json_text(j, "state", state_looks[c->state].key);
	json_moment(j, "state_since", c->state_since_ms);
	json_bool(j, "state_since_is_lower_bound", c->state_longer);
	json_number(j, "util_pct", c->values[METRIC_UTILIZATION_GPU], 1);
	json_number(j, "power_w", c->values[METRIC_POWER_DRAW], 1);
	json_number(j, "temperature_c", c->values[METRIC_TEMPERATURE_GPU], 0);
	json_number(j, "mem_used_bytes", c->values[METRIC_MEMORY_USED], 0);
	json_known(j, "mem_total_bytes", c->id.mem_total_bytes);
	json_number(j, "holders", (double)c->n_processes, 0);
	json_label(j, "leased_to", c->leased_to);
	json_moment(j, "leased_since", c->leased_since_ms);
	json_close(j, '}');
}

/* The holders that are requested, by the same words as the options of `gua who`. */
struct who_params {
	struct text_list users, cards;
	int64_t idle_ms; /* -1: any */
};

#define AT(member) .offset = offsetof(struct who_params, member)
static const struct option_row who_rows[] = {
	{ .kind = OPTION_LIST, .name = "user", AT(users) },
	{ .kind = OPTION_LIST, .name = "card", AT(cards) },
	{ .kind = OPTION_DURATION, .name = "idle", AT(idle_ms) },
	{ 0 },
};

/* The requested holders; `columns` must outlive the table. Call table_finish(). */
static struct table list_holders(const struct present *now, const struct who_params *p,
	struct column columns[HOLDER_COLUMNS_MAX])
{
	struct table t = { .columns = columns,
		.n_columns = holders_data_columns(columns, true) };
	struct holder_row row;
	for (size_t i = 0; i < now->n_processes; i++) {
		const struct present_process *h = &now->processes[i];
		int64_t idle_ms = !h->active && h->idle_since_ms >= 0
					  ? now->now_ms - h->idle_since_ms
					  : -1;
		if (!options_list_takes(&p->users, NULL, h->id.user) ||
			!options_list_takes(&p->cards, card_matches, &now->cards[h->card].id) ||
			(p->idle_ms >= 0 && (idle_ms < 0 || idle_ms < p->idle_ms)))
			continue;
		holders_row(&row, now, &now->processes[i]);
		table_add(&t, &row);
	}
	return t;
}

static void add_holders(struct json *j, const struct present *now, const struct who_params *p)
{
	struct column columns[HOLDER_COLUMNS_MAX];
	struct table t = list_holders(now, p, columns);
	rows_json_table(j, "holders", &t);
	table_finish(&t);
}

void api_now(const struct request *q, struct answer *a)
{
	const struct who_params all = { .idle_ms = -1 };
	struct present now = { 0 };
	struct json j = { .out = &a->body, .lines = 2 };
	struct err e = { 0 };
	if (request_read_present(&now, q, WAIT_MS, &e) != 0) {
		answer_err(a, q, &e);
	} else {
		json_open(&j, NULL, '{');
		json_text(&j, "schema", "gua-now-1");
		json_moment(&j, "time", q->now_ms);
		json_open(&j, "hosts", '[');
		for (size_t i = 0; i < now.n_hosts; i++) {
			const struct present_host *h = &now.hosts[i];
			json_open(&j, NULL, '{');
			json_text(&j, "host", h->hostname);
			json_label(&j, "driver", h->driver);
			json_label(&j, "source", h->source);
			json_bool(&j, "simulated", h->simulated);
			json_bool(&j, "fresh", !h->stale);
			json_moment(&j, "last_tick", h->last_tick_ms);
			json_number(&j, "interval_seconds", (double)h->interval_ms / 1000, 3);
			json_close(&j, '}');
		}
		json_close(&j, ']');
		json_open(&j, "cards", '[');
		for (size_t i = 0; i < now.n_cards; i++)
			add_card(&j, &now, &now.cards[i]);
		json_close(&j, ']');
		add_holders(&j, &now, &all);
		json_close(&j, '}');
	}
	present_store_finish(&now);
}

/* Why the holders are not current; NULL: they are. */
static const char *note_of(const struct present *now)
{
	for (size_t i = 0; i < now->n_hosts; i++)
		if (now->hosts[i].stale)
			return now->hosts[i].any_run ? "the recorder is not running: these "
						       "were the holders at its last tick"
						     : "nothing has been recorded yet";
	return NULL;
}

void api_who(const struct request *q, struct answer *a)
{
	struct who_params p = { .idle_ms = -1 };
	struct present now = { 0 };
	struct json j = { .out = &a->body, .lines = 2 };
	struct err e = { 0 };
	if (request_read(q, who_rows, &p, &e) || request_read_present(&now, q, WAIT_MS, &e)) {
		answer_err(a, q, &e);
	} else if (is_csv(a)) {
		struct column columns[HOLDER_COLUMNS_MAX];
		struct table t = list_holders(&now, &p, columns);
		rows_table(&a->body, &t);
		table_finish(&t);
	} else {
		json_open(&j, NULL, '{');
		json_text(&j, "schema", "gua-who-1");
		json_text(&j, "host", now.n_hosts == 1 ? now.hosts[0].hostname : NULL);
		json_moment(&j, "time", q->now_ms);
		json_text(&j, "note", note_of(&now));
		json_moment(&j, "recorded_until",
			now.n_hosts == 1 && now.hosts[0].stale ? now.hosts[0].last_tick_ms
							       : -1);
		add_holders(&j, &now, &p);
		rows_json_reserved(&j, &now);
		json_close(&j, '}');
	}
	present_store_finish(&now);
}

/* The window of events and of the log; its route says which parameters a request may have. */
struct events_params {
	struct window_words window;
	struct event_words only;
	const char *utc;
};

#undef AT
#define AT(member) .offset = offsetof(struct events_params, member)
static const struct option_row event_rows[] = {
	{ .kind = OPTION_TEXT, .name = "since", .arg = "TIME", AT(window.since) },
	{ .kind = OPTION_TEXT, .name = "until", .arg = "TIME", AT(window.until) },
	{ .kind = OPTION_TEXT, .name = "last", .arg = "TIME", AT(window.last) },
	{ .kind = OPTION_CHOICE, .name = "utc", .choices = "1|0", AT(utc) },
	{ .kind = OPTION_LIST, .name = "card", AT(only.cards) },
	{ .kind = OPTION_LIST, .name = "kind", AT(only.kinds) },
	{ 0 },
};

void api_events(const struct request *q, struct answer *a)
{
	struct event_list list = { 0 };
	struct events_params p = { 0 };
	struct err e = { 0 };
	const struct serve_world *world = q->world;
	struct audit_question question = { .paths = (const char *const *)world->stores->paths,
		.n_paths = world->stores->n,
		.stop = q->stop };
	const struct event_choice choice = { event_list_takes, &p.only };
	if (request_read(q, event_rows, &p, &e) || event_list_check(&p.only, &e) ||
		event_list_ask(&question, &p.window, q->now_ms,
			p.utc ? *p.utc == '1' : world->utc, &e) ||
		event_list_read(&list, &question, &choice, &e))
		answer_err(a, q, &e);
	else if (is_csv(a))
		rows_table(&a->body, &list.table);
	else
		documents_events(&a->body, &list);
	event_list_finish(&list);
}

/* The table to which the steps from all policy.db files are added. */
struct log_fold {
	struct table *table;
	struct policy_span span;
};

static int add_log(void *context, const char *db, const char *policy_db, struct err *e)
{
	const struct log_fold *fold = context;
	struct policy_file *f = NULL;
	(void)db;
	int rc = policy_file_open(&f, policy_db, false, e);
	if (rc == 0)
		rc = report_policy_add_log(fold->table, f, fold->span, e);
	policy_file_close(f);
	return rc;
}

void api_policy(const struct request *q, struct answer *a)
{
	struct table log = report_policy_log();
	struct events_params p = { 0 };
	struct err e = { 0 };
	struct policy_span span = { 0 };
	int rc = request_read(q, event_rows, &p, &e);
	if (rc == 0)
		rc = report_policy_window(
			&span, &p.window, q->now_ms, p.utc ? *p.utc == '1' : q->world->utc, &e);
	/* A store beside which gua enforce has not run is skipped, if another one has steps. */
	const struct store_list *stores = q->world->stores;
	struct log_fold fold = { &log, span };
	const struct policy_logs logs = { add_log, &fold };
	if (rc == 0)
		rc = report_policy_each(
			&logs, (const char *const *)stores->paths, stores->n, &e);
	if (rc)
		answer_err(a, q, &e);
	else if (is_csv(a))
		rows_table(&a->body, &log);
	else
		documents_policy_log(&a->body, &log);
	table_finish(&log);
}

void api_report(const struct request *q, struct answer *a)
{
	struct report_params p;
	struct report_answer answer = { 0 };
	struct err e = { 0 };
	int rc = request_read_report(&p, q, false, &e);
	if (rc == 0 && p.table && strncmp(p.table, "compare", 7) == 0 && !p.words.compare)
		rc = err_set(&e, ERR_USAGE, "table=%s needs compare", p.table);
	p.asked.question.want_columns = p.table && strcmp(p.table, "timeline") == 0;
	if (rc == 0)
		rc = report_ask_answer(&answer, &p.asked, &e);
	if (rc)
		answer_err(a, q, &e);
	else if (is_csv(a))
		report_csv(&a->body, &answer.report, report_csv_table(p.table));
	else
		report_json(&a->body, &answer.report);
	report_ask_finish(&answer);
}

void api_status(const struct request *q, struct answer *a)
{
	const struct store_list *stores = q->world->stores;
	const char *host = request_param(q, "host");
	struct recorder_status s;
	struct err e = { 0 };
	for (size_t i = 0; i < stores->n; i++) {
		int rc = recorder_status_read(&s, stores->paths[i], q->now_ms, &e);
		if (host && strcmp(s.store.hostname, host) != 0)
			continue;
		if (rc)
			answer_err(a, q, &e);
		else
			documents_status(&a->body, &s);
		return;
	}
	err_set(&e, ERR_NOTHING, "no store has data of the host '%s'", host ? host : "");
	answer_err(a, q, &e);
}

/* A last tick that is older than one interval plus this is a fault. */
#define LATE_MS 10000

/* Adds a store; returns whether it is up to date. */
static bool add_store(struct json *j, const char *path, int64_t now_ms)
{
	struct store_status s = { 0 };
	struct err e = { 0 };
	int rc = recorder_status_store(&s, path, &e);
	bool known = rc == 0 && s.any_run;
	int64_t age_ms = now_ms - s.last_tick_ms;
	bool fresh = known && s.ended_ms < 0 && age_ms <= 2 * s.interval_ms + LATE_MS;
	json_open(j, NULL, '{');
	json_text(j, "host", known ? s.hostname : NULL);
	json_bool(j, "fresh", fresh);
	json_moment(j, "last_tick", known ? s.last_tick_ms : -1);
	json_number(j, "age_seconds", known ? (double)age_ms / 1000 : NAN, 3);
	json_number(j, "interval_seconds", known ? (double)s.interval_ms / 1000 : NAN, 3);
	json_text(j, "error", rc ? e.text : known ? NULL : "nothing has been recorded yet");
	json_close(j, '}');
	return fresh;
}

void api_health(const struct request *q, struct answer *a)
{
	struct json j = { .out = &a->body, .lines = 2 };
	const struct store_list *stores = q->world->stores;
	bool fresh = true;
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-health-1");
	json_moment(&j, "time", q->now_ms);
	json_open(&j, "stores", '[');
	for (size_t i = 0; i < stores->n; i++)
		fresh &= add_store(&j, stores->paths[i], q->now_ms);
	json_close(&j, ']');
	json_bool(&j, "fresh", fresh);
	json_close(&j, '}');
	a->status = fresh ? 200 : 503;
}

/* One range of an Accept header, without blanks: "text/plain;version=0.0.4;q=0.5". */
struct range {
	const char *at;
	size_t len;
};

/* The value of a parameter of the range; NULL: it has none. */
static const char *parameter(const struct range *r, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i + len + 1 < r->len; i++) {
		const char *at = r->at + i;
		if (*at != ';')
			continue;
		while (i + len + 1 < r->len && (at[1] == ' ' || at[1] == '\t')) {
			at++;
			i++;
		}
		if (strncasecmp(at + 1, name, len) == 0 && at[1 + len] == '=')
			return at + len + 2;
	}
	return NULL;
}

static bool is_type(const struct range *r, const char *type)
{
	size_t len = strlen(type);
	return r->len >= len && strncasecmp(r->at, type, len) == 0 &&
	       (r->len == len || strchr("; \t", r->at[len]));
}

const char *api_metrics_type(const char *accept)
{
	double open = 0, text = 0;
	for (const char *at = accept ? accept : ""; *at;) {
		at += strspn(at, ", \t");
		struct range r = { at, strcspn(at, ",") };
		const char *quality = parameter(&r, "q"), *version = parameter(&r, "version");
		double q = quality ? strtod(quality, NULL) : 1;
		if (!(q >= 0 && q <= 1))
			q = 0;
		if (is_type(&r, "application/openmetrics-text") &&
			(!version || strncmp(version, "1.0.0", 5) == 0))
			open = q > open ? q : open;
		else if (is_type(&r, "text/plain"))
			text = q > text ? q : text;
		at += r.len;
	}
	return open > 0 && open >= text ? EXPOSITION_OPENMETRICS_TYPE : EXPOSITION_TEXT_TYPE;
}

void api_metrics(const struct request *q, struct answer *a)
{
	const struct store_list *stores = q->world->stores;
	struct identity_names names;
	struct scrape s = { 0 };
	struct err e = { 0 };
	bool openmetrics = q->accept && strcmp(q->accept, EXPOSITION_OPENMETRICS_TYPE) == 0;
	if (stores->n != 1)
		err_set(&e, ERR_NOTHING,
			"/metrics is about one store, and this server has %zu: run a gua serve "
			"or gua metrics for each",
			stores->n);
	if (e.code || scrape_names_init(&names, q->world->config, &e) ||
		scrape_read(&s, stores->paths[0], &names, q->now_ms, &e))
		answer_err(a, q, &e);
	else
		exposition_print(&a->body, &s, openmetrics);
	if (!e.code && openmetrics)
		a->type = EXPOSITION_OPENMETRICS_TYPE;
	scrape_finish(&s);
}
