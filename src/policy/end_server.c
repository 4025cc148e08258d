/* Checks a process, holds it, signals it. */
#include "policy/end_server.h"

#include <signal.h>
#include <sys/syscall.h>

#include "policy/builtin.h"
#include "proc/proc.h"

bool end_server_init(struct end_server *s, int proc)
{
	*s = (struct end_server){ .proc = proc, .never = { getpid(), 0 } };
	s->held = calloc(END_MOST_HELD, sizeof(*s->held));
	return s->held != NULL;
}

static void drop(struct end_held *h)
{
	if (h->pidfd >= 0)
		close(h->pidfd);
	if (h->handle >= 0)
		close(h->handle);
	h->pidfd = h->handle = -1;
}

void end_server_finish(struct end_server *s)
{
	for (size_t i = 0; i < s->n_held; i++)
		drop(&s->held[i]);
	free(s->held);
	if (s->proc >= 0)
		close(s->proc);
	*s = (struct end_server){ .proc = -1 };
}

static enum end_answer say(struct end_reply *r, enum end_answer answer, const char *text)
{
	snprintf(r->text, sizeof(r->text), "%s", text);
	return answer;
}

/* What the error of a system call means for the process that the call was about. */
static enum end_answer say_errno(struct end_reply *r, const char *what)
{
	int why = errno;
	if (why == ESRCH || why == ENOENT)
		return say(r, END_GONE, "the process has ended");
	snprintf(r->text, sizeof(r->text), "%s: %s", what, strerror(why));
	if (why == ENOSYS)
		return END_NO_PIDFD;
	return why == EMFILE || why == ENFILE || why == ENOMEM ? END_FULL : END_DENIED;
}

/* Checks start time, state and uid, through the open directory. */
static enum end_answer check_identity(const struct end_held *h, struct end_reply *r)
{
	struct proc_stat stat;
	struct proc_status status;
	if (proc_read_stat(h->handle, 0, &stat) != 0)
		return say_errno(r, "cannot read its start time");
	if (stat.start_ticks != h->start_ticks)
		return say(r, END_ANOTHER, "the pid belongs to another process now");
	if (stat.state == 'Z' || stat.state == 'X')
		return say(r, END_GONE, "the process has ended");
	if (proc_read_status(h->handle, 0, &status) != 0)
		return say_errno(r, "cannot read its uid");
	if (status.uid != h->uid || h->uid < 0)
		return say(r, END_NOT_HIS, "the process has another uid");
	return END_DONE;
}

static enum end_answer check_exemptions(
	const struct end_server *s, const struct end_held *h, struct end_reply *r)
{
	struct builtin_facts facts = { .pid = h->pid, .uid_min = builtin_uid_min() };
	for (size_t i = 0; i < 2; i++)
		if ((pid_t)h->pid == s->never[i])
			return say(r, END_EXEMPT, "it is gua itself");
	if (builtin_read(&facts, h->handle, 0) != 0)
		return say_errno(r, "cannot read its uid, program and cgroup");
	if (facts.uid < 0)
		return say(r, END_EXEMPT, "its uids cannot be read");
	const char *why = builtin_exemption(&facts);
	return why ? say(r, END_EXEMPT, why) : END_DONE;
}

static enum end_answer send(const struct end_held *h, int number, struct end_reply *r)
{
	if (syscall(SYS_pidfd_send_signal, h->pidfd, number, NULL, 0) == 0)
		return END_DONE;
	return say_errno(r, "cannot signal it");
}

/* All checks, in an order that leaves no gap: the start time is read after pidfd_open(2), while
 * the process still exists, so what is read through the directory is of the pidfd's process. */
static enum end_answer check(
	const struct end_server *s, const struct end_held *h, struct end_reply *r)
{
	enum end_answer answer = check_identity(h, r);
	if (answer == END_DONE)
		answer = check_exemptions(s, h, r);
	if (answer == END_DONE)
		answer = check_identity(h, r);
	return answer == END_DONE ? send(h, 0, r) : answer;
}

static struct end_held *find(const struct end_server *s, const struct end_request *q)
{
	for (size_t i = 0; i < s->n_held; i++)
		if (s->held[i].pid == q->pid && s->held[i].start_ticks == q->start_ticks)
			return &s->held[i];
	return NULL;
}

