/* What only the tests' driver library asks a play: oddities of drivers, and pids that come from
 * files while the scenario is played. */
#ifndef GUA_SOURCE_SCENARIO_QUIRK_H
#define GUA_SOURCE_SCENARIO_QUIRK_H

#include "source/scenario_play.h"

/* Reads the missing pids of processes with `pid file`: those that are or were on a card in
 * their present life. `read` returns the number in the file, or 0: there is none yet. Until a
 * process has its pid it holds nothing and has no record of use. */
void play_read_pids(struct play *p, uint32_t (*read)(const char *file));
/* The pid of a process in its present or last life; 0: not known yet. */
uint32_t play_pid(const struct play *p, uint32_t process);

bool play_garbage(const struct play *p, size_t card);
/* How much a process list grows with each refusal (0: not), and up to how many entries. */
int64_t play_grow(const struct play *p, size_t card, int64_t *most);

#endif
