/* What is known about a session at one moment: everything that a verdict depends on. */
#pragma once

#include "model/idle_history.h"

/* If the last tick is older than this, the present is unobserved: a few ticks, and at least
 * STALE_LEAST_MS. */
enum { STALE_TICKS = 4, STALE_LEAST_MS = 150000 };
/* A card whose last reading is older than the last tick by more than this is unobserved:
 * half a tick, and at least LAG_LEAST_MS. */
enum { LAG_LEAST_MS = 10000 };

/* Size of a bit set of the cards of one host, in words of 64, MIG instances included. A
 * session with cards beyond that is judged, but those cards are not named. */
enum { CARD_WORDS = 4 };
struct card_set {
	uint64_t bits[CARD_WORDS];
};
bool facts_has_card(const struct card_set *s, size_t card);

struct session_facts {
	int64_t idle_below; /* this much use or more counts, in percent */
	const struct idle_session *session;
	bool holds;	  /* it has memory on a card */
	bool observed;	  /* the present is known */
	bool use_unknown; /* its own use of its cards is not known now */
	bool idle;	  /* all of its processes are idle, since idle_since_ms */
	int64_t idle_since_ms;
	int64_t clock_ms;  /* how long it was seen idle, without unobserved time */
	int64_t mem_bytes; /* memory that it holds; -1: unknown */
	struct card_set cards;
	int64_t uid;	 /* the lowest uid of its processes; -1: unknown */
	int64_t born_ms; /* start of the oldest process that holds a card; or -1 */
	/* Set by callers; the functions here do not change them. */
	const char *exemption; /* why it is exempt; NULL: it is not */
	int64_t kept_until_ms; /* its user keeps it until then; -1: it is not kept */
	int64_t delivered_ms;  /* when the notice of its present stage was delivered; -1: it was
				  not */
	bool computes; /* its processes use the CPU, or may; only set in STAGE_COMPUTING */
};

/* The spans of one session that cover the moment, as indexes into h->spans. */
struct open_spans {
	const uint32_t *items;
	size_t n;
};

struct policy;
/* Fills in the facts at `at_ms`, from the history of the policy. Use is compared with the limit
 * of the rule that matches the session. */
void facts_at(const struct policy *p, struct session_facts *f,
	const struct idle_session *session, struct open_spans spans, int64_t at_ms);

/* Whether it is certain that the session is idle at the moment of the facts. */
bool facts_is_idle(const struct session_facts *f);

/* Whether the span covers the moment: it has begun, and has not ended. */
bool facts_covers(const struct idle_history *h, const struct idle_span *s, int64_t at_ms);

/* The last use of the session of these facts before the moment; NULL: none is known. */
const struct idle_mark *facts_last_use(
	const struct idle_history *h, const struct session_facts *f, int64_t at_ms);
/* When the session of these facts was first used after the moment; -1: not yet. */
int64_t facts_next_use(
	const struct idle_history *h, const struct session_facts *f, int64_t after_ms);

/* The sessions that hold a card now, with the facts about each: from the store, and what /proc
 * says about built-in exemptions. Zero-initialise; set the members above "Results". */
struct facts_now {
	const char *db;
	int proc; /* an open /proc; -1: processes are not looked at */
	int64_t now_ms;
	bool brief;		     /* as in idle_history.h */
	const struct policy *policy; /* its rules set the limits of use */
	/* Results. */
	struct idle_history history;
	struct session_facts *facts; /* one for each session of the history */
	uint32_t *spans; /* indexes of h->spans, session by session: see facts_now_spans() */
	size_t *first;
};

/* Finish *p even after a failure. */
int facts_now_read(struct facts_now *p, struct err *e);
/* Computes the facts again, after the caller has set used_ms of sessions. */
void facts_now_judge_again(struct facts_now *p);
void facts_now_finish(struct facts_now *p);

/* Whether the store knows the present: a recorder runs and its last tick is recent. */
bool facts_now_is_known(const struct facts_now *p);
struct open_spans facts_now_spans(const struct facts_now *p, size_t session);
/* Calls `take` with every built-in exemption of a session's processes. */
typedef void (*facts_now_exemption_taker)(void *context, uint32_t pid, const char *why);
void facts_now_exemptions(const struct facts_now *p, size_t session,
	facts_now_exemption_taker take, void *context);
/* What a user asks about: a process that holds a card, or a lease, "slurm:4". */
struct facts_asked {
	uint32_t pid;
	char lease[LABEL_CAP]; /* "": the process */
};
/* The process, or what stands for the lease among them, from the index *at on, which becomes
 * its place; NULL: there is none. */
const struct idle_process *facts_now_find(
	const struct facts_now *p, const struct facts_asked *asked, size_t *at);
