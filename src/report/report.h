/* Makes the report of an audit: each figure, sentence and table once, for all formats. */
#pragma once

#include "model/report.h"
#include "audit/audit.h"

struct report_request {
	struct by by;
	enum order order;
	size_t top;	     /* rows of holders; 0: all */
	size_t top_inner;    /* rows of the second level for each row of the first; 0: all */
	size_t most;	     /* rows in all, of both levels; 0: all */
	bool rest;	     /* people get one row with the sum of the rows that are left out */
	const char *command; /* the command that asks for this window again; NULL: none is
				suggested */
	bool same_db;	 /* the command also needs the same --db, which it does not contain */
	bool has_groups; /* users may belong to groups */
	const struct restriction *only;	 /* what the audit was restricted to; NULL: nothing */
	const struct asked_hosts *asked; /* hosts whose stores were fetched; NULL: none */
	const char *currency;		 /* escaped for a terminal */
	bool has_prices;		 /* there are prices of GPU-hours */
	double energy_price;		 /* of one kWh; NAN: not given */
	double co2_g_per_kwh;		 /* NAN: not given */
	bool utc;			 /* moments in UTC instead of local time */
};

/* Fills `*r`, which borrows the audit's hosts: the audit must outlive it. If memory runs out,
 * r->failed or a table's flag is set. */
void report_make(struct report *r, const struct audit *a, const struct report_request *q);
/* Adds the comparison with the audit of another window, which may have no data; `since_ms`
 * and `until_ms` are the requested window. */
struct report_other {
	const struct audit *audit, *before;
	int64_t since_ms, until_ms;
};
void report_compare(
	struct report *r, const struct report_other *other, const struct report_request *q);
/* Adds the part about one person; other->before may have no data. */
void report_compare_person(
	struct report *r, const char *name, const struct report_other *other);
/* The next sentence of a kind, from place *at on, and moves *at after it. NULL: no more. */
const struct sentence *report_next_sentence(
	const struct report *r, enum sentence_kind kind, size_t *at);
/* Lists the sections for people in order; returns how many. They borrow the report. */
size_t report_sections(const struct report *r, struct report_section sections[REPORT_SECTIONS]);
void report_finish(struct report *r);
