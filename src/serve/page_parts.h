/* Small pieces that pages are made of. Only for serve/page_*.c. */
#ifndef GUA_SERVE_PAGE_PARTS_H
#define GUA_SERVE_PAGE_PARTS_H

#include "model/reading.h"
#include "present/present_store.h"
#include "serve/answer.h"

/* Appends a bar of which `share` (0 to 1) is filled in the colour of a class. The bar is
 * decorative: the number stands beside it. */
void part_gauge(struct str *out, double share, const char *class);
/* Appends the sign of a state, as in the report. */
void part_key(struct str *out, const char *state);
/* Appends a paragraph that the reader must not miss. */
void part_warning(struct str *out, const char *text);

/* Appends a link to the page of a user, a card ("GPU 0"), a notebook of a user. */
void part_user(struct str *out, const char *user);
void part_card(struct str *out, const struct card_id *id);
void part_notebook(struct str *out, const char *user, const char *notebook);

/* Appends a path and the parameters of the request, for a link: `instead` replaces the
 * parameter of the same name; NULL: none. Parameters about the look of a page are left out. */
void part_query(struct str *out, const char *path, const struct request *q,
	const struct request_param *instead);
/* The value of a parameter; NULL: it is missing, or empty, as forms send it. */
const char *part_param(const struct request *q, const char *name);

/* Reads the present of all stores. Call present_store_finish() even if it fails. */
int part_present(struct present *b, const struct request *q, struct err *e);
/* Appends a warning for each host whose recorder is silent; with `all`, also how old the
 * data of the others is. */
void part_present_age(
	struct str *out, const struct request *q, const struct present *b, bool all);

/* How long a state that began then has lasted: until now, or until the last tick of a silent
 * recorder. */
int64_t part_idle_ms(const struct request *q, const struct present_host *h, int64_t since_ms);
/* Whether the holders of a host's cards are known: a recorder that has ended leaves only its
 * last slots, and holders can be read from slots of one minute. */
bool part_knows_holders(const struct present *b, size_t host);

/* The holders that a table lists; NULL members: all. */
struct holder_choice {
	const char *user, *notebook, *uuid;
};
/* Appends the chosen holders, sorted by the parameter `order`. */
void page_holders(struct str *out, const struct request *q, const struct present *b,
	const struct holder_choice *choice);

#endif
