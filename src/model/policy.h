/* The nouns of policy: the session that is judged, how far it has gone, and the steps that were
 * taken. gua-policy(7) describes what they mean. */
#pragma once

#include "model/process.h"
#include "model/reading.h"

enum { SESSION_KEY_CAP = 256, RULE_NAME_CAP = 64 };

/* The kinds of sessions, in the order in which a process is tested for them. */
enum session_kind {
	SESSION_JOB,
	SESSION_POD,
	SESSION_CONTAINER,
	SESSION_NOTEBOOK,
	SESSION_POSIX,
	SESSION_PROCESS,
	SESSION_LEASE, /* no process: what a scheduler gave away, for rules with reserved_for */
	SESSION_KINDS,
};
extern const char *const session_kind_names[SESSION_KINDS];

/* How a session is used; this decides when it is ended. */
enum session_use { USE_INTERACTIVE, USE_BATCH, USE_SERVICE, SESSION_USES };
extern const char *const session_use_names[SESSION_USES];

/* How much a rule may do. */
enum policy_level { LEVEL_OBSERVE, LEVEL_WARN, LEVEL_END, POLICY_LEVELS };
#define POLICY_LEVEL_WORDS "observe|warn|end" /* in the order of the enum */
extern const char *const policy_level_names[POLICY_LEVELS];

/* How far the warnings of a session have gone. The numbers are stored: never change one. */
enum policy_stage {
	STAGE_NONE = 0,
	STAGE_WARN = 1,
	STAGE_AGAIN = 2,
	STAGE_FINAL = 3,
	STAGE_ENDING = 4,    /* it is being ended */
	STAGE_ENDED = 5,     /* it was ended, or would have been */
	STAGE_FAILED = 6,    /* it could not be ended */
	STAGE_COMPUTING = 7, /* it was spared, because its processes use the CPU */
	POLICY_STAGES,
};
extern const char *const policy_stage_names[POLICY_STAGES];

/* What is stored about a session between two passes. */
struct policy_state {
	enum policy_stage stage;
	enum policy_level level; /* the level at which the stage was reached */
	int64_t idle_since_ms;	 /* start of the stage's idle time; -1: none yet */
	int64_t stage_ms;	 /* when the stage was reached; -1: STAGE_NONE */
	int64_t delivered_ms;	 /* when its notice was delivered; -1: not yet */
	int64_t next_clock_ms; /* the next stage comes when the idle clock shows at least this;
				  known once the notice was delivered */
	int64_t round;	       /* how often a session was spared when it was to be ended */
	int64_t clock_ms;      /* its idle clock at the last pass that saw it */
	int64_t clock_at_ms;   /* the moment of that clock; -1: unknown */
	int64_t idle_below;    /* the limit of use of that clock; -1: unknown */
	char rule[RULE_NAME_CAP];
};
#define POLICY_STATE_NONE                                                                      \
	(struct policy_state)                                                                  \
	{                                                                                      \
		.idle_since_ms = -1, .stage_ms = -1, .delivered_ms = -1, .clock_at_ms = -1,    \
		.idle_below = -1                                                               \
	}

/* What a pass did, or would have done. */
enum policy_step {
	STEP_NONE,
	STEP_WARN,	/* a notice: state.stage says which */
	STEP_END,	/* end it now */
	STEP_RECOVERED, /* it was used again */
	STEP_KEPT,	/* its user keeps it */
	STEP_EXEMPT,
	STEP_RELEASED, /* it gave the cards back after a notice */
	STEP_BREAKER,  /* the data look wrong: nothing is done */
	STEP_SIGNAL,   /* a signal is about to be sent, or a manager's command run */
	STEP_ENDED,    /* results of ending, from here on */
	STEP_SPARED,
	STEP_FAILED,
	STEP_ARMED, /* by an admin */
	STEP_DISARMED,
	STEP_RESUMED, /* the breaker was released */
	POLICY_STEPS,
};
extern const char *const policy_step_names[POLICY_STEPS];
