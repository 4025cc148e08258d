/* Finds which Jupyter kernel a process is, by its arguments. */
#ifndef GUA_PROC_JUPYTER_H
#define GUA_PROC_JUPYTER_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the connection file (kernel-ID.json) in the bytes of /proc/PID/cmdline and writes
 * "jupyter:ID"; false, and "", when the process is not a kernel. */
bool jupyter_label(char *dst, size_t cap, const char *bytes, size_t len);

#endif
