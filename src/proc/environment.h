/* The few variables that gua may look for in the environment of a process. An environment holds
 * passwords and keys, so this table is all that is ever found in it. What a variable says is a
 * claim of the process: a label, never a reason to count its time for somebody. */
#pragma once

#include "base/piece.h"

enum variable {
	VARIABLE_TAG,		  /* GUA_TAG: what the time is for, in its user's words */
	VARIABLE_ACCOUNT,	  /* SLURM_JOB_ACCOUNT */
	VARIABLE_JOB_NAME,	  /* SLURM_JOB_NAME */
	VARIABLE_JOB_ID,	  /* SLURM_JOB_ID */
	VARIABLE_ARRAY_JOB,	  /* SLURM_ARRAY_JOB_ID */
	VARIABLE_ARRAY_TASK,	  /* SLURM_ARRAY_TASK_ID */
	VARIABLE_NOTEBOOK,	  /* JPY_SESSION_NAME: the path of a kernel's notebook */
	VARIABLE_VENV,		  /* VIRTUAL_ENV: a path */
	VARIABLE_CONDA,		  /* CONDA_DEFAULT_ENV: a name or a path */
	VARIABLE_VSCODE,	  /* VSCODE_IPC_HOOK_CLI, like the next: whether it is there */
	VARIABLE_TERMINAL_TMUX,	  /* TMUX */
	VARIABLE_TERMINAL_SCREEN, /* STY */
	VARIABLE_SSH,		  /* SSH_CONNECTION */
	VARIABLES,
};

/* The values, as parts of the bytes that were parsed; `at` is NULL when a variable is not there
 * or empty. Of a variable that is there twice, the first counts, as with getenv(3). */
struct environment {
	struct piece values[VARIABLES];
};

/* Parses the bytes of /proc/PID/environ. `cut`: there were more, and the last variable may be
 * incomplete; it is not used. */
void environment_parse(struct environment *env, const char *bytes, size_t len, bool cut);

/* Writes a value as a label: without blanks at its ends and what may be a secret (secret.h),
 * escaped, cut to `cap`. "" if there is none. */
void environment_label(char *dst, size_t cap, struct piece value);
/* The same for a path; one that does not fit loses its beginning. */
void environment_path(char *dst, size_t cap, struct piece value);
