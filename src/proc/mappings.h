/* Which files and pieces of shared memory a process maps, and how much of each is resident:
 * /proc/PID/smaps. Reading it takes about as long as smaps_rollup, and more for each mapping;
 * the process may block its reader in the same way (see proc/proc.h). */
#pragma once

#include "base/base.h"

/* One file of one process, all its mappings together. A copy that the process has made of a
 * page (a private mapping, written to) is not part of it. */
struct mapping {
	uint64_t device, inode;
	int64_t resident_bytes;
	int64_t share_bytes; /* proportional: the process's part of it */
};

/* When there are more files, those that are shared most are kept. */
enum { MAPPINGS_MAX = 256 };

/* Zero-initialise. */
struct mappings {
	struct mapping rows[MAPPINGS_MAX];
	size_t n;
	struct mapping open; /* the mapping whose lines are being read; inode 0: none */
	int64_t copied_bytes;
};

/* Takes whole lines of smaps; returns how many bytes they were. */
size_t mappings_parse(struct mappings *m, const char *bytes, size_t len);
/* After the last line. Forgets the files that nobody else has, of which no part is missing. */
void mappings_end(struct mappings *m);

/* Reads them for a process that is named as in proc/proc.h. 0, or -1 with errno:
 * ETIME when there are too many to read. */
int mappings_read(int proc, uint32_t pid, struct mappings *m);
