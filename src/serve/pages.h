/* The handlers of HTML pages and of the files that pages refer to: rows of serve_routes. */
#ifndef GUA_SERVE_PAGES_H
#define GUA_SERVE_PAGES_H

#include "serve/answer.h"

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
void asset_css(const struct request *q, struct answer *a);
void asset_js(const struct request *q, struct answer *a);
void asset_icon(const struct request *q, struct answer *a);

#endif
