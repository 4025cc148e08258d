/* The fake library's inside: one scenario being played, and the door that every call goes
 * through. */
#ifndef FAKENVML_FAKE_H
#define FAKENVML_FAKE_H

#include "abi.h"
#include "driver/sim/play.h"

#define EXPORT __attribute__((visibility("default")))

/* The whole state; NVML's is global to a process too. */
struct fake {
	struct scenario *scenario;
	struct play *play;
	struct clock clock;
	int64_t origin_us;
	int initialised;		 /* nvmlInit calls less nvmlShutdown calls */
	int visible[SCENARIO_CARDS_MAX]; /* cards that the last first nvmlInit found */
	unsigned n_visible;
	bool gpm_broke[SCENARIO_CARDS_MAX]; /* a card with `gpm breaks` was sampled */
	int64_t grown[SCENARIO_UNITS_MAX];  /* entries that `grow` added to process lists */
};

/* What kind of a call it is. */
enum door {
	DOOR_FREE,   /* works without nvmlInit */
	DOOR_SYSTEM, /* needs nvmlInit */
	DOOR_DEVICE, /* and has a handle: checked, and its card may be lost */
};

/* Comes in: loads the scenario at first, goes to now, logs the call, plays slow and hang, ends
 * the program on a bad handle, and returns the code that the scenario has for the call. On 0
 * the state is locked and *unit is the handle's card. log_format NULL: not in the log. */
int fake_enter(enum door door, const char *call, const void *device, size_t *unit,
	const char *log_format, ...) __attribute__((format(printf, 5, 6)));
/* Goes out with `code`. */
int fake_leave(int code);
/* The state; only between fake_enter() and fake_leave(). */
struct fake *fake_state(void);

/* The driver's stamp of a sample: wall clock, or since boot with `stamps boot`. */
uint64_t fake_stamp(int64_t t_us, int64_t wall_us);
/* The stamp of now. */
uint64_t fake_stamp_now(void);

/* A handle for a card, good until the card is lost or the library is shut down. */
void *fake_handle(size_t unit);
/* Notes that the program was told that a card is lost, and returns the code; 0: it is there. */
int fake_lost(size_t unit);
/* Frees every handle: they are stale from now on. */
void fake_forget_handles(void);
/* Ends the program when samples of GPM were not freed, and mends what they broke. */
void fake_finish_gpm(void);
/* Prints the message and ends the program: it did what it must never do. */
void fake_abort(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Whether the file NAME.WHAT is beside the pid file NAME: the process uses its cards now
 * (busy), or only their encoders (encodes) or the bus of their memory (copies). */
bool fake_does(const char *name, const char *what);
/* The bytes in the file `name`.memory of FAKENVML_PIDS, with which a process plays its own
 * allocations; `else_bytes` without such a file. 0: the process is not on the card. */
int64_t fake_memory(const char *name, int64_t else_bytes);
void fake_sleep_us(int64_t us);

/* Opens a device call. */
#define ENTER_DEVICE(device, ...)                                                              \
	size_t unit = 0;                                                                       \
	int denied = fake_enter(DOOR_DEVICE, __func__, (device), &unit, __VA_ARGS__);          \
	if (denied)                                                                            \
		return denied;                                                                 \
	struct fake *f = fake_state();                                                         \
	const struct scenario_card *card = &f->scenario->cards[unit];                          \
	(void)card

#endif
