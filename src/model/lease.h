/* A lease: what a scheduler has given to whom. gua(1), DEFINITIONS, has the word; gua-lease(5)
 * the files in which schedulers say it. */
#pragma once

#include "model/card.h"
#include "model/process.h"

/* Which scheduler made it. The numbers are stored: never change one. */
enum lease_kind {
	LEASE_SLURM = 0,
	LEASE_POD = 1,
	LEASE_PICK = 2, /* gua pick: hidden by a scheduler's lease of the same owner */
	LEASE_KINDS = 3,
};
extern const char *const lease_kind_names[LEASE_KINDS]; /* slurm pod pick */

/* A lease. Texts are escaped, and "" when they are not known. */
struct lease {
	enum lease_kind kind;
	char id[LABEL_CAP];   /* within its kind: job number, namespace/pod, pid of a pick */
	char owner[USER_CAP]; /* user or namespace; "uid:123" when there is no name */
	int64_t uid;	      /* of the owner, or -1 */
	char job_name[LABEL_CAP]; /* of a Slurm job, like the next */
	char account[TAG_CAP];
	char task[TASK_CAP];	  /* of a task of an array: 3_2 */
	char sluid[TAG_CAP];	  /* Slurm's unique id, after which it names cgroups */
	unsigned share;		  /* 1: whole cards; n: one of n equal parts; 0: a part of
				     unknown size */
	int64_t since_ms;	  /* when it began, as its writer says */
	int64_t until_ms;	  /* when it must end; -1: open */
	int64_t unknown_since_ms; /* its writer has been silent since then, so that it may have
				     ended; -1: it is known */
	size_t first_card, n_cards; /* in leases.cards */
};

/* A card of a lease: a card, or a MIG instance. */
struct lease_card {
	char uuid[UUID_CAP]; /* "": an unknown card: its number is not NVML's */
};

/* All leases of this host at a moment. */
struct leases {
	struct lease *v; /* by kind and id */
	size_t n;
	struct lease_card *cards;
	size_t n_cards;
	bool has_source; /* a scheduler writes leases here; false: states are as if there were
			    no such thing as a lease */
	uint64_t generation; /* changes when anything above does */
};

/* Whether the lease covers the card: it names the card, or the card that an instance is on. */
bool lease_covers(
	const struct leases *all, const struct lease *lease, const struct card_id *card);
/* Whether the process uses the lease: it is of the job or pod that has the lease or, where the
 * job of the process is not known, of its owner. */
bool lease_is_used_by(const struct lease *lease, const struct process_id *process);
/* Whether all cards of the lease are known. */
bool lease_knows_cards(const struct leases *all, const struct lease *lease);
