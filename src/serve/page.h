/* The frame of every HTML page: head, navigation, heading, links to other formats, foot. */
#ifndef GUA_SERVE_PAGE_H
#define GUA_SERVE_PAGE_H

#include "base/str.h"
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

#endif
