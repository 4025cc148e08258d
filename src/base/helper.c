/* Starts helpers, and passes frames between a helper and its owner through a socket. */
#include "base/helper.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* A frame with a larger length is a fault. */
#define FRAME_MOST (256U << 20)
/* How long to wait for a killed process. A process that can be ended has ended by then;
 * otherwise helper_is_gone() finds out later. */
#define KILLED_MS 200

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* What a frame holds: a request or reply, or a line for the log with its level. */
enum frame_kind { FRAME_BYTES, FRAME_LOG };

struct frame {
	uint32_t kind;
	uint32_t level; /* of FRAME_LOG: an enum log_level */
	uint64_t len;	/* bytes that follow */
};

/* What one side has received: zero-initialise. */
struct inbox {
	char *bytes; /* there is room for one more */
	size_t n, cap;
	size_t used;	  /* of them: the frame that was used last */
	char after;	  /* the byte after it, in whose place is a NUL */
	struct str frame; /* points into `bytes` */
};

struct helper {
	char name[16];
	pid_t pid;
	int pidfd; /* or -1: the kernel has none */
	int fd;
	struct helper_place *place; /* shared with the helper */
	bool waiting;		    /* a request has no reply yet */
	bool ended;		    /* it has ended by itself */
	struct inbox in;
};

static int64_t monotonic_ms(void)
{
	return clock_monotonic_us() / 1000;
}

/* Sends a frame; `flags` are those of send(2). False with errno: not sent, or only in part. */
static bool send_frame(int fd, const struct frame *head, const char *bytes, int flags)
{
	struct iovec parts[] = { { .iov_base = (void *)(uintptr_t)head,
					 .iov_len = sizeof(*head) },
		{ .iov_base = (void *)(uintptr_t)bytes, .iov_len = head->len } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = head->len ? 2 : 1 };
	while (message.msg_iovlen) {
		ssize_t n = sendmsg(fd, &message, flags | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		size_t sent = (size_t)n;
		while (message.msg_iovlen && sent >= message.msg_iov->iov_len) {
			sent -= message.msg_iov->iov_len;
			message.msg_iov++;
			message.msg_iovlen--;
		}
		if (message.msg_iovlen) {
			message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + sent;
			message.msg_iov->iov_len -= sent;
		}
	}
	return true;
}

/* Uses the first frame received: logs a line, and keeps a request or reply in in->frame. 1: it
 * was one; 0: no whole frame has come; -1: the bytes are not a frame. `*need` is how many bytes
 * the first frame has. */
static int use_frame(struct inbox *in, size_t *need)
{
	struct frame head;
	for (;;) {
		if (in->used) {
			in->bytes[in->used] = in->after;
			in->n -= in->used;
			memmove(in->bytes, in->bytes + in->used, in->n);
			in->used = 0;
		}
		*need = sizeof(head);
		if (in->n < sizeof(head))
			return 0;
		memcpy(&head, in->bytes, sizeof(head));
		if (head.len > FRAME_MOST)
			return -1;
		*need = sizeof(head) + head.len;
		if (in->n < *need)
			return 0;
		in->used = *need;
		in->after = in->bytes[in->used];
		in->bytes[in->used] = '\0';
		in->frame = (struct str){ .data = in->bytes + sizeof(head), .len = head.len };
		if (head.kind == FRAME_BYTES)
			return 1;
		log_at(head.level, "%s", in->frame.data);
	}
}

/* Reads the bytes that have come; `flags` are those of recv(2). 1: some; 0: none; -1: the other
 * side has ended. */
static int read_more(struct inbox *in, int fd, size_t need, int flags)
{
	size_t room = need > in->n + 4096 ? need : in->n + 4096;
	if (!array_reserve(&in->bytes, &in->cap, room + 1)) /* and a NUL after the frame */
		return -1;
	ssize_t n = recv(fd, in->bytes + in->n, in->cap - 1 - in->n, flags);
	if (n > 0)
		in->n += (size_t)n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n > 0 ? 1 : -1;
}

/* From here on: what runs in the helper. */

static void relay_line(void *context, enum log_level level, const char *text)
{
	const struct frame head = { FRAME_LOG, (uint32_t)level, strlen(text) };
	send_frame(*(int *)context, &head, text, 0);
}

/* Waits for the next request; false: the owner has ended, or wants the helper to end. */
static bool next_request(struct inbox *in, int fd)
{
	size_t need;
	int found;
	while ((found = use_frame(in, &need)) == 0)
		if (read_more(in, fd, need, 0) < 0)
			return false;
	return found > 0;
}

/* Closes all files that the owner has open, except for the socket and `wake_fd`. */
static void close_files(int fd, int wake_fd)
{
	int null = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3; i++)
		if (null < 0 || dup2(null, i) < 0)
			close(i);
	/* First move both away from the two numbers. */
	fd = fcntl(fd, F_DUPFD, HELPER_WAKE_FD + 1);
	if (wake_fd > 0)
		wake_fd = fcntl(wake_fd, F_DUPFD, HELPER_WAKE_FD + 1);
	if (dup2(fd, HELPER_FD) < 0)
		_exit(1);
	if (wake_fd <= 0 || dup2(wake_fd, HELPER_WAKE_FD) < 0)
		close(HELPER_WAKE_FD);
	if (syscall(SYS_close_range, HELPER_WAKE_FD + 1U, ~0U, 0U) == 0)
		return;
	for (long i = HELPER_WAKE_FD + 1, most = sysconf(_SC_OPEN_MAX); i < most; i++)
		close((int)i);
}

