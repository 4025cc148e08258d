/* The identity of a process from /proc: one life, read through one handle, as plain values.
 * Reports show the name of the login uid, or of the real uid if there is no login uid; see
 * sample/owner.h, which asks the user database. */
#ifndef GUA_PROC_IDENTITY_H
#define GUA_PROC_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/cgroup.h"
#include "proc/text.h"

struct proc_identity {
	uint64_t start_ticks;	   /* 0: cannot be read */
	int64_t uid;		   /* the real uid; -1 unknown */
	int64_t login_uid;	   /* -1: there is none */
	char command[COMMAND_CAP]; /* see command.h */
	char notebook[LABEL_CAP];  /* "jupyter:ID", or "" */
	struct cgroup_labels labels;
};

/* Fills all of `id`; -1 with errno when the process cannot be read (see proc.h). If it exists
 * but may not be read (EACCES, EPERM: hidepid), the uid is that of its directory's owner, which
 * is the effective uid: the kernel gives no other. */
int proc_identify(int proc, uint32_t pid, struct proc_identity *id);

/* The same without the files that may block (see proc.h): the command is "[comm]", and there is
 * no notebook. */
int proc_identify_brief(int proc, uint32_t pid, struct proc_identity *id);

/* Finds the path of the notebook that a kernel runs, from its environment: see jupyter_path().
 * An environment holds secrets, so call this for kernels only; nothing else of it is kept.
 * False, and "": not known, or the pid now belongs to another life than the one that started at
 * `start_ticks`. */
bool proc_read_notebook(int proc, uint32_t pid, uint64_t start_ticks, char *dst, size_t cap);

#endif
