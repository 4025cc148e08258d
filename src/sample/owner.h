/* Owners: who a process is, from /proc, the cgroup tree and the user database. Its uid is the
 * real one; its user is the name of who logged in (the login uid, which survives su and sudo)
 * when somebody other than root did, else the name of the real uid. The recorder asks once per
 * process life; nothing here looks at a process' environment or working
 * directory, which hold secrets. One thread at a time. */
#ifndef GUA_SAMPLE_OWNER_H
#define GUA_SAMPLE_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/process.h"

struct owners;

/* `root` "" means the real /proc and user database; else DIR/proc and DIR/etc/passwd, a
 * recorded tree. Fails when there is no such proc. */
int owners_open(struct owners **o, const char *root, struct err *e);
void owners_close(struct owners *o);

/* Fills all of `id`. False: no such process; user is "_dead" then and start_ticks 0. A process
 * that exists and that we may not look at is "_unknown", or its uid's name where only that can
 * be seen. Allocates nothing, except for a user that is not in the cache (see user.h), and
 * takes at most USER_DEADLINE_MS. */
bool owners_describe(struct owners *o, uint32_t pid, struct process_id *id);

/* The start time that the pid has now; 0: gone or not readable. Differs from that of a life:
 * the pid is somebody else's. */
uint64_t owners_start_ticks(struct owners *o, uint32_t pid);

/* The open /proc that this reads, for functions of proc/; stays ours. */
int owners_proc(const struct owners *o);

/* Names this boot; "" when the kernel does not tell. */
const char *owners_boot_id(struct owners *o);

#endif
