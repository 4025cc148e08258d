/* Who a process is, as far as /proc says: one life, read through one handle, as plain values.
 * The name that reports show is that of the login uid, or of the real uid where nobody logged
 * in; see sample/owner.h, which asks the user database. */
#ifndef GUA_PROC_IDENTITY_H
#define GUA_PROC_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/cgroup.h"
#include "proc/text.h"

struct proc_identity {
	uint64_t start_ticks;	   /* 0: cannot be read */
	int64_t uid;		   /* the real one; -1 unknown */
	int64_t login_uid;	   /* -1: nobody logged in */
	char command[COMMAND_CAP]; /* see command.h */
	char notebook[LABEL_CAP];  /* "jupyter:ID", or "" */
	struct cgroup_labels labels;
};

/* Fills all of `id`; -1 with errno when the process cannot be read (see proc.h). Where it is
 * there but may not be read (EACCES, EPERM: hidepid), the uid is that of its directory's owner,
 * the only one that the kernel gives then: the effective one. */
int proc_identify(int proc, uint32_t pid, struct proc_identity *id);

/* The path of the notebook that a kernel runs, from its environment: see jupyter_path(). Holds
 * secrets, so call it for kernels only; nothing else of it is kept. False, and "": not known,
 * or the pid is not the life that started at `start_ticks` any more. */
bool proc_read_notebook(int proc, uint32_t pid, uint64_t start_ticks, char *dst, size_t cap);

#endif
