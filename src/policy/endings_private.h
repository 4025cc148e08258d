/* What the parts of endings.h share: one session that is being ended. */
#ifndef GUA_POLICY_ENDINGS_PRIVATE_H
#define GUA_POLICY_ENDINGS_PRIVATE_H

#include "policy/end_manager.h"
#include "policy/endings.h"

enum ending_stage {
	ENDING_NONE,	/* the place is free */
	ENDING_CONFIRM, /* looks at the driver, before `signal` */
	ENDING_MANAGER, /* the manager's command runs */
	ENDING_GRACE,	/* SIGTERM was sent, or the manager has run */
	ENDING_KILLED,	/* SIGKILL was sent */
	ENDING_VERIFY,	/* all have ended: looks at the driver */
	ENDING_OVER,	/* the outcome can be taken */
};

struct ending {
	enum ending_stage stage;
	struct ending_plan plan;
	struct end_process *sorted; /* the plan's processes, by fresh_sort() */
	bool *gone;		    /* of the plan's processes, in its order */
	/* Confirming. */
	enum end_ask signal; /* that comes next: END_ASK_TERM, then END_ASK_KILL */
	size_t next;	     /* process of the next batch; 0: none got this signal yet */
	bool signalled;	     /* something was done to the session */
	size_t looks;
	int64_t first_look_us;
	double cpu_s;	   /* at the last look */
	double cpu_used_s; /* since the first one */
	double power_sum_w[ENDING_CARDS], power_limit_w[ENDING_CARDS];
	size_t n_power[ENDING_CARDS];
	int64_t held_bytes;	       /* at the last look */
	char companion[USER_CAP + 32]; /* in its job or container; "": nobody */
	char evidence[ENDING_TEXT_CAP];
	/* Ending. */
	int64_t until_us;  /* of this stage; when SIGKILL is due */
	int64_t polled_us; /* when processes were last looked for in /proc */
	struct helper *manager;
	size_t verified; /* looks since all have ended */
	struct ending_outcome outcome;
};

struct endings {
	struct endings_options o;
	struct end_link *link;
	int proc;
	struct live *live; /* NULL: not needed now */
	bool asked;	   /* a look is under way */
	bool looked;	   /* there was a look since it was opened */
	int64_t asked_us, next_look_us;
	struct ending items[ENDINGS_MOST];
};

/* The monotonic time of es->o.clock. */
int64_t endings_now_us(const struct endings *es);

/* Ends an ending. The text is formatted. */
void ending_finish(struct ending *a, enum ending_how how, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Spares the session from what comes next; the text says why, and what was done before. */
void ending_spare(struct ending *a, const char *why);

/* Uses a look in ENDING_CONFIRM: goes on, spares the session, or begins to end it. */
void ending_confirm(struct endings *es, struct ending *a, const struct fresh_look *look);
/* Does what is due while processes are waited for. */
void ending_attend(struct endings *es, struct ending *a);

#endif
