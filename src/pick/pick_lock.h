/* The lock files of gua pick, in a directory that is shared by users who do not trust each
 * other.
 *
 * Each user reserves a card with a file of their own ("UUID.UID"), because in a directory with
 * the sticky bit nobody else can remove it. A card is reserved while any file of its name is
 * locked with flock(2); the kernel releases the lock when the last process that has it open
 * ends. A file that cannot be used (a symbolic link, a FIFO, a directory, not readable) is
 * reported once and skipped, and so are the files of a user who has too many; nothing here
 * follows a link or blocks. Where no file can be created, cards are picked without a
 * reservation, with a warning: a user who fills the file system must not stop all picks. */
#ifndef GUA_PICK_PICK_LOCK_H
#define GUA_PICK_PICK_LOCK_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "pick/pick_owner.h"

enum { PICK_NAME_CAP = 192, PICK_MAX_SKIPPED = 8, PICK_MAX_USERS = 256 };

struct pick_locks {
	int directory;			/* -1: unusable, so nothing is reserved */
	bool ignore_others;		/* reservations of other users do not count */
	void (*warn)(const char *text); /* set by the caller: shows a warning to the user */
	bool turn_is_stuck;		/* it was reported that a process keeps the turn */
	bool is_open;			/* it was reported that cards are not reserved */
	/* How many files of each user were looked at in one pass over the directory. */
	struct {
		uid_t uid;
		unsigned n;
	} users[PICK_MAX_USERS];
	size_t n_users;
	/* Files that cannot be used and have been reported; when the list is full, no more
	 * are reported. */
	char skipped[PICK_MAX_SKIPPED][PICK_NAME_CAP];
	size_t n_skipped;
};

/* Reserves the card with this UUID. Returns a descriptor that keeps the reservation (or that
 * stands for one, after a warning, if it could not be made) and is closed on exec; ERR_BUSY if
 * there is a reservation already, and fills *by; or ERR_WORLD. */
int pick_lock_card(
	struct pick_locks *l, const char *uuid, struct pick_owner *by, struct err *e);

/* Waits at most `wait_ms` to be the only pick that chooses now. Returns a descriptor to
 * close afterwards; or -1, after a warning: choosing is safe all the same, but two picks
 * that each want several cards may each take what the other needs. */
int pick_lock_turn(struct pick_locks *l, int64_t wait_ms);

/* For pick_queue.c. Opens a file and locks it if nobody else has. Returns a descriptor;
 * *locked says whether it is locked now. -1: it cannot be used. */
int pick_lock_try(struct pick_locks *l, const char *name, bool *locked);
/* Creates PREFIX.UID (PREFIX.UID.RANDOM, if there is such a file) with this text, and locks it.
 * Writes its name; returns a descriptor, or ERR_WORLD. */
int pick_lock_create(struct pick_locks *l, const char *prefix, const char *text,
	char name[PICK_NAME_CAP], struct err *e);
void pick_lock_remove(struct pick_locks *l, const char *name);
/* The next file that is called PREFIX or PREFIX.ANYTHING; NULL: the end. Start with
 * pick_lock_list(); close with closedir(3). */
DIR *pick_lock_list(struct pick_locks *l);
const char *pick_lock_next(DIR *list, const char *prefix);

/* Keeps the locks for `ms`, in a background process that has them open, even after the caller
 * has ended. */
int pick_lock_keep(const int *locks, size_t n, int64_t ms, struct err *e);

#endif
