/* What is known of a session at one moment: all that a judgement depends on. */
#ifndef GUA_POLICY_FACTS_H
#define GUA_POLICY_FACTS_H

#include "audit/idle_history.h"

/* A last tick that is older than this leaves the present unobserved: a few ticks. */
enum { STALE_TICKS = 4, STALE_LEAST_MS = 150000 };
/* The same of one card, compared with the last tick: half a tick, and at least this long. */
enum { LAG_LEAST_MS = 10000 };

/* Cards of one host, MIG instances included; a session on cards beyond that is judged, but they
 * are not named. */
enum { CARD_WORDS = 4 };
struct card_set {
	uint64_t bits[CARD_WORDS];
};

struct session_facts {
	int64_t idle_below; /* set before: use from this on counts, in percent */
	const struct idle_session *session;
	bool holds;	  /* it has memory on a card */
	bool observed;	  /* the present is known */
	bool use_unknown; /* its own use of its cards is not known now */
	bool idle;	  /* all of it, since idle_since_ms */
	int64_t idle_since_ms;
	int64_t clock_ms;  /* how long it was seen idle: unobserved time is not in it */
	int64_t mem_bytes; /* that it holds; -1: not known */
	struct card_set cards;
	int64_t uid;	 /* the least of its processes'; -1: unknown */
	int64_t born_ms; /* when the oldest process that holds a card was started; -1: unknown
			  */
	/* From elsewhere; the functions here leave them alone. */
	const char *exemption; /* why it is exempt; NULL: it is not */
	int64_t kept_until_ms; /* its user keeps it until then; -1: no */
	int64_t delivered_ms;  /* the notice of its present stage; -1: not delivered */
	bool computes;	       /* its processes use the CPU, or may: asked of STAGE_COMPUTING */
};

/* The spans of one session that cover the moment, by their index in h->spans. */
struct open_spans {
	const uint32_t *items;
	size_t n;
};

/* Fills the facts at `at_ms`. In h->present, spans end at the last tick; in the past they may
 * go on after the moment. */
void facts_at(struct session_facts *f, const struct idle_history *h,
	const struct idle_session *session, struct open_spans spans, int64_t at_ms);

/* Whether the span can be seen at the moment: it has begun, and has not ended. */
bool facts_covers(const struct idle_history *h, const struct idle_span *s, int64_t at_ms);

/* When the session of these facts was first used after the moment; -1: not until the last
 * reading. */
int64_t facts_next_use(
	const struct idle_history *h, const struct session_facts *f, int64_t after_ms);

#endif
