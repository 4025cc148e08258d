/* Short processes of one user that share a row. A loop that starts a process every second would
 * otherwise fill the disk with rows that are kept for ever. Of the processes of a user that
 * were seen for less than CROWD_SHORT_MS, the first CROWD_LIVES that end in a day (UTC) keep
 * their rows. The time of the others is added to one row of that user, day and session, the
 * crowd: no sum changes, only the detail by process is lost. After CROWD_SESSIONS sessions of a
 * user and day, the others of that user share a row. A process that holds a card for longer
 * always has its own row. */
#pragma once

#include "model/tick.h"

struct store;

enum { CROWD_LIVES = 1000, CROWD_SESSIONS = 16, CROWD_SHORT_MS = 5 * 60 * 1000 };

/* The command of a crowd. Its pid is 0, which no process has. */
#define CROWD_COMMAND "(many short processes)"
/* In SQL: whether a row of `process` is a crowd. */
#define CROWD_SQL "(pid = 0 AND command = '" CROWD_COMMAND "')"

/* Decides which row gets the time of a life in the tick of `at_ms`. `*id` is its row, 0 when it
 * has none yet. If the life belongs to the crowd, `*id` becomes the row of the crowd, and
 * crowd_merge() removes the row that the life had. False: SQLite failed. */
bool crowd_take(struct store *s, const struct process_entry *p, int64_t at_ms, int64_t *id);
/* Moves the sums of all rows that crowd_take() gave up in this tick, and removes these rows. */
bool crowd_merge(struct store *s);

/* Forgets what was read from the file, because the tick was not written. */
void crowd_forget(struct store *s);
/* The same before the connection is closed. */
void crowd_disconnect(struct store *s);
void crowd_free(struct store *s);
