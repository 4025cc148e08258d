/* Locks of cards, so that two picks do not get the same one. A lock is a flock(2) on a file a
 * card in one directory for all users: it lives as long as somebody has the descriptor open,
 * and so dies with the command that inherited it, however that ends. Where cards are only
 * named, a process in the background has it open for a while. */
#ifndef GUA_CMD_PICK_LOCK_H
#define GUA_CMD_PICK_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Opens the directory of the locks: `asked`, else /run/lock/gua, which all users share, else
 * $XDG_RUNTIME_DIR/gua/pick, which is one user's. Makes it when it is missing. *shared: other
 * users see the locks. Returns a descriptor, or ERR_WORLD. */
int pick_lock_directory(const char *asked, bool *shared, struct err *e);

/* Takes the lock of a name (a card's UUID) in the directory. Returns a descriptor that keeps it
 * and is closed on exec, or ERR_BUSY when somebody else has it (with `wait`: waits), or
 * ERR_WORLD. */
int pick_lock_take(int directory, const char *name, bool wait, struct err *e);

/* Keeps the locks that were taken for so long, by a process in the background that has them
 * open, also when the caller has gone. */
int pick_lock_keep(int64_t ms, struct err *e);

#endif
