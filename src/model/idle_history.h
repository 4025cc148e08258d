/* What the store knows about the idle time of sessions. Policy judges sessions by it, at a
 * moment of the past (simulate) or now. Only the host of the newest run is read. Spans say
 * when a process held a card. Marks are the slots in which it used the card: a drain had at
 * least `idle_below` SM use, or used an encoder, a decoder or the like. In rows from before
 * version 4 of the store any use counts. A gap is time in which a card was not observed. */
#pragma once

#include "model/session.h"
#include "base/names.h"

struct sqlite3;
/* Limits of use, in percent of the multiprocessors; at 10 % and above, a process is active. */
enum { IDLE_BELOW_USUAL = 5, IDLE_BELOW_MOST = 10 };

/* A process, or a lease: then pid and id are 0, and it never holds. */
struct idle_process {
	int64_t id; /* in the store */
	uint32_t pid, session;
	uint64_t start_ticks;
	int64_t uid, started_ms;   /* or -1 */
	int64_t first_ms, last_ms; /* seen to hold a card; last: INT64_MAX while it does */
	bool holds;		   /* present only: it is a holder at the last tick */
};

/* A part of one of the arrays of struct idle_history. */
struct idle_part {
	size_t first, n;
};

struct idle_session {
	const char *key, *user;
	enum session_kind kind;
	enum session_use use;
	const char *texts[PROCESS_TEXTS]; /* of its first process that has one; or NULL */
	int64_t used_ms;		  /* used until then, set by the caller; 0: unknown */
	/* Present only: a process holds a card; a process only draws on it; a process held a
	 * card that the recorder has not listed since its start. */
	bool holds, draws, unlisted;
	struct idle_part marks[IDLE_BELOW_MOST]; /* one for each of h->limits */
	struct idle_part blinds;
};

/* A stretch of time in which one process held one card. */
struct idle_span {
	uint32_t session, process, card;
	int64_t begin_ms, end_ms;
	int64_t until_ms;      /* until then it was not seen to end, because its card was not
				  observed */
	int64_t held_since_ms; /* its process has held a card since then, without a pause */
	int64_t mem_kib;       /* held now, or the peak in the past; -1: not known */
	bool open;	       /* it goes on */
};

/* Use of a slot that is not a percentage: unknown in rows from before version 4. */
enum { IDLE_USE_UNKNOWN = -1, IDLE_USE_ENGINE = -2 };
struct idle_mark {
	uint32_t session, card;
	unsigned limit; /* index in h->limits */
	int32_t pct;	/* highest use in its newest slot; or IDLE_USE_... */
	int64_t from_ms, until_ms;
	int64_t slot_ms; /* where its newest slot begins */
};
struct idle_gap {
	uint32_t card;
	int64_t from_ms, to_ms;
};
/* A slot in which a session used a card less than the largest limit. */
struct idle_low {
	uint32_t session;
	int64_t from_ms, pct;
};
/* Time in which it is unknown whether a session was idle: one of its cards was not observed,
 * or its own use could not be distinguished from that of others. */
struct idle_blind {
	uint32_t session;
	bool unobserved; /* false: only its use is not known */
	int64_t from_ms, to_ms;
	int64_t before_ms; /* sum of the earlier ones of the session */
};

/* A row that short processes share (store/crowd.h). */
struct idle_crowd {
	uint32_t session; /* IDMAP_NONE: not known ... */
	const char *user; /* ... so it may be any session of this user */
};

struct idle_history {
	/* Set before idle_history_read(). */
	const char *path;
	int wait_ms;  /* for a locked store */
	bool present; /* sessions that hold a card now; else all with time in the window */
	bool brief;   /* present only: read only the marks and gaps of the last minutes, which
			 is ten times faster but makes sessions look idle for too long */
	bool leases;  /* also read leases, as sessions: a rule judges them */
	int64_t since_ms, until_ms;
	bool imports;	/* also read imported data, if the store has no other */
	bool by_length; /* the window is a length of time up to the end */
	int64_t limits[IDLE_BELOW_MOST]; /* of the rules, in percent; each once */
	size_t n_limits;		 /* 0: IDLE_BELOW_USUAL alone */
	/* Results; zero-initialise. */
	char hostname[128], boot_id[64];
	bool any_run, running, ticked, simulated,
		imported; /* ticked: only then a run has holders */
	int64_t first_ms, last_tick_ms, interval_ms, spell_ms; /* first: recorded since */
	struct card_id *cards;
	size_t n_cards;
	struct idle_session *sessions;
	size_t n_sessions;
	struct idle_process *processes;
	size_t n_processes;
	struct idle_span *spans; /* by begin */
	size_t n_spans;
	struct idle_mark *marks; /* by session, limit and time; they do not overlap */
	size_t n_marks;
	struct idle_gap *gaps; /* by card, then time */
	size_t n_gaps;
	struct idle_gap *busy; /* past only: when a card was active, as the end of each slot */
	size_t n_busy;
	struct idle_low *lows;
	size_t n_lows;
	struct idle_blind *blinds; /* by session, then time; they do not overlap */
	size_t n_blinds;
	/* Private. */
	struct sqlite3 *db;
	int64_t host;
	struct idmap card_ids, process_ids, crowd_ids;
	struct idmap lease_ids; /* its entry in `processes`, which is no process */
	struct idle_crowd *crowds;
	size_t n_crowds;
	struct names keys;
	struct arena texts;
};

/* Adds a limit, unless it is there. */
void idle_history_limit(struct idle_history *h, int64_t pct);
/* The index of the limit in h->limits; 0 if it is not there. */
size_t idle_history_limit_of(const struct idle_history *h, int64_t pct);

/* Where in h->gaps the first gap of the card would be that ends after the moment. */
size_t idle_history_gap(const struct idle_history *h, uint32_t card, int64_t after_ms);
/* How much of the time between two moments is blind: it is unknown whether the session was
 * idle. */
int64_t idle_history_blind(const struct idle_history *h, const struct idle_session *s,
	int64_t from_ms, int64_t to_ms);

/* The highest use of the session between two moments, in percent of the multiprocessors, as
 * far as it was below the largest limit. */
int64_t idle_history_most(
	const struct idle_history *h, uint32_t session, int64_t from_ms, int64_t to_ms);
