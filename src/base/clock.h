/* Clocks as values, so that a test can give the program another clock.
 *
 * A real clock asks the kernel. A virtual clock is three numbers: waiting moves it forward at
 * once, so a week of ticks takes a second. The three numbers can be in a file that the recorder
 * and the fake driver both map (--clock FILE), so that both use the same time. A program that
 * works beside the recorder follows that clock: it holds it while it works, and lets it go on
 * to the moment for which it waits. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define CLOCK_FILE_MAGIC 0x314b434c43415547 /* "GUACLCK1", little endian */

/* The state of a virtual clock, and the layout of a clock file (native byte order). A file may
 * end before hold_us, which then is 0. */
struct virtual_time {
	int64_t magic;	      /* CLOCK_FILE_MAGIC */
	int64_t boot_us;      /* CLOCK_BOOTTIME */
	int64_t wall_less_us; /* CLOCK_REALTIME minus CLOCK_BOOTTIME; a clock step changes it */
	int64_t suspended_us; /* CLOCK_BOOTTIME minus CLOCK_MONOTONIC; a suspend changes it */
	int64_t hold_us;      /* waiting does not move boot_us beyond this; 0: no limit */
};

/* One reading of all three clocks at one moment, microseconds. */
struct moment {
	int64_t wall_us; /* since 1970: for people and slots; may jump */
	int64_t boot_us; /* since boot, continues in suspend: used for lengths of time */
	int64_t mono_us; /* since boot, stops in suspend */
};

struct clock {
	struct virtual_time *virtual_time; /* NULL: the real clock */
	struct virtual_time own;	   /* storage of a virtual clock without a file */
	void *map;			   /* the mapped file, or NULL */
	bool follows;			   /* another process moves it */
};

void clock_init_real(struct clock *c);
/* Makes a virtual clock for this process only; it starts at `wall_ms`. */
void clock_init_virtual(struct clock *c, int64_t wall_ms);
/* --clock: "real", "virtual" (starts at wall_ms) or the path of an existing clock file. */
int clock_open(struct clock *c, const char *how, int64_t wall_ms, struct err *e);
/* From now on another process moves the clock, if it is in a file. clock_wait() in this process
 * sets how far it may move. */
void clock_follow(struct clock *c);
void clock_finish(struct clock *c);
bool clock_is_virtual(const struct clock *c);
/* Whether a forked process sees the same time: not with a virtual clock without a file. */
bool clock_is_shared(const struct clock *c);

/* Reads the three clocks within a millisecond of each other. */
struct moment clock_now(const struct clock *c);
int64_t clock_wall_ms(const struct clock *c);
/* The kernel's monotonic clock, to measure how long to wait for another process or thread. */
int64_t clock_monotonic_us(void);
/* CPU time of the calling thread: two readings differ by the cost of the code between them. A
 * virtual clock returns its own time, so that a run in virtual time is repeatable. */
int64_t clock_cost_us(const struct clock *c);

/* Waits until boot time `until_us` or until one of `fds` is ready, whichever is first. Returns
 * what poll(2) returns (0: the time is reached; -1 with EINTR on a signal). A virtual clock
 * jumps to `until_us` as soon as no process holds it. */
int clock_wait(struct clock *c, int64_t until_us, struct pollfd *fds, unsigned n_fds);

/* The earlier (or shorter) and the later (or longer) of two moments (or lengths of time). */
static inline int64_t clock_earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t clock_later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Moves a virtual clock forward; does nothing on a real one. */
void clock_advance(struct clock *c, int64_t us);

/* Notices that the wall clock was set, or that the host was suspended. Wall and boot clock move
 * together, and so do boot and monotonic clock. If the difference of wall and boot clock
 * changes, it is a step; if that of boot and monotonic clock changes, it is a suspend. */

struct clock_watch {
	int64_t wall_less_us; /* wall minus boot clock, as last computed */
	int64_t suspended_us; /* boot minus monotonic clock, as last computed */
};

void clock_watch_start(struct clock_watch *w, const struct moment *now);
/* Returns by how much the wall clock was set since the last call that found a step, or since
 * the start; 0: it was not. Small corrections add up until they are a step. */
int64_t clock_watch_step_us(struct clock_watch *w, const struct moment *now);
/* Returns how long the host was suspended since the last call; 0: it was not, or only for a
 * short time. */
int64_t clock_watch_suspend_us(struct clock_watch *w, const struct moment *now);
