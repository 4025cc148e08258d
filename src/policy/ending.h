/* One session that is being ended: confirms to the last moment that it is idle, takes the steps
 * that endings.h lists, and stores each. Only for endings.c and its tests. */
#pragma once

#include "policy/end_link.h"
#include "policy/end_manager.h"
#include "policy/endings.h"
#include "policy/signs.h"
#include "policy/notice.h"
#include "present/live.h"

/* Processes that are signalled in one batch; other work is done between two batches. */
enum { ENDING_BATCH = 64, ENDING_CARDS = 32, ENDING_TEXT_CAP = 256 };

enum ending_stage {
	ENDING_NONE,	/* the place is free */
	ENDING_CONFIRM, /* looking at the driver, before `signal` is sent */
	ENDING_MANAGER, /* the manager's command runs */
	ENDING_GRACE,	/* SIGTERM was sent, or the manager has run */
	ENDING_KILLED,	/* SIGKILL was sent */
	ENDING_VERIFY,	/* all have ended: looking at the driver for their memory */
	ENDING_OVER,	/* finished: the outcome can be stored */
};

enum ending_how {
	ENDING_SPARED, /* a sign of life, a stop order, or no record: nothing, or nothing more,
			  was done; the text says which */
	ENDING_ENDED,  /* all processes have ended, and the memory is free */
	ENDING_STILL_HELD, /* they have ended, and memory is still in use */
	ENDING_FAILED,	   /* they have not ended, or could not be signalled */
	ENDING_COMPUTES,   /* they use the CPU: nothing was done */
	ENDING_HOWS,
};

struct ending_card {
	char uuid[UUID_CAP];
	double idle_power_w; /* the card's idle power; NAN: unknown */
	/* Over the looks in which no other session used the card. */
	double power_sum_w, power_limit_w;
	size_t n_power;
};

/* One session that is being ended: what is needed after the pass that decided, and how far
 * it has got. */
struct ending {
	enum ending_stage stage;
	enum session_kind kind;
	struct arena texts;	  /* of the row and the group, and the arrays of processes */
	struct policy_action row; /* what the log says about the session */
	struct policy_state state;
	struct notice notice;	     /* the notice about the result */
	struct proc_life *processes; /* in the order of signals */
	struct activity_group
		group; /* the same by signs_sort(), and the labels of its managers */
	bool *gone;    /* of the processes, in the order of signals */
	size_t n_processes;
	struct ending_card cards[ENDING_CARDS];
	size_t n_cards;
	int64_t idle_below; /* this much use or more spares it, percent of the SMs */
	int64_t notice_ms;  /* when the final notice was delivered; a key pressed later spares
			       the session */
	int64_t final_ms;   /* time from that notice to the end */
	bool kill;	    /* SIGKILL after the grace period */
	/* Confirming. */
	enum end_ask signal; /* the next one: END_ASK_TERM, then END_ASK_KILL */
	size_t next;	/* first process of the next batch; 0: none has got this signal yet */
	bool signalled; /* a signal was sent, or a manager's command was run */
	bool managed;	/* it was the latter */
	size_t looks;
	int64_t first_look_us;
	double cpu_s;		       /* at the last look */
	double cpu_used_s;	       /* since the first one */
	int64_t seen_bytes;	       /* held at the last look */
	char companion[USER_CAP + 32]; /* another session in its job or container; "": none */
	char evidence[ENDING_TEXT_CAP];
	/* Ending. */
	int64_t until_us;  /* end of this stage; when SIGKILL is due */
	int64_t polled_us; /* when /proc was last checked for processes that have ended */
	struct helper *manager;
	size_t verified; /* looks since all have ended */
	/* ENDING_OVER: the result. */
	enum ending_how how;
	int64_t freed_bytes; /* -1: unknown */
	char text[ENDING_TEXT_CAP];
	int64_t retry_us; /* when storing it is tried next */
};

/* A process that gua-end holds, from the first warning of its session on; or one that it must
 * not signal, or that has ended, so that it is not asked again. */
struct ending_held {
	char key[SESSION_KEY_CAP], user[USER_CAP];
	struct proc_life process;
};

struct endings {
	struct endings_options o;
	struct enforcer *enforcer;
	struct end_link *link;
	int proc;
	struct live *live; /* NULL: not needed now */
	bool looked;	   /* there was a look since it was opened */
	int64_t next_look_us;
	struct ending items[ENDINGS_MOST];
	struct ending_held *held;
	size_t n_held;
	/* Of this pass: how many processes cannot or must not be ended, and the reason for
	 * the first. */
	size_t n_refused;
	char refused[256];
	bool unreachable; /* gua-end did not answer: it is not asked again in this pass */
	bool failing;	  /* an outcome could not be stored */
};

/* The monotonic moment by which endings are timed. */
int64_t ending_now_us(const struct endings *es);
/* Holds one process of a session that was warned. ERR_NOTHING: it has ended. ERR_USAGE: it
 * must not be signalled. ERR_BUSY: no place is free; it can be signalled all the same. */
int ending_hold(struct endings *es, const struct proc_life *p, struct err *e);
/* Begins the looks at a session whose processes and labels are set. False: out of memory. */
bool ending_begin(struct ending *a);
/* Frees its memory and marks its place as free. */
void ending_clear(struct ending *a);

/* Uses a look at the driver in ENDING_CONFIRM: goes on, spares the session, or begins to end
 * it. Every signal is recorded before it is sent, and before each signal and each manager's
 * command it is checked whether the session may still be ended: since the pass that decided, it
 * may have been kept or exempted, or ending may have been forbidden. */
void ending_confirm(struct endings *es, struct ending *a, const struct signs_look *look);
/* The same for a lease, which only its manager ends: none of its processes may be on a card.
 * Processes of others on its cards do not matter. */
void ending_confirm_lease(struct endings *es, struct ending *a, const struct signs_look *look);
/* Does what is due while the processes are ending. */
void ending_attend(struct endings *es, struct ending *a);
/* Uses a look in ENDING_VERIFY: whether the memory is free. */
void ending_verify(struct ending *a, const struct signs_look *look);
/* The driver cannot be asked: a session whose use is unknown does not count as idle. */
void ending_miss_look(struct ending *a, const char *why);
/* Ends the steps and spares the session; the text says why, and what was done before. */
void ending_spare(struct ending *a, const char *why);

/* Stores the result and the notice about it in one transaction; fails if that is not possible
 * now. Until it is stored, the state is "ending", and nothing else is done to the session. */
int ending_store(struct endings *es, struct ending *a, struct err *e);
/* Stores that a session was spared that an earlier run began to end, and changes its state. */
int ending_store_left(struct endings *es, struct ending *a, struct err *e);
