/* What store/merge*.c share. Only for them. */
#ifndef GUA_STORE_MERGE_PRIVATE_H
#define GUA_STORE_MERGE_PRIVATE_H

#include <limits.h>
#include <sqlite3.h>

#include "store/merge.h"

/* No store has ids beyond it: they are numbers of rows. */
#define MERGE_ID_MAX (INT64_C(1) << 48)

/* From an id of a store to that in the new one; those of a store are sorted. */
struct new_id {
	int64_t from, to;
};
struct new_ids {
	struct new_id *items;
	size_t n;
};

/* A store that is merged. */
struct source {
	const char *path;
	size_t at; /* among those that were given */
	sqlite3 *db;
	int64_t newest_ms; /* its last tick */
	struct new_ids hosts, cards;
	int64_t runs, processes, others; /* what is added to its ids */
};

/* A machine in the new store. */
struct machine {
	const struct merge_host *newest;
	int64_t host;
};

struct merge {
	const struct merge_wish *wish;
	sqlite3 *to;
	char path[PATH_MAX]; /* of the unfinished store */
	struct source *sources;
	struct machine *machines;
	size_t n_machines;
};

int merge_add_id(struct new_ids *ids, int64_t from, int64_t to, struct err *e);
/* Fills `e` from the failure of the new store, or of one that is merged. Returns e->code. */
int merge_cannot_write(const struct merge *m, struct err *e);
int merge_cannot_read(const struct source *s, struct err *e);
/* A column as text; "" for NULL. */
const char *merge_text(sqlite3_stmt *row, int column);

/* merge_rows.c: copies the cards, whose new ids it notes, and then all other tables, of a store
 * that is open and whose hosts have new ids. */
int merge_copy(struct merge *m, struct source *s, struct err *e);

#endif
