/* Plays a scenario: what the driver would answer at a moment. Time is scenario time,
 * microseconds since its start, and only goes forward. After play_advance() every question is
 * about that moment; its cost depends only on the size of the answer, and it allocates nothing.
 */
#pragma once

#include "driver/sim/scenario.h"
#include "model/metric.h"

struct play;

/* One sample in a card's ring: the mean over the period that ends at its time. */
struct play_sample {
	int64_t t_us;	 /* scenario time: exactly k / samples_per_second, rounded down */
	int64_t wall_us; /* the wall clock then: the driver's stamp */
	int util_pct;
	int64_t length_us; /* of the part of the period in which the card was on */
	uint32_t n_parts;  /* private: the processes that used it */
};

/* A process on a card now. */
struct play_holder {
	uint32_t process;  /* index into scenario.processes */
	uint32_t card;	   /* index into scenario.cards: the instance when asked for its card */
	int64_t mem_bytes; /* or -1: the driver does not report it */
};

/* One process' use of a card over some samples. */
struct play_use {
	uint32_t process;
	int64_t wall_us; /* stamp of its newest sample */
	int64_t t_us;	 /* scenario time of that */
	double sm_pct;	 /* mean over all samples */
};

/* `s` is resolved and outlives the play. With `virtual_time` steps and suspends happen. */
int play_open(struct play **out, const struct scenario *s, bool virtual_time, struct err *e);
void play_close(struct play *p);

/* Moves to `t_us`; if that is in the past, does nothing. `wall_less_us` is wall clock less
 * scenario time, for scenarios that do not have their own wall clock. */
void play_advance(struct play *p, int64_t t_us, int64_t wall_less_us);
/* Reads the clock, on which boot time `origin_us` is time 0, and moves there. Applies the steps
 * and suspends of the scenario to a virtual clock. Returns the scenario time. */
int64_t play_follow(struct play *p, struct clock *clock, int64_t origin_us);

int64_t play_time(const struct play *p);
/* The wall clock at scenario time `t_us`, as the clock is set now. */
int64_t play_wall(const struct play *p, int64_t t_us);

enum card_status play_status(const struct play *p, size_t card, int *code);

/* Wrong answers that the driver gives about a card. */
struct play_quirks {
	bool vanished, garbage;
	int64_t grow_by, grow_to; /* a process list grows by this with each refusal (0: it does
				     not), up to this many entries */
	unsigned zero_use;	  /* ZERO_USE_ bits: calls that report 0 for every process */
	int64_t power_factor;	  /* the power that is reported is multiplied by this */
};
const struct play_quirks *play_quirks(const struct play *p, size_t card);

/* The ring, oldest first. */
size_t play_ring_size(const struct play *p, size_t card);
const struct play_sample *play_ring_at(const struct play *p, size_t card, size_t i);

/* The samples that are newer than this. */
struct play_since {
	int64_t us;
	bool by_wall; /* `us` is a stamp of the driver; else scenario time */
};

/* Lists every process with use in those samples. Returns how many; fills at most `max`. */
size_t play_uses(struct play *p, size_t card, struct play_since since, struct play_use *uses,
	size_t max);

/* Lists the holders of the card; for a card with MIG, those of its instances. Returns and fills
 * like play_uses(). */
size_t play_holders(const struct play *p, size_t card, struct play_holder *out, size_t max);
/* The used memory, without what the driver itself takes. */
int64_t play_memory_used(const struct play *p, size_t card);

/* Now: idle-power + (max-power - idle-power) * utilisation / 100. */
int64_t play_power_mw(const struct play *p, size_t card);
/* Energy: power over time, since the last energy-reset. */
double play_energy_mj(const struct play *p, size_t card);

/* A metric of a card now (play_metric.c); NAN: it has none. `s` is the play's. */
double play_metric(const struct play *p, const struct scenario *s, size_t unit, enum metric m);
/* A text that the driver reports; false: there is none. */
bool play_metric_text(
	const struct scenario *s, size_t unit, enum metric m, char *dst, size_t cap);
/* Whether the card supports MIG. */
bool play_metric_can_mig(const struct scenario_card *c);

/* Returns the process that has `pid` now, or -1; *started_us is when its life began. */
int play_process(const struct play *p, uint32_t pid, int64_t *started_us);

/* Returns the fault of this kind that is on for a call, the latest one if there are several;
 * NULL: none. `card` -1: a call without a card. */
const struct scenario_fault *play_fault(
	const struct play *p, enum scenario_fault_kind kind, const char *call, int card);
/* Scenario time at which `fault`, which is on, ends; INT64_MAX: never. */
int64_t play_fault_end(const struct play *p, const struct scenario_fault *fault);

/* Returns the first XID after number *seen (at first 0), and updates it; false: none. */
bool play_xid(const struct play *p, uint64_t *seen, uint32_t *card, int64_t *xid);
uint64_t play_xid_count(const struct play *p);

/* Reads the missing pids of processes with `pid file`: those that are or were on a card in
 * their current life. `read` returns the number in the file, or 0: there is none yet. Until a
 * process has its pid it holds nothing and has no record of use. */
void play_read_pids(struct play *p, uint32_t (*read)(const char *file));
/* Forgets the pids of such processes that have ended in the system: they hold nothing. */
void play_drop_pids(struct play *p, bool (*ended)(uint32_t pid));
/* The pid of a process in its current or last life; 0: not known yet. */
uint32_t play_pid(const struct play *p, uint32_t process);

/* The card's utilisation over time, in percent x microseconds: the difference of two values
 * gives the mean between them. */
int64_t play_util_sum(const struct play *p, size_t card);

enum { POWER_RING_MAX = 119, POWER_PERIOD_US = 20000 };

/* The power of a card at one moment. */
struct play_power {
	int64_t t_us, wall_us; /* as in struct play_sample */
	int64_t mw;
};

/* The ring of power: the last POWER_RING_MAX moments, every POWER_PERIOD_US, in which the card
 * was on; oldest first. `out` has room for all. Returns how many. */
size_t play_power_ring(const struct play *p, size_t card, struct play_power *out);

/* What accounting mode keeps of a process that is or was on a card. */
struct play_account {
	uint32_t pid;
	bool running;
	int64_t start_wall_us; /* when it came to the card */
	int64_t length_us;     /* until it left; 0 while it is there */
	int64_t peak_bytes;    /* or -1: the driver does not report it */
	double sm_pct;	       /* mean of its use */
};

/* Lists all of them, the running ones first; none while accounting is off. Returns and fills
 * like play_uses(). */
size_t play_account_list(
	const struct play *p, size_t card, struct play_account *out, size_t max);
