/* Makes an audit: from stores, or step by step for another engine. Each table of a store is
 * read once, in order, and summed in C. */
#pragma once

#include "base/base.h"
#include "classify/context.h"
#include "model/audit.h"
#include "model/restriction.h"
#include "store/merge.h"

/* X(ID, name). Numbers: largest first; names: A to Z. Waste is idle and squatting time. */
#define ORDERS(X)                                                                              \
	X(WASTE, "waste")                                                                      \
	X(HELD, "held")                                                                        \
	X(USED, "used")                                                                        \
	X(IDLE, "idle")                                                                        \
	X(SQUATTING, "squatting")                                                              \
	X(SHARE, "share")                                                                      \
	X(MEMORY, "memory")                                                                    \
	X(NAME, "name")

/* "waste|held|...", for an option. */
#define ORDER_CHOICE(id, name) "|" name
#define ORDER_CHOICES (&(ORDERS(ORDER_CHOICE))[1])

enum order {
	ORDER_DEFAULT, /* waste; cards, models and hosts in their own order */
#define ORDER_ID(id, name) ORDER_##id,
	ORDERS(ORDER_ID)
#undef ORDER_ID
};

/* The order of that name; ORDER_DEFAULT for NULL. */
enum order audit_order_of(const char *name);
/* Negative: `a` comes first; 0: the names decide. */
int audit_order_compare(
	enum order order, const struct audit_sums *a, const struct audit_sums *b);
/* The time held and not used. */
int64_t audit_waste(const struct audit_sums *sums);

struct foreign_stop;
struct sqlite3;

/* A host without data in the window is in the audit, as unobserved, if it was last seen
 * within this time before the window. A host that is silent for longer has left. */
#define AUDIT_SILENT_MS (24 * 3600 * INT64_C(1000))

/* Zero-initialise. */
struct store_fault {
	int code;
	char *why; /* freed by gather_free_faults() */
};
void gather_free_faults(struct store_fault *faults, size_t n);

struct audit_question {
	const char *const *paths; /* stores */
	size_t n_paths;
	const char *const *unread; /* reasons why other files that were asked for are not among
				      the paths */
	size_t n_unread;
	/* The directory of stores that were fetched only for this audit; NULL: they were not.
	 * Sentences name the stores without it. If two such stores would be counted twice, the
	 * second is left out like an unreadable one, so that no host can spoil the report. */
	const char *fetched_to;
	/* By path: why a store is left out from the beginning. The audit adds what it finds,
	 * so that another audit of the same stores uses the same ones. NULL: none. */
	struct store_fault *faults;
	int64_t since_ms, until_ms; /* the requested window */
	int64_t now_ms;
	bool utc;	      /* heatmap in UTC instead of local time */
	bool want_processes;  /* fill processes[] */
	size_t max_processes; /* at most this many, the first in `order`; 0: all */
	enum order order;     /* of processes */
	struct by by;	      /* the breakdown; n 0: none */
	bool want_columns;    /* fill columns, unless there are very many cards */
	size_t max_spells;    /* at most this many, longest first; 0: none */
	struct restriction only;
	struct foreign_stop *stop; /* of store/foreign.h: stops the audit early; NULL: never */
	const char *
		present_of; /* fill present[] and spells for this user only; NULL: for nobody */
	/* The name of a user's group; NULL: none. group_of NULL: there are no groups. */
	const char *(*group_of)(const void *context, const char *user);
	const void *group_context;
	/* The price of one GPU-hour of a card; NAN: none. price_of NULL: no card has one. */
	double (*price_of)(const void *context, const struct card_id *card);
	const void *price_context;
	/* The engine that fills the audit; NULL: stores fill it. */
	int (*engine)(
		void *context, struct audit *a, const struct audit_question *q, struct err *e);
	void *engine_context;
};

/* Fills `*a` from stores, or by the engine. A window without data is no error: n_cards is 0,
 * and oldest_ms and newest_ms say where data is. Call audit_finish() even after a failure. */
int audit_run(struct audit *a, const struct audit_question *q, struct err *e);

/* The steps of an engine (see model/audit.h): start with an empty audit; add hosts, cards,
 * identities and processes, in order, with nothing known of them yet; then compute the sums.
 * NULL: out of memory, with `e` set. A pointer is valid until the next item of the same kind is
 * added. */
