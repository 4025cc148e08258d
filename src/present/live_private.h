/* The inside of a live view, shared by the live*.c files. */
#ifndef GUA_PRESENT_PRIVATE_H
#define GUA_PRESENT_PRIVATE_H

#include "base/clock.h"
#include "driver/host/lives.h"
#include "proc/reader.h"
#include "present/live.h"
#include "present/live_memory.h"
#include "present/past.h"

#define IDLE_STATES (1U << CARD_IDLE_HELD | 1U << CARD_TRULY_IDLE)

struct live {
	struct clock *clock;
	struct live_asking *asking; /* the driver's thread: see live_ask.c */
	struct source
		*source; /* owned by the thread; read it only while no request is pending */
	struct reader *reader; /* NULL: the source describes processes */
	struct lives lives;
	struct past past;
	struct rules rules, usual_rules; /* those in force; those used without a store */
	unsigned char wanted[METRIC_COUNT];
	struct present_card *cards;
	struct present_board *boards;
	struct live_memory *memory;
	size_t n_cards, n_boards, cap, n_memory;
	struct live_list now, before; /* processes of this refresh and of the last one */
	struct holder *holders;	      /* scratch */
	size_t cap_holders;
	int64_t now_ms, ticks_per_s, page_bytes;
	int64_t viewer_uid; /* who looks: decides whose arguments are shown */
	struct clock_watch clock_watch;
	bool failed; /* the last answer was an error, or dropped: look for the driver again */
	bool refreshed; /* at least one refresh has succeeded */
	struct present_host host;
	struct present present; /* what was published: see live_present() */
};

/* live_ask.c: opens and closes the driver, as live_open() and live_close() describe. Opening
 * only begins; live_await_driver() waits for it. */
int live_open_driver(struct live *l, const struct live_options *o, struct err *e);
int live_await_driver(struct live *l, struct err *e);
void live_close_driver(struct live *l);
/* Adds the records of accounting mode to the present, if no request is pending. */
void live_publish_accounts(struct live *l);

/* live.c: turns the driver's answer into what the views show. */
int live_digest(struct live *l, struct err *e);
/* When a sample was taken. Always between the previous drain and now, even if the clock was
 * set. */
int64_t live_sample_ms(const struct live *l, size_t card, size_t sample);
/* Returns the moment, or now if the moment is in the future because the clock was set back. */
int64_t live_until_now(const struct live *l, int64_t at_ms);
/* The memory of a card of which nothing is known yet. */
extern const struct live_memory live_nothing_seen;
/* Moves a moment by `step_ms`, by which the wall clock was set; -1 stays. */
void live_move(int64_t *at_ms, int64_t step_ms);

/* live_board.c: completes the metrics of boards and cards. */
void live_finish_boards(struct live *l);

/* live_process.c: the processes of all cards. */
int live_make_room(struct live *l, struct err *e); /* for all that the driver lists */
void live_list_processes(struct live *l);
void live_move_processes(struct live *l, int64_t step_ms); /* see live_move() */
void live_finish_list(struct live_list *list);

/* live_join.c: takes the rules and the history of processes from the store. */
void live_join(struct live *l);
/* For cards with a known state: takes from the store since when they have been in it. */
void live_join_states(struct live *l);

/* live_judge.c: the states of cards. */
void live_classify(struct live *l);
/* Since when they are in it, and the states of their holders. */
void live_judge(struct live *l);

#endif
