/* The parents of a process: their names, and which of them shows how the process was started.
 */
#ifndef GUA_PROC_ANCESTRY_H
#define GUA_PROC_ANCESTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/parse.h"
#include "proc/text.h"

struct ancestry {
	char parents[LABEL_CAP]; /* "bash > torchrun": from the session leader to the nearest.
				    "": there are none. If there are many, the outermost are
				    left out: "... > a > b" */
	char login[LOGIN_CAP];	 /* ssh, tmux, vscode, cron ... of the nearest parent that the
				    table in ancestry.c knows, whether it is inside of the
				    session or not; "": of none */
	bool editor;		 /* that one is the server of an editor */
};

/* Walks up from the process with this pid and stat. Names are those that processes gave
 * themselves. `brief`: read nothing that may block (proc.h); then servers of editors, which are
 * known by their path, are not found. A parent that ended meanwhile ends the walk. */
void ancestry_read(
	struct ancestry *a, int proc, uint32_t pid, const struct proc_stat *stat, bool brief);

#endif