/* A session of its own has no terminal, so no signals come from it. */
static _Noreturn void run_helper(
	const struct helper_work *work, int fd, struct helper_place *place, pid_t owner)
{
	struct inbox in = { 0 };
	struct str reply = { 0 };
	int kept = HELPER_FD;
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP,
		SIGUSR1, SIGUSR2, SIGALRM };
	static const int usual[] = { SIGCHLD, SIGCONT, SIGWINCH };
	sigset_t none;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		signal(usual[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != owner)
		_exit(1);
	setsid();
	close_files(fd, work->wake_fd);
	log_divert(relay_line, &kept);
	if (work->begin)
		work->begin(work->context, place);
	while (next_request(&in, kept)) {
		str_clear(&reply);
		work->serve(work->context, &in.frame, &reply);
		const struct frame head = { FRAME_BYTES, 0, reply.len };
		if (reply.failed || !send_frame(kept, &head, str_text(&reply), 0))
			break;
	}
	if (work->end)
		work->end(work->context);
	_exit(0);
}

/* From here on: what runs in the owner. */

static int start(struct helper *h, const struct helper_work *work, struct err *e)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set(e, ERR_WORLD, "cannot make a socket: %s", strerror(errno));
	pid_t owner = getpid();
	char name[sizeof(h->name)] = "";
	/* A process begins with the name of the thread that forked it. This thread takes the
	 * helper's name for that moment, so that the helper never shows another one. */
	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, h->name);
	h->pid = fork();
	if (h->pid == 0)
		run_helper(work, ends[1], h->place, owner);
	int why = errno;
	prctl(PR_SET_NAME, name);
	if (h->pid > 0)
		h->pidfd = (int)syscall(SYS_pidfd_open, h->pid, 0);
	close(ends[1]);
	h->fd = ends[0];
	if (h->pid < 0)
		return err_set(e, ERR_WORLD, "cannot start a process: %s", strerror(why));
	return 0;
}

