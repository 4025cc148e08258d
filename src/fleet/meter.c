/* Keeps the counters of a fleet at the edges of a window, and interpolates them there. */
#include "fleet/survey.h"

struct meter_row *meter_find(struct meters *m, uint32_t host, const char *name, struct err *e)
{
	enum { ROWS_MAX = 1 << 21 };
	uint32_t index = names_find(&m->names, host, name, e);
	if (index == IDMAP_NONE)
		return NULL;
	if (index >= ROWS_MAX) {
		err_set(e, ERR_WORLD,
			"it has counters of more than %d cards or users; --match chooses some",
			ROWS_MAX);
		return NULL;
	}
	if (index < m->n)
		return &m->rows[index];
	if (!array_one_more(&m->rows, m->n)) {
		err_memory(e);
		return NULL;
	}
	struct meter_row *row = &m->rows[m->n++];
	*row = (struct meter_row){ .host = host, .name = m->names.items[index].text };
	return row;
}

static const struct meter none = { .at = { NAN, NAN, NAN, NAN, NAN } };

const struct meter *meter_of(const struct meter_row *row, int state)
{
	return row->states[state] ? row->states[state] : &none;
}

struct meter *meter_add(struct meters *m, struct meter_row *row, int state, struct err *e)
{
	if (row->states[state])
		return row->states[state];
	struct meter *new = arena_take(&m->values, sizeof(*new));
	if (!new) {
		err_memory(e);
		return NULL;
	}
	*new = none;
	return row->states[state] = new;
}

void meter_finish(struct meters *m)
{
	names_finish(&m->names);
	free(m->rows);
	arena_finish(&m->values);
	*m = (struct meters){ 0 };
}

double meter_value(double before, double after, const struct edge_times *t)
{
	bool line = after >= before && t->after > t->before && t->edge > t->before;
	if (!line)
		return before;
	double part = (t->edge - t->before) / (t->after - t->before);
	return before + (after - before) * (part < 1 ? part : 1);
}
