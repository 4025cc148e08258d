/* Reads what /proc says about the whole host: memory, CPU time, processes, boot. `proc` is an
 * open /proc (proc_open in proc.h). */
#ifndef GUA_PROC_SYSTEM_H
#define GUA_PROC_SYSTEM_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proc/proc_parse.h"

/* Files that the tracker reads at each look: opened once, read again from their start. Opening
 * returns -1 with errno on failure; reading from -1 fails. */
int proc_open_memory(int proc);
bool proc_read_memory(int fd, struct proc_memory *memory);
int proc_open_cpu(int proc);
bool proc_read_cpu(int fd, struct proc_cpu *cpu);
int proc_open_newest(int proc);
/* The pid that the kernel gave out last, or -1. */
int64_t proc_read_newest(int fd);

/* The processes of the host: opens the list (NULL with errno), and takes the next pid from it
 * (0: the end). The caller closes it with closedir(3). */
DIR *proc_open_list(int proc);
uint32_t proc_next_listed(DIR *list);

/* When the host was booted, unix milliseconds, or -1. It changes when the wall clock is set.
 * `real`: /proc is this host's; then its clocks give a finer value than the file, which has
 * seconds. */
int64_t proc_boot_ms(int proc, bool real);

/* Writes the id of this boot, escaped; "" when it cannot be read. */
void proc_read_boot_id(int proc, char *dst, size_t cap);

#endif
