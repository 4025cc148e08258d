/* What the kernel counts of a process and of the host, read with few calls and parsed by hand:
 * a tracker reads these many times a second and must not be seen in them itself. Bytes in,
 * numbers out; nothing here allocates. */
#ifndef GUA_TRACK_PROCREAD_H
#define GUA_TRACK_PROCREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* /proc/PID/stat, as far as it is used. Times are clock ticks. */
struct stat_line {
	char state; /* R S D Z ... */
	pid_t ppid;
	int64_t minor_faults, major_faults;		  /* its own */
	int64_t waited_minor_faults, waited_major_faults; /* of children it waited for */
	int64_t user_ticks, system_ticks;		  /* its own, all threads */
	int64_t waited_user_ticks, waited_system_ticks;	  /* of children it waited for */
	int64_t threads;
	uint64_t start_ticks;
	int64_t rss_pages;
};
bool stat_line_parse(const char *bytes, size_t len, struct stat_line *s);

/* /proc/PID/status; -1 for what is not there (a zombie has no memory). */
struct status_lines {
	int64_t tgid, uid;
	int64_t peak_rss_bytes;		/* VmHWM: since the last exec */
	int64_t voluntary, involuntary; /* switches of its first thread */
};
void status_parse(const char *bytes, size_t len, struct status_lines *s);

/* /proc/PID/smaps_rollup. */
struct rollup {
	int64_t rss_bytes, pss_bytes, uss_bytes, swap_bytes;
};
bool rollup_parse(const char *bytes, size_t len, struct rollup *r);

/* /proc/PID/io: what storage really moved, waited-for children included. */
bool io_parse(const char *bytes, size_t len, int64_t *read_bytes, int64_t *written_bytes);

/* /proc/meminfo: total, and total less free, buffers, page cache and reclaimable slab. */
bool meminfo_parse(const char *bytes, size_t len, int64_t *total_bytes, int64_t *used_bytes);

/* The first line of /proc/stat: ticks of all cores since boot, busy (neither idle nor waiting
 * for I/O) and together. */
bool cpu_line_parse(const char *bytes, size_t len, int64_t *busy_ticks, int64_t *all_ticks);

/* The last field of /proc/loadavg: the newest pid. */
bool loadavg_parse(const char *bytes, size_t len, int64_t *newest_pid);

/* Writes "PID/NAME" for openat(2) below /proc. */
void proc_name(char *dst, size_t cap, pid_t pid, const char *name);
/* Reads a file that is open from its start; the bytes read, or -1 with errno. */
ssize_t read_again(int fd, char *dst, size_t cap);

#endif
