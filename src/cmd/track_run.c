/* The main loop of gua track: starts the command, forwards signals, takes samples. */
#include "cmd/track_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "proc/proc.h"

/* Signals that are forwarded to the command if a process sent them to us. The terminal sends
 * signals to the whole process group, which includes the command: those are not forwarded. */
static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };
enum { PASSED_ON = sizeof(passed_on) / sizeof(passed_on[0]) };
/* timeout(1) and others send a signal both to the process and to its group; within this time
 * the two count as one. */
#define SAME_REQUEST_US 100000
/* How many times in a row the user must press Ctrl-C while the command is stuck, before gua
 * leaves it. */
#define STUCK_REQUESTS 3

struct running {
	const struct track_job *job;
	struct tracker *tracker;
	struct clock clock;
	pid_t child; /* the command, or the pid that is followed */
	bool ended;  /* it has ended */
	int status;  /* as of wait(2) */
	int signal_fd;
	int pidfd;	    /* for a pid that is not our child; or -1 */
	int end_requests;   /* SIGTERM, SIGINT ... sent to us alone */
	int64_t request_us; /* when the last one came */
	int stuck_requests; /* from the terminal, while no signal can reach the command */
	sigset_t before;    /* signal mask for the command */
	struct sigaction on_child; /* the command's own action for SIGCHLD */
};

/* The process that started us may ignore SIGCHLD: then no child could be waited for. */
static int block_signals(struct running *r, struct err *e)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t set;
	sigaction(SIGCHLD, &usual, &r->on_child);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < PASSED_ON; i++)
		sigaddset(&set, passed_on[i]);
	sigprocmask(SIG_BLOCK, &set, &r->before);
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->signal_fd < 0)
		return err_set(e, ERR_WORLD, "signalfd: %s", strerror(errno));
	return 0;
}

/* Runs in the child: waits until the tracker is ready, so that nothing is missed. */
static void become(const struct running *r, char **argv, const int go[2], int failure)
{
	char word;
	close(go[1]); /* else the end of file would never be seen */
	sigaction(SIGCHLD, &r->on_child, NULL);
	sigprocmask(SIG_SETMASK, &r->before, NULL);
	while (read(go[0], &word, 1) < 0 && errno == EINTR)
		;
	execvp(argv[0], argv);
	int reason = errno;
	ssize_t n = write(failure, &reason, sizeof(reason));
	(void)n; /* the reader has ended: nothing to report to */
	_exit(127);
}

static int start_tracker(struct running *r, struct err *e)
{
	struct tracker_options o = r->job->options;
	o.pid = r->child;
	o.subreaper = r->job->argv != NULL;
	o.started_us = o.subreaper ? clock_now(&r->clock).boot_us : 0;
	int rc = tracker_open(&r->tracker, &o, e);
	if (!rc && r->job->on_start)
		rc = r->job->on_start(r->job->context, r->tracker, e);
	return rc;
}

/* Forks, follows the child from its first instruction, and lets it become the command. */
static int start_command(struct running *r, struct track_outcome *outcome, struct err *e)
{
	int go[2], failure[2], reason = 0;
	char **argv = r->job->argv;
	if (pipe2(go, O_CLOEXEC) != 0 || pipe2(failure, O_CLOEXEC) != 0)
		return err_set(e, ERR_WORLD, "cannot make a pipe: %s", strerror(errno));
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	r->child = fork();
	if (r->child < 0)
		return err_set(e, ERR_WORLD, "cannot fork: %s", strerror(errno));
	if (r->child == 0)
		become(r, argv, go, failure[1]);
	close(go[0]);
	close(failure[1]);
	int rc = start_tracker(r, e);
	if (rc)
		kill(r->child, SIGKILL);
	close(go[1]);
	ssize_t n = read(failure[0], &reason, sizeof(reason));
	close(failure[0]);
	if (rc || n == (ssize_t)sizeof(reason))
		waitpid(r->child, NULL, 0);
	if (rc || n != (ssize_t)sizeof(reason))
		return rc;
	outcome->exit_status = reason == ENOENT || reason == ENOTDIR ? 127 : 126;
	return err_set(e, ERR_WORLD, "cannot start %s: %s", argv[0], strerror(reason));
}

static int start_following(struct running *r, struct err *e)
{
	r->child = r->job->pid;
	r->pidfd = (int)syscall(SYS_pidfd_open, r->child, 0);
	if (r->pidfd < 0)
		return err_set(e, ERR_WORLD, "cannot follow process %d: %s", (int)r->child,
			strerror(errno));
	return start_tracker(r, e);
}

