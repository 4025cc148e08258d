/* A scenario: cards, processes and the events in time, as described in a text file (the
 * language is in gua-scenario(5)). It is the driver that the simulated source and the tests'
 * fake library play; this header is the parsed file, which never changes once it is made.
 * Playing it is scenario_play.h. */
#ifndef GUA_DRIVER_SIM_SCENARIO_H
#define GUA_DRIVER_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "driver/sim/scenario_types.h"

/* Everything that one file says. */
struct scenario {
	char host[128];		     /* "" when not given */
	char driver[VERSION_CAP];    /* driver version */
	char nvml[VERSION_CAP];	     /* version of its library */
	int cuda;		     /* 1000 * major + 10 * minor */
	bool has_start;		     /* the wall clock of virtual clocks is the scenario's */
	int64_t start_wall_us;	     /* it, at time 0 */
	int samples_per_second;	     /* of the driver */
	int64_t second_us;	     /* a second; longer when it is played with fewer samples */
	bool boot_stamps;	     /* samples are stamped since boot, not by the wall clock */
	bool accounting;	     /* the driver keeps statistics of processes */
	int64_t ring_us;	     /* how long the driver keeps samples */
	int64_t repeat_us;	     /* events repeat after this long; 0: once */
	int layout[3];		     /* bytes of an entry of the process lists v1, v2, v3 */
	struct scenario_card *cards; /* physical ones first, by index; then MIG instances */
	size_t n_cards, n_physical;
	struct scenario_process *processes; /* in the file's order */
	size_t n_processes;
	struct scenario_text *texts; /* by process */
	size_t n_texts;
	struct scenario_event *events; /* by time, and in the file's order at one time */
	size_t n_events, cap_events;
	struct scenario_fault *faults; /* those that events turn on and off */
	size_t n_faults, cap_faults;
	struct scenario_seat *seats; /* by card; a card's are next to each other */
	size_t n_seats;
	uint32_t *by_pid;    /* indexes of processes, ordered by pid */
	int *by_name;	     /* hash table of processes while the file is read */
	char (*missing)[64]; /* symbols that the fake library shall not have */
	size_t n_missing;
};

/* Parses `len` bytes; `name` stands before the line number in errors. On success the caller
 * owns *out. Everything that can be wrong is found here: ERR_USAGE with "NAME:LINE: sentence".
 * Touches nothing but its arguments. */
int scenario_parse(
	struct scenario **out, const char *name, const char *bytes, size_t len, struct err *e);
/* The same for a file of at most 1 MB. */
int scenario_read(struct scenario **out, const char *path, struct err *e);
void scenario_free(struct scenario *s);

/* The variable with the directory of the files of `pid file NAME`. */
#define SCENARIO_PIDS "FAKENVML_PIDS"

/* Gives processes with `pid env NAME` their number; `lookup` returns the text of a variable or
 * NULL, and may be NULL itself where there are none to ask. To be called once, before playing;
 * fails when one is missing, or when two live processes would share a pid. A program that plays
 * a scenario with `pid file NAME` calls play_read_pids(). */
int scenario_resolve(
	struct scenario *s, const char *(*lookup)(const char *name), struct err *e);

/* The first of `by_pid` with this pid, or s->n_processes. */
size_t scenario_find_pid(const struct scenario *s, uint32_t pid);

#endif
