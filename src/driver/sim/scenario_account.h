/* Accounting mode while a scenario is played: a process comes to a card, gets or gives memory,
 * leaves. Private to scenario*.c; what is kept is asked for with play_accounts(). */
#ifndef GUA_DRIVER_SIM_SCENARIO_ACCOUNT_H
#define GUA_DRIVER_SIM_SCENARIO_ACCOUNT_H

#include <stdint.h>

struct play;

/* Entries of processes that left, a card. */
enum { DEAD_KEPT = 128 };

/* What accounting mode keeps of a process on a card, from when it came to when it left. */
struct accounted {
	uint32_t process, life; /* which one: the life by its number */
	uint32_t pid;		/* 0: not known yet; while it runs its seat's process has it */
	int64_t start_us, start_wall_us, end_us;
	int64_t peak_bytes;  /* or -1 */
	int64_t used, on_us; /* its use, percent x microseconds, and how long the card was on */
};

void account_come(struct play *p, uint32_t seat, int64_t t_us);
void account_memory(struct play *p, uint32_t seat);
void account_leave(struct play *p, uint32_t seat, int64_t t_us);
/* The pid of a process has become known. */
void account_name(struct play *p, uint32_t process);

#endif
