/* The HTML pages: the frame, the pieces that pages are made of, the table of holders, and the
 * handlers of pages and of the files that they refer to. */
#pragma once

#include "serve/answer.h"
#include "serve/request.h"

/* The pages of the navigation. */
enum page_place { PLACE_NONE, PLACE_NOW, PLACE_AUDIT, PLACE_POLICY, PLACE_ME, PLACES };

/* A link: its text and its address. */
struct page_link {
	const char *text, *href;
};

struct page_frame {
	enum page_place place;
	const char *title;	     /* of the page, and its heading */
	struct page_link crumbs[3];  /* the pages above this one; ends with text NULL */
	struct page_link formats[5]; /* the same data in other formats; ends with text NULL */
	bool paper;		     /* the page for printing: without navigation */
};

/* Append everything before and after the content. A page has no inline script or style: the
 * server's Content-Security-Policy forbids both. */
void page_begin(struct str *out, const struct page_frame *f);
void page_end(struct str *out);

/* Appends a bar of which `share` (0 to 1) is filled in the colour of a class. The bar is
 * decorative: the number stands beside it. */
void page_gauge(struct str *out, double share, const char *class);

/* Appends a link to the page of a user. */
void page_user_link(struct str *out, const char *user);

/* Appends a path and the parameters of the request, for a link: `instead` replaces the
 * parameter of the same name; NULL: none. Parameters about the look of a page are left out. */
void page_query(struct str *out, const char *path, const struct request *q,
	const struct request_param *instead);
/* The value of a parameter; NULL: it is missing, or empty, as forms send it. */
const char *page_param(const struct request *q, const char *name);

/* How long a page waits for a store that is locked. */
enum { PAGE_WAIT_MS = 300 };
/* Appends a warning for each host whose recorder is silent; with `all`, also how old the
 * data of the others is. */
void page_present_age(
	struct str *out, const struct request *q, const struct present *b, bool all);

/* How long a state that began then has lasted: until now, or a silent recorder's last tick. */
int64_t page_idle_ms(const struct request *q, const struct present_host *h, int64_t since_ms);
/* Whether the holders of a host's cards are known: a recorder that has ended leaves only its
 * last slots, and holders can be read from slots of one minute. */
bool page_knows_holders(const struct present *b, size_t host);

/* The holders that a table lists; NULL members: all. */
struct holder_choice {
	const char *user, *notebook, *uuid;
};
/* Appends the chosen holders, sorted by the parameter `order`. */
void page_holders(struct str *out, const struct request *q, const struct present *b,
	const struct holder_choice *choice);

/* The cards and their holders at the last tick. */
void page_now(const struct request *q, struct answer *a);
/* The report of a window; of one card, user or notebook. */
void page_audit(const struct request *q, struct answer *a);
void page_audit_card(const struct request *q, struct answer *a);
void page_audit_user(const struct request *q, struct answer *a);
void page_audit_notebook(const struct request *q, struct answer *a);
/* The rules, the sessions that are watched, and what was done. */
void page_policy(const struct request *q, struct answer *a);
/* The report about the user who asks. */
void page_audit_me(const struct request *q, struct answer *a);

/* The stylesheet, the script, the icon. */
void page_css(const struct request *q, struct answer *a);
