/* The lives of processes that hold cards: (pid, start time, boot), each described once, when
 * first seen. A description that had to be brief, or lacks the name of the user, is completed
 * later. A pidfd, or the start time where there is no pidfd, shows when a pid is used again. A
 * life keeps its place in entries[] until it has ended and is stored; then the place is reused.
 */
#pragma once

#include "base/names.h"
#include "model/tick.h"
#include "proc/reader.h"

struct source;

#define LIFE_NONE IDMAP_NONE

/* What a life needs besides its entry. */
struct life_watch {
	bool used;	   /* the place is taken */
	bool own;	   /* its source describes it, not /proc */
	int pidfd;	   /* or -1 */
	uint32_t user;	   /* number of the identity: equal names have equal numbers */
	int64_t exited_ms; /* when its pidfd reported the exit, or -1; a zombie may still hold
			      memory */
	bool kept;	   /* its place is needed although it has ended */
	bool brief;	   /* its description may become better later */
	bool left;	   /* it once was not listed any more; it may come back */
	int stat_fd; /* without a pidfd: its PROC/PID/stat, kept open if possible; or -1 */
};

struct lives {
	struct reader *reader; /* borrowed; NULL: processes of this host are not described, and
				  the same pid is always the same life */
	bool pidfds;	       /* pids are of this host: open pidfds */
	/* Describes a process that its source knows, and not /proc; false: there is none. The
	 * owner sets both before each look. */
	bool (*describe)(struct source *source, uint32_t pid, struct process_id *id);
	struct source *source;
	enum privacy privacy; /* what is kept of descriptions; set it after init */
	int exits_fd;	      /* with pidfds: readable when a process has ended, for poll(2) */
	struct process_entry *entries;
	struct life_watch *lives;
	size_t n, cap;
	struct idmap by_pid; /* places of lives that have not ended */
	struct names users;  /* the users that are known so far */
	uint32_t *expected;  /* pids that lives_expect() has collected */
	size_t n_expected, cap_expected;
	int64_t names_ms; /* when names that are not known were last asked for */
};

int lives_init(struct lives *l, struct reader *reader, bool pidfds, struct err *e);
void lives_finish(struct lives *l);

/* Makes room: lives_find() can add this many lives without an allocation. */
int lives_reserve(struct lives *l, size_t more, struct err *e);

/* Notes which processes have exited, by pidfds. Call after each look, before lives_find(). */
void lives_check(struct lives *l, int64_t now_ms);
/* The same for one process: returns its place, or LIFE_NONE when no other has exited. */
uint32_t lives_next_exited(struct lives *l, int64_t now_ms);

/* Describes many processes of this host at once, which is quicker than one by one: call
 * lives_expect() for each pid that lives_find() will be called for, then lives_ask(). */
void lives_expect(struct lives *l, uint32_t pid);
void lives_ask(struct lives *l);

/* Between the two: a description that was made earlier, for example by a recorder. If it is of
 * the current life of a pid that is expected, that life begins with it and is not described
 * again. */
void lives_recall(struct lives *l, const struct process_id *id, int64_t now_ms);

/* Returns the current life of `pid`; adds and describes it when it is new, and ends an earlier
 * life of the same pid. `own`: the source describes it (card_reading.own_processes); such a pid
 * and the same pid of this host are different processes. LIFE_NONE: out of memory. */
uint32_t lives_find(struct lives *l, uint32_t pid, bool own, int64_t now_ms);

/* Adds a life for memory in use that no listed process explains; its user is _unknown. */
uint32_t lives_unknown(struct lives *l, int64_t now_ms);
/* Adds a life that has ended, known only from the driver's records; its user is _unknown. */
uint32_t lives_add_ended(struct lives *l, uint32_t pid, int64_t started_ms, int64_t ended_ms);

/* Call it after all cards were looked at: ends the lives that are gone. Once a minute, asks
 * again for the names of users that are known only by number. */
void lives_sweep(struct lives *l, int64_t now_ms);

/* Frees the places of lives that have ended, except those marked `kept`; clears these marks.
 * Call after everything was stored. */
void lives_forget_ended(struct lives *l);
