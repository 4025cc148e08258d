/* The tables of identities and of processes. To add a column, add a row to an array of columns.
 */
#include "query/report_parts.h"

#include <math.h>
#include <stdio.h>

#include "query/audit.h"

/* The rows of identities are struct audit_identity itself. */
static struct cell identity_ms(const void *row, size_t state)
{
	return cell_number((double)((const struct audit_identity *)row)->presence_ms[state]);
}

static struct cell identity_shown(const void *row, size_t of)
{
	(void)of;
	return cell_text(user_shown(((const struct audit_identity *)row)->identity));
}

static struct cell identity_some_ms(const void *row, size_t state)
{
	const struct audit_identity *who = row;
	return who->presence_ms[state] ? identity_ms(row, state) : cell_number(NAN);
}

static struct cell identity_sum(const void *row, size_t of)
{
	(void)of;
	return cell_number(
		(double)audit_holder_ms(((const struct audit_identity *)row)->presence_ms));
}

static struct cell identity_fraction(const void *row, size_t state)
{
	const int64_t *ms = ((const struct audit_identity *)row)->presence_ms;
	return cell_number(part_of(ms[state], audit_holder_ms(ms)));
}

static struct cell identity_share(const void *row, size_t of)
{
	const struct audit_identity *who = row;
	(void)of;
	return cell_number((double)(who->active_share_ms + who->idle_share_ms));
}

static struct cell identity_idle_share(const void *row, size_t of)
{
	(void)of;
	return cell_number((double)((const struct audit_identity *)row)->idle_share_ms);
}

#define OF(member) offsetof(struct audit_identity, member)
static const struct column identity_columns[] = {
	{ .key = "identity", TEXT(get_chars, OF(identity)) },
	{ .title = "identity", .width = 10, .flexible = true, TEXT(identity_shown, 0) },
	{ .key = "gpu_seconds", .title = "GPU-hours", VALUE(GPU_MS, identity_sum, 0) },
	{ .key = "idle_held_fraction",
		.title = "idle-held",
		VALUE(SHARE, identity_fraction, HOLDER_IDLE_HELD) },
	{ .key = "active_gpu_seconds", VALUE(GPU_MS, identity_ms, HOLDER_ACTIVE) },
	{ .key = "idle_held_gpu_seconds",
		.title = "held h",
		.width = 7,
		VALUE(GPU_MS, identity_ms, HOLDER_IDLE_HELD) },
	{ .key = "squatting_gpu_seconds",
		.title = "squat h",
		.width = 7,
		VALUE(GPU_MS, identity_ms, HOLDER_SQUATTING) },
	{ .title = "use? h",
		.width = 6,
		.optional = true,
		VALUE(GPU_MS, identity_some_ms, HOLDER_USE_UNKNOWN) },
	{ .key = "truly_idle_gpu_seconds", VALUE(GPU_MS, identity_ms, HOLDER_TRULY_IDLE) },
	{ .key = "share_gpu_seconds",
		.title = "share h",
		.width = 7,
		VALUE(GPU_MS, identity_share, 0) },
	{ .key = "idle_held_share_gpu_seconds", VALUE(GPU_MS, identity_idle_share, 0) },
	{ .key = "peak_mem_bytes",
		.title = "peak mem",
		.width = 8,
		VALUE(KIB, get_known, OF(peak_mem_kib)) },
	{ .key = "last_active", VALUE(MOMENT, get_known, OF(last_active_ms)) },
	{ .key = "use_unknown_gpu_seconds", VALUE(GPU_MS, identity_ms, HOLDER_USE_UNKNOWN) },
};
#undef OF

void report_add_identities(struct table *t, const struct audit *a, size_t top)
{
	*t = (struct table)TABLE_OF(identity_columns);
	for (size_t i = 0; i < a->n_identities && (top == 0 || i < top); i++)
		table_add(t, &a->identities[i]);
}

