/* The audit: a window over one or several stores becomes one set of numbers. Each table is read
 * once, in order, and summed in C. Renderers print it; nothing here prints. */
#ifndef GUA_QUERY_AUDIT_H
#define GUA_QUERY_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/process.h"
#include "model/reading.h"
#include "model/state.h"

struct audit_question {
	const char *const *paths; /* stores */
	size_t n_paths;
	int64_t since_ms, until_ms; /* asked window */
	int64_t now_ms;
	bool utc;	     /* heatmap in UTC instead of local time */
	bool want_processes; /* fill processes[] */
};

struct audit_host {
	char hostname[128], environment[16], driver[VERSION_CAP];
	bool simulated;	      /* some of its data in the window was invented: say so */
	bool imported;	      /* some was taken over from another tool */
	bool recording;	      /* a run is live: its last tick is recent */
	int64_t last_tick_ms; /* or -1 */
	size_t n_cards;	      /* seen in the window */
};

struct audit_card {
	size_t host;
	struct card_id id;
	char status[16];
	int64_t ms[CARD_STATES];	/* [CARD_UNOBSERVED]: the rest of its window */
	int64_t energy_mj[CARD_STATES]; /* -1 unknown */
	int64_t util_pct_ms;		/* over observed time */
};

struct audit_identity {
	char identity[USER_CAP];
	int64_t presence_ms[HOLDER_STATES];
	int64_t share_ms;
	int64_t peak_mem_kib; /* the most that its processes held together on one card in a slot
				 is not stored; this is the largest single process; -1 unknown
			       */
};

struct audit_process {
	size_t host, card;
	struct process_id id;
	int64_t ms[HOLDER_STATES];
	int64_t peak_mem_kib, last_active_ms; /* -1 unknown, never */
};

struct audit_heat {
	int64_t ms[3]; /* active, idle-held, truly-idle; by enum card_state */
};

struct audit {
	int64_t since_ms, until_ms; /* the window that was used: slots are taken whole */
	int64_t resolution_ms;	    /* widest slot in it: how far an edge can be off */
	struct rules rules;
	bool rules_mixed; /* runs in the window had different ones; these are the newest */
	struct audit_host *hosts;
	size_t n_hosts;
	struct audit_card *cards; /* by host, then index */
	size_t n_cards;
	int64_t ms[CARD_STATES], energy_mj[CARD_STATES]; /* sums over cards */
	struct audit_identity *identities;		 /* most presence first */
	size_t n_identities;
	struct audit_process *processes; /* most time first */
	size_t n_processes;
	struct audit_heat heat[7][24]; /* Sunday first */
	int64_t oldest_ms,
		newest_ms; /* of all data in the stores, whatever the window; -1 none */
};

/* Fills `*a`. No data in the window is not an error: n_cards is 0 then, and oldest_ms/newest_ms
 * say where there is some. */
int audit_run(struct audit *a, const struct audit_question *q, struct err *e);
void audit_finish(struct audit *a);

#endif
