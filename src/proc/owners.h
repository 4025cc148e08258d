/* Finds the owner of a process, from /proc, the cgroup tree and the user database. Its uid is
 * the real uid; its user is the name of the uid whose time it is, as described in owners.c. The
 * recorder asks once per process life, and again while a user has no name. The environment of a
 * process holds secrets: only the variables of proc/environment.h are used. Use it from one
 * thread at a time.
 *
 * Files of a process and the user database may block for ever, so programs ask through
 * proc/reader.h, which reads them in a process of its own. */
#pragma once

#include "model/process.h"

struct owners;

enum owners_manner {
	/* There is no user database: every user is "uid:N". Nothing blocks, except a full
	 * description of a process. */
	OWNERS_NAMELESS = 1,
	/* The user of a process in a pod is that of its uid; else it is the namespace of the
	 * pod, if that is known, and there is no owner_uid. */
	OWNERS_BY_UID = 2,
};

/* `root` "" means the real /proc and user database; else DIR/proc and DIR/etc/passwd, a
 * recorded tree. Fails when there is no such proc. */
int owners_open(struct owners **o, const char *root, unsigned manner, struct err *e);
void owners_close(struct owners *o);

/* Asks the user database again for all names, at their next use. */
void owners_ask_again(struct owners *o);

/* From now on `place` (of HELPER_PLACE_CAP bytes) always says what is being read: "pid N #M"
 * for a process, "uid N #M" for a name. M counts, so a different text means progress. */
void owners_say_where(struct owners *o, char *place);
/* Sets the place to this process: for callers that read other files of it. */
void owners_mark_process(struct owners *o, uint32_t pid);

/* Fills all of `id`. False: no such process; then user is USER_DEAD and start_ticks 0. A
 * process that exists but may not be read is "_unknown", or has its uid's name if only the uid
 * can be read. Allocates nothing, except for a user that is not in the cache (see user.h), and
 * takes at most USER_DEADLINE_MS.
 * `brief`: without the files that may block; the command is "[comm]", there is no notebook, and
 * the origin is brief. */
bool owners_describe(struct owners *o, uint32_t pid, bool brief, struct process_id *id);

/* Whether the user or the pod may get a name later: the user database is slow, or the pod is
 * too young to be in a table of names. */
bool owners_is_late(const struct owners *o, const struct process_id *id);

/* Returns the current start time of the pid; 0: gone or not readable. If it differs from that
 * of a life, the pid belongs to another process. */
uint64_t owners_start_ticks(struct owners *o, uint32_t pid);
/* When a process with this start time began, as unix milliseconds by the clock as it is set
 * now; -1: not known. */
int64_t owners_started_ms(struct owners *o, uint64_t start_ticks);

/* Returns the open /proc that this module reads, for proc/. The caller must not close it. */
int owners_proc(const struct owners *o);

/* Returns the id of this boot; "" when the kernel does not report it. */
const char *owners_boot_id(struct owners *o);
