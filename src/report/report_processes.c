/* The table of processes, one row for each card that a process held. To add a column, add a row
 * to the array of columns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "audit/audit.h"
#include "report/report_bill.h"

/* Before a process that holds no more than a bare context. */
#define CONTEXT_MARK "[ctx] "

/* The data of a row. */
struct process_row {
	struct audit_process process;
	const char *host, *user, *uuid;
	int card_index;
	char where[REPORT_WHERE_CAP], what[REPORT_WHAT_CAP + sizeof(CONTEXT_MARK)];
};

static struct cell process_user(const void *row, size_t of)
{
	(void)of;
	return cell_text(user_shown(((const struct process_row *)row)->user));
}

void report_show_what(char dst[REPORT_WHAT_CAP], const char *const texts[PROCESS_TEXTS])
{
	const char *path = texts[PROCESS_NOTEBOOK_PATH];
	const char *label = process_label(path ? path : texts[PROCESS_NOTEBOOK],
		texts[PROCESS_JOB], texts[PROCESS_CONTAINER], texts[PROCESS_POD]);
	const char *command = texts[PROCESS_COMMAND] ? texts[PROCESS_COMMAND] : "";
	snprintf(dst, REPORT_WHAT_CAP, "%s%s%s", label, *label && *command ? " " : "",
		*label || *command ? command : "-");
}

void report_show_where(char dst[REPORT_WHERE_CAP], const struct audit *a, size_t card)
{
	char label[CARD_LABEL_CAP];
	bool several = a->n_hosts > 1;
	card_label(label, sizeof(label), &a->cards[card].id);
	snprintf(dst, REPORT_WHERE_CAP, "%s%s%s",
		several ? a->hosts[a->cards[card].host].hostname : "", several ? " " : "",
		label);
}

static struct cell process_pid(const void *row, size_t of)
{
	(void)of;
	return cell_number(((const struct process_row *)row)->process.pid);
}

static struct cell process_card_index(const void *row, size_t of)
{
	(void)of;
	return cell_number(((const struct process_row *)row)->card_index);
}

static struct cell process_context(const void *row, size_t of)
{
	(void)of;
	return cell_number(((const struct process_row *)row)->process.context);
}

static struct cell process_ms(const void *row, size_t state)
{
	return cell_number((double)((const struct process_row *)row)->process.sums.ms[state]);
}

static struct cell process_sum(const void *row, size_t of)
{
	(void)of;
	return cell_number(
		(double)audit_holder_ms(((const struct process_row *)row)->process.sums.ms));
}

static struct cell process_share(const void *row, size_t of)
{
	const struct audit_sums *sums = &((const struct process_row *)row)->process.sums;
	(void)of;
	return cell_number((double)(sums->active_share_ms + sums->idle_share_ms));
}

static struct cell process_money(const void *row, size_t part)
{
	const struct audit_sums *sums = &((const struct process_row *)row)->process.sums;
	return cell_number(cost_money(&sums->cost, part));
}

