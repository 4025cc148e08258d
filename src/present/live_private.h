/* The inside of a live view, shared by the live*.c files. */
#pragma once

#include "proc/lives.h"
#include "proc/reader.h"
#include "present/live.h"
#include "present/past.h"
#include "classify/classify.h"
#include "model/present.h"

#define IDLE_STATES (1U << CARD_IDLE_HELD | 1U << CARD_TRULY_IDLE)

/* What is remembered of a card; same order as live.cards. */
struct live_memory {
	double util_pct; /* newest sample, or NAN */
	enum card_state state;
	int64_t since_ms;   /* in that state since; -1: not known */
	bool longer;	    /* it may be longer: there is no earlier reading */
	int64_t idle_ms;    /* not active since, in any state; -1: active, or not known */
	bool seen;	    /* state and since_ms come from an earlier refresh */
	int64_t from_ms;    /* newest sample of the previous drain; -1: none */
	int64_t newest_ms;  /* newest sample; -1: none yet */
	int64_t covered_ms; /* no sample since then was missed; -1: none yet */
	struct held held;   /* what the holders hold now */
	bool empty;	    /* the last look listed no process */
	bool latched;	    /* the newest samples are not believed: see classify_is_latched() */
	bool ask;	    /* ask the store since when the card has been in its state */
	bool lent; /* the store has answered, but its last tick is before own_ms: ask again */
	int64_t own_ms, own_idle_ms; /* since_ms and idle_ms without the store's answer */
	bool missed; /* an answer was lost after the newest sample, with the samples in it */
	bool gap;    /* samples are missing between the previous drain and this one */
};

/* What is remembered of a process; same order as live.processes. */
struct live_mark {
	int64_t described_ms;  /* when the process with this entry's identity was first seen */
	uint32_t user;	       /* equal numbers mean the same user */
	int stat_fd, statm_fd; /* its files in PROC/PID, kept open if possible; or -1 */
	int64_t ticks;	       /* CPU time, or -1 */
	int64_t at_us;	       /* boot time when `ticks` was read; 0: never */
	int64_t rss_pages;     /* memory on the host, or -1 ... */
	int64_t rss_us;	       /* ... and when it was read */
	int64_t watched_ms;    /* this view has watched it since then */
	int64_t active_ms;     /* last time that this view saw it active; -1: never */
	bool recorded; /* a running recorder knows the process; the next two are its values */
	int64_t recorded_idle_ms;
	bool recorded_longer;
};

/* Processes of one refresh. */
struct live_list {
	struct present_process *items;
	struct live_mark *marks;
	size_t n, cap;
	size_t next; /* where the next search for a process starts */
};

struct live {
	struct clock *clock;
	struct apart *apart;	    /* the process that asks the driver */
	struct live_asking *asking; /* the driver's thread: see live.c */
	struct source
		*source; /* owned by the thread; read it only while no request is pending */
	struct reader *reader; /* NULL: the source describes processes */
	struct lives lives;
	struct lease_dir *leases; /* NULL: they are not needed */
	struct past past;
	struct rules rules, usual_rules; /* those in force; those used without a store */
	unsigned char wanted[METRIC_COUNT];
	const unsigned char *resting; /* see live_rest(); or NULL */
	struct present_card *cards;
	struct present_board *boards;
	struct live_memory *memory;
	size_t n_cards, n_boards, cap, n_memory;
	struct live_list now, before; /* processes of this refresh and of the last one */
	struct holder *holders;	      /* scratch */
	size_t cap_holders;
	int64_t now_ms, ticks_per_s, page_bytes;
	int64_t viewer_uid; /* uid of the viewer: decides whose arguments are shown */
	struct clock_watch clock_watch;
	bool failed; /* the last answer was an error, or dropped: look for the driver again */
	bool refreshed; /* at least one refresh has succeeded */
	struct present_host host;
	struct present present; /* what was published: see live_present() */
};

/* live.c: when a sample was taken. Always between the previous drain and now, even if the clock
 * was set. */
int64_t live_sample_ms(const struct live *l, size_t card, size_t sample);
/* Returns the moment, or now if the moment is in the future because the clock was set back. */
int64_t live_until_now(const struct live *l, int64_t at_ms);
/* The memory of a card of which nothing is known yet. */
extern const struct live_memory live_nothing_seen;
/* Moves a moment by `step_ms`, by which the wall clock was set; -1 stays. */
void live_move(int64_t *at_ms, int64_t step_ms);

/* live_process.c: the processes of all cards, as the driver lists them, and who they are.
 * Fails only if memory is short, and then changes nothing. */
int live_process_list(struct live *l, struct err *e);
/* Their use of the cards, and what was known of them before. */
void live_process_use(struct live *l);
void live_process_move(struct live *l, int64_t step_ms); /* see live_move() */
void live_process_finish_list(struct live_list *list);

/* live_judge.c: the states of cards and of their holders, and since when they are in them: by
 * the driver's answer, the past and the leases (NULL: they are not needed). */
struct leases;
void live_judge(struct live *l, const struct leases *leases);
