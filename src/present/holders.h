/* The table of holders: each column once, for gua who, gua top, pages, JSON and CSV. A new
 * column is a row in holders.c. Code that shows a column in a special way, as a link or in a
 * colour, recognises it by its look. */
#pragma once

#include "model/present.h"
#include "model/table.h"

enum { HOLDER_COLUMNS_MAX = 64, HOLDER_WHAT_CAP = COMMAND_CAP + NOTEBOOK_CAP + 32 };

/* What the cells of a row are made from. */
struct holder_row {
	const struct present *now;
	const struct present_process *process;
	const struct present_card *card;
	const struct present_host *host;
	char label[CARD_LABEL_CAP], idle[96], what[HOLDER_WHAT_CAP]; /* as people read them */
};
/* holders_row_bare() fills no texts: enough to compare numbers. */
void holders_row_bare(struct holder_row *row, const struct present *now,
	const struct present_process *process);
void holders_row(struct holder_row *row, const struct present *now,
	const struct present_process *process);

/* Columns that are not plain text everywhere. */
enum holder_look {
	HOLDER_PLAIN,
	HOLDER_USER,
	HOLDER_CARD,
	HOLDER_IDLE,
	HOLDER_WHAT,
	HOLDER_RELEASE,
	HOLDER_PID, /* also for processes that are on no card */
	HOLDER_SM,
	HOLDER_COMMAND,
};

struct holder_column {
	/* Its key in JSON and CSV, its kind, its getter, and its title in gua who. */
	struct column column;
	/* Its place in gua who and on pages, from 1 on; those with the same place stand in the
	 * order of the table, gaps are allowed; 0: it is not there. */
	int text, page;
	const char *page_title;
	const char *order; /* its name in the parameter `order` of a page; NULL: none */
	bool down;	   /* sorting by it starts with the largest */
	int top;	   /* its place in gua top, as above */
	const char *top_title;
	size_t top_width; /* 0: fits the content */
	size_t top_from;  /* shown on screens with at least this many columns */
	const char *sort_word,
		*sort_name; /* of --sort and of the menu; NULL: cannot sort by it */
	bool measured;	    /* live_process_measure() reads it */
	enum holder_look look;
};

/* The columns of gua who, in their order; returns how many. */
size_t holders_text_columns(struct column columns[HOLDER_COLUMNS_MAX]);
/* The columns of JSON and CSV; the first is the host, if there may be holders of several
 * hosts. */
size_t holders_data_columns(struct column columns[HOLDER_COLUMNS_MAX], bool host);
/* The columns of a page. */
size_t holders_page_columns(const struct holder_column *columns[HOLDER_COLUMNS_MAX]);

/* The columns of gua top. */
size_t holders_top_columns(const struct holder_column *columns[HOLDER_COLUMNS_MAX]);
/* The column with this word of --sort; NULL: there is none. */
const struct holder_column *holders_sort(const char *word);

/* Longest idle first, then those whose use is unknown, then active ones; a smaller key comes
 * first. */
int64_t holders_idle_order(const struct present_process *p);
