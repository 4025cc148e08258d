/* What the files that play a capture share. */
#ifndef GUA_DRIVER_CAPTURE_CAPTURE_PLAY_PRIVATE_H
#define GUA_DRIVER_CAPTURE_CAPTURE_PLAY_PRIVATE_H

#include "driver/capture/capture_play.h"

/* What a handle points to. */
struct play_unit {
	int card, instance;
};

struct nvml_play {
	struct nvml_recorded *recorded;
	struct clock *clock;
	struct moment opened;
	struct play_unit cards[CAPTURE_CARDS], instances[CAPTURE_CARDS][CAPTURE_INSTANCES];
};

/* Where the play is. */
struct play_time {
	struct moment now;
	int64_t loop_us; /* length of the rounds */
	int64_t loop;	 /* how often they were played to the end */
	int round;	 /* in force now; -1: there are none */
};

/* The play of this process. */
struct nvml_play *play_current(void);
struct play_time play_time_now(const struct nvml_play *play);

/* A call about a handle (NULL: the driver), with its numbers (as many as the call has). */
struct play_call {
	const void *handle;
	const char *symbol;
	int args[NVML_ARGS];
};
/* The recorded answer now; NULL: there is none. */
const struct nvml_answer *play_answer(const struct play_call *call);
/* Answers a call that fills in `out`, one pointer for each part; returns the code. */
int play_out(const struct play_call *call, void *const *out);
/* The same for a text. */
int play_text(const struct play_call *call, char *text, unsigned length);

/* A symbol, and the function that plays it. */
struct play_function {
	const char *symbol;
	void *function;
};
/* nvml_play_lists.c and nvml_play_metrics.c; NULL: it is not there. */
void *play_find_list(const char *symbol);
void *play_find_metric(const char *symbol);

#endif
