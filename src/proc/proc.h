/* The files of one process in /proc, as bytes in and facts out. The parsers are pure; bytes may
 * be cut anywhere and may hold anything. */
#ifndef GUA_SAMPLE_PROC_H
#define GUA_SAMPLE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is used of /proc/PID/stat. */
struct proc_stat {
	const char *comm; /* into the bytes that were parsed; raw, not terminated */
	size_t comm_len;
	char state;	      /* R S D Z ... */
	uint64_t start_ticks; /* field 22: clock ticks between boot and its start */
};

/* False when the line is not whole up to field 22. */
bool proc_parse_stat(const char *bytes, size_t len, struct proc_stat *stat);

/* The effective uid in /proc/PID/status; false when there is none. */
bool proc_parse_uid(const char *bytes, size_t len, uint32_t *uid);

/* A whole decimal number, with white space behind it at most (/proc/PID/loginuid). */
bool proc_parse_number(const char *bytes, size_t len, uint64_t *number);

/* The next argument of /proc/PID/cmdline: moves *at past it; false at the end. */
bool proc_next_argument(
	const char *bytes, size_t len, size_t *at, const char **arg, size_t *arg_len);

/* The command as it is stored: basename of argv[0] and, for interpreters, the basename of the
 * script ("python3 train.py") or the module ("python3 -m torch.distributed.run"). No other
 * argument, because arguments may be passwords. Without arguments (a zombie): comm in brackets.
 * Escaped and cut to `cap`. */
void proc_command(
	char *dst, size_t cap, const char *bytes, size_t len, const struct proc_stat *stat);

/* Opens PROC/PID without following what happens to the pid later: once the process is gone,
 * reading through the handle fails, even when the pid has a new owner. -1 with errno. */
int proc_open(const char *proc, uint32_t pid);

/* When the host was booted (unix seconds, from PROC/stat), or -1. Read each time: it moves when
 * the wall clock is set. `buffer` is scratch of at least 256 bytes. */
int64_t proc_boot_time(const char *proc, char *buffer, size_t cap);

#endif
