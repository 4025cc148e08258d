/* Makes the text of a command line that is shown and stored, and finds Jupyter kernels. */
#pragma once

#include "base/base.h"
#include "proc/proc_parse.h"

/* The command as it is stored: basename of argv[0] and, for interpreters, the basename of the
 * script ("python3 train.py") or the module ("python3 -m torch.distributed.run"), if it looks
 * like the name of a file (secret.h). No other argument is kept: arguments may be passwords,
 * and those of interpreters may be code. `bytes` are those of /proc/PID/cmdline. Without
 * arguments (a zombie) it is comm in brackets. Escaped and cut to `cap`. */
void command_text(
	char *dst, size_t cap, const char *bytes, size_t len, const struct proc_stat *stat);

/* The name of the process: the first word of comm, without what may be a secret. Escaped and
 * cut to `cap`. A process chooses its comm, and some put a whole title there. */
void command_name(char *dst, size_t cap, const struct proc_stat *stat);

/* Finds the connection file (kernel-ID.json) of a Jupyter kernel in the bytes of
 * /proc/PID/cmdline and writes "jupyter:ID"; false, and "", when the process is not a kernel.
 */
bool command_kernel(char *dst, size_t cap, const char *bytes, size_t len);
