/* The inside of a live view, shared by the live*.c files. */
#ifndef GUA_LIVE_PRIVATE_H
#define GUA_LIVE_PRIVATE_H

#include "sample/clock_watch.h"
#include "sample/lives.h"
#include "sample/owner.h"
#include "live/live.h"
#include "live/live_memory.h"
#include "live/past.h"

#define IDLE_STATES (1U << CARD_IDLE_HELD | 1U << CARD_TRULY_IDLE)

struct live {
	struct clock *clock;
	struct live_asking *asking; /* the driver's thread: see live_ask.c */
	struct source *source; /* the thread's; its readings: only while nothing is asked */
	char driver[VERSION_CAP];
	struct owners *owners; /* NULL: the source describes processes */
	struct lives lives;
	struct past past;
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
	struct clock_watch clock_watch;
	bool failed; /* the last answer was an error, or dropped: look for the driver again */
	bool refreshed; /* there was one that worked */
	char hostname[128];
};

/* live_ask.c: opening and closing the driver; what is as in live_open() and live_close(). */
int live_open_driver(struct live *l, const struct live_options *o, struct err *e);
bool live_close_driver(struct live *l);

/* live.c: makes of the driver's answer what the views show. */
int live_digest(struct live *l, struct err *e);
/* When a sample was taken: between the drain before and now, however the clock was set. */
int64_t live_sample_ms(const struct live *l, size_t card, size_t sample);
/* A moment, or now where that is earlier: the clock was set back. */
int64_t live_until_now(const struct live *l, int64_t at_ms);
/* A card of which nothing is known yet. */
extern const struct live_memory live_nothing_seen;
/* A moment, unless it is -1, after the wall clock was set by so much. */
void live_move(int64_t *at_ms, int64_t step_ms);

/* live_board.c: completes the metrics of boards and cards. */
void live_finish_boards(struct live *l);

/* live_process.c: the processes of all cards. */
int live_make_room(struct live *l, struct err *e); /* for all that the driver lists */
void live_list_processes(struct live *l);
void live_move_processes(struct live *l, int64_t step_ms); /* see live_move() */
void live_finish_list(struct live_list *list);

/* live_join.c: takes what the past has of the rules and of the processes. */
void live_join(struct live *l);
/* The same of cards whose state is known: since when they are so. */
void live_join_states(struct live *l);

/* live_judge.c: the states of cards and of those who hold them. */
void live_judge(struct live *l);

#endif
