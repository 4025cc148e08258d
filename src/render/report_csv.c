/* The report for programs, as CSV: one of its tables. */
#include "base/options.h"
#include "render/report_formats.h"
#include "render/rows.h"

enum report_table report_csv_table(const char *name)
{
	int table = name ? options_choice(REPORT_TABLE_CHOICES, name) : -1;
	return table < 0 ? REPORT_TABLE_BY : (enum report_table)table;
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
