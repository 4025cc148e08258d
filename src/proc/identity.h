/* The identity of a process from /proc: one life, read through one handle, as plain values.
 *
 * Whose time it is (owner_uid) is decided only by what the process cannot choose:
 *
 * - It is the real uid, with two exceptions, both of which need the login slice of a user in
 * the cgroup path (/user.slice/user-UID.slice), where only the system's service manager puts a
 *   process.
 * - Root and the uids of services: the login uid, if it is that of the slice. It names the
 *   person behind sudo and su. The login uid alone proves nothing: a process that has none
 *   (containers, batch jobs, services) may write any number into it.
 * - A subordinate uid, which a user's rootless container has in a user namespace: the uid of
 * the slice.
 *
 * proc/owner.h asks the user database for the name. Labels, titles, notebooks and origins are
 * claims of the process or of its manager: they are shown, and decide nothing. */
#ifndef GUA_PROC_IDENTITY_H
#define GUA_PROC_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/cgroup.h"
#include "proc/origin.h"
#include "proc/text.h"

struct proc_identity {
	uint64_t start_ticks;	   /* 0: cannot be read */
	int64_t uid;		   /* the real uid; -1 unknown */
	int64_t owner_uid;	   /* whose time it is; -1 unknown */
	int64_t posix_session;	   /* the pid of its session leader; 0 unknown */
	char command[COMMAND_CAP]; /* see command.h */
	char notebook[LABEL_CAP];  /* "jupyter:ID", or "" */
	struct cgroup_labels labels;
	struct proc_origin origin;
};

/* Whether the process has the uid of a rootless container although it is in the host's user
 * namespace: it runs in the login slice of another user, and the number is a subordinate one. A
 * setuid file that the container made can do that. Then it is the slice's user, unless a
 * person has this number. */
bool proc_may_be_subordinate(const struct proc_identity *id);

/* Fills all of `id`; -1 with errno when the process cannot be read (see proc.h). If it exists
 * but may not be read (EACCES, EPERM: hidepid), the uid is that of its directory's owner, which
 * is the effective uid: the kernel gives no other. */
int proc_identify(int proc, uint32_t pid, struct proc_identity *id);

/* The same without the files that may block (see proc.h): the command is "[comm]", there is no
 * notebook, and the origin is brief. */
int proc_identify_brief(int proc, uint32_t pid, struct proc_identity *id);

#endif
