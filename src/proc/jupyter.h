/* Which Jupyter kernel a process is, by its arguments, and which notebook it runs. */
#ifndef GUA_PROC_JUPYTER_H
#define GUA_PROC_JUPYTER_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the connection file (kernel-ID.json) in the bytes of /proc/PID/cmdline and writes
 * "jupyter:ID"; false, and "", when it is no kernel. */
bool jupyter_label(char *dst, size_t cap, const char *bytes, size_t len);

/* Finds in the bytes of /proc/PID/environ the path of the notebook, as the server that started
 * the kernel calls it (JPY_SESSION_NAME), and writes it, without its beginning when it is long;
 * false, and "", when it is not there. Nothing else is looked at. */
bool jupyter_path(char *dst, size_t cap, const char *bytes, size_t len);

#endif
