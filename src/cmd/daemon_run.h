/* One run of the recorder, with the driver in a process of its own. A process that is stuck in
 * the driver outlives the run; the next run must know of it, even in another process. */
#ifndef GUA_CMD_DAEMON_RUN_H
#define GUA_CMD_DAEMON_RUN_H

#include "record/recorder.h"
#include "driver/source_host.h"
#include "store/statusfile.h"

/* Processes that an earlier run has left behind. */
struct daemon_stuck {
	struct source_stuck list[SOURCE_STUCK_MAX];
	size_t n;
};

/* Reads what an earlier recorder of the store has published; before statusfile_create(). */
void daemon_stuck_read(struct daemon_stuck *stuck, const char *db);
/* Publishes them for the next recorder, after the last run. */
void daemon_stuck_publish(const struct daemon_stuck *stuck, struct statusfile *status);
/* Records until the run is over. A driver that does not answer for `patience_ms` (0: the
 * default) is given up. Leaves in `stuck` what it has left behind. */
int daemon_run(struct recorder_options *o, int64_t patience_ms, struct daemon_stuck *stuck,
	struct err *e);

#endif
