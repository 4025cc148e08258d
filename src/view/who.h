/* The current holders of the cards: rows of `gua who`, as a table, as JSON and as CSV. */
#pragma once

#include "present/filter.h"
#include "render/text.h"

/* Which holders to list. */
struct who_question {
	const struct filter *filter;
	int64_t idle_ms; /* idle for at least this long; -1: any */
};

/* The holders found, longest idle first. Valid as long as the present is. */
struct who {
	const struct present *now; /* borrowed */
	const struct present_process **holders;
	size_t n;
	/* What would be a row of a card that is reserved: nobody holds it, and nobody else can
	 * have it. It is no process. */
	struct present_process *reserved;
	size_t n_reserved;
};

/* Fails if the filter names a card that does not exist. Call who_finish() in any case. */
int who_find(
	struct who *w, const struct present *now, const struct who_question *q, struct err *e);
void who_finish(struct who *w);

void who_text(struct str *out, const struct who *w, const struct text_style *style);
void who_json(struct str *out, const struct who *w);
void who_csv(struct str *out, const struct who *w);
/* Writes a message to each user about what to release and how, in lines of at most 72
 * columns, so that it can be copied into a mail. */
void who_message(struct str *out, const struct who *w, const struct text_style *style);
/* Appends what could not be read, one sentence per line; `text`: the output is for people. */
void who_notes(struct str *out, const struct who *w, const struct who_question *q, bool text);