/* Opens the directory first, then the pidfd; check() reads the start time after both. */
static enum end_answer hold(const struct end_server *s, const struct end_request *q,
	struct end_held *h, struct end_reply *r)
{
	*h = (struct end_held){ .pid = q->pid,
		.start_ticks = q->start_ticks,
		.uid = q->uid,
		.pidfd = -1,
		.handle = proc_open_process(s->proc, q->pid) };
	enum end_answer answer =
		h->handle < 0 ? say_errno(r, "cannot open the process") : END_DONE;
	if (answer == END_DONE) {
		h->pidfd = (int)syscall(SYS_pidfd_open, q->pid, 0);
		if (h->pidfd < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL))
			answer = say(r, END_NO_PIDFD,
				"the kernel lacks pidfd_open(2), which is required");
		else if (h->pidfd < 0)
			answer = say_errno(r, "cannot hold it");
	}
	if (answer == END_DONE)
		answer = check(s, h, r);
	if (answer != END_DONE)
		drop(h);
	return answer;
}

/* Checks a process that is held, and signals it if that was asked for. */
static enum end_answer serve(
	const struct end_server *s, const struct end_held *h, uint32_t ask, struct end_reply *r)
{
	static const int signals[] = { [END_ASK_TERM] = SIGTERM, [END_ASK_KILL] = SIGKILL };
	enum end_answer answer = check(s, h, r);
	return answer == END_DONE && (ask == END_ASK_TERM || ask == END_ASK_KILL)
		       ? send(h, signals[ask], r)
		       : answer;
}

/* Answers a request about a process that is not held yet. */
static enum end_answer serve_new(
	struct end_server *s, const struct end_request *q, struct end_reply *r)
{
	struct end_held h;
	enum end_answer answer = hold(s, q, &h, r);
	if (answer != END_DONE)
		return answer;
	size_t n = 0;
	for (size_t i = 0; i < s->n_held; i++)
		n += s->held[i].uid == q->uid;
	if (s->n_held < END_MOST_HELD && n < END_MOST_OF_UID) {
		s->held[s->n_held++] = h;
		return serve(s, &h, q->ask, r);
	}
	answer = q->ask == END_ASK_HOLD ? say(r, END_FULL, "too many processes are held")
					: serve(s, &h, q->ask, r);
	drop(&h);
	return answer;
}

static enum end_answer answer_to(
	struct end_server *s, const struct end_request *q, struct end_reply *r)
{
	struct end_held *h = find(s, q);
	if (q->ask == END_ASK_RELEASE) {
		if (h) {
			drop(h);
			*h = s->held[--s->n_held];
		}
		return END_DONE;
	}
	if (q->ask < END_ASK_HOLD || q->ask > END_ASK_KILL || q->pid <= 1 ||
		q->pid > INT32_MAX || q->start_ticks == 0)
		return say(r, END_REFUSED, "the request is malformed");
	if (!h)
		return serve_new(s, q, r);
	if (h->uid != q->uid)
		return say(r, END_NOT_HIS, "the process is held for another uid");
	if (h->pidfd < 0)
		return say(r, END_GONE, "the process has ended");
	return serve(s, h, q->ask, r);
}

void end_server_answer(
	struct end_server *s, const void *bytes, size_t len, struct end_reply *reply)
{
	struct end_request q = { 0 };
	bool whole = len == sizeof(q);
	if (whole)
		memcpy(&q, bytes, sizeof(q));
	*reply = (struct end_reply){ .magic = END_WIRE_MAGIC,
		.ask = q.ask,
		.pid = q.pid,
		.start_ticks = q.start_ticks };
	reply->answer = whole && q.magic == END_WIRE_MAGIC
				? answer_to(s, &q, reply)
				: say(reply, END_REFUSED, "the request is malformed");
}

size_t end_server_watch(const struct end_server *s, struct pollfd *fds)
{
	for (size_t i = 0; i < s->n_held; i++)
		fds[i] = (struct pollfd){ .fd = s->held[i].pidfd, .events = POLLIN };
	return s->n_held;
}

bool end_server_ended(
	struct end_server *s, const struct pollfd *fds, size_t n, struct end_reply *reply)
{
	for (size_t i = 0; i < n && i < s->n_held; i++) {
		struct end_held *h = &s->held[i];
		if (h->pidfd < 0 || h->pidfd != fds[i].fd || !(fds[i].revents & POLLIN))
			continue;
		*reply = (struct end_reply){ .magic = END_WIRE_MAGIC,
			.pid = h->pid,
			.answer = END_GONE,
			.start_ticks = h->start_ticks };
		say(reply, END_GONE, "the process has ended");
		drop(h); /* its entry stays until it is released */
		return true;
	}
	return false;
}