int helper_new(struct helper **out, const struct helper_work *work, struct err *e)
{
	struct helper *h = calloc(1, sizeof(*h));
	if (!h)
		return err_memory(e);
	h->fd = h->pidfd = -1;
	h->pid = -1;
	str_copy(h->name, sizeof(h->name), work->name);
	h->place = mmap(NULL, sizeof(*h->place), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (h->place == MAP_FAILED)
		h->place = NULL;
	int rc = h->place ? start(h, work, e) : err_memory(e);
	if (rc) {
		helper_free(h, 0);
		return rc;
	}
	*out = h;
	return 0;
}

/* Whether the process has ended and has been waited for. A program that waits for all its
 * children may have waited for it already. */
static bool has_gone(const struct helper *h, siginfo_t *info)
{
	bool named = h->pidfd >= 0;
	info->si_pid = 0;
	int rc = waitid(named ? (idtype_t)P_PIDFD : P_PID, (id_t)(named ? h->pidfd : h->pid),
		info, WEXITED | WNOHANG);
	return rc == 0 ? info->si_pid != 0 : errno == ECHILD;
}

/* Waits for the end of the process; true: it has ended and has been waited for. */
static bool reap(const struct helper *h, int64_t wait_ms, siginfo_t *info)
{
	int64_t until_ms = monotonic_ms() + wait_ms;
	while (!has_gone(h, info)) {
		int64_t left_ms = until_ms - monotonic_ms();
		if (left_ms <= 0)
			return false;
		struct pollfd exit = { .fd = h->pidfd, .events = POLLIN };
		/* Without a pidfd, look again soon. */
		poll(&exit, 1, h->pidfd >= 0 ? (int)left_ms : 5);
	}
	return true;
}

/* Fills `e` with how the helper ended. Its socket is closed a moment before it ends. */
static int has_ended(struct helper *h, struct err *e)
{
	siginfo_t info;
	h->ended = true;
	if (h->pid > 0 && reap(h, KILLED_MS, &info)) {
		h->pid = -1;
		if (info.si_pid && info.si_code != CLD_EXITED)
			return err_set(e, ERR_WORLD, "the process %s was ended by signal %d",
				h->name, info.si_status);
	}
	return err_set(e, ERR_WORLD, "the process %s has ended unexpectedly", h->name);
}

int helper_send(struct helper *h, const void *request, size_t len, struct err *e)
{
	const struct frame head = { FRAME_BYTES, 0, len };
	if (h->ended)
		return has_ended(h, e);
	if (h->waiting)
		return err_set(e, ERR_BUSY, "the process %s does not answer", h->name);
	if (!send_frame(h->fd, &head, request, 0))
		return has_ended(h, e);
	h->waiting = true;
	return 0;
}

int helper_receive(struct helper *h, int64_t wait_ms, const struct str **reply, struct err *e)
{
	int64_t until_ms = monotonic_ms() + wait_ms;
	for (;;) {
		size_t need;
		int found = use_frame(&h->in, &need);
		int more = found == 0 ? read_more(&h->in, h->fd, need, MSG_DONTWAIT) : 0;
		if (found < 0 || more < 0)
			return has_ended(h, e);
		if (found > 0) {
			h->waiting = false;
			*reply = &h->in.frame;
			return 0;
		}
		int64_t left_ms = until_ms - monotonic_ms();
		if (more == 0 && left_ms <= 0)
			return err_set(e, ERR_BUSY, "the process %s does not answer", h->name);
		struct pollfd ready = { .fd = h->fd, .events = POLLIN };
		if (more == 0)
			poll(&ready, 1, (int)(left_ms < 3600000 ? left_ms : 3600000));
	}
}

int helper_fd(const struct helper *h)
{
	return h->fd;
}

pid_t helper_pid(const struct helper *h)
{
	return h->pid;
}

void helper_where(const struct helper *h, char *dst, size_t cap)
{
	char copy[HELPER_PLACE_CAP];
	memcpy(copy, h->place->text, sizeof(copy));
	str_escape(dst, cap, copy, strnlen(copy, sizeof(copy)));
}

/* True: the process has ended. */
static bool end_process(const struct helper *h, int64_t wait_ms)
{
	siginfo_t info;
	if (reap(h, wait_ms, &info))
		return true;
	if (h->pidfd < 0 || syscall(SYS_pidfd_send_signal, h->pidfd, SIGKILL, NULL, 0) != 0)
		kill(h->pid, SIGKILL);
	return reap(h, KILLED_MS, &info);
}

void helper_dismiss(struct helper *h)
{
	if (h->fd >= 0)
		shutdown(h->fd, SHUT_WR);
}

int helper_free(struct helper *h, int64_t wait_ms)
{
	if (!h)
		return -1;
	helper_dismiss(h);
	int left = h->pid > 0 && !end_process(h, wait_ms) ? h->pidfd : -1;
	if (h->pidfd >= 0 && left < 0)
		close(h->pidfd);
	file_close(h->fd);
	if (h->place)
		munmap(h->place, sizeof(*h->place));
	free(h->in.bytes);
	free(h);
	return left;
}

bool helper_is_gone(int pidfd)
{
	siginfo_t info;
	struct pollfd exit = { .fd = pidfd, .events = POLLIN };
	if (poll(&exit, 1, 0) <= 0)
		return false;
	waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG);
	close(pidfd);
	return true;
}
