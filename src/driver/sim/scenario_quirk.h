/* What mostly the tests' driver library asks a play: accounts, oddities of drivers, and pids
 * that come from files while the scenario is played. */
#ifndef GUA_DRIVER_SIM_SCENARIO_QUIRK_H
#define GUA_DRIVER_SIM_SCENARIO_QUIRK_H

#include "driver/sim/play.h"

/* Reads the missing pids of processes with `pid file`: those that are or were on a card in
 * their present life. `read` returns the number in the file, or 0: there is none yet. Until a
 * process has its pid it holds nothing and has no record of use. */
void play_read_pids(struct play *p, uint32_t (*read)(const char *file));
/* Forgets the pids of such processes that have ended in the system: they hold nothing. */
void play_drop_pids(struct play *p, bool (*ended)(uint32_t pid));
/* The pid of a process in its present or last life; 0: not known yet. */
uint32_t play_pid(const struct play *p, uint32_t process);

/* The card's utilisation over time, percent x microseconds: the difference of two is the mean
 * between them. */
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

/* All of them, the running ones first; none while accounting is off. As play_uses(). */
size_t play_accounts(const struct play *p, size_t card, struct play_account *out, size_t max);

bool play_garbage(const struct play *p, size_t card);
/* How much a process list grows with each refusal (0: not), and up to how many entries. */
int64_t play_grow(const struct play *p, size_t card, int64_t *most);

/* The calls (ZERO_USE_ bits) that report 0 for every process that used the card. */
unsigned play_zero_use(const struct play *p, size_t card);
/* The factor by which the reading of power is multiplied. */
int64_t play_power_factor(const struct play *p, size_t card);

#endif
