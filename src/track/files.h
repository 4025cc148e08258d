/* How a tracker reads the files of processes that may block for ever (see proc/proc.h). A
 * program has a process for them, proc/reader.h; libgua, which is a guest in another program,
 * reads them directly, in a thread or process that it can leave behind. */
#ifndef GUA_TRACK_FILES_H
#define GUA_TRACK_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "model/process.h"
#include "proc/parse.h"

/* The first three return -1 with errno: EBUSY when the process blocks or may block. They answer
 * for the life id->start_ticks only. */
struct track_files {
	ssize_t (*arguments)(void *context, const struct process_id *id, char *dst, size_t cap);
	int (*rollup)(void *context, const struct process_id *id, struct proc_rollup *rollup);
	int (*io)(void *context, const struct process_id *id, struct proc_io *io);
	/* CPU time that reading has taken in another process. */
	double (*cpu_s)(void *context);
	/* Whether the process is one of those that read. */
	bool (*owns)(void *context, pid_t pid);
	void *context;
};

#endif
