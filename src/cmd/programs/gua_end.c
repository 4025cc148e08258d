/* gua-end: the only program of gua that signals processes of other users. It needs CAP_KILL and
 * gives up all other privileges. gua-enforce talks to it over its standard input, a socket;
 * policy/end_server.h describes what it checks. */
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "policy/end_server.h"
#include "proc/proc.h"

/* The uid and gid that it takes if root starts it. */
#define NOBODY 65534

static int fail(const char *text)
{
	fprintf(stderr, "gua-end: %s\n", text);
	return 1;
}

/* Keeps CAP_KILL, if the program has it, and no other privilege. Without it, processes of the
 * same user can be signalled, which is enough for a user who tries gua enforce. */
static bool drop_privileges(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2] = { 0 };
	const unsigned bit = 1U << CAP_KILL;
	for (int cap = 0; cap < 64; cap++)
		if (cap != CAP_KILL)
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (geteuid() == 0 && (prctl(PR_SET_KEEPCAPS, 1) != 0 || setgroups(0, NULL) != 0 ||
				      setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
				      setresuid(NOBODY, NOBODY, NOBODY) != 0))
		return false;
	if (syscall(SYS_capget, &head, sets) != 0)
		return false;
	unsigned kept = sets[0].permitted & bit;
	memset(sets, 0, sizeof(sets));
	sets[0].permitted = sets[0].effective = kept;
	return syscall(SYS_capset, &head, sets) == 0 &&
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static bool reply_with(int fd, const struct end_reply *reply)
{
	ssize_t n;
	do
		n = send(fd, reply, sizeof(*reply), MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*reply);
}

/* Answers requests until the connection is closed. */
static void serve(struct end_server *s, int fd)
{
	static struct pollfd fds[END_MOST_HELD + 1];
	/* Larger, so that a request that is too long is noticed. */
	struct end_request request[2];
	struct end_reply reply;
	for (;;) {
		size_t n = end_server_watch(s, fds + 1);
		fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
		if (poll(fds, (nfds_t)n + 1, -1) < 0 && errno != EINTR)
			return;
		if (end_server_ended(s, fds + 1, n, &reply) && !reply_with(fd, &reply))
			return;
		if (!fds[0].revents)
			continue;
		ssize_t len = recv(fd, request, sizeof(request), 0);
		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0)
			return;
		end_server_answer(s, request, (size_t)len, &reply);
		if (!reply_with(fd, &reply))
			return;
	}
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	struct end_server server;
	struct ucred peer = { 0 };
	int proc = -1, type = 0;
	socklen_t type_len = sizeof(type), peer_len = sizeof(peer);
	(void)argv;
	/* A socket that keeps record boundaries, as gua-enforce and systemd make it. */
	bool wire = getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 &&
		    type == SOCK_SEQPACKET;
	if (argc > 1 || !wire) {
		fputs("usage: gua-end\n\ngua enforce starts this program, which ends sessions "
		      "for it. It reads requests\nfrom a socket and is of no use in a shell; "
		      "see man gua-enforce.\n",
			stderr);
		return 2;
	}
	file_allow_many(); /* two descriptors for each process that is held */
	if (!drop_privileges())
		return fail("cannot give up privileges; it does nothing with them");
	if (proc_open(&proc, "", &e) != 0)
		return fail(e.text);
	if (!end_server_init(&server, proc))
		return fail(ERR_MEMORY_TEXT);
	/* The process on the other side must not be ended either. */
	bool known = getsockopt(STDIN_FILENO, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) == 0;
	server.never[1] = known ? peer.pid : 0;
	serve(&server, STDIN_FILENO);
	end_server_finish(&server);
	return 0;
}
