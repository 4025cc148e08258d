/* Starts a program, writes its input, reads its output, and kills it after the deadline. */
#include "base/child.h"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* How long to wait for a killed program to end. */
#define KILLED_MS 200
/* The exit status of a child that could not become the program. */
#define NOT_STARTED 127

static const char *const usual_env[] = {
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
	NULL
};

/* The three pipes of a child: what it reads, what it writes, and why it did not start. */
struct pipes {
	int input[2], output[2], failure[2];
};

static void close_end(int pair[2], int end)
{
	file_close(pair[end]);
	pair[end] = -1;
}

static void close_pipes(struct pipes *p)
{
	for (int end = 0; end < 2; end++) {
		close_end(p->input, end);
		close_end(p->output, end);
		close_end(p->failure, end);
	}
}

/* Moves a descriptor above 2: the program's standard streams get the numbers 0 to 2. */
static int out_of_the_way(int fd)
{
	return fd > 2 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static bool become_user(const struct child_command *c)
{
	if (!c->change_user || geteuid() != 0)
		return true;
	return setgroups(1, &c->gid) == 0 && setresgid(c->gid, c->gid, c->gid) == 0 &&
	       setresuid(c->uid, c->uid, c->uid) == 0;
}

/* Limits the size of the file that the program writes. SIGXFSZ is ignored, so a write beyond
 * the limit fails and does not end the program. */
static bool limit_output(const struct child_command *c)
{
	const struct rlimit most = { (rlim_t)c->output_max, (rlim_t)c->output_max };
	if (c->output_fd <= 0)
		return true;
	signal(SIGXFSZ, SIG_IGN);
	return setrlimit(RLIMIT_FSIZE, &most) == 0;
}

/* Runs in the child. The program keeps no other file of its parent open, has a session of its
 * own, and is killed when its parent ends. */
static _Noreturn void become_program(const struct child_command *c, struct pipes *p)
{
	int in = out_of_the_way(c->input ? p->input[0] : open("/dev/null", O_RDONLY));
	int errors = out_of_the_way(p->output[1]), failure = out_of_the_way(p->failure[1]);
	int out = c->output_fd > 0 ? c->output_fd : errors;
	sigset_t none;
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(errors, 2) == 2 &&
		dup2(failure, 3) == 3 && fcntl(3, F_SETFD, FD_CLOEXEC) == 0 &&
		limit_output(c) && become_user(c)) {
		syscall(SYS_close_range, 4U, ~0U, 0U);
		execvpe(c->argv[0], (char *const *)(uintptr_t)c->argv,
			(char *const *)(uintptr_t)(c->env ? c->env : usual_env));
	}
	int why = errno;
	if (write(3, &why, sizeof(why)) < 0)
		_exit(NOT_STARTED - 1);
	_exit(NOT_STARTED);
}

/* Writes as much input as the pipe takes. Closes the pipe at the end of the input, and when
 * nobody reads it. */
static void feed(const struct child_command *c, struct pipes *p, size_t *fed)
{
	ssize_t n = write(p->input[1], c->input + *fed, c->input_len - *fed);
	if (n > 0)
		*fed += (size_t)n;
	if ((n < 0 && errno != EAGAIN && errno != EINTR) || *fed == c->input_len)
		close_end(p->input, 1);
}

/* Reads the output that is available, and keeps the beginning. */
static void listen_to(struct pipes *p, char *kept, size_t *n_kept)
{
	char block[4096];
	ssize_t n = read(p->output[0], block, sizeof(block));
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_end(p->output, 0);
	for (ssize_t i = 0; i < n && *n_kept < CHILD_OUTPUT_CAP - 1; i++)
		kept[(*n_kept)++] = block[i];
}

/* True: the program has ended, and `r` says how. */
static bool reap(pid_t pid, struct child_result *r)
{
	int status;
	pid_t got = waitpid(pid, &status, WNOHANG);
	if (got == 0 || (got < 0 && errno == EINTR))
		return false;
	r->status = got > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	r->signal = got > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	return true;
}

static void attend(
	pid_t pid, const struct child_command *c, struct pipes *p, struct child_result *r)
{
	int64_t until_us = clock_monotonic_us() + c->timeout_ms * 1000;
	char kept[CHILD_OUTPUT_CAP];
	size_t fed = 0, n_kept = 0;
	bool ended = false;
	while (!ended &&
		(!r->timed_out || clock_monotonic_us() < until_us + KILLED_MS * 1000)) {
		struct pollfd ready[] = { { .fd = p->input[1], .events = POLLOUT },
			{ .fd = p->output[0], .events = POLLIN } };
		poll(ready, 2, 20); /* short: no descriptor shows the end of the program */
		if (p->input[1] >= 0)
			feed(c, p, &fed);
		if (p->output[0] >= 0)
			listen_to(p, kept, &n_kept);
		ended = reap(pid, r);
		if (!ended && !r->timed_out && clock_monotonic_us() >= until_us) {
			r->timed_out = true;
			/* The child has not been waited for, so its pid is still its own. The
			 * group includes the processes that it started. */
			kill(-pid, SIGKILL);
		}
	}
	if (p->output[0] >= 0)
		listen_to(p, kept, &n_kept);
	while (n_kept && memchr("\r\n ", kept[n_kept - 1], 3))
		n_kept--;
	str_escape(r->output, sizeof(r->output), kept, n_kept);
	if (r->timed_out)
		r->status = -1;
}

int child_run(const struct child_command *c, struct child_result *r, struct err *e)
{
	struct pipes p = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
	int why = 0;
	*r = (struct child_result){ .status = -1 };
	if (pipe2(p.input, O_CLOEXEC) != 0 || pipe2(p.output, O_CLOEXEC) != 0 ||
		pipe2(p.failure, O_CLOEXEC) != 0) {
		why = errno;
		close_pipes(&p);
		return err_set(e, ERR_WORLD, "cannot make a pipe: %s", strerror(why));
	}
	pid_t pid = fork();
	if (pid == 0)
		become_program(c, &p);
	if (pid < 0) {
		why = errno;
		close_pipes(&p);
		return err_set(e, ERR_WORLD, "cannot start a process: %s", strerror(why));
	}
	close_end(p.input, 0);
	close_end(p.output, 1);
	close_end(p.failure, 1);
	if (!c->input)
		close_end(p.input, 1);
	else
		fcntl(p.input[1], F_SETFL, O_NONBLOCK);
	fcntl(p.output[0], F_SETFL, O_NONBLOCK);
	bool failed = read(p.failure[0], &why, sizeof(why)) == (ssize_t)sizeof(why);
	if (failed)
		waitpid(pid, NULL, 0);
	else
		attend(pid, c, &p, r);
	close_pipes(&p);
	return failed ? err_set(e, ERR_WORLD, "cannot run %s: %s", c->argv[0], strerror(why))
		      : 0;
}

void child_result_text(char *dst, size_t cap, const char *program, const struct child_result *r)
{
	char how[64];
	if (r->timed_out)
		str_copy(how, sizeof(how), "did not end in time and was killed");
	else if (r->signal)
		snprintf(how, sizeof(how), "was ended by signal %d", r->signal);
	else
		snprintf(how, sizeof(how), "ended with status %d", r->status);
	snprintf(dst, cap, "%s %s%s%s", program, how, *r->output ? ": " : "", r->output);
}