void audit_init(struct audit *a);
struct audit_host *audit_add_host(struct audit *a, struct err *e);
struct audit_card *audit_add_card(struct audit *a, struct err *e);
struct audit_identity *audit_add_identity(struct audit *a, struct err *e);
struct audit_process *audit_add_process(struct audit *a, struct err *e);
struct audit_event *audit_add_event(struct audit *a, struct err *e);
/* A smaller difference at an edge of the window is left out, because a slot is this wide. */
#define AUDIT_CLIP_MS 60000
/* Whether something that was first seen at `known_ms` did not exist when the window began. */
bool audit_is_late(const struct audit *a, int64_t known_ms);
/* Sets the window of an audit whose oldest_ms and newest_ms are known: the one rule for every
 * engine. It begins no earlier than the oldest data. It ends when the question says, but no
 * later than now; if nothing was measured here (`past`: all data is imported or simulated), it
 * ends with the newest data. After a host stopped, the rest of its window is unobserved. */
void audit_clip(struct audit *a, const struct audit_question *q, bool past);
void audit_add_up(struct audit *a);
void audit_finish(struct audit *a);

/* The sum of a holder's time over all states. */
int64_t audit_holder_ms(const int64_t ms[HOLDER_STATES]);
/* Adds the time of another process, user or card. */
void audit_sums_add(struct audit_sums *to, const struct audit_sums *more);

/* Adds the cost of a holder's shares on a card, and of the squatting time in sums->ms. */
void audit_cost_holder(struct audit_sums *sums, const struct audit_card *card);
/* Adds the cost of a card's time: the parts from <= part < to. */
void audit_cost_card(struct audit_cost *cost, const struct audit_card *card, int from, int to);
void audit_cost_add(struct audit_cost *to, const struct audit_cost *more);
void audit_cost_subtract(struct audit_cost *from, const struct audit_cost *less);

/* Fails if a store cannot be read, is given twice or is a copy of another, or if two stores
 * have recorded the same cards at the same time. `*simulated`: some of the data is
 * simulated. `*hosts`: which rows belong to which host; the caller frees the items. */
int audit_check_stores(const char *const *paths, size_t n, bool *simulated,
	struct merge_hosts *hosts, struct err *e);

/* From here on: what is learned from the records of a store. */

/* The memory of a bare CUDA context on each model of card (see classify/context.h), from the
 * newest records; forgets what was learned before. If it fails, nothing is learned. */
int audit_read_floors(struct context_floors *f, struct sqlite3 *db, struct err *e);

/* From here on: what an audit is restricted to. The functions are in restriction.c. */

/* "user" ...: the name of the option. */
extern const char *const restriction_names[RESTRICTIONS];

/* Whether only the time of some users counts, and whether only some cards do. */
bool restriction_of_users(const struct restriction *r);
bool restriction_of_cards(const struct restriction *r);
bool restriction_takes_host(const struct restriction *r, const char *hostname);
/* The host of the card is not checked. */
bool restriction_takes_card(const struct restriction *r, const struct audit_card *card);
/* `group` may be NULL: none. */
bool restriction_takes_user(const struct restriction *r, const char *user, const char *group);

/* The position among the words that were given of one kind. Zero-initialise. */
struct restriction_word {
	size_t item;
	const char *at;
	char safe[1024]; /* escaped for a terminal */
};
/* Moves to the next word; false: there is none. */
bool restriction_next(
	const struct restriction *r, enum restriction_kind kind, struct restriction_word *word);

/* Which rows of "open_spell AS o" are spells: those that are long enough by the rule of their
 * host's newest run. When a recorder has stopped, a spell that continued is in the table spell
 * too. */
#define OPEN_IS_SPELL                                                                          \
	"idle_held_ms + squatting_ms >= (SELECT spell_ms FROM run WHERE run.host = "           \
	"(SELECT host FROM gpu WHERE gpu.id = o.gpu) AND source <> 'import' "                  \
	"ORDER BY id DESC LIMIT 1) AND NOT EXISTS (SELECT 1 FROM spell AS s "                  \
	"WHERE s.end_ms = o.end_ms AND s.gpu = o.gpu AND s.process = o.process)"
