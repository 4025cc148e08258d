/* Prints chosen fields of compute processes as lines, or as JSON. */
#include "base/nearest.h"
#include "view/query.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/moment.h"
#include "render/rows.h"

enum { CELL_CAP = 512 };

enum app_field {
	APP_TIMESTAMP,
	APP_GPU_NAME,
	APP_GPU_BUS_ID,
	APP_GPU_SERIAL,
	APP_GPU_UUID,
	APP_PID,
	APP_PROCESS_NAME,
	APP_MEMORY,
	APP_GPU_INDEX,
	APP_TYPE,
	APP_USER,
	APP_SM,
	APP_COMMAND,
	APP_NOTEBOOK,
	APP_NOTEBOOK_PATH,
	APP_JOB,
	APP_CONTAINER,
	APP_JOB_NAME,
	APP_ACCOUNT,
	APP_LOGIN,
	APP_SESSION,
	APP_PARENTS,
	APP_PYTHON_ENV,
	APP_TAG,
	APP_HELD_SINCE,
	APP_IDLE_SINCE,
	APP_IDLE_FOR,
	APP_FIELDS,
};

#define TEXT(member) offsetof(struct present_process, member)
#define OF_ENVIRONMENT ": known for your own processes only, and to root for all."

static const struct app_info {
	const char *name, *synonym, *unit, *help;
	size_t text; /* offset of the text in a process; 0: it is computed */
} fields[APP_FIELDS] = {
	[APP_TIMESTAMP] = { "timestamp", "", "", "When the line was made, in local time." },
	[APP_GPU_NAME] = { "gpu_name", "", "", "The card's product name." },
	[APP_GPU_BUS_ID] = { "gpu_bus_id", "", "", "The card's PCI address." },
	[APP_GPU_SERIAL] = { "gpu_serial", "", "", "The card's serial number." },
	[APP_GPU_UUID] = { "gpu_uuid", "", "", "The card's unique identity." },
	[APP_PID] = { "pid", "", "", "The process id." },
	[APP_PROCESS_NAME] = { "process_name", "name", "", "The program, as it was called." },
	[APP_MEMORY] = { "used_gpu_memory", "used_memory", "MiB",
		"Memory that the process has on the card." },
	[APP_GPU_INDEX] = { "gua.gpu_index", "", "", "The driver's number of the card." },
	[APP_TYPE] = { "gua.type", "", "",
		"C compute, G graphics, M client of MPS; or several." },
	[APP_USER] = { "gua.user", "", "", "The user who runs the process.", TEXT(id.user) },
	[APP_SM] = { "gua.sm", "", "%",
		"How much of the card it used since the previous look." },
	[APP_COMMAND] = { "gua.command", "", "", "The program and its script.",
		TEXT(id.command) },
	[APP_NOTEBOOK] = { "gua.notebook", "", "", "The Jupyter kernel, if the process is one.",
		TEXT(id.notebook) },
	[APP_NOTEBOOK_PATH] = { "gua.notebook_path", "", "",
		"The path of the notebook that it runs" OF_ENVIRONMENT,
		TEXT(id.origin.notebook_path) },
	[APP_JOB] = { "gua.job", "", "", "The batch job that it belongs to.", TEXT(id.job) },
	[APP_CONTAINER] = { "gua.container", "", "", "The container that it runs in.",
		TEXT(id.container) },
	[APP_JOB_NAME] = { "gua.job_name", "", "", "The name of its Slurm job" OF_ENVIRONMENT,
		TEXT(id.origin.job_name) },
	[APP_ACCOUNT] = { "gua.account", "", "", "The account of its Slurm job" OF_ENVIRONMENT,
		TEXT(id.origin.account) },
	[APP_LOGIN] = { "gua.login", "", "",
		"What started it: ssh, tmux, vscode, jupyter, batch, cron, service ...",
		TEXT(id.origin.login) },
	[APP_SESSION] = { "gua.session", "", "", "The number of its login session.",
		TEXT(id.origin.session) },
	[APP_PARENTS] = { "gua.parents", "", "",
		"The names of its parents, from the session leader on.",
		TEXT(id.origin.parents) },
	[APP_PYTHON_ENV] = { "gua.python_env", "", "", "Its conda, pixi or venv environment.",
		TEXT(id.origin.python_env) },
	[APP_TAG] = { "gua.tag", "", "",
		"What its user has declared it to be for (GUA_TAG)" OF_ENVIRONMENT,
		TEXT(id.origin.tag) },
	[APP_HELD_SINCE] = { "gua.held_since", "", "", "When it was first seen on the card." },
	[APP_IDLE_SINCE] = { "gua.idle_since", "", "",
		"Since when it has not computed, at least; unknown while it computes." },
	[APP_IDLE_FOR] = { "gua.idle_for", "", "s", "How long it has not computed, at least." },
};

