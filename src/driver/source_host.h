/* The options with which a source is opened, and where sources that may block are opened: in
 * another process, by driver/host/apart.h. The source itself does not know that: it only notes
 * which call it is making, and does not ask the cards that it must avoid. libgua has no host:
 * there a thread with a deadline is enough. */
#pragma once

#include "base/base.h"
#include "model/reading.h"

struct source;
struct source_kind;
struct source_options;

/* The driver's call that a source is making now. One process writes it and another reads it, so
 * the reader treats it as bytes from outside. */
enum { SOURCE_CALL_CAP = 64 };
struct source_place {
	int card;		    /* the driver's index of the physical card; -1: none */
	char call[SOURCE_CALL_CAP]; /* "": no call */
	/* On a patrol: the moment of the glance that is due next, or is being made, in
	 * monotonic microseconds. It stands still while the process is stuck. */
	int64_t due_us;
};
void source_place_set(struct source_place *p, int card, const char *call);

/* The code of a card that is lost because a call to it has not returned. */
#define CARD_CODE_STUCK (-1)
/* Sets the reading of a card that cannot be asked. A fault that was reported before stays. */
void source_lose_card(struct card_reading *r, int code);
/* Logs that a card is left out because there is no memory for it. */
void source_log_no_room(void);

/* A physical card that must not be asked: a process is stuck on it. */
struct source_avoid {
	int index;	     /* the driver's index of it */
	char pci[PCI_CAP];   /* "" when unknown, like the next; these two ... */
	char uuid[UUID_CAP]; /* ... identify it when the driver cannot be asked */
	char name[CARD_NAME_CAP];
};
enum { SOURCE_AVOID_MAX = 16 };
struct source_avoids {
	struct source_avoid cards[SOURCE_AVOID_MAX];
	size_t n;
};
/* Whether a card must not be asked; `pci` may be "" when it is not known. */
bool source_is_avoided(const struct source_avoids *a, int index, const char *pci);

/* A process that is stuck in the driver and was left behind. It outlives its program, so the
 * program must know of it when it is started again. */
enum { SOURCE_STUCK_MAX = 8, SOURCE_KIND_CAP = 16 };
struct source_stuck {
	int pid;
	char kind[SOURCE_KIND_CAP]; /* of the source */
	struct source_avoid card;   /* the card on which it is stuck; index -1: none */
};

struct source_host {
	/* Opens a source of a kind that may block. */
	int (*open)(struct source_host *h, struct source **s, const struct source_kind *kind,
		const struct source_options *options, struct err *e);
	/* From another thread: calls that wait for a source, now or later, fail at once. */
	void (*interrupt)(struct source_host *h);
	/* From another thread: what a source is waiting for; "" when that is not known. */
	void (*where)(struct source_host *h, char *dst, size_t cap);
	/* From another thread: makes patrols (driver/host/round.h) end at once, now and later;
	 * or, if not `on`, no longer does. */
	void (*recall)(struct source_host *h, bool on);
	/* Lists the processes that are stuck now; must not be called during a call of a source.
	 * Returns how many. */
	size_t (*stuck)(struct source_host *h, struct source_stuck *out, size_t max);
	/* From another thread: source_place.due_us of the source on patrol. */
	int64_t (*due_us)(struct source_host *h);
};

/* Strings are borrowed until source_close(). */
struct source_options {
	const char *name;      /* a list of names: see source.h */
	const char *nvml_path; /* --nvml or GUA_NVML; NULL: libnvidia-ml.so.1 after checking the
				  module */
	const char *nvml_option;  /* what sets it, for messages; NULL: "--nvml PATH" */
	const char *scenario;	  /* sim: path of a scenario file; NULL: the built-in lab */
	bool weeks;		  /* sim: two weeks of that lab, from the clock's time on */
	const char *root;	  /* where /proc and /sys are; "" for the real ones */
	struct clock *clock;	  /* outlives the source */
	int64_t sample_period_us; /* sim: sample at this period; 0: as the scenario says */
	struct source_host *host; /* opens kinds that may block; NULL: open them here */
	bool shared; /* one of several sources: a call that takes long goes on, the caller gets
			ERR_BUSY at once and calls source_late() */
	/* For a source that a host opens; else NULL. */
	struct source_place *place;	    /* the source keeps it up to date */
	const struct source_avoids *avoids; /* each scan obeys it */
};
