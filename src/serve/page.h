/* The frame of every HTML page: head, navigation, foot. */
#ifndef GUA_SERVE_PAGE_H
#define GUA_SERVE_PAGE_H

#include "base/str.h"
#include "serve/request.h"

/* Appends all that stands before and after the content. A page has no inline script and no
 * inline style: the server's Content-Security-Policy forbids both. */
void page_begin(struct str *out, const struct request *q, const char *title);
void page_end(struct str *out, const struct request *q);

#endif
