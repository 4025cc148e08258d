/* The inside of a live view, shared by the live*.c files. */
#ifndef GUA_VIEW_LIVE_PRIVATE_H
#define GUA_VIEW_LIVE_PRIVATE_H

#include "query/context.h"
#include "query/now.h"
#include "sample/lives.h"
#include "sample/owner.h"
#include "live/live.h"
#include "live/live_memory.h"

#define IDLE_STATES (1U << CARD_IDLE_HELD | 1U << CARD_TRULY_IDLE)

struct live {
	struct clock *clock;
	struct live_asking *asking; /* the driver's thread: see live_ask.c */
	struct source *source; /* the thread's; its readings: only while nothing is asked */
	char driver[VERSION_CAP];
	struct owners *owners; /* NULL: the source describes processes */
	struct lives lives;
	struct now past;		/* as the store was last read; zero: never */
	bool past_fresh;		/* its recorder is at work */
	bool past_came;			/* ... which it was not before this refresh */
	int64_t past_us;		/* boot time when it was read last */
	struct context_floors contexts; /* learned once somebody may have but a context */
	bool ask_contexts;		/* the store was read again since that was tried */
	const char *db;
	struct rules rules, usual_rules; /* in force; without a store */
	unsigned char wanted[METRIC_COUNT];
	struct live_card *cards;
	struct live_board *boards;
	struct live_memory *memory;
	size_t n_cards, n_boards, cap, n_memory;
	struct live_list now, before; /* processes of this refresh and of the last one */
	struct holder *holders;	      /* scratch */
	size_t cap_holders;
	int64_t now_ms, ticks_per_s, page_bytes;
	int64_t wall_less_us; /* wall minus boot clock, as reckoned until now */
	bool failed; /* the last answer was an error, or dropped: look for the driver again */
	bool refreshed; /* there was one that worked */
	char hostname[128], note[256];
};

/* live_ask.c: opening and closing the driver; what is as in live_open() and live_close(). */
int live_open_driver(struct live *l, const struct live_options *o, struct err *e);
bool live_close_driver(struct live *l);

/* live.c: makes of the driver's answer what the views show. */
int live_digest(struct live *l, struct err *e);
/* When a sample was taken: between the drain before and now, however the clock was set. */
int64_t live_sample_ms(const struct live *l, size_t card, size_t sample);
/* A moment, unless it is -1, after the wall clock was set by so much. */
void live_move(int64_t *at_ms, int64_t step_ms);

/* live_board.c: completes the metrics of boards and cards. */
void live_finish_boards(struct live *l);

/* live_process.c: the processes of all cards; and the states that follow from them. */
int live_make_room(struct live *l, struct err *e); /* for all that the driver lists */
void live_list_processes(struct live *l);
void live_move_processes(struct live *l, int64_t step_ms); /* see live_move() */
void live_finish_list(struct live_list *list);
/* Since when a holder has been idle, and who is active: needs the card's state. */
void live_judge_processes(struct live *l, size_t card, int64_t active_ms);

/* live_past.c: reads the store when it is time; asks it since when cards are as they are. What
 * it has of a process; whether that is but a context; and since when one that is not active is
 * idle. */
void live_read_past(struct live *l);
void live_ask_past(struct live *l);
enum live_context live_judge_context(struct live *l, const struct live_process *p);
void live_join_past(struct live *l, struct live_process *p, struct live_mark *m);
void live_idle_since(const struct live *l, struct live_process *p, const struct live_mark *m);

#endif
