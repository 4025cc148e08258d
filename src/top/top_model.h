/* Which processes `gua top` shows, in which order, and which one is selected. Depends only on
 * what the live view has read. */
#pragma once

#include "present/filter.h"
#include "present/holders.h"
#include "model/present.h"
#include "proc/reader.h"

/* A process that is not on a card, but has a descendant that is. */
struct top_ancestor {
	struct process_id id;
	uint32_t parent; /* its pid, or 0 */
};

/* The data to show. All pointers are borrowed. */
struct top_now {
	const struct present *all;
	const struct filter *filter; /* --user, --pid, --min-mem, --compute; NULL: all */
	const bool *card_on;	     /* for each card: whether it is shown; NULL: all are */
	const uint32_t *parents;     /* pid of each process's parent, 0 unknown; or NULL */
	const struct top_ancestor *family; /* for the tree */
	size_t n_family;
};

struct top_row {
	const struct present_process *process; /* NULL: it is an ancestor */
	const struct top_ancestor *ancestor;   /* else NULL */
	unsigned depth;			       /* in the tree */
	double number;			       /* what rows are ordered by, or NAN; ... */
	const char *text;		       /* ... or this text of the process */
};

/* Identifies a row across refreshes. */
struct top_key {
	uint32_t pid;
	uint64_t start_ticks;
	size_t card; /* SIZE_MAX: an ancestor */
};

struct top_model {
	const struct holder_column *sort; /* NULL: by card, then by memory */
	bool reverse;
	bool tree;
	char filter[64];      /* must be in a text of the process, ignoring case; "": all */
	char user[USER_CAP];  /* only this user's processes; "": all */
	struct top_row *rows; /* the shown rows, in order */
	size_t n_rows, cap_rows;
	size_t selected;    /* index into rows; 0 when there is none */
	size_t first;	    /* the first row on the screen */
	struct top_key key; /* of the selected row, so that it stays selected */
};

void top_model_finish(struct top_model *m);
/* Makes the rows again; false: out of memory. The selection stays with its process. */
bool top_model_arrange(struct top_model *m, const struct top_now *now);
/* Moves the selection, not beyond the ends. */
void top_model_move(struct top_model *m, long by);
void top_model_select(struct top_model *m, size_t row);
/* Scrolls so that the selected row is among the `visible` ones. */
void top_model_show(struct top_model *m, size_t visible);
/* The selected row; NULL: there is none. */
const struct top_row *top_model_row(const struct top_model *m);

/* The identity of a row. */
const struct process_id *top_model_row_id(const struct top_row *row);
/* What a row belongs to, such as a notebook or job; "": nothing. */
const char *top_model_row_label(const struct top_row *row);

/* The parents of the processes on the cards, for the tree. */
struct top_family {
	struct reader *reader; /* borrowed */
	uint32_t *parents;     /* of each process; 0 unknown */
	size_t cap_parents;
	struct top_ancestor *ancestors;
	size_t n, cap;
};

void top_model_family_finish(struct top_family *f);
/* Reads the parents of all processes and their parents in turn, up to but without init, and
 * hands them to `now`. What cannot be read is left out. */
void top_model_family_read(struct top_family *f, struct reader *reader, struct top_now *now);
