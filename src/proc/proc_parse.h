/* Parsers for the files of /proc: bytes in, plain values out. They have no state. The recorder,
 * the views, the tracker and libgua all use them and so get the same answers. The bytes may be
 * cut anywhere and may contain anything; a number that the cut may have shortened is not used.
 * The tracker parses many times a second, so nothing here allocates. */
#pragma once

#include "base/base.h"

enum { PROC_COMM_CAP = 64 }; /* the kernel's longest; longer ones are cut */

/* The fields of /proc/PID/stat that are used. Times are clock ticks. */
struct proc_stat {
	char comm[PROC_COMM_CAP]; /* raw and not terminated */
	size_t comm_len;
	char state; /* R S D Z ... */
	pid_t ppid;
	pid_t session;			    /* the pid of its session leader */
	int tty;			    /* the number of its terminal, 0: none */
	int64_t minor_faults, major_faults; /* its own */
	int64_t waited_minor_faults, waited_major_faults; /* of children it waited for */
	int64_t user_ticks, system_ticks;		  /* its own, all threads */
	int64_t waited_user_ticks, waited_system_ticks;	  /* of children it waited for */
	int64_t threads;
	uint64_t start_ticks; /* field 22: from boot to its start */
	int64_t rss_pages; /* inexact, see proc_read_resident(); -1: the line was cut before it
			    */
};

/* False when the line is not whole up to field 22. */
bool proc_parse_stat(const char *bytes, size_t len, struct proc_stat *stat);

/* Returns the resident pages in /proc/PID/statm ("SIZE RESIDENT ..."); -1: not there. */
int64_t proc_parse_resident(const char *bytes, size_t len);

/* The fields of /proc/PID/status that are used; -1 for a missing one (a zombie has no memory).
 *
 * The uid of a process is its REAL uid everywhere in this module: the user that runs it. A
 * setuid program still belongs to the user that started it. (Its time may belong to another
 * uid: see owners.c.) */
struct proc_status {
	int64_t tgid, uid;
	int64_t least_uid; /* the least of the real, effective, saved and file system uid */
	int64_t peak_rss_bytes;		/* VmHWM: since the last exec */
	int64_t processors;		/* that it may run on: those of its cpuset, or fewer */
	int64_t voluntary, involuntary; /* context switches of its first thread */
};
void proc_parse_status(const char *bytes, size_t len, struct proc_status *status);

/* /proc/PID/smaps_rollup; false when the process has no memory. */
struct proc_rollup {
	int64_t rss_bytes, pss_bytes, uss_bytes, swap_bytes;
};
bool proc_parse_rollup(const char *bytes, size_t len, struct proc_rollup *rollup);

/* /proc/PID/io: bytes that were really read from and written to storage, including those of
 * children that were waited for. */
struct proc_io {
	int64_t read_bytes, written_bytes;
};
bool proc_parse_io(const char *bytes, size_t len, struct proc_io *io);

/* Parses a whole decimal number, with at most white space after it (/proc/PID/loginuid). */
bool proc_parse_number(const char *bytes, size_t len, uint64_t *number);

/* The arguments of /proc/PID/cmdline (and the variables of environ), one after the other. */
struct proc_arguments {
	const char *bytes;
	size_t len, at; /* `at` is where the next one begins */
};
/* Returns the next one, not terminated; false at the end. */
bool proc_next_argument(struct proc_arguments *a, const char **arg, size_t *arg_len);

/* /proc/meminfo: total, and total less free, buffers, page cache and reclaimable slab. */
struct proc_memory {
	int64_t total_bytes, used_bytes;
};
bool proc_parse_memory(const char *bytes, size_t len, struct proc_memory *memory);

/* The first line of /proc/stat: ticks of all cores since boot, busy (neither idle nor waiting
 * for I/O) and total. */
struct proc_cpu {
	int64_t busy_ticks, all_ticks;
};
bool proc_parse_cpu(const char *bytes, size_t len, struct proc_cpu *cpu);

/* "btime N" in a piece of /proc/stat, unix seconds; -1 when it is not in these bytes. */
int64_t proc_parse_boot_time(const char *bytes, size_t len);

/* The last field of /proc/loadavg: the newest pid. */
bool proc_parse_newest(const char *bytes, size_t len, int64_t *newest_pid);
