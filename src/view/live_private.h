/* The inside of a live view, shared by the live*.c files. */
#ifndef GUA_VIEW_LIVE_PRIVATE_H
#define GUA_VIEW_LIVE_PRIVATE_H

#include "classify/classify.h"
#include "query/context.h"
#include "query/now.h"
#include "sample/lives.h"
#include "sample/owner.h"
#include "view/live.h"

/* What is kept of a card from refresh to refresh; same order as live.cards. */
struct live_memory {
	double util_pct; /* newest sample, or NAN */
	enum card_state state;
	int64_t since_ms;   /* in that state; -1: not known */
	bool longer;	    /* or longer: nobody saw what it was before */
	int64_t idle_ms;    /* not active since, in whichever state; -1: active, or not known */
	bool seen;	    /* state and since_ms are of an earlier refresh */
	int64_t newest_ms;  /* newest sample; -1: none yet */
	int64_t covered_ms; /* every sample since then was seen; -1: none yet */
	struct held held;   /* by the holders, now */
	int64_t unheld_ms;  /* by no more than what counts as held, since; -1: it is held */
	bool ask;	    /* the store is to be asked since when */
	bool missed; /* since the newest sample an answer was lost, with those that it had */
	bool gap;    /* this drain does not go on where the one before ended */
};

/* What is kept of a process besides; same order as live.processes. */
struct live_mark {
	int64_t described_ms; /* first sight of the life that the place has the identity of */
	int stat_fd;	      /* its PROC/PID/stat, kept open where it can be; or -1 */
	int64_t ticks;	      /* CPU time, or -1 */
	int64_t at_us;	      /* boot time when that was; 0: never */
	int64_t watched_ms;   /* since when this view knows what it does */
	int64_t active_ms;    /* this view saw it active; -1: it did not */
	bool recorded;	      /* a recorder at work knows the following */
	int64_t recorded_idle_ms;
	bool recorded_longer;
};

/* Processes of one refresh. */
struct live_list {
	struct live_process *items;
	struct live_mark *marks;
	size_t n, cap;
};

struct live {
	struct clock *clock;
	struct live_asking *asking; /* the driver's thread: see live_ask.c */
	struct source *source; /* the thread's; its readings: only while nothing is asked */
	char driver[VERSION_CAP];
	struct owners *owners; /* NULL: the source describes processes */
	struct lives lives;
	struct now past;		/* open when has_past */
	bool has_past;			/* the store can be read */
	bool past_fresh;		/* its recorder is at work */
	int64_t past_us;		/* boot time when it was read last */
	struct context_floors contexts; /* learned once somebody may have but a context */
	const char *db;
	char root[4096];
	struct rules rules;
	unsigned char wanted[METRIC_COUNT];
	struct live_card *cards;
	struct live_board *boards;
	struct live_memory *memory;
	size_t n_cards, n_boards, cap, n_memory;
	struct live_list now, before; /* processes of this refresh and of the last one */
	struct holder *holders;	      /* scratch */
	size_t cap_holders;
	int64_t now_ms, ticks_per_s, page_bytes;
	bool failed; /* the last answer was an error, or dropped: look for the driver again */
	bool refreshed; /* there was one that worked */
	char hostname[128], note[256];
};

/* live_ask.c: opening and closing the driver; what is as in live_open() and live_close(). */
int live_open_driver(struct live *l, const struct live_options *o, struct err *e);
bool live_close_driver(struct live *l);

/* live.c: makes of the driver's answer what the views show. */
int live_digest(struct live *l, struct err *e);

/* live_board.c: completes the metrics of boards and cards. */
void live_finish_boards(struct live *l);

/* live_process.c: the processes of all cards; and the states that follow from them. */
int live_list_processes(struct live *l, struct err *e);
void live_finish_list(struct live_list *list);
/* Since when a holder has been idle, and who is active: needs the card's state. */
void live_judge_processes(struct live *l, size_t card, int64_t active_ms);

/* live_past.c: what the store has of a process; whether it is but a context; and since when one
 * that is not active is idle. */
enum live_context live_judge_context(struct live *l, const struct live_process *p);
void live_join_past(struct live *l, struct live_process *p, struct live_mark *m);
void live_idle_since(const struct live *l, struct live_process *p, const struct live_mark *m);

#endif
