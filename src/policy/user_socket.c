/* Listens on the socket and answers requests without blocking. */
#include "policy/user_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

/* A connection that has sent no request after this time is closed. */
#define ASK_US (5 * INT64_C(1000000))
/* The place of an answered connection stays taken for this long, so that no user can keep
 * gua enforce busy by asking again and again. */
#define PAUSE_US INT64_C(200000)
/* How many connections are accepted in one turn, before other work is done. */
enum { BURST = 1024, BURST_MS = 5, SUBUID_MAX = 1 << 20 };

/* One connection. */
struct place {
	int fd;		/* -1: closed, and the place is free at `until_us` */
	bool taken;	/* false: the place is free */
	bool answered;	/* answered; waits until the other side closes it */
	uint32_t uid;	/* of the other side */
	uint32_t owner; /* the user that owns a subordinate uid; otherwise the same uid */
	int64_t since_us, until_us;
};

struct user_socket {
	int fd, directory;
	char name[NAME_MAX + 1];
	ino_t inode; /* a file of this name with another inode is not ours */
	struct place places[USER_PLACES];
	int64_t rest_us; /* until then no connection is accepted */
};

/* Removes the socket of a service that has ended: one that belongs to this user and refuses
 * connections. The lock of policy.db ensures that no other service is running. */