#define OF(member) offsetof(struct process_row, member)
static const struct column process_columns[] = {
	{ .key = "pid", .title = "pid", VALUE(COUNT, process_pid, 0) },
	{ .key = "started", VALUE(MOMENT, get_known, OF(process.started_ms)) },
	{ .key = "user", TEXT(get_string, OF(user)) },
	{ .title = "user", .width = -12, TEXT(process_user, 0) },
	{ .key = "command", TEXT(get_string, OF(process.texts[PROCESS_COMMAND])) },
	{ .title = "what", .width = 16, .flexible = true, TEXT(get_chars, OF(what)) },
	{ .key = "host", TEXT(get_string, OF(host)) },
	{ .key = "gpu", TEXT(get_string, OF(uuid)) },
	{ .key = "gpu_index", VALUE(COUNT, process_card_index, 0) },
	{ .title = "gpu", .width = -14, TEXT(get_chars, OF(where)) },
	{ .key = "gpu_seconds", .title = "held", .width = 6, VALUE(GPU_MS, process_sum, 0) },
	{ .key = "active_gpu_seconds", VALUE(GPU_MS, process_ms, HOLDER_ACTIVE) },
	{ .key = "idle_held_gpu_seconds",
		.title = "idle",
		.width = 6,
		VALUE(GPU_MS, process_ms, HOLDER_IDLE_HELD) },
	{ .key = "squatting_gpu_seconds",
		.title = "idle on\nbusy GPU",
		VALUE(GPU_MS, process_ms, HOLDER_SQUATTING) },
	{ .key = "truly_idle_gpu_seconds", VALUE(GPU_MS, process_ms, HOLDER_TRULY_IDLE) },
	{ .key = "use_unknown_gpu_seconds", VALUE(GPU_MS, process_ms, HOLDER_USE_UNKNOWN) },
	{ .key = "share_gpu_seconds", VALUE(GPU_MS, process_share, 0) },
	{ .key = "context_only", VALUE(BOOL, process_context, 0) },
	{ .key = "last_active",
		.title = "last active",
		VALUE(MOMENT, get_known, OF(process.sums.last_active_ms)) },
	{ .key = "peak_mem_bytes",
		.title = "peak mem",
		.width = 8,
		.optional = true,
		VALUE(KIB, get_known, OF(process.sums.peak_mem_kib)) },
	{ .key = "notebook", TEXT(get_string, OF(process.texts[PROCESS_NOTEBOOK])) },
	{ .key = "notebook_path", TEXT(get_string, OF(process.texts[PROCESS_NOTEBOOK_PATH])) },
	{ .key = "job", TEXT(get_string, OF(process.texts[PROCESS_JOB])) },
	{ .key = "job_name", TEXT(get_string, OF(process.texts[PROCESS_JOB_NAME])) },
	{ .key = "account", TEXT(get_string, OF(process.texts[PROCESS_ACCOUNT])) },
	{ .key = "container", TEXT(get_string, OF(process.texts[PROCESS_CONTAINER])) },
	{ .key = "pod", TEXT(get_string, OF(process.texts[PROCESS_POD])) },
	{ .key = "unit", TEXT(get_string, OF(process.texts[PROCESS_UNIT])) },
	{ .key = "login", TEXT(get_string, OF(process.texts[PROCESS_LOGIN])) },
	{ .key = "session", TEXT(get_string, OF(process.texts[PROCESS_SESSION])) },
	{ .key = "parents", TEXT(get_string, OF(process.texts[PROCESS_PARENTS])) },
	{ .key = "python_env", TEXT(get_string, OF(process.texts[PROCESS_PYTHON_ENV])) },
	{ .key = "tag", TEXT(get_string, OF(process.texts[PROCESS_TAG])) },
	{ .key = "active_cost",
		.json = "cost.active",
		VALUE(MONEY, process_money, COST_ACTIVE) },
	{ .key = "idle_held_cost",
		.json = "cost.idle_held",
		VALUE(MONEY, process_money, COST_IDLE_HELD) },
	{ .key = "use_unknown_cost",
		.json = "cost.use_unknown",
		VALUE(MONEY, process_money, COST_USE_UNKNOWN) },
	{ .key = "cost", .json = "cost.total", VALUE(MONEY, process_money, COSTS) },
	{ .key = "squatting_cost", VALUE(MONEY, process_money, COST_SQUATTING) },
};
#undef OF

void report_add_processes(
	struct report *r, const struct audit *a, const struct report_request *q)
{
	struct table *t = &r->breakdown.table;
	size_t n = q->top && q->top < a->n_processes ? q->top : a->n_processes;
	*t = (struct table)TABLE_OF(process_columns);
	r->breakdown.rows = calloc(n + 1, sizeof(*r->breakdown.rows));
	r->failed |= !r->breakdown.rows;
	for (size_t i = 0; i < n; i++) {
		const struct audit_process *p = &a->processes[i];
		const struct audit_card *card = &a->cards[p->card];
		struct process_row row = { .process = *p,
			.host = a->hosts[p->host].hostname,
			.user = a->identities[p->identity].identity,
			.uuid = card->id.uuid,
			.card_index = card->id.index };
		report_show_where(row.where, a, p->card);
		text_copy(row.what, sizeof(row.what), p->context ? CONTEXT_MARK : "");
		report_show_what(row.what + strlen(row.what), p->texts);
		table_add(t, &row);
	}
}
