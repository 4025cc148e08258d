/* The judgement of one session: a pure function of the rules, the facts at a moment and what
 * is stored about the session. Simulate and the live run both call it, once for each pass. */
#ifndef GUA_POLICY_JUDGE_H
#define GUA_POLICY_JUDGE_H

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
	bool renewed; /* the step is a new final notice, because the end was delayed for long */
	enum policy_hold hold;
	const struct config_rule *rule; /* NULL: none matches */
	struct rules_times times;	/* of the rule */
	bool ends;		/* the rule ends the session, really or as an observation */
	enum policy_stage next; /* STAGE_NONE: none */
	int64_t next_clock_ms;	/* idle time at which the next stage comes; -1: none */
};

struct verdict judge(const struct policy *p, const struct session_facts *f,
	const struct policy_state *state, int64_t now_ms);

/* When a stage of a rule comes, as idle time; AT_NEVER: never. */
int64_t judge_stage_at(const struct rules_times *t, enum policy_stage stage);
/* Notes the clock of this pass in a state. */
void judge_note_clock(struct policy_state *state, const struct policy *p,
	const struct session_facts *f, int64_t now_ms);
/* Whether the stage is a warning or the final notice. */
bool judge_was_warned(enum policy_stage stage);

#endif