void query_app_fields(struct str *out)
{
	for (int i = 0; i < APP_FIELDS; i++)
		str_addf(out, "%s %s%s", fields[i].name, fields[i].synonym,
			*fields[i].synonym ? " " : "");
}

int query_app_find(const char *name, size_t len)
{
	for (int i = 0; i < APP_FIELDS; i++) {
		const char *const names[] = { fields[i].name, fields[i].synonym };
		for (size_t k = 0; k < 2; k++)
			if (strlen(names[k]) == len && strncasecmp(names[k], name, len) == 0)
				return i;
	}
	return -1;
}

static size_t distance_to(int field, const char *name, size_t len)
{
	const char *own = fields[field].name, *other = fields[field].synonym;
	size_t a = nearest_distance(own, strlen(own), name, len);
	size_t b = nearest_distance(other, strlen(other), name, len);
	return a < b ? a : b;
}

size_t query_app_nearest(const char *name, size_t len, int *found, size_t max)
{
	size_t n = 0;
	for (size_t d = 0; d <= nearest_far(len) && n < max; d++)
		for (int i = 0; i < APP_FIELDS && n < max; i++)
			if (distance_to(i, name, len) == d)
				found[n++] = i;
	return n;
}

const char *query_app_name(int field)
{
	return fields[field].name;
}

const char *query_app_unit(int field)
{
	return fields[field].unit;
}

void query_app_help(struct str *out)
{
	str_add(out, "Fields of --query-compute-apps:\n");
	for (int i = 0; i < APP_FIELDS; i++) {
		str_addf(out, "\n\"%s\"", fields[i].name);
		if (*fields[i].synonym)
			str_addf(out, " or \"%s\"", fields[i].synonym);
		str_addf(out, "\n    %s\n", fields[i].help);
	}
}

static void add_moment(char *dst, size_t cap, int64_t ms)
{
	dst[0] = '\0';
	if (ms >= 0)
		moment_iso(dst, cap, ms);
}

void query_app_process_name(
	char *dst, size_t cap, struct live *l, const struct present_process *p)
{
	struct str arguments = { 0 };
	live_process_arguments(l, p, &arguments);
	if (arguments.len)
		str_copy(dst, cap, arguments.data);
	else
		str_copy(dst, cap, p->id.command[0] ? p->id.command : "[Not Found]");
	str_finish(&arguments);
}

/* A process on a card: one line. */
struct app {
	struct live *live;
	const struct present *now;
	const struct present_card *card;
	const struct present_process *process;
};