/* Takes every child that has ended; with a subreaper that includes orphans of the tree. */
static void reap(struct running *r)
{
	const struct track_files *files = r->job->options.files;
	for (;;) {
		int status = 0;
		struct rusage usage;
		siginfo_t info = { 0 };
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || !info.si_pid)
			return;
		/* It may be a process that reads for the tracker, and not belong to the
		 * command. */
		bool own = files && files->owns(files->context, info.si_pid);
		bool counts = !own && !tracker_is_helper(r->tracker, info.si_pid);
		/* Read its last numbers before it is reaped. */
		if (counts)
			tracker_exiting(r->tracker, info.si_pid);
		pid_t pid = wait4(info.si_pid, &status, 0, &usage);
		if (pid <= 0)
			return;
		if (!counts)
			continue;
		tracker_reaped(r->tracker, pid, status, &usage);
		if (pid == r->child) {
			r->ended = true;
			r->status = status;
		}
	}
}

/* Whether the command waits in the kernel for a driver or a file system (state D): then it does
 * not notice Ctrl-C. */
static bool is_stuck(const struct running *r)
{
	int proc = -1;
	struct proc_stat stat = { 0 };
	if (proc_open(&proc, "", NULL) != 0)
		return false;
	bool stuck = proc_read_stat(proc, (uint32_t)r->child, &stat) == 0 && stat.state == 'D';
	close(proc);
	return stuck;
}

/* The terminal sends its signals to the command, too, which may handle them and go on. Only a
 * command that signals cannot reach is left, so that the user gets the terminal back. */
static void count_stuck(struct running *r)
{
	r->stuck_requests = !r->ended && is_stuck(r) ? r->stuck_requests + 1 : 0;
	if (r->stuck_requests == STUCK_REQUESTS)
		r->end_requests = 2;
	else if (r->stuck_requests)
		log_error("the command waits in the kernel and does not notice the signal; "
			  "%d more and gua leaves it",
			STUCK_REQUESTS - r->stuck_requests);
}

/* Forwards a signal to the command, if a process sent it to us. */
static void pass_on(struct running *r, const struct signalfd_siginfo *info)
{
	bool sent = info->ssi_code <= 0; /* by a process, not by the terminal */
	bool asks_to_end = info->ssi_signo != SIGWINCH && info->ssi_signo != SIGUSR1 &&
			   info->ssi_signo != SIGUSR2;
	if (r->job->argv) {
		int64_t now_us = clock_now(&r->clock).boot_us;
		if (sent && asks_to_end) {
			if (!r->end_requests || now_us - r->request_us >= SAME_REQUEST_US)
				r->end_requests++;
			r->request_us = now_us;
		} else if (asks_to_end)
			count_stuck(r);
		if (sent && !r->ended)
			kill(r->child, (int)info->ssi_signo);
	} else if (asks_to_end && (!r->job->until_exit || info->ssi_signo == SIGTERM)) {
		r->end_requests = 2; /* with --pid: do not signal the process, just stop */
	}
}

static void handle_signals(struct running *r)
{
	struct signalfd_siginfo info;
	while (read(r->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(r);
		else
			pass_on(r, &info);
	}
}

/* Runs until the command has ended, or until the second request to terminate. */
static void follow(struct running *r)
{
	struct track_sample sample;
	while (!r->ended && r->end_requests < 2) {
		struct pollfd fds[] = { { .fd = r->signal_fd, .events = POLLIN },
			{ .fd = r->pidfd, .events = POLLIN } };
		int ready = clock_wait(&r->clock, tracker_next_us(r->tracker), fds, 2);
		if (ready > 0 && fds[0].revents)
			handle_signals(r);
		if (ready > 0 && fds[1].revents)
			r->ended = true;
		if (ready == 0) {
			tracker_sample(r->tracker, &sample);
			if (r->job->on_sample)
				r->job->on_sample(r->job->context, &sample);
		}
	}
}

int track_run(const struct track_job *job, struct track_outcome *outcome, struct err *e)
{
	struct running r = { .job = job, .signal_fd = -1, .pidfd = -1 };
	*outcome = (struct track_outcome){ .exit_status = 1 };
	clock_init_real(&r.clock);
	int rc = block_signals(&r, e);
	if (!rc)
		rc = job->argv ? start_command(&r, outcome, e) : start_following(&r, e);
	if (!rc) {
		follow(&r);
		tracker_stop(r.tracker);
		reap(&r);
		outcome->exit_status = !job->argv	       ? 0
				       : !r.ended	       ? 128 + SIGTERM
				       : WIFSIGNALED(r.status) ? 128 + WTERMSIG(r.status)
							       : WEXITSTATUS(r.status);
		outcome->tracker = r.tracker;
	} else {
		tracker_close(r.tracker);
	}
	if (r.pidfd >= 0)
		close(r.pidfd);
	if (r.signal_fd >= 0)
		close(r.signal_fd);
	sigaction(SIGCHLD, &r.on_child, NULL);
	sigprocmask(SIG_SETMASK, &r.before, NULL);
	return rc;
}
