/* Takes, lists and removes the tickets of waiting picks. */
#include "pick/pick_queue.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICKET_NAME "waiting"
enum {
	MAX_TICKETS = 64
}; /* largest number of tickets that count: the first ones of the queue */

/* When the file was created or, if the file system does not record that, when its inode last
 * changed. Its owner cannot set either to an earlier time. */
static struct pick_moment moment_of(int fd)
{
	struct statx s;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_CTIME | STATX_INO, &s) != 0)
		return (struct pick_moment){ .ns = INT64_MAX };
	struct statx_timestamp t = s.stx_mask & STATX_BTIME ? s.stx_btime : s.stx_ctime;
	return (struct pick_moment){ .ns = t.tv_sec * 1000000000 + t.tv_nsec,
		.inode = s.stx_ino };
}

static int compare_moments(const struct pick_moment *a, const struct pick_moment *b)
{
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->inode < b->inode ? -1 : a->inode > b->inode;
}

int pick_queue_join(struct pick_queue *q, struct pick_locks *l, const char *wish, struct err *e)
{
	q->fd = pick_lock_create(l, TICKET_NAME, wish, q->name, e);
	if (q->fd < 0)
		return q->fd;
	q->since = moment_of(q->fd);
	return 0;
}

void pick_queue_leave(struct pick_queue *q, struct pick_locks *l)
{
	if (q->fd < 0)
		return;
	pick_lock_remove(l, q->name);
	close(q->fd);
	q->fd = -1;
}

/* Reads a ticket. False: it is not valid. */
static bool read_ticket(struct pick_locks *l, const char *name, struct pick_ticket *t)
{
	char text[PICK_WISH_CAP];
	bool locked = false;
	int fd = pick_lock_try(l, name, &locked);
	if (fd < 0)
		return false;
	if (locked)
		pick_lock_remove(l, name);
	else
		pick_owner_find(&t->by, fd);
	ssize_t n = locked ? -1 : pread(fd, text, sizeof(text), 0);
	t->since = moment_of(fd);
	close(fd);
	return n > 0 && pick_ask_parse(text, (size_t)n, &t->ask);
}

/* Inserts a ticket into the sorted list; the last one is dropped if there are too many. */
static size_t insert(struct pick_ticket *tickets, size_t n, const struct pick_ticket *t)
{
	if (n == MAX_TICKETS && compare_moments(&t->since, &tickets[n - 1].since) > 0)
		return n;
	size_t at = n < MAX_TICKETS ? n++ : n - 1;
	for (; at > 0 && compare_moments(&t->since, &tickets[at - 1].since) < 0; at--)
		tickets[at] = tickets[at - 1];
	tickets[at] = *t;
	return n;
}

size_t pick_queue_before(
	const struct pick_queue *q, struct pick_locks *l, struct pick_ticket **tickets)
{
	size_t n = 0;
	DIR *list = pick_lock_list(l);
	*tickets = malloc((MAX_TICKETS + 1) * sizeof(**tickets));
	for (const char *name;
		list && *tickets && (name = pick_lock_next(list, TICKET_NAME));) {
		struct pick_ticket *t = &(*tickets)[MAX_TICKETS];
		if (q->fd >= 0 && strcmp(name, q->name) == 0)
			continue;
		if (read_ticket(l, name, t) &&
			(q->fd < 0 || compare_moments(&t->since, &q->since) < 0))
			n = insert(*tickets, n, t);
	}
	if (list)
		closedir(list);
	return n;
}
