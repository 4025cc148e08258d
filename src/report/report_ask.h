/* Makes a report from the words of a user: options of `gua report` and parameters of a web
 * page have the same meaning; the configuration adds groups and prices. */
#pragma once

#include "base/period.h"
#include "audit/audit.h"
#include "config/config.h"
#include "report/report.h"

/* The words as given; NULL and -1: not given. */
struct report_words {
	struct window_words window;
	const char *by, *sort, *compare; /* compare "": the window before this one */
	struct restriction only;
	int64_t top, longest;
	const char *person; /* the report is also about this user */
	bool people;	    /* for people: few rows, unless `top` is given */
	bool timeline;	    /* with the time line of each card */
	bool utc;
};
#define REPORT_WORDS_NONE                                                                      \
	{                                                                                      \
		.top = -1, .longest = -1                                                       \
	}

/* The question to the stores, and what the report shows of the answer. The caller adds
 * paths, groups and prices. */
struct report_asked {
	struct audit_question question;
	struct window other; /* window to compare with */
	bool compares;
	struct report_request request;
};

/* Reads the words, which must outlive the result. The window is the last hour if none is given.
 * ERR_USAGE names the option. */
int report_ask(struct report_asked *asked, const struct report_words *words, int64_t now_ms,
	struct err *e);
/* ERR_USAGE unless the configuration has all groups that are named. */
int report_ask_check_groups(
	const struct report_words *words, const struct config *c, struct err *e);

/* The report with what it borrows. Zero-initialise. */
struct report_answer {
	bool empty; /* the window has no data */
	struct audit audit, before;
	struct report report;
};

/* Audits the stores and makes the report. ERR_NOTHING: the window has no data; answer->audit
 * says where there is data. Call report_ask_finish() in any case. */
int report_ask_answer(
	struct report_answer *answer, const struct report_asked *asked, struct err *e);
void report_ask_finish(struct report_answer *answer);

/* Prices: one for all cards, or those of the configuration. */
struct report_prices {
	double all; /* NAN: none */
	const struct config_prices *by_name;
};

/* Fills the question and the request. The configuration and the prices must outlive them. */
void report_ask_configure(struct audit_question *q, struct report_request *request,
	const struct config *c, const struct report_prices *prices);