static void remove_stale(const struct user_socket *s)
{
	struct stat st;
	if (fstatat(s->directory, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISSOCK(st.st_mode) && st.st_uid == geteuid())
		unlinkat(s->directory, s->name, 0);
}

static int make(struct user_socket *s)
{
	struct sockaddr_un address;
	struct stat st;
	user_talk_address(&address, s->directory, s->name);
	s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		return -1;
	/* The kernel creates the file with this mode: everybody may ask about themselves. */
	mode_t mask = umask(0111);
	int rc = bind(s->fd, (struct sockaddr *)&address, sizeof(address));
	int why = errno;
	umask(mask);
	errno = why;
	if (rc == 0 && fstatat(s->directory, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		s->inode = st.st_ino;
	return rc == 0 ? listen(s->fd, SOMAXCONN) : rc;
}

int user_socket_open(struct user_socket **out, const char *path, struct err *e)
{
	const char *name = NULL;
	struct user_socket *s = calloc(1, sizeof(*s));
	if (!s)
		return err_memory(e);
	s->fd = -1;
	for (size_t i = 0; i < USER_PLACES; i++)
		s->places[i].fd = -1;
	file_make_parent(path, 0755, NULL);
	s->directory = user_talk_open_directory(path, &name);
	str_copy(s->name, sizeof(s->name), name);
	if (s->directory >= 0)
		remove_stale(s);
	if (s->directory < 0 || make(s) != 0) {
		err_set(e, ERR_WORLD, "cannot make the socket %s, on which users ask: %s", path,
			strerror(errno));
		user_socket_close(s);
		return ERR_WORLD;
	}
	*out = s;
	return 0;
}

static void leave(struct place *p)
{
	if (p->fd >= 0)
		close(p->fd);
	*p = (struct place){ .fd = -1 };
}

void user_socket_close(struct user_socket *s)
{
	struct stat st;
	if (!s)
		return;
	for (size_t i = 0; i < USER_PLACES; i++)
		leave(&s->places[i]);
	if (s->fd >= 0 && s->inode &&
		fstatat(s->directory, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		st.st_ino == s->inode)
		unlinkat(s->directory, s->name, 0);
	if (s->fd >= 0)
		close(s->fd);
	if (s->directory >= 0)
		close(s->directory);
	free(s);
}

size_t user_socket_fds(const struct user_socket *s, struct pollfd *fds)
{
	size_t n = 0;
	if (s->rest_us <= clock_monotonic_us())
		fds[n++] = (struct pollfd){ .fd = s->fd, .events = POLLIN };
	for (size_t i = 0; i < USER_PLACES; i++)
		if (s->places[i].fd >= 0)
			fds[n++] = (struct pollfd){ .fd = s->places[i].fd, .events = POLLIN };
	return n;
}

int64_t user_socket_wait_ms(const struct user_socket *s)
{
	int64_t now_us = clock_monotonic_us(), first_us = INT64_MAX;
	if (s->rest_us > now_us)
		first_us = s->rest_us;
	for (size_t i = 0; i < USER_PLACES; i++)
		if (s->places[i].fd >= 0 && !s->places[i].answered &&
			s->places[i].until_us < first_us)
			first_us = s->places[i].until_us;
	if (first_us == INT64_MAX)
		return -1;
	return first_us > now_us ? (first_us - now_us) / 1000 + 1 : 0;
}

static size_t count_of(const struct user_socket *s, uint32_t owner)
{
	size_t n = 0;
	for (size_t i = 0; i < USER_PLACES; i++)
		n += s->places[i].taken && s->places[i].owner == owner;
	return n;
}

/* When all places are taken, the user with the most of them loses the oldest. */
static struct place *take_from_greediest(struct user_socket *s, uint32_t owner)
{
	size_t most = count_of(s, owner) + 1;
	struct place *oldest = NULL;
	for (size_t i = 0; i < USER_PLACES; i++) {
		struct place *p = &s->places[i];
		size_t n = count_of(s, p->owner);
		if (n > most || (n == most && oldest && p->since_us < oldest->since_us)) {
			oldest = p;
			most = n;
		}
	}
	if (oldest)
		leave(oldest);
	return oldest;
}

static struct place *find_place(struct user_socket *s, uint32_t owner)
{
	if (count_of(s, owner) >= USER_PLACES_OF_ONE)
		return NULL;
	for (size_t i = 0; i < USER_PLACES; i++)
		if (!s->places[i].taken)
			return &s->places[i];
	return take_from_greediest(s, owner);
}

/* Maps the subordinate uids of a user to one uid. /etc/subuid is short, and is read only for
 * a uid that may be in it. */
static uint32_t owner_of(uint32_t uid)
{
	enum { FIRST_SUBUID = 65536 };
	struct file_content file = { 0 };
	if (uid < FIRST_SUBUID)
		return uid;
	if (file_read_regular("/etc/subuid", SUBUID_MAX, &file, NULL) == 0)
		uid = user_talk_owner(file.data, file.len, uid);
	free(file.data);
	return uid;
}

/* Gives a new connection a place. If its user has too many, it is closed without an answer,
 * and the client tries again. */
static void admit(struct user_socket *s, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
		close(fd);
		return;
	}
	uint32_t owner = owner_of(peer.uid);
	struct place *p = find_place(s, owner);
	if (!p) {
		close(fd);
		return;
	}
	int64_t now_us = clock_monotonic_us();
	*p = (struct place){ .fd = fd,
		.taken = true,
		.uid = peer.uid,
		.owner = owner,
		.since_us = now_us,
		.until_us = now_us + ASK_US };
}

static void accept_all(struct user_socket *s)
{
	int n = 0;
	if (s->rest_us > clock_monotonic_us())
		return;
	while (n < BURST) {
		int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && errno != ECONNABORTED)
			break;
		n++;
		if (fd >= 0)
			admit(s, fd);
	}
	/* Too many connections at once, or no descriptor is left. */
	if (n == BURST || (errno != EAGAIN && errno != EWOULDBLOCK))
		s->rest_us = clock_monotonic_us() + BURST_MS * 1000;
}

/* An answer that does not fit into the socket at once is not sent. */
static void answer_to(
	struct place *p, const struct user_request *r, user_answerer answer, void *context)
{
	struct str out = { 0 };
	struct user_answer a = { 0 };
	answer(context, r, p->uid, &a);
	user_talk_write_answer(&out, &a);
	if (out.failed || out.len > USER_ANSWER_MAX || out.len == 0 ||
		send(p->fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL) !=
			(ssize_t)out.len) {
		close(p->fd);
		p->fd = -1;
	}
	p->answered = true;
	p->until_us = clock_monotonic_us() + PAUSE_US;
	user_talk_finish_answer(&a);
	str_finish(&out);
}

static void attend(struct place *p, user_answerer answer, void *context)
{
	char bytes[USER_REQUEST_MAX + 1];
	struct user_request r;
	int64_t now_us = clock_monotonic_us();
	if (p->fd >= 0) {
		ssize_t n = recv(p->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		bool nothing = n < 0 && (errno == EAGAIN || errno == EINTR);
		if (nothing && (p->answered || now_us < p->until_us))
			return;
		/* A second request, a malformed one and the end of the connection are all
		 * treated the same. */
		if (!p->answered && n > 0 && user_talk_parse_request(&r, bytes, (size_t)n)) {
			answer_to(p, &r, answer, context);
			return;
		}
		close(p->fd);
		p->fd = -1;
		p->until_us = p->answered ? p->until_us : now_us + PAUSE_US;
	}
	if (now_us >= p->until_us)
		leave(p);
}

void user_socket_step(struct user_socket *s, user_answerer answer, void *context)
{
	/* The first turn frees places for new connections; the second reads their requests. */
	for (int turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < USER_PLACES; i++)
			if (s->places[i].taken)
				attend(&s->places[i], answer, context);
		if (turn == 0)
			accept_all(s);
	}
}
