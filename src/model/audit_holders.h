/* Who held the cards of an audit: users, processes, and a breakdown by any kind of identity.
 * Only for model/audit.h. */
#ifndef GUA_MODEL_AUDIT_HOLDERS_H
#define GUA_MODEL_AUDIT_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/audit_cost.h"
#include "model/identity.h"
#include "model/process.h"
#include "model/state.h"

/* The time of an identity. */
struct audit_sums {
	int64_t ms[HOLDER_STATES]; /* by state; the measure says what it is */
	int64_t active_share_ms;   /* its part of the cards' active time ... */
	int64_t idle_share_ms;	   /* ... of their idle-held time ... */
	int64_t context_share_ms;  /* (of this, the part of processes with a bare context) */
	int64_t unknown_share_ms;  /* ... and, by presence, of that with unknown use */
	struct audit_cost cost;	   /* of the shares */
	int64_t peak_mem_kib;	   /* of its largest process; -1 unknown */
	int64_t last_active_ms;	   /* of its processes in the window; -1 never */
};
#define AUDIT_SUMS_NONE                                                                        \
	{                                                                                      \
		.peak_mem_kib = -1, .last_active_ms = -1                                       \
	}

/* A user: sums.ms is presence, by the user's state on the card. */
struct audit_identity {
	char identity[USER_CAP];
	struct audit_sums sums;
};

/* One process on one card. */
struct audit_process {
	size_t host, card, identity, path; /* indexes; path: which store */
	int64_t id;			   /* of its row there */
	uint32_t pid;
	int64_t started_ms;		  /* -1 unknown */
	const char *texts[PROCESS_TEXTS]; /* the audit's; NULL: none */
	struct audit_sums sums;		  /* by its own state */
	bool context;			  /* it never had more than a bare context there */
};

/* What a user's process holds now, idle: only of hosts whose recorder is running. */
struct audit_present {
	size_t host, card; /* indexes */
	uint32_t pid;
	int64_t mem_bytes; /* -1 unknown */
	int64_t idle_ms;   /* at least this long */
	const char *what;  /* notebook, job, container or command; the audit's, like the next */
	const char *job, *container; /* NULL: none */
	bool notebook;
};

#define AUDIT_NONE ((size_t)-1)	   /* an index: not known yet */
#define AUDIT_SEVERAL ((size_t)-2) /* an index: more than one */

/* One identity of a breakdown. */
struct audit_row {
	size_t outer;	 /* second level: its row of the first level */
	const char *key; /* name, the audit's; NULL: the time of those that have none */
	struct audit_sums sums;
	int64_t unobserved_ms;	 /* MEASURE_CARDS; like sums.ms, it has no squatting then */
	size_t user, host, card; /* indexes in the audit, or AUDIT_SEVERAL */
	size_t n_processes;
	size_t last_process; /* the engine's, to count them */
	size_t n_cards;	     /* MEASURE_CARDS, like the next */
	int64_t known_ms;    /* when the first of them was seen; -1 unknown */
	uint32_t pid;	     /* kind process, like the next */
	int64_t started_ms;  /* -1 unknown */
};

/* Time by one kind of identity, or by two, one within the other. */
struct audit_breakdown {
	struct by by; /* n 0: none was asked for */
	enum measure measures[BY_MAX];
	struct audit_row *rows[BY_MAX]; /* by level, in no order */
	size_t n[BY_MAX];
};

#endif
