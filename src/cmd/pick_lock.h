/* Locks of cards, so that two picks do not get the same card. A lock is a flock(2) on one file
 * for each card, in a directory for all users. It lasts as long as a process has the descriptor
 * open, so it ends with the command that inherited it. If the cards are only printed, a
 * background process keeps it open for some time. */
#ifndef GUA_CMD_PICK_LOCK_H
#define GUA_CMD_PICK_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Opens the directory of the locks: `asked`, else /run/lock/gua for all users, else
 * $XDG_RUNTIME_DIR/gua/pick for one user. Creates it if it is missing. *shared: other users see
 * the locks. Returns a descriptor, or ERR_WORLD. */
int pick_lock_directory(const char *asked, bool *shared, struct err *e);

/* Takes the lock of a name (a card's UUID) in the directory. Returns a descriptor that keeps
 * the lock and is closed on exec; ERR_BUSY if another process has it (with `wait`: waits for
 * it); or ERR_WORLD. */
int pick_lock_take(int directory, const char *name, bool wait, struct err *e);

/* Keeps the taken locks for `ms`, in a background process that has them open, even after the
 * caller has ended. */
int pick_lock_keep(int64_t ms, struct err *e);

#endif
