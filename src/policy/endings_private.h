/* What the parts of endings.h share: one session that is being ended. */
#ifndef GUA_POLICY_ENDINGS_PRIVATE_H
#define GUA_POLICY_ENDINGS_PRIVATE_H

#include "policy/end_manager.h"
#include "policy/endings.h"
#include "policy/fresh.h"
#include "policy/notice.h"
#include "present/live.h"

/* A batch has this many processes: between two of them others are attended to. */
enum { ENDING_BATCH = 64, ENDING_CARDS = 32, ENDING_TEXT_CAP = 256, ENDING_LIST_CAP = 1024 };

enum ending_stage {
	ENDING_NONE,	/* the place is free */
	ENDING_CONFIRM, /* looks at the driver, before `signal` */
	ENDING_MANAGER, /* the manager's command runs */
	ENDING_GRACE,	/* SIGTERM was sent, or the manager has run */
	ENDING_KILLED,	/* SIGKILL was sent */
	ENDING_VERIFY,	/* all have ended: looks at the driver */
	ENDING_OVER,	/* the outcome can be taken */
};

enum ending_how {
	ENDING_SPARED,	   /* a sign of life, a stop order, or no record: nothing was done, or
			      nothing further; the text says which */
	ENDING_ENDED,	   /* all processes have ended, and the memory is free */
	ENDING_STILL_HELD, /* they have ended, and memory is still in use */
	ENDING_FAILED,	   /* they have not ended, or could not be signalled */
	ENDING_COMPUTES,   /* they use the CPU: nothing was done */
	ENDING_HOWS,
};
extern const char *const ending_how_names[ENDING_HOWS]; /* spared ended still-held failed
							   computes */

struct ending_card {
	char uuid[UUID_CAP];
	double idle_power_w; /* the floor; NAN: unknown */
	/* Of the looks in which the session was alone on it. */
	double power_sum_w, power_limit_w;
	size_t n_power;
};

/* What is needed of a session once the pass that decided is over, and how far it is. */
struct ending {
	enum ending_stage stage;
	char key[SESSION_KEY_CAP], user[USER_CAP], rule[RULE_NAME_CAP];
	/* For the log: as much as fits. */
	char pids[ENDING_LIST_CAP], uuids[ENDING_LIST_CAP], gpus[LABEL_CAP],
		command[COMMAND_CAP];
	enum session_kind kind;
	int64_t uid, held_bytes, idle_since_ms, clock_ms;
	struct policy_state state;
	struct notice notice;	       /* of the result */
	struct end_process *processes; /* in the order of signals */
	struct end_process *sorted;    /* the same, by fresh_sort() */
	bool *gone;		       /* of the processes, in the order of signals */
	size_t n_processes;
	struct ending_card cards[ENDING_CARDS];
	size_t n_cards;
	char job[LABEL_CAP], container[LABEL_CAP]; /* labels of its manager, or "" */
	int64_t idle_below; /* use from this on spares it, percent of the SMs */
	int64_t notice_ms;  /* delivery of the final notice: keys pressed since spare it */
	int64_t final_ms;   /* from that notice to the end */
	bool kill;	    /* SIGKILL after the grace period */
	/* Confirming. */
	enum end_ask signal; /* that comes next: END_ASK_TERM, then END_ASK_KILL */
	size_t next;	     /* process of the next batch; 0: none got this signal yet */
	bool signalled;	     /* something was done to the session */
	size_t looks;
	int64_t first_look_us;
	double cpu_s;		       /* at the last look */
	double cpu_used_s;	       /* since the first one */
	int64_t seen_bytes;	       /* held at the last look */
	char companion[USER_CAP + 32]; /* in its job or container; "": nobody */
	char evidence[ENDING_TEXT_CAP];
	/* Ending. */
	int64_t until_us;  /* of this stage; when SIGKILL is due */
	int64_t polled_us; /* when processes were last looked for in /proc */
	struct helper *manager;
	size_t verified; /* looks since all have ended */
	/* ENDING_OVER: what came of it. */
	enum ending_how how;
	int64_t freed_bytes; /* -1: unknown */
	char text[ENDING_TEXT_CAP];
	int64_t retry_us; /* when it is stored */
};

/* A process that gua-end holds, from the first warning of its session on. */
struct ending_held {
	char key[SESSION_KEY_CAP], user[USER_CAP];
	struct end_process process;
	bool refused; /* it must not be signalled, or has ended */
};

struct endings {
	struct endings_options o;
	struct enforcer *enforcer;
	struct end_link *link;
	int proc;
	struct apart *apart; /* the process that asks the driver */
	struct live *live;   /* NULL: not needed now */
	bool asked;	     /* a look is under way */
	bool looked;	     /* there was a look since it was opened */
	int64_t asked_us, next_look_us;
	struct ending items[ENDINGS_MOST];
	struct ending_held *held;
	size_t n_held;
	/* Of this pass: processes that cannot or must not be ended, and why the first. */
	size_t n_refused;
	char refused[256];
	bool unreachable; /* gua-end did not answer: it is not asked again */
	bool failing;	  /* an outcome could not be stored */
};

/* The monotonic time of the enforcer's clock. */
int64_t endings_now_us(const struct endings *es);
const struct config_end *endings_config(const struct endings *es);
/* Holds one process of a session that was warned. ERR_NOTHING: it has ended. ERR_USAGE: it must
 * not be signalled. ERR_BUSY: enough are held; it can be signalled all the same. */
int ending_hold(struct endings *es, const struct end_process *p, struct err *e);
/* Lets go of the processes of a session. */
void endings_release(struct endings *es, const char *key);
/* Begins to look at a session whose processes are listed. False: out of memory. */
bool ending_begin(struct ending *a);
/* Frees what it has; its place is free then. */
void ending_clear(struct ending *a);

/* Ends an ending. The text is formatted. */
void ending_finish(struct ending *a, enum ending_how how, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Spares the session from what comes next; the text says why, and what was done before. */
void ending_spare(struct ending *a, const char *why);

/* Uses a look in ENDING_CONFIRM: goes on, spares the session, or begins to end it. */
void ending_confirm(struct endings *es, struct ending *a, const struct fresh_look *look);
/* Does what is due while processes are waited for. */
void ending_attend(struct endings *es, struct ending *a);

/* Since the pass that decided, the session may be kept or exempt, or ending forbidden: asked
 * before each signal and each manager. Non-zero: `e` says why. `brief`: all was asked just
 * before, for another process of the same batch. */
int ending_allowed(const struct endings *es, const struct ending *a, bool brief, struct err *e);
/* No record, no action: what returns 0 is on disk. `what` is "SIGTERM", "SIGKILL", "podman stop
 * 3f2a91c4d5e6"; of one batch of several "SIGTERM, processes 65 to 128 of 1500". */
int ending_record(
	const struct endings *es, const struct ending *a, const char *what, struct err *e);
/* Stores what came of it, for an ending that has no place in the list. */
void ending_store(struct endings *es, struct ending *a);

#endif
