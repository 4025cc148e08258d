/* What a handler answers: a status, a type and a body. */
#pragma once

#include "serve/request.h"

/* A new answer is 200 and has the type of its route. */
struct answer {
	int status;
	const char *type; /* Content-Type; a constant */
	struct str body;
	int retry_s; /* Retry-After, for 503; 0: none */
};

#define TYPE_HTML "text/html; charset=utf-8"
#define TYPE_JSON "application/json"
#define TYPE_CSV "text/csv; charset=utf-8"
#define TYPE_TEXT "text/plain; charset=utf-8"

/* Replaces the body by an error: an HTML page or a JSON object, as the request prefers. The
 * sentence says what could not be done, why, and what to do next. */
void answer_fail(struct answer *a, const struct request *q, int status, const char *sentence);
/* The same for a failed call: 400 for a user's mistake, 404 for something that does not
 * exist, 503 for a store that cannot be read now. */
void answer_err(struct answer *a, const struct request *q, const struct err *e);
/* Writes the sentence of a mistake in a request. Parsers name options; parameters have the
 * same names without the dashes. */
enum { ERR_TEXT_CAP = sizeof(((struct err *)0)->text) };
void answer_sentence(char dst[ERR_TEXT_CAP], const struct err *e);

/* The reason phrase of a status: "Not Found". */
const char *answer_status_words(int status);
