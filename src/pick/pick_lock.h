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
#pragma once

#include "pick/pick.h"
#include "proc/user.h"

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

/* Keeps the locks for `ms`, in a background process that has them open, even after the caller
 * has ended. */
int pick_lock_keep(const int *locks, size_t n, int64_t ms, struct err *e);

/* The uid to talk to: the process's, else the file's; -1: not known. */
int64_t pick_lock_owner_uid(const struct pick_owner *o);

/* "alice (pid 123, python)", "you (pid 123, gua-hold 30s; 12 s left)". */
void pick_lock_add_owner(struct str *out, const struct pick_owner *o, struct user_names *names);

/* The queue of waiting picks. A waiting pick has a ticket: a locked file in the directory of
 * the locks, with its wish. An unlocked ticket belongs to a pick that has ended; any pick
 * that has the permission removes it. The order is the order in which the files were
 * created, because a user can choose the name of a file but not the time of its creation. */

struct pick_queue {
	int fd; /* of the ticket; -1: none. Initialise with PICK_QUEUE_NONE. */
	char name[PICK_NAME_CAP];
	struct pick_moment {
		int64_t ns;
		uint64_t inode;
	} since; /* its place in the order */
};
#define PICK_QUEUE_NONE                                                                        \
	{                                                                                      \
		.fd = -1                                                                       \
	}

/* A ticket that is before one's own in the queue. */
struct pick_ticket {
	struct pick_ask ask;
	struct pick_moment since;
	struct pick_owner by;
};

/* Takes a ticket at the end of the queue. `wish` is the text of pick_wish_add(). */
int pick_lock_join(struct pick_queue *q, struct pick_locks *l, const char *wish, struct err *e);
void pick_lock_leave(struct pick_queue *q, struct pick_locks *l);

/* Lists the tickets before one's own, in order (all of them, if the caller has no ticket).
 * The caller frees *tickets. Returns how many; 0 also when out of memory. */
size_t pick_lock_waiting(
	const struct pick_queue *q, struct pick_locks *l, struct pick_ticket **tickets);
