/* Pages about a window of time: a form that chooses the window, and the report. Only for
 * serve/page_*.c. */
#ifndef GUA_SERVE_PAGE_REPORT_H
#define GUA_SERVE_PAGE_REPORT_H

#include "serve/page.h"
#include "serve/page_parts.h"

struct report_page {
	struct page_frame frame;      /* its links to other formats are filled in */
	const char *path;	      /* of the page, as in links */
	struct request_param only[4]; /* what the report is restricted to; name NULL: nothing */
	const struct holder_choice *now; /* the holders that are listed first; NULL: none */
};

/* Answers with the page. The window is the last week unless the request names one. */
void report_page(const struct request *q, struct answer *a, const struct report_page *page);

#endif
