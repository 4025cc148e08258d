/* The report for programs, as CSV: one of its tables. */
#include <string.h>

#include "render/report_formats.h"
#include "render/rows.h"

/* The place of the name among the choices. */
enum report_table report_csv_table(const char *name)
{
	int table = REPORT_TABLE_BY;
	size_t len = name ? strlen(name) : 0;
	for (const char *at = REPORT_TABLE_CHOICES; name && *at; table++) {
		size_t word = strcspn(at, "|");
		if (word == len && strncmp(at, name, len) == 0)
			return (enum report_table)table;
		at += word + (at[word] == '|');
	}
	return REPORT_TABLE_BY;
}

void report_csv(struct str *out, const struct report *r, enum report_table table)
{
	const struct report_breakdown *b = &r->breakdown;
	const struct table *t = &b->table;
	const struct table *const others[] = { [REPORT_TABLE_BY] = &r->cards,
		[REPORT_TABLE_BILL] = &r->bill.lines,
		[REPORT_TABLE_TREND] = &r->trend.table,
		[REPORT_TABLE_EVENTS] = &r->events,
		[REPORT_TABLE_LONGEST] = &r->longest,
		[REPORT_TABLE_COMPARE] = &r->compare.figure_table,
		[REPORT_TABLE_COMPARE_USERS] = &r->compare.user_table,
		[REPORT_TABLE_TIMELINE] = &r->timeline.table };
	out->failed |= r->failed;
	if (table != REPORT_TABLE_BY || identity_by_is(&b->by, IDENTITY_CARD)) {
		rows_table(out, others[table]);
		return;
	}
	rows_header(out, t->columns, t->n_columns);
	for (size_t i = 0; i < t->n_rows; i++)
		if (b->rows[i].level + 1 == b->by.n && !b->rows[i].rest)
			rows_add(out, t->columns, t->n_columns, table_cell(t, i, 0));
	out->failed |= t->failed;
}
