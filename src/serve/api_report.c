/* Answers with the report of a window. */
#include <string.h>

#include "render/report.h"
#include "serve/api.h"
#include "serve/params.h"

/* Makes the report; false: the answer says why it could not. */
static bool make_report(const struct request *q, struct answer *a, struct report_params *p,
	struct report_answer *answer)
{
	struct err e = { 0 };
	int rc = report_params_read(p, q, false, &e);
	if (rc == 0 && p->table && strncmp(p->table, "compare", 7) == 0 && !p->words.compare)
		rc = err_set(&e, ERR_USAGE, "table=%s needs compare", p->table);
	p->asked.question.want_columns = p->table && strcmp(p->table, "timeline") == 0;
	if (rc == 0)
		rc = report_ask_answer(answer, &p->asked, &e);
	if (rc)
		answer_err(a, q, &e);
	return rc == 0;
}

void api_report(const struct request *q, struct answer *a)
{
	struct report_params p;
	struct report_answer answer = { 0 };
	if (make_report(q, a, &p, &answer))
		report_json(&a->body, &answer.report);
	report_ask_finish(&answer);
}

void api_report_csv(const struct request *q, struct answer *a)
{
	struct report_params p;
	struct report_answer answer = { 0 };
	if (make_report(q, a, &p, &answer))
		report_csv(&a->body, &answer.report, report_table_of(p.table));
	report_ask_finish(&answer);
}
