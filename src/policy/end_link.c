/* Starts or connects to gua-end, sends requests to it and reads the replies. */
#include "policy/end_link.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { REPLY_MS = 5000, GONE_MS = 500, MOST_WAITING = 64 };

struct end_link {
	const char *program, *socket;
	int fd;	   /* -1: not connected */
	pid_t pid; /* of the child; 0: none */
	/* Processes that gua-end reported as ended while we waited for a reply. */
	struct proc_life ended[MOST_WAITING];
	size_t n_ended;
};

int end_link_new(struct end_link **out, const char *program, const char *socket, struct err *e)
{
	struct end_link *l = calloc(1, sizeof(*l));
	if (!l)
		return err_memory(e);
	*l = (struct end_link){ .program = program, .socket = socket, .fd = -1 };
	*out = l;
	return 0;
}

/* Whether the child has ended; waits at most GONE_MS. */
static bool is_gone(pid_t pid)
{
	int64_t until_us = clock_monotonic_us() + GONE_MS * 1000;
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (clock_monotonic_us() >= until_us)
			return false;
		poll(NULL, 0, 5);
	}
	return true;
}

/* gua-end ends when its socket is closed. If it hangs it is killed, and if even that does not
 * help we stop waiting. That is safe: nobody else can have the pid of our own child. */
static void disconnect(struct end_link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	if (l->pid > 0 && !is_gone(l->pid)) {
		kill(l->pid, SIGKILL);
		is_gone(l->pid);
	}
	l->pid = 0;
}

void end_link_free(struct end_link *l)
{
	if (l)
		disconnect(l);
	free(l);
}

static int start(struct end_link *l, struct err *e)
{
	int ends[2];
	char name[] = "gua-end", *argv[] = { name, NULL }, *none[] = { NULL };
	posix_spawn_file_actions_t files;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set(e, ERR_WORLD, "cannot make a socket: %s", strerror(errno));
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
	int why = posix_spawn(&l->pid, l->program, &files, NULL, argv, none);
	posix_spawn_file_actions_destroy(&files);
	close(ends[1]);
	l->fd = ends[0];
	if (why == 0)
		return 0;
	l->pid = 0;
	disconnect(l);
	return err_set(e, ERR_WORLD, "cannot run %s: %s", l->program, strerror(why));
}

static int connect_to(struct end_link *l, struct err *e)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	if (strlen(l->socket) >= sizeof(address.sun_path))
		return err_set(
			e, ERR_USAGE, "the path of the socket %s is too long", l->socket);
	memcpy(address.sun_path, l->socket, strlen(l->socket));
	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (l->fd >= 0 && connect(l->fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return 0;
	int why = errno;
	disconnect(l);
	return err_set(e, ERR_WORLD,
		"cannot reach gua-end at %s: %s; systemctl enable --now gua-end.socket",
		l->socket, strerror(why));
}

/* Receives one record, waiting at most `wait_ms`; ERR_BUSY: there is none. */
static int receive(struct end_link *l, int64_t wait_ms, struct end_reply *reply, struct err *e)
{
	struct pollfd ready = { .fd = l->fd, .events = POLLIN };
	int n = poll(&ready, 1, (int)wait_ms);
	if (n == 0 || (n < 0 && errno == EINTR))
		return ERR_BUSY;
	ssize_t len = recv(l->fd, reply, sizeof(*reply), MSG_DONTWAIT);
	if (len != (ssize_t)sizeof(*reply) || reply->magic != END_WIRE_MAGIC) {
		disconnect(l);
		return err_set(e, ERR_WORLD, "gua-end has ended unexpectedly");
	}
	reply->text[sizeof(reply->text) - 1] = '\0';
	return 0;
}

static void note_end(struct end_link *l, const struct end_reply *reply)
{
	if (l->n_ended < MOST_WAITING)
		l->ended[l->n_ended++] = (struct proc_life){ .pid = reply->pid,
			.start_ticks = reply->start_ticks };
}

int end_link_ask(struct end_link *l, enum end_ask ask, const struct proc_life *p,
	struct end_reply *reply, struct err *e)
{
	const struct end_request request = { .magic = END_WIRE_MAGIC,
		.ask = ask,
		.pid = p->pid,
		.start_ticks = p->start_ticks,
		.uid = p->uid };
	int64_t until_us = clock_monotonic_us() + REPLY_MS * 1000;
	int rc = l->fd >= 0 ? 0 : l->socket ? connect_to(l, e) : start(l, e);
	if (rc)
		return rc;
	if (send(l->fd, &request, sizeof(request), MSG_NOSIGNAL) != (ssize_t)sizeof(request)) {
		disconnect(l);
		return err_set(e, ERR_WORLD, "gua-end has ended unexpectedly");
	}
	for (;;) {
		int64_t left_ms = (until_us - clock_monotonic_us()) / 1000;
		if (left_ms <= 0) {
			disconnect(l); /* a late reply must not be taken for the reply to a
					  later request */
			return err_set(e, ERR_WORLD, "gua-end does not answer");
		}
		rc = receive(l, left_ms, reply, e);
		if (rc == ERR_WORLD || (rc == 0 && reply->ask == (uint32_t)ask))
			return rc;
		if (rc == 0 && reply->ask == 0)
			note_end(l, reply);
	}
}

bool end_link_ended(struct end_link *l, struct proc_life *p)
{
	struct end_reply reply;
	struct err e = { 0 };
	while (l->fd >= 0 && receive(l, 0, &reply, &e) == 0)
		if (reply.ask == 0)
			note_end(l, &reply);
	if (!l->n_ended)
		return false;
	*p = l->ended[--l->n_ended];
	return true;
}

int end_link_fd(const struct end_link *l)
{
	return l->fd;
}