/* The data of a row of processes. */
struct process_row {
	struct audit_process process;
	const char *host, *user, *uuid;
	int card_index;
	char where[192]; /* the card, with its host if there are several */
	char what[LABEL_CAP + COMMAND_CAP + 2]; /* what it belongs to, and its command */
};

static struct cell process_user(const void *row, size_t of)
{
	(void)of;
	return cell_text(user_shown(((const struct process_row *)row)->user));
}

/* As gua who shows it. */
static void show_what(struct process_row *row)
{
	const struct audit_process *p = &row->process;
	const char *label = process_label(p->notebook, p->job, p->container, p->pod);
	const char *command = p->command ? p->command : "";
	snprintf(row->what, sizeof(row->what), "%s%s%s", label, *label && *command ? " " : "",
		*label || *command ? command : "-");
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

static struct cell process_ms(const void *row, size_t state)
{
	return cell_number((double)((const struct process_row *)row)->process.ms[state]);
}

static struct cell process_sum(const void *row, size_t of)
{
	(void)of;
	return cell_number(
		(double)audit_holder_ms(((const struct process_row *)row)->process.ms));
}

#define OF(member) offsetof(struct process_row, member)
static const struct column process_columns[] = {
	{ .key = "pid", .title = "pid", VALUE(COUNT, process_pid, 0) },
	{ .key = "started", VALUE(MOMENT, get_known, OF(process.started_ms)) },
	{ .key = "user", TEXT(get_string, OF(user)) },
	{ .title = "user", .width = -12, TEXT(process_user, 0) },
	{ .key = "command", TEXT(get_string, OF(process.command)) },
	{ .title = "what", .flexible = true, TEXT(get_chars, OF(what)) },
	{ .key = "host", TEXT(get_string, OF(host)) },
	{ .key = "gpu", TEXT(get_string, OF(uuid)) },
	{ .key = "gpu_index", VALUE(COUNT, process_card_index, 0) },
	{ .title = "gpu", .width = -14, TEXT(get_chars, OF(where)) },
	{ .key = "gpu_seconds", .title = "hours", .width = 6, VALUE(GPU_MS, process_sum, 0) },
	{ .key = "idle_held_gpu_seconds",
		.title = "held h",
		.width = 6,
		VALUE(GPU_MS, process_ms, HOLDER_IDLE_HELD) },
	{ .key = "squatting_gpu_seconds", VALUE(GPU_MS, process_ms, HOLDER_SQUATTING) },
	{ .key = "peak_mem_bytes",
		.title = "peak",
		.width = 7,
		VALUE(KIB, get_known, OF(process.peak_mem_kib)) },
	{ .key = "last_active",
		.title = "last active",
		VALUE(MOMENT, get_known, OF(process.last_active_ms)) },
	{ .key = "notebook", TEXT(get_string, OF(process.notebook)) },
	{ .key = "job", TEXT(get_string, OF(process.job)) },
	{ .key = "container", TEXT(get_string, OF(process.container)) },
	{ .key = "pod", TEXT(get_string, OF(process.pod)) },
	{ .key = "unit", TEXT(get_string, OF(process.unit)) },
	{ .key = "use_unknown_gpu_seconds", VALUE(GPU_MS, process_ms, HOLDER_USE_UNKNOWN) },
};
#undef OF

void report_add_processes(struct table *t, const struct audit *a, size_t top)
{
	*t = (struct table)TABLE_OF(process_columns);
	for (size_t i = 0; i < a->n_processes && (top == 0 || i < top); i++) {
		const struct audit_process *p = &a->processes[i];
		const struct audit_card *card = &a->cards[p->card];
		struct process_row row = { .process = *p,
			.host = a->hosts[p->host].hostname,
			.user = a->identities[p->identity].identity,
			.uuid = card->id.uuid,
			.card_index = card->id.index };
		char label[CARD_LABEL_CAP];
		card_label(label, sizeof(label), &card->id);
		snprintf(row.where, sizeof(row.where), "%s%s%s", a->n_hosts > 1 ? row.host : "",
			a->n_hosts > 1 ? " " : "", label);
		show_what(&row);
		table_add(t, &row);
	}
}
