/* The rows of the tables of holders, and their columns. Only for report/report*.c. */
#ifndef GUA_REPORT_REPORT_HOLDERS_H
#define GUA_REPORT_REPORT_HOLDERS_H

#include "report/bill.h"
#include "report/report_parts.h"

/* The data of a row. */
struct holder_row {
	const struct audit_row *row;
	enum measure measure;
	const char *keys[BY_MAX];	/* what it stands for, to programs; NULL: none */
	const char *user, *host, *uuid; /* NULL: several */
	int64_t card_index;		/* -1: several */
	int64_t late_ms;		/* it is known since then, within the window; or -1 */
	const struct bill_cents *cents; /* what people read of its cost */
	char label[LABEL_CAP + COMMAND_CAP]; /* what it stands for, to people */
};

/* Starts the table of users, which is in every report, and that of a breakdown. The columns are
 * in the table's arena. `of_users`: see by_measure(). */
void holder_table_of_users(struct table *t);
void holder_table_by(struct table *t, const struct by *by, bool of_users);

#endif