/* The field as text; "" if unknown. */
static void field_text(char *dst, size_t cap, enum app_field field, const struct app *app)
{
	const struct present_card *c = app->card;
	const struct present_process *p = app->process;
	dst[0] = '\0';
	if (fields[field].text)
		str_copy(dst, cap, (const char *)p + fields[field].text);
	switch (field) {
	case APP_TIMESTAMP:
		query_timestamp(dst, cap, app->now->now_ms);
		break;
	case APP_GPU_NAME:
		str_copy(dst, cap, c->id.name);
		break;
	case APP_GPU_BUS_ID:
		query_bus_id(dst, cap, c->id.pci);
		break;
	case APP_GPU_SERIAL:
		str_copy(dst, cap, c->texts[METRIC_SERIAL]);
		break;
	case APP_GPU_UUID:
		str_copy(dst, cap, c->id.uuid);
		break;
	case APP_PROCESS_NAME:
		query_app_process_name(dst, cap, app->live, p);
		break;
	case APP_TYPE:
		snprintf(dst, cap, "%s%s%s", p->kind & PROCESS_COMPUTE ? "C" : "",
			p->kind & PROCESS_GRAPHICS ? "G" : "",
			p->kind & PROCESS_MPS ? "M" : "");
		break;
	case APP_HELD_SINCE:
		add_moment(dst, cap, p->held_since_ms);
		break;
	case APP_IDLE_SINCE:
		add_moment(dst, cap, p->idle_since_ms);
		break;
	default:
		break;
	}
}

static bool is_number(enum app_field field)
{
	return field == APP_PID || field == APP_MEMORY || field == APP_GPU_INDEX ||
	       field == APP_SM || field == APP_IDLE_FOR;
}

static double field_number(enum app_field field, const struct app *app)
{
	const struct present_process *p = app->process;
	switch (field) {
	case APP_PID:
		return p->id.pid;
	case APP_GPU_INDEX:
		return app->card->id.index;
	case APP_MEMORY:
		return p->mem_bytes < 0 ? NAN : (double)(p->mem_bytes >> 20);
	case APP_SM:
		return p->sm_pct;
	case APP_IDLE_FOR:
		return p->idle_since_ms < 0
			       ? NAN
			       : floor((double)(app->now->now_ms - p->idle_since_ms) / 1000);
	default:
		return NAN;
	}
}

static void add_field(const struct query_answer *a, enum app_field field, const struct app *app)
{
	char text[CELL_CAP];
	double number = NAN;
	if (is_number(field)) {
		number = field_number(field, app);
		json_number_text(text, sizeof(text), number, 0);
	} else {
		field_text(text, sizeof(text), field, app);
	}
	if (a->json && is_number(field)) {
		json_number(a->json, fields[field].name, number, 0);
	} else if (a->json) {
		json_text(a->json, fields[field].name, *text ? text : NULL);
	} else {
		(is_number(field) ? rows_own_text : rows_text)(a->out, *text ? text : "[N/A]");
		if (*text && *fields[field].unit && !a->query->no_units)
			str_addf(a->out, " %s", fields[field].unit);
	}
}

static void add_process(const struct query_answer *a, const struct app *app)
{
	const struct query *q = a->query;
	if (a->json)
		json_open(a->json, NULL, '{');
	for (size_t i = 0; i < q->n; i++) {
		if (!a->json && i)
			str_add(a->out, ", ");
		add_field(a, (enum app_field)q->fields[i], app);
	}
	if (a->json)
		json_close(a->json, '}');
	else
		str_add(a->out, "\n");
}

int query_app_look(const struct query_answer *a, struct err *e)
{
	const struct present *now = a->now;
	size_t *picked = calloc(now->n_cards + 1, sizeof(*picked));
	if (!picked)
		return err_memory(e);
	int found = filter_cards(a->filter, now, picked, e);
	for (int i = 0; i < found; i++) {
		const struct present_card *c = &now->cards[picked[i]];
		for (size_t k = 0; k < c->n_processes; k++) {
			const struct present_process *p = &now->processes[c->first_process + k];
			if (p->holder && filter_process(a->filter, p))
				add_process(a, &(struct app){ a->live, now, c, p });
		}
	}
	free(picked);
	return found < 0 ? found : 0;
}
