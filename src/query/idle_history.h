/* What the store knows about the idle time of sessions: for policy, which judges them at a
 * moment of the past (simulate) or now. Only the host of the newest run is read.
 * Spells say when a process held a card idle by the report's rule (below 10 %). Policy is
 * stricter: marks are the slots in which one used a card at all. Nobody observed a gap. */
#ifndef GUA_QUERY_IDLE_HISTORY_H
#define GUA_QUERY_IDLE_HISTORY_H

#include "base/arena.h"
#include "base/err.h"
#include "model/session.h"
#include "model/spell.h"
#include "query/idmap.h"
#include "query/names.h"

struct sqlite3;
struct idle_process {
	int64_t id; /* in the store */
	uint32_t pid, session;
	uint64_t start_ticks;
	int64_t uid, started_ms; /* or -1 */
	bool holds;		 /* present only: it is a holder at the last tick */
};

struct idle_session {
	const char *key, *user;
	enum session_kind kind;
	enum session_use use;
	const char *texts[PROCESS_TEXTS]; /* of its first process that has one; or NULL */
	int64_t used_ms; /* used until then, as the caller knows; 0: nothing known */
	/* Present only: a process holds a card; only draws on it; held one that the recorder
	 * has not listed since its start. */
	bool holds, draws, unlisted;
	size_t first_mark, n_marks;
};

/* A stretch of idle time of one process on one card. */
struct idle_span {
	uint32_t session, process, card;
	int64_t begin_ms, end_ms; /* end: the last moment at which it was seen idle */
	int64_t until_ms; /* not seen to have ended until then: its card was not observed */
	int64_t unobserved_ms; /* between begin and end */
	int64_t mem_kib;       /* held now, or the peak in the past; -1: not known */
	enum spell_end how;    /* SPELL_OPEN: it goes on */
};

struct idle_mark {
	uint32_t session, card;
	int64_t from_ms, until_ms;
};
struct idle_gap {
	uint32_t card;
	int64_t from_ms, to_ms;
};

struct idle_history {
	/* Set before idle_history_read(). */
	const char *path;
	int wait_ms;  /* for a locked store */
	bool present; /* sessions that hold a card now; else all with a spell in the time */
	bool brief;   /* present only: leave out marks and gaps, which takes a tenth of the time
			 and makes sessions look idle for longer than they are */
	int64_t since_ms, until_ms;
	/* What was found; zero-initialise. */
	char hostname[128], boot_id[64];
	bool any_run, running, ticked, simulated; /* ticked: only then a run has holders */
	int64_t first_ms, last_tick_ms, interval_ms, spell_ms; /* first: recorded since */
	struct card_id *cards;
	size_t n_cards;
	struct idle_session *sessions;
	size_t n_sessions;
	struct idle_process *processes;
	size_t n_processes;
	struct idle_span *spans; /* by begin */
	size_t n_spans;
	struct idle_mark *marks; /* by session, then time; they do not overlap */
	size_t n_marks;
	struct idle_gap *gaps; /* by card, then time */
	size_t n_gaps;
	/* Private. */
	struct sqlite3 *db;
	int64_t host;
	struct idmap card_ids, process_ids;
	struct names keys;
	struct arena texts;
};

/* Reads it in one transaction. Finish *h even after a failure. */
int idle_history_read(struct idle_history *h, struct err *e);
void idle_history_finish(struct idle_history *h);

/* Where in h->gaps the first gap of the card would be that ends after the moment. */
size_t idle_history_gap(const struct idle_history *h, uint32_t card, int64_t after_ms);
/* Brings spans, marks and gaps into order, and lets what was lost from sight in use, or ended
 * unseen, count as used until it could be seen again. Also for tests. */
int idle_history_settle(struct idle_history *h, struct err *e);

/* How many sessions held a card at a moment of the past; -1 with `e` set on failure. */
int64_t idle_history_count(struct idle_history *h, int64_t at_ms, struct err *e);

#endif
