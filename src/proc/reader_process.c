/* Starts the process of a reader, finds out when it is stuck, and leaves it behind then. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "proc/proc.h"
#include "proc/user.h"
#include "proc/reader_private.h"

/* How long it may stay at one place. Files of a process take microseconds, or up to some tenths
 * of a second on a host that swaps. */
#define PROCESS_MS 500
#define NAME_MS (USER_DEADLINE_MS + 500) /* the lookup has a deadline of its own */
#define START_MS 10000
/* How long a request may wait for processes in all. Each may be just fast enough, and there may
 * be dozens. */
#define WAIT_MS 1000
/* How long a request may take in all, waiting for a processor included. */
#define REQUEST_MS 20000
/* How often the place is looked at. */
#define LOOK_MS 50
/* One that failed is replaced after a second, and after twice as long each time in a row, up to
 * 64 seconds. */
#define RESTART_DOUBLINGS 6

int64_t reader_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void forget_gone(struct reader_process *p)
{
	for (size_t i = 0; i < p->n_left;)
		if (helper_is_gone(p->left[i].pidfd))
			p->left[i] = p->left[--p->n_left];
		else
			i++;
}

/* There is no process for some time. */
static void has_failed(struct reader_process *p, const char *why)
{
	int64_t wait_s = p->n_failed < RESTART_DOUBLINGS ? INT64_C(1) << p->n_failed
							 : INT64_C(1) << RESTART_DOUBLINGS;
	p->n_failed++;
	p->restart_us = reader_now_us() + wait_s * 1000000;
	text_copy(p->why, sizeof(p->why), why);
	log_warning("%s; starting another one in %lld s", why, (long long)wait_s);
}

bool reader_process_is_there(struct reader_process *p)
{
	struct err e = { 0 };
	if (p->helper)
		return true;
	forget_gone(p);
	if (p->n_left == READER_STUCK_MAX || reader_now_us() < p->restart_us)
		return false;
	if (reader_start_helper(&p->helper, p->root, &e) == 0)
		return true;
	p->helper = NULL;
	has_failed(p, e.text);
	return false;
}

/* Ends the process, or leaves it behind when it cannot be ended. */
static void end_helper(struct reader_process *p)
{
	pid_t pid = helper_pid(p->helper);
	int pidfd = helper_free(p->helper, 0);
	p->helper = NULL;
	if (pidfd < 0)
		return;
	p->left[p->n_left].pidfd = pidfd;
	p->left[p->n_left++].pid = pid;
}

void reader_process_refuse(struct reader_process *p)
{
	end_helper(p);
	has_failed(p, "the process " READER_NAME " sent an invalid answer");
}

void reader_process_works(struct reader_process *p)
{
	p->n_failed = 0;
}

void reader_process_end(struct reader_process *p)
{
	if (p->helper)
		end_helper(p);
	for (size_t i = 0; i < p->n_left; i++)
		close(p->left[i].pidfd);
	p->n_left = 0;
}

/* Whether it waits for a processor, not for another process: then the host is slow. */
static bool is_runnable(pid_t pid)
{
	int proc = -1;
	struct proc_stat stat = { 0 };
	if (pid <= 0 || proc_open(&proc, "", NULL) != 0)
		return false;
	bool runnable = proc_read_stat(proc, (uint32_t)pid, &stat) == 0 && stat.state == 'R';
	close(proc);
	return runnable;
}

/* What is known about a request that takes long. */
struct slow {
	char place[HELPER_PLACE_CAP]; /* where the process was last seen */
	int64_t here_ms;    /* how long it has waited there, and not for a processor */
	int64_t waited_ms;  /* the same for all processes that it has read */
	int64_t longest_ms; /* the longest of here_ms */
	uint32_t slowest;   /* the process that it waited for longest, or 0 */
};

/* The process that is being read at this place, or 0. */
static uint32_t pid_at(const char *place)
{
	uint32_t pid = 0;
	return sscanf(place, "pid %u", &pid) == 1 ? pid : 0;
}

static int64_t limit_ms(const char *place)
{
	if (pid_at(place))
		return PROCESS_MS;
	return strncmp(place, "uid ", 4) == 0 ? NAME_MS : START_MS;
}

/* Looks where the process is. True: it has waited for too long. Time in which it waited for a
 * processor does not count: on a loaded host that may be most of it. */
static bool look(struct slow *s, const struct helper *h)
{
	char place[HELPER_PLACE_CAP];
	helper_where(h, place, sizeof(place));
	if (strcmp(place, s->place) != 0) {
		memcpy(s->place, place, sizeof(place));
		s->here_ms = 0;
	}
	if (is_runnable(helper_pid(h)))
		return false;
	s->here_ms += LOOK_MS;
	bool late = s->here_ms >= limit_ms(place);
	if (pid_at(place))
		s->waited_ms += LOOK_MS;
	if (pid_at(place) && (late || s->here_ms > s->longest_ms)) {
		s->longest_ms = s->here_ms;
		s->slowest = pid_at(place);
	}
	return late || s->waited_ms >= WAIT_MS;
}

/* Waits for the reply. A process that comes to another place works. */
static int wait_for_reply(
	struct helper *h, const struct str **reply, struct slow *s, struct err *e)
{
	int64_t end_us = reader_now_us() + REQUEST_MS * INT64_C(1000);
	for (;;) {
		int rc = helper_receive(h, LOOK_MS, reply, e);
		if (rc != ERR_BUSY || look(s, h) || reader_now_us() >= end_us)
			return rc;
	}
}

/* The process that was being read, if the request asks for it; else 0. `before` is the place at
 * which the last request ended: who is still there has not begun with this one. One that waited
 * for several processes has been kept by the slowest. */
static uint32_t find_blamed(const struct helper *h, const struct reader_request *request,
	const struct slow *s, const char *before)
{
	char place[HELPER_PLACE_CAP];
	helper_where(h, place, sizeof(place));
	uint32_t pid = s->slowest ? s->slowest : pid_at(place);
	if (strcmp(place, before) == 0)
		return 0;
	for (uint32_t i = 0; i < request->n; i++)
		if (request->targets[i].pid == pid && !request->targets[i].brief)
			return pid;
	return 0;
}

int reader_process_ask(struct reader_process *p, const struct reader_request *request,
	const struct str **reply, uint32_t *blamed)
{
	struct str bytes = { 0 };
	struct err e = { 0 };
	struct slow slow = { 0 };
	char before[HELPER_PLACE_CAP];
	*blamed = 0;
	if (!reader_process_is_there(p))
		return ERR_WORLD;
	helper_where(p->helper, before, sizeof(before));
	str_add_bytes(&bytes, (const char *)request, sizeof(*request));
	int rc = helper_send(p->helper, &bytes, &e);
	str_finish(&bytes);
	if (rc == 0)
		rc = wait_for_reply(p->helper, reply, &slow, &e);
	if (rc == 0)
		return 0;
	if (rc != ERR_BUSY)
		slow.slowest = 0; /* it died where it is */
	*blamed = find_blamed(p->helper, request, &slow, before);
	end_helper(p);
	if (rc != ERR_BUSY)
		has_failed(p, e.text);
	return rc;
}
