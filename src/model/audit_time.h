/* The parts of an audit about time: hours of the week, days, events, idle spells, orphan
 * memory; and the source of the audit. */
#pragma once

#include "base/base.h"
#include "model/lease.h"
#include "model/process.h"
#include "model/spell.h"
#include "model/state.h"
#include "model/tick.h"

struct audit_heat {
	int64_t ms[CARD_STATES]; /* of those with known utilisation */
};

/* One day of the window, in local time or UTC: all cards together. */
struct audit_day {
	int64_t from_ms, to_ms;	 /* within the window */
	int64_t ms[CARD_STATES]; /* [CARD_UNOBSERVED]: the part of the next without a reading */
	int64_t window_ms;	 /* the cards' time in it */
};

struct audit_days {
	struct audit_day *items;
	size_t n;
	int64_t first; /* number of the first day, since 1970-01-01 */
};

#define AUDIT_NO_CARD SIZE_MAX

/* The time of one card in one column of the time line. In an audit of users, it is their
 * time on the card, whose sum (without [CARD_UNOBSERVED]) may be longer than the column. */
struct audit_column {
	int64_t ms[CARD_STATES]; /* [CARD_UNOBSERVED]: the part of the next without a reading */
	int64_t window_ms;	 /* the card's time in it */
};

/* The events of one kind in a column, to a card or to a host. */
struct audit_mark {
	size_t host, card; /* card AUDIT_NO_CARD: none */
	size_t column;
	enum event_kind kind;
	size_t times;
	int64_t last_ms, last_value; /* when the last one happened; its XID number, or ms */
};

/* The time line: the window in equal columns, each card by itself. The first column may begin
 * before the window, and the last may end after it. */
struct audit_columns {
	int64_t first_ms, width_ms;
	size_t n;		    /* 0: there is none */
	struct audit_column *items; /* n of the first card, n of the second, and so on */
	struct audit_mark *marks;
	size_t n_marks;
	bool too_many; /* there are too many cards for a time line */
};

/* The events of one kind in the window; each XID number is a kind of its own. */
struct audit_event {
	enum event_kind kind;
	int64_t xid; /* -1: it is not one */
	size_t times;
	int64_t total_ms; /* total length of kinds that last (gap, suspend, recorder-off); else
			     -1 */
	int64_t last_ms;  /* when the last one happened, and to which card or host */
	size_t last_host, last_card; /* card AUDIT_NO_CARD: none */
	char last_text[160];
};

/* A spell that overlaps the window. Its begin, end and sums are those of the whole spell. */
struct audit_spell {
	size_t host, card, path; /* indexes; path: which store */
	int64_t id, gpu;	 /* of the rows of its process and its card there */
	uint32_t pid;
	int64_t started_ms;		  /* of the process; -1 unknown */
	const char *user;		  /* the audit's, like the next */
	const char *texts[PROCESS_TEXTS]; /* NULL: none */
	struct spell spell;		  /* without its indexes; SPELL_OPEN: it goes on */
	int64_t window_ms;		  /* its idle time within the window */
};

/* Those with the most idle time within the window, in that order. */
struct audit_spells {
	struct audit_spell *items;
	size_t n, n_left_out;
};

/* A lease on a card that had reserved time in the window. Texts are the audit's; NULL: none. */
struct audit_lease {
	size_t card; /* index */
	enum lease_kind kind;
	const char *name, *owner, *job_name, *account, *task;
	int64_t since_ms, ended_ms; /* ended -1: it goes on */
	int64_t reserved_ms;	    /* in the window: its part of the card's reserved time */
	int64_t used_ms;	    /* with processes on the card, on the days of the window */
	int64_t untouched_ms; /* without, on these days; what was not seen is in neither */
	bool by_nobody; /* the driver did not say who used the card for some of the window */
};

/* Those with the most reserved time, in that order. */
struct audit_leases {
	struct audit_lease *items;
	size_t n, n_left_out;
};

/* Memory that no living process explains, on a card at the last tick of its recorder. */
struct audit_orphan {
	size_t card;	   /* index */
	uint32_t pid;	   /* a process that the driver lists but the host does not have; 0: the
			      driver lists none */
	int64_t mem_bytes; /* -1 unknown */
	int64_t since_ms;  /* seen since then */
};

struct audit_orphans {
	struct audit_orphan *items; /* in the order of the stores */
	size_t n;
};

/* With more hosts than this, the one with the most idle-held time is first, and people see
 * only the cards of the worst few. */
enum { AUDIT_HOSTS_LISTED = 16, AUDIT_HOSTS_WORST = 5 };

/* The stores of an audit. Stores that could not be read are not part of it. */
struct audit_stores {
	size_t n; /* that were asked for */
	const char **
		unread; /* which stores could not be read, and why; safe to show; the audit's */
	size_t n_unread;
};

/* Texts are safe for a terminal and are the engine's, like the arrays. */
struct audit_fleet {
	bool asked; /* the audit is made from metrics; else nothing below is set */
	const char *url, *engine;
	const char *metrics;  /* whose metrics: "gua and dcgm" */
	const char *samplers; /* those of them that are samples: "dcgm" */
	bool samples_alone;   /* gua counts on some hosts, and cannot tell what was asked */
	int64_t sampled_ms;   /* how often they are taken, at most; 0: there are none */
	int64_t often_ms;     /* the same of the hosts where that is most often */
	size_t n_counted;     /* hosts with gua's counters */
	size_t n_seen;	      /* hosts */
	size_t n_late;	      /* of them: first seen within the window */
	size_t n_silent;      /* of them: silent at its end */
	int64_t n_expected;   /* number of expected hosts; -1: not given */
	const char *missing;  /* names of some that were expected and not seen; "": none */
	size_t n_missing;
	size_t n_resets;  /* hosts whose store was lost */
	size_t n_assumed; /* series of users whose start was assumed to be 0 */
	size_t n_twice;	  /* cards that two hosts report */
	size_t n_partial; /* hosts that also have cards outside the audit: their users are left
			     out */
	size_t n_not_finite;
	const char *const *warnings; /* of the engine */
	size_t n_warnings;
};

/* Hosts whose stores were fetched for this report. Texts are safe for a terminal. */
struct asked_hosts {
	size_t n_asked, n_answered; /* names; a host with two names answers twice */
	const struct asked_failure {
		const char *host, *why;
	} * failed;
	size_t n_failed;
	const char *directory; /* where their stores are kept for the report */
};
