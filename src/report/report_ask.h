/* From what a user wrote to a report: options of `gua report` and parameters of a web page mean
 * the same. */
#ifndef GUA_REPORT_REPORT_ASK_H
#define GUA_REPORT_REPORT_ASK_H

#include "base/period.h"
#include "config/config.h"
#include "audit/audit.h"
#include "report/report.h"

/* What was written; NULL and -1: not given. */
struct report_words {
	struct window_words window;
	const char *by, *sort, *compare; /* compare "": with the window before */
	struct restriction only;
	int64_t top, longest;
	const char *person; /* the report is also about this user */
	bool people;	    /* for people: few rows, unless `top` says otherwise */
	bool timeline;	    /* with the time line of each card */
	bool utc;
};
#define REPORT_WORDS_NONE                                                                      \
	{                                                                                      \
		.top = -1, .longest = -1                                                       \
	}

/* What is asked of the stores, and what the report shows of the answer. Paths, groups and
 * prices are the caller's to add. */
struct report_asked {
	struct audit_question question;
	struct window other; /* to compare with */
	bool compares;
	struct report_request request;
};

/* Reads the words, which must outlive the result. The window is the last hour if none is given.
 * ERR_USAGE names the option. */
int report_ask(struct report_asked *asked, const struct report_words *words, int64_t now_ms,
	struct err *e);
/* Fails unless the configuration has all groups that are named. */
int report_check_groups(
	const struct report_words *words, const struct config *c, struct err *e);

/* The report with what it borrows. Zero-initialise. */
struct report_answer {
	bool empty; /* the window has no data */
	struct audit audit, before;
	struct report report;
};

/* Audits the stores and makes the report. ERR_NOTHING: the window has no data; answer->audit
 * says where there is some. Call report_answer_finish() in any case. */
int report_answer(
	struct report_answer *answer, const struct report_asked *asked, struct err *e);
void report_answer_finish(struct report_answer *answer);

#endif
