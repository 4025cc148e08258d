/* Answers with the log of gua enforce. */
#include "report/policy_log.h"
#include "render/documents.h"
#include "render/rows.h"
#include "serve/api.h"
#include "serve/params.h"
#include "serve/world.h"

struct log_params {
	struct window_words window;
	const char *utc;
};

#define AT(member) .offset = offsetof(struct log_params, member)
static const struct option_row rows[] = {
	{ .kind = OPTION_TEXT, .name = "since", .arg = "TIME", AT(window.since) },
	{ .kind = OPTION_TEXT, .name = "until", .arg = "TIME", AT(window.until) },
	{ .kind = OPTION_TEXT, .name = "last", .arg = "TIME", AT(window.last) },
	{ .kind = OPTION_CHOICE, .name = "utc", .choices = "1|0", AT(utc) },
	{ 0 },
};

/* What the steps beside the stores are added to. */
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
		rc = policy_log_add(fold->table, f, fold->span, e);
	policy_file_close(f);
	return rc;
}

/* Adds the steps beside all stores. Those beside which gua enforce has not run are passed over,
 * if there is another one. */
static int add_logs(struct table *t, const struct store_list *stores, struct policy_span span,
	struct err *e)
{
	struct log_fold fold = { t, span };
	const struct policy_logs logs = { add_log, &fold };
	return policy_log_each(&logs, (const char *const *)stores->paths, stores->n, e);
}

/* Reads the log; false: the answer says why it could not be read. */
static bool read_log(const struct request *q, struct answer *a, struct table *t)
{
	struct log_params p = { 0 };
	struct err e = { 0 };
	struct policy_span span = { 0 };
	int rc = params_read(q, rows, &p, &e);
	if (rc == 0)
		rc = policy_log_window(
			&span, &p.window, q->now_ms, p.utc ? *p.utc == '1' : q->world->utc, &e);
	if (rc == 0)
		rc = add_logs(t, q->world->stores, span, &e);
	if (rc)
		answer_err(a, q, &e);
	return rc == 0;
}

void api_policy(const struct request *q, struct answer *a)
{
	struct table log = policy_log_table();
	if (read_log(q, a, &log))
		documents_policy_log(&a->body, &log);
	table_finish(&log);
}

void api_policy_csv(const struct request *q, struct answer *a)
{
	struct table log = policy_log_table();
	if (read_log(q, a, &log))
		rows_table(&a->body, &log);
	table_finish(&log);
}
