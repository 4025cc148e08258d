/* Which cards meet the conditions of a pick, in which order they are picked, and the result.
 * Pure functions of the data of a live view; pick/pick_lock.h decides between several picks. */
#pragma once

#include "model/lease.h"
#include "present/live.h"

struct pick_wish {
	int64_t n;		/* number of cards */
	int64_t min_free_bytes; /* least free memory, other holders allowed; -1: no other
				   holders */
	double max_util_pct;	/* highest utilisation; NAN: below the threshold of active */
	int64_t free_for_ms;	/* truly-idle for this long; 0: now */
	struct rules rules;	/* what active and held mean */
};

/* Why a card is not picked; the message counts them: "2 held". */
enum pick_verdict {
	PICK_GOOD,
	PICK_SPARE,	 /* free, but not picked; set by the caller, like the last two */
	PICK_UNREADABLE, /* lost, asleep, denied, or the driver does not list its processes */
	PICK_INSTANCE,	 /* a MIG instance, but several cards are wanted */
	PICK_ACTIVE,
	PICK_HELD,
	PICK_ORPHAN,   /* much memory is in use that no listed process explains */
	PICK_FULL,     /* too little free memory */
	PICK_RECENT,   /* not free for long enough */
	PICK_TAKEN,    /* another pick has reserved it */
	PICK_PROMISED, /* left for a pick that has waited longer */
	PICK_LEASED,   /* a scheduler has given it to somebody else */
	PICK_VERDICTS
};
struct pick_candidate {
	const struct present_card *card;
	const struct lease *lease; /* of somebody else; NULL: none */
	enum pick_verdict verdict;
};

/* Whether a card meets the conditions at `now_ms`. */
enum pick_verdict pick_judge(
	const struct pick_wish *wish, const struct present_card *card, int64_t now_ms);

/* Judges the candidates and sorts them: good ones first, and among them by these criteria:
 * plausible utilisation, most free memory (in steps of 64 MiB), lowest utilisation, longest
 * free, lowest index. Returns how many are good. */
size_t pick_rank(const struct pick_wish *wish, struct pick_candidate *candidates, size_t n,
	int64_t now_ms);

/* Largest number of cards in one pick, and size of the text of a wish with that many UUIDs. */
enum { PICK_MAX_CARDS = 64, PICK_WISH_CAP = 4096 };

struct pick_ask {
	struct pick_wish wish;	   /* without its rules */
	char cards[PICK_WISH_CAP]; /* UUIDs separated by commas; "*": any card */
};

/* Appends one line. `cards`: UUIDs separated by commas; "": any card. */
void pick_wish_add(struct str *out, const struct pick_wish *wish, const char *cards);

/* Reads such a line. Another user wrote it: it may hold anything. */
bool pick_ask_parse(const char *bytes, size_t len, struct pick_ask *ask);

/* Whether the wish is for this card, among others. */
bool pick_ask_names(const struct pick_ask *ask, const char *uuid);

/* Which process holds a lock of gua pick, as the kernel reports it: the owner of the lock file,
 * and the process in /proc/locks. The content of a lock file is never used. */
struct pick_owner {
	int64_t file_uid; /* of the lock file; -1: not known */
	int64_t pid;	  /* that took the lock; -1: it has ended or is not visible */
	int64_t uid;	  /* of that process; -1: not known */
	char comm[64];	  /* its name, safe to show; "": not known */
	int64_t left_ms;  /* how long it still keeps the card, as its name says; -1: unknown */
};

/* What a pick found: the picked cards with their reservations, and why the others were not
 * picked. It stays valid after the driver is closed. */

struct pick_fact {
	struct card_id id;
	enum pick_verdict verdict; /* PICK_GOOD: picked */
	int lock;		   /* descriptor that keeps the reservation; -1: not picked */
	struct pick_owner
		by;	    /* PICK_TAKEN, PICK_PROMISED: who has it, or for whom it is left */
	struct lease lease; /* PICK_LEASED */
	double free_bytes, util_pct, holders; /* NAN: unknown */
	int64_t free_since_ms;		      /* or -1 */
	char suspect[256];		      /* the sentence about a suspect card, or "" */
};

/* Zero-initialise. */
struct pick_result {
	struct pick_fact *facts; /* the picked ones first, in the order of preference */
	size_t n_facts, n_picked;
	char host[256]; /* "": not known */
	char note[256]; /* why the past is not known, or "" */
	int64_t time_ms;
};

/* Releases the reservations and frees the memory. */
void pick_result_finish(struct pick_result *r);

/* Appends UUIDs, or indexes, separated by commas. UUIDs come from the driver and are passed to
 * a shell: ERR_WORLD if one has characters that a shell interprets. */
int pick_result_uuids(const struct pick_result *r, struct str *out, struct err *e);
void pick_result_indexes(const struct pick_result *r, struct str *out);

/* Fills `e` with why there are fewer than `n` cards: "no free card: 2 held; 1 active". */
int pick_result_refuse(const struct pick_result *r, size_t n, struct err *e);
/* Appends a line for each reserved card: "gua pick: card 3 is reserved by al (pid 1, sh)". */
void pick_result_reservations(const struct pick_result *r, struct str *out);

/* One JSON document. `hold_ms`: how long the cards are kept; `error`: why nothing was picked,
 * or NULL. */
void pick_result_json(
	const struct pick_result *r, int64_t hold_ms, const char *error, struct str *out);
