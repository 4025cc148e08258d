/* Finds which Jupyter kernel a process is, by its arguments, and which notebook it runs. */
#ifndef GUA_PROC_JUPYTER_H
#define GUA_PROC_JUPYTER_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the connection file (kernel-ID.json) in the bytes of /proc/PID/cmdline and writes
 * "jupyter:ID"; false, and "", when the process is not a kernel. */
bool jupyter_label(char *dst, size_t cap, const char *bytes, size_t len);

/* Finds in the bytes of /proc/PID/environ the path of the notebook (JPY_SESSION_NAME, set by
 * the server that started the kernel) and writes it, without the query of a URL or a
 * token (secret.h); a long path loses its beginning. It is a claim of the process. False,
 * and "", when it is not there. No other variable is read. */
bool jupyter_path(char *dst, size_t cap, const char *bytes, size_t len);

#endif
