/* Plays a capture: functions with the driver's own signatures answer from the file, so
 * everything above the table of calls runs unchanged. Time passes as it did when the capture
 * was made, from the moment at which the play was opened, and starts again after the last
 * round.
 *
 * The driver's functions get no context, so a process plays one capture at a time. */
#pragma once

#include "driver/capture/capture_file.h"

/* What a handle of a card, or of an instance, points to. */
struct play_unit {
	int card, instance;
};

struct capture_play {
	struct capture_file *recorded;
	struct clock *clock;
	struct moment opened;
	struct play_unit cards[CAPTURE_CARDS], instances[CAPTURE_CARDS][CAPTURE_INSTANCES];
};

/* Opens a play and takes the capture over, even on failure. Fails if another capture is being
 * played. */
int capture_play_open(struct capture_play **play, struct capture_file *recorded,
	struct clock *clock, struct err *e);
void capture_play_close(struct capture_play *play);
/* Returns the function that answers for this symbol; NULL: the captured library had none. */
void *capture_play_find(const struct capture_play *play, const char *symbol);
