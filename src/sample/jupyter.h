/* Which Jupyter kernel a process is, by its arguments. */
#ifndef GUA_SAMPLE_JUPYTER_H
#define GUA_SAMPLE_JUPYTER_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the connection file (kernel-ID.json) in the bytes of /proc/PID/cmdline and writes
 * "jupyter:ID"; false, and "", when it is no kernel. */
bool jupyter_label(char *dst, size_t cap, const char *bytes, size_t len);

#endif
