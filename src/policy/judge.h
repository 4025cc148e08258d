/* The judgement of one session: a pure function of the rules, the facts at a moment and what
 * is stored about the session. Simulate and the live run both call it, once for each pass. */
#pragma once

#include "policy/rules.h"

/* Why nothing happens to a session, or not yet. */
enum policy_hold {
	HOLD_NOTHING, /* a step was taken */
	HOLD_NOT_IDLE,
	HOLD_UNOBSERVED,
	HOLD_USE_UNKNOWN, /* its use cannot be told from that of others */
	HOLD_NO_RULE,
	HOLD_EXEMPT,
	HOLD_KEPT,
	HOLD_EARLY,	  /* its next stage comes later */
	HOLD_QUIET,	  /* quiet hours, or a holiday */
	HOLD_UNDELIVERED, /* the notice of its stage has not been delivered */
	HOLD_LAST,	  /* the rule has no further stage */
	HOLD_ENDING,	  /* it is being ended, or has been, or could not be */
	HOLD_COMPUTING,	  /* it was spared, and its processes still use the CPU */
	HOLD_HOST_LIMIT,  /* from here on: reasons that concern a whole pass */
	HOLD_USER_LIMIT,
	HOLD_PASS_LIMIT,
	HOLD_BREAKER,
	POLICY_HOLDS,
};
/* The end of a sentence: "its next stage comes later". */
extern const char *const policy_hold_texts[POLICY_HOLDS];

struct verdict {
	struct policy_state state; /* to be stored; STAGE_NONE: nothing to store */
	enum policy_step step;
	bool would;   /* the step is only recorded, not taken */
	bool reborn;  /* the session had ended, and a new one began under the same name */
	bool renewed; /* the step is a new final notice, because the end was long delayed */
	enum policy_hold hold;
	const struct config_rule *rule; /* NULL: none matches */
	struct rules_times times;	/* of the rule */
	bool ends;		/* the rule ends the session, really or as an observation */
	enum policy_stage next; /* STAGE_NONE: none */
	int64_t next_clock_ms;	/* idle time at which the next stage comes; -1: none */
};

struct verdict judge(const struct policy *p, const struct session_facts *f,
	const struct policy_state *state, int64_t now_ms);

/* When the next notice and the end come at the earliest after a verdict; -1: never, or not
 * within a month. Judges future passes: the session stays idle, each notice is delivered at
 * once, and no limit delays an end. Only passes in which the verdict may change are judged, a
 * few for each hour. */
struct judge_future {
	int64_t notice_ms, end_ms;
};
struct judge_future judge_foresee(const struct policy *p, const struct session_facts *f,
	const struct verdict *v, int64_t now_ms);

/* When a stage of a rule comes, as idle time; AT_NEVER: never. */
int64_t judge_stage_at(const struct rules_times *t, enum policy_stage stage);
/* Whether the stage is a warning or the final notice. */
bool judge_was_warned(enum policy_stage stage);

/* A session that was ended, is being ended, or would have been. */
struct past_end {
	int64_t at_ms;
	const char *user;
	const char *session; /* its key */
	bool signalled;	     /* a signal was sent, or a manager's command was run */
};

/* One pass over all sessions: each is judged, then the limits that concern several are applied.
 * Pure: the caller stores the states and takes the steps, in one transaction. */
struct pass {
	const struct policy *policy;
	int64_t now_ms;
	const struct session_facts *facts;
	const struct policy_state *states; /* as stored */
	struct verdict *verdicts; /* set by judge_pass(), with the states to be stored */
	size_t n;
	const struct past_end *past; /* the ends of the last 24 hours */
	size_t n_past;
	/* Returns how many sessions hold a card now; called only to end several. */
	int64_t (*count_sessions)(void *context);
	void *context;
	bool stopped;	 /* the breaker has tripped before and was not released */
	bool tripped;	 /* out: it trips in this pass */
	size_t n_jumped; /* out: sessions whose clocks grew too fast */
};

/* False: out of memory, and nothing was changed. */
bool judge_pass(struct pass *p);
