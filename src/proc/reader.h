/* Reads what may block for ever: files of other processes (see proc/proc.h) and the user
 * database. A reader does this in a process of its own, started when it is first needed. If
 * that process is stuck, it is left behind and another one is started. The process that it was
 * reading is remembered by pid and start time, and is described from then on only by what does
 * not block: its user, its cgroup, and its name as "[comm]".
 *
 * One user may start thousands of processes that block. So after one of them, the other
 * processes of the same uid are described briefly too, for ten minutes at first and longer each
 * time. After the second one in a row, those of all users are, for some seconds. At most
 * READER_STUCK_MAX processes are left behind at a time: then nothing that may block is read
 * until one of them has ended. A description that is brief for such a reason can be repeated
 * later: see reader_expect(). Use a reader from one thread at a time. */
#pragma once

#include "base/fault.h"
#include "model/process.h"
#include "proc/mappings.h"
#include "proc/owners.h"
#include "proc/proc_parse.h"

enum { READER_STUCK_MAX = 4 };

/* The name of its process, as ps shows it. */
#define READER_NAME "gua-reader"
struct reader;
/* Beside enum owners_manner: descriptions are brief, as owners_describe() gives them, and are
 * not improved later; command lines and environments are not read at all. */
enum { READER_BRIEF = 4 };
/* `root` "" means the real /proc and user database; else DIR/proc and DIR/etc/passwd, a
 * recorded tree. Fails when there is no such proc. `manner`: OWNERS_BY_UID, READER_BRIEF. */
int reader_open(struct reader **r, const char *root, unsigned manner, struct err *e);
/* Lets the reader's process end while the caller closes something else. After this, call only
 * reader_close(). */
void reader_dismiss(struct reader *r);
void reader_close(struct reader *r);
/* Starts the process now, while this program is small, instead of when it is needed. */
void reader_start(struct reader *r);
/* Fills all of `id`, as owners_describe() does. *brief: the description may become better
 * later; it is false for a process that itself blocks. */
bool reader_describe(struct reader *r, uint32_t pid, struct process_id *id, bool *brief);
/* Asks for many processes at once, and sorts `pids`. reader_describe() then returns these
 * answers, each once, until the next call. */
void reader_expect(struct reader *r, uint32_t *pids, size_t n);
/* Whether reader_expect() has an answer for this process. */
bool reader_knows(const struct reader *r, uint32_t pid);
/* Whether asking again may give more than a brief description. */
bool reader_can_improve(struct reader *r, const struct process_id *id);
/* These read one file of a process, of the life that started at id->start_ticks. -1 with errno:
 * ESRCH when that life has ended, EBUSY when the process blocks or may block; others as in
 * proc/proc.h. */
ssize_t reader_arguments(struct reader *r, const struct process_id *id, char *dst, size_t cap);
int reader_rollup(struct reader *r, const struct process_id *id, struct proc_rollup *rollup);
int reader_mappings(struct reader *r, const struct process_id *id, struct mappings *found);
int reader_io(struct reader *r, const struct process_id *id, struct proc_io *io);
/* Asks the user database again for all names, at their next use. */
void reader_ask_again(struct reader *r);
/* What is wrong now, as a sentence; false: nothing. */
bool reader_trouble(struct reader *r, char *dst, size_t cap);
/* Raises the fault while there is such trouble. */
void reader_check(struct reader *r, struct fault *f, int64_t now_ms);
/* CPU time that the reader's process has used. */
double reader_cpu_s(const struct reader *r);
/* Whether `pid` is a process of this reader. */
bool reader_owns(const struct reader *r, pid_t pid);
/* For what does not block, and is read directly: start times, the open /proc, the id of this
 * boot. */
struct owners *reader_owners(const struct reader *r);
