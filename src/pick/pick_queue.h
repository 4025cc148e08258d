/* The queue of waiting picks. A waiting pick has a ticket: a locked file in the directory of
 * the locks, with its wish. An unlocked ticket belongs to a pick that has ended; any pick
 * that has the permission removes it. The order is the order in which the files were
 * created, because a user can choose the name of a file but not the time of its creation. */
#ifndef GUA_PICK_PICK_QUEUE_H
#define GUA_PICK_PICK_QUEUE_H

#include "pick/pick_lock.h"
#include "pick/pick.h"

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
int pick_queue_join(
	struct pick_queue *q, struct pick_locks *l, const char *wish, struct err *e);
void pick_queue_leave(struct pick_queue *q, struct pick_locks *l);

/* Lists the tickets before one's own, in order (all of them, if the caller has no ticket).
 * The caller frees *tickets. Returns how many; 0 also when out of memory. */
size_t pick_queue_before(
	const struct pick_queue *q, struct pick_locks *l, struct pick_ticket **tickets);

#endif
