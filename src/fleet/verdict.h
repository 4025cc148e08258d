/* Judges how a query ended, and says so in a sentence. Only for client.c. */
#ifndef GUA_FLEET_VERDICT_H
#define GUA_FLEET_VERDICT_H

#include <curl/curl.h>
#include <stdint.h>

#include "fleet/answer.h"

enum verdict {
	VERDICT_GOOD,
	VERDICT_REFUSED, /* the engine refuses this query */
	VERDICT_AGAIN,	 /* it may pass */
	VERDICT_BAD,
};

struct outcome {
	CURL *easy;
	CURLcode code;
	const struct err *wrong; /* with the answer; code 0: nothing */
	const struct answer *answer;
	const char *url;
	int64_t timeout_ms;
};
/* Fills `e` unless it is good. */
enum verdict verdict_of(const struct outcome *o, struct err *e);

#endif
