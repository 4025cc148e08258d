/* Runs the steps of an audit of stores in order. */
#include "audit/gather.h"

#include <stdlib.h>
#include <time.h>

#include "base/array.h"
#include "audit/columns.h"
#include "audit/gather_parts.h"

static int survey_add(struct gather *g, struct gather_file *file, struct err *e)
{
	int rc = hosts_add(g, file, e);
	if (rc == 0)
		rc = cards_add(g, file, e);
	bounds_add(g, file);
	if (rc == ERR_USAGE && g->q->fetched_to) /* it is a copy of another */
		rc = e->code = ERR_WORLD;
	return rc;
}

/* Fails if no store can be read, with what is wrong with the first one. */
static int check_some(const struct gather *g, struct err *e)
{
	for (size_t i = 0; i < g->n_files; i++)
		if (!g->files[i].code)
			return 0;
	return err_set(e, ERR_WORLD, "none of the %zu stores can be read; the first: %s",
		g->n_files, g->n_files ? g->files[0].why : "");
}

int gather_survey(struct gather *g, struct err *e)
{
	/* Which rows are of one host is known when all of them were seen. */
	static const struct gather_pass records = { .add = records_add, .first = true };
	static const struct gather_pass pass = {
		.read = bounds_read, .add = survey_add, .first = true
	};
	g->from_ms = INT64_MAX;
	g->to_ms = 0;
	int rc = gather_each(g, &records, e);
	if (rc == 0)
		rc = gather_each(g, &pass, e);
	return rc ? rc : check_some(g, e);
}

/* A process or a spell that the audit shows, and its store. */
struct shown {
	size_t path, index;
	int (*describe)(struct gather *g, size_t index, struct err *e);
};

static int compare_shown(const void *x, const void *y)
{
	const struct shown *a = x, *b = y;
	return a->path < b->path ? -1 : a->path > b->path;
}

/* Reads what the stores say about the processes and spells that are shown, store by store. */
static int describe_all(struct gather *g, const struct shown *all, size_t n, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct gather_file *file = &g->files[all[i].path];
		if (file->code)
			continue;
		rc = gather_open(g, file, e);
		if (rc == 0)
			rc = all[i].describe(g, all[i].index, e);
		if (rc)
			rc = gather_failed(g, file, e);
		if (i + 1 == n || all[i + 1].path != all[i].path)
			gather_leave(g, file);
	}
	return rc;
}

static int gather_describe(struct gather *g, struct err *e)
{
	const struct audit *a = g->a;
	size_t n = a->n_processes + a->spells.n;
	struct shown *all = calloc(n + 1, sizeof(*all));
	if (!all)
		return err_memory(e);
	for (size_t i = 0; i < a->n_processes; i++)
		all[i] = (struct shown){ a->processes[i].path, i, process_describe };
	for (size_t i = 0; i < a->spells.n; i++)
		all[a->n_processes + i] =
			(struct shown){ a->spells.items[i].path, i, spell_describe };
	qsort(all, n, sizeof(*all), compare_shown);
	int rc = describe_all(g, all, n, e);
	free(all);
	return rc;
}

/* Makes the audit of the stores that can be read. */
static int run_steps(struct gather *g, struct err *e)
{
	static int (*const steps[])(struct gather *, struct err *) = { gather_survey,
		gather_window, gather_check_overlap, gather_days, gather_words, gather_usage,
		gather_settle, gather_columns, gather_costs, gather_holders, gather_describe };
	int rc = 0;
	audit_init(g->a);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && rc == 0 && !g->again; i++)
		rc = steps[i](g, e);
	return rc;
}

static int add_unread(struct audit *a, const char *why, struct err *e)
{
	struct audit_stores *s = &a->stores;
	const char *copy = arena_text(&a->texts, why);
	if (!copy || !array_one_more(&s->unread, s->n_unread))
		return err_memory(e);
	s->unread[s->n_unread++] = copy;
	return 0;
}

/* Tells the audit which stores are not in it. */
static int list_unread(struct gather *g, struct err *e)
{
	int rc = 0;
	g->a->stores.n = g->n_files + g->q->n_unread;
	for (size_t i = 0; i < g->q->n_unread && rc == 0; i++)
		rc = add_unread(g->a, g->q->unread[i], e);
	for (size_t i = 0; i < g->n_files && rc == 0; i++)
		if (g->files[i].code)
			rc = add_unread(g->a, g->files[i].why, e);
	return rc;
}

int audit_run(struct audit *a, const struct audit_question *q, struct err *e)
{
	struct gather g = { .a = a, .q = q };
	if (q->engine)
		return q->engine(q->engine_context, a, q, e);
	audit_init(a);
	tzset();
	int rc = gather_list(&g, e);
	if (rc == 0)
		rc = run_steps(&g, e);
	/* Each round leaves out at least one store more. */
	while (rc == 0 && g.again) {
		audit_finish(a);
		gather_forget(&g);
		rc = run_steps(&g, e);
	}
	if (rc == 0)
		rc = list_unread(&g, e);
	gather_close(&g);
	if (rc == 0)
		audit_add_up(a);
	return rc;
}
