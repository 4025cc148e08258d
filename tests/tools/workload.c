/* For tests of the tracker: programs whose use is known, because they measure it themselves.
 * Each prints the truth as one JSON line before it ends.
 *
 * One that shall be seen so looks at the numbers of `tracking --samples`, in the file that
 * $SAMPLES names, and waits until it was. Without that file it does not wait.
 *
 * usage: workload private MB               private memory; seen
 *        workload shared N MB              N shared mappings, touched by it and by 3 children
 *        workload cow N MB                 N private mappings, then 3 children that read them
 *        workload pool MB                  a parent with MB and 3 children with MB of their own
 *        workload spike MB                 seen; MB that it gives back at once; seen
 *        workload sequential N MS          N children, one after the other, of MS of CPU
 *        workload daemon MS                a child that leaves the session and its parent
 *        workload ignored N MS             as sequential, seen, waited for by nobody
 *        workload burst BUSY_MS PERIOD_MS SECONDS
 *        workload threads N MS             N threads of MS of CPU each; seen
 *        workload sleep SECONDS
 *        workload other UID MS FILE        becomes UID, with a child that stays who it is,
 *                                          uses MS of CPU once there is FILE, and is seen
 *        workload wait                     prints its pid and its child's, and waits */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 3, MAPPINGS = 64 };

static double now(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void nap(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds,
		.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };
	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		continue;
}

/* Uses so much CPU time, not wall time: other load makes it longer, not less. */
static void burn(double seconds)
{
	double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds;
	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 2000; i++)
			continue;
}

/* How many samples were taken, and what memory was seen in the last one. */
static void read_samples(long long numbers[2])
{
	const char *path = getenv("SAMPLES");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || pread(fd, numbers, 2 * sizeof(*numbers), 0) < 0)
		numbers[0] = numbers[1] = 0;
	if (fd >= 0)
		close(fd);
}

/* Waits until somebody has looked, from beginning to end, and has seen memory of `bytes`. The
 * limit is for a tracker that never sees it. */
static void be_seen(long long bytes)
{
	long long first[2] = { 0 }, last[2] = { 0 };
	double limit = now(CLOCK_MONOTONIC) + 60;
	if (!getenv("SAMPLES"))
		return;
	read_samples(first);
	/* The look that is under way may have been past us: the one after it was not. */
	while ((last[0] < first[0] + 2 || last[1] < bytes) && now(CLOCK_MONOTONIC) < limit) {
		nap(0.005);
		read_samples(last);
	}
}

static char state_of(pid_t pid)
{
	char path[64], line[512] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	const char *name_end = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (f)
		fclose(f);
	return name_end && name_end[1] ? name_end[2] : '?';
}

/* Stops the tracker, our parent, or lets it go on. A page that moves from one process's share
 * to another's between its looks at the two would count in both. */
static void stop_tracker(int stopped)
{
	double limit = now(CLOCK_MONOTONIC) + 60;
	if (!getenv("SAMPLES"))
		return;
	kill(getppid(), stopped ? SIGSTOP : SIGCONT);
	while (stopped && state_of(getppid()) != 'T' && now(CLOCK_MONOTONIC) < limit)
		nap(0.001);
}

static char *map(size_t bytes, int flags)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		exit(3);
	return p;
}

/* A byte of every page; writing one makes it ours. */
static void touch(char *p, size_t bytes, int write)
{
	volatile char *v = p;
	char sum = 0;
	for (size_t i = 0; i < bytes; i += 4096)
		if (write)
			v[i] = 1;
		else
			sum = (char)(sum + v[i]);
	(void)sum;
}

/* Pss of a process as the kernel tells it, bytes. */
static long long pss_of(pid_t pid)
{
	char path[64], line[256];
	long long kib = 0;
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss: %lld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024;
}

/* What the process and its waited-for children used, and how long it lived. */
static void print_truth(double started, long long pss)
{
	struct rusage own, children;
	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	double of_own = (double)own.ru_utime.tv_sec + (double)own.ru_utime.tv_usec / 1e6 +
			(double)own.ru_stime.tv_sec + (double)own.ru_stime.tv_usec / 1e6;
	double below =
		(double)children.ru_utime.tv_sec + (double)children.ru_utime.tv_usec / 1e6 +
		(double)children.ru_stime.tv_sec + (double)children.ru_stime.tv_usec / 1e6;
	printf("{\"pss\": %lld, \"own_s\": %.6f, \"children_s\": %.6f, \"life_s\": %.6f}\n",
		pss, of_own, below, now(CLOCK_MONOTONIC) - started);
	fflush(stdout);
}

/* Starts the children, each of which does `work` and then waits to be told to end. */
static void have_children(pid_t *pids, int *words, void (*work)(void *), void *argument)
{
	int ready[2], end[2];
	char c;
	if (pipe(ready) != 0 || pipe(end) != 0)
		exit(3);
	for (int i = 0; i < CHILDREN; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			close(end[1]);
			work(argument);
			if (write(ready[1], "r", 1) != 1)
				_exit(3);
			while (read(end[0], &c, 1) < 0 && errno == EINTR)
				continue;
			_exit(0);
		}
	}
	for (int i = 0; i < CHILDREN; i++)
		if (read(ready[0], &c, 1) != 1)
			exit(3);
	close(end[0]);
	*words = end[1];
}

struct mappings {
	char *p[MAPPINGS];
	int n;
	size_t bytes;
	int write;
};

static void touch_all(void *argument)
{
	struct mappings *m = argument;
	for (int i = 0; i < m->n; i++)
		touch(m->p[i], m->bytes, m->write);
}

static void have_own(void *argument)
{
	size_t bytes = *(size_t *)argument;
	touch(map(bytes, MAP_PRIVATE), bytes, 1);
}

/* What a tracker may miss of memory without being wrong. */
static long long nearly(long long bytes)
{
	return bytes - bytes / 64;
}

/* With its children ready: measures, stays so until it was seen, and ends them. The tracker is
 * stopped then. */
static void stay(const pid_t *pids, int words, double started)
{
	long long pss = pss_of(getpid());
	for (int i = 0; i < CHILDREN; i++)
		pss += pss_of(pids[i]);
	be_seen(nearly(pss));
	stop_tracker(1);
	close(words);
	for (int i = 0; i < CHILDREN; i++)
		waitpid(pids[i], NULL, 0);
	print_truth(started, pss);
}

static void run_mappings(char **a, double started, int flags)
{
	struct mappings m = { .n = atoi(a[0]), .bytes = (size_t)atoi(a[1]) * 1000000 };
	pid_t pids[CHILDREN];
	int words;
	m.write = 1;
	for (int i = 0; i < m.n && i < MAPPINGS; i++)
		m.p[i] = map(m.bytes, flags);
	stop_tracker(1);
	touch_all(&m);
	m.write = flags == MAP_SHARED;
	have_children(pids, &words, touch_all, &m);
	stop_tracker(0);
	stay(pids, words, started);
	for (int i = 0; i < m.n && i < MAPPINGS; i++)
		munmap(m.p[i], m.bytes);
	stop_tracker(0);
}

static void run_shared(char **a, double started)
{
	run_mappings(a, started, MAP_SHARED);
}

static void run_cow(char **a, double started)
{
	run_mappings(a, started, MAP_PRIVATE);
}

static void run_private(char **a, double started)
{
	size_t bytes = (size_t)atoi(a[0]) * 1000000;
	touch(map(bytes, MAP_PRIVATE), bytes, 1);
	long long pss = pss_of(getpid());
	be_seen(nearly(pss));
	print_truth(started, pss);
}

static void run_pool(char **a, double started)
{
	size_t bytes = (size_t)atoi(a[0]) * 1000000;
	pid_t pids[CHILDREN];
	int words;
	char *p = map(bytes, MAP_PRIVATE);
	stop_tracker(1);
	touch(p, bytes, 1);
	have_children(pids, &words, have_own, &bytes);
	stop_tracker(0);
	stay(pids, words, started);
	munmap(p, bytes);
	stop_tracker(0);
}

static void run_spike(char **a, double started)
{
	size_t bytes = (size_t)atoi(a[0]) * 1000000;
	be_seen(0);
	char *p = map(bytes, MAP_PRIVATE);
	touch(p, bytes, 1);
	long long pss = pss_of(getpid());
	munmap(p, bytes);
	be_seen(0);
	print_truth(started, pss);
}

static void run_sequential(char **a, double started)
{
	for (int i = 0; i < atoi(a[0]); i++) {
		pid_t pid = fork();
		if (pid == 0) {
			burn(atof(a[1]) / 1e3);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	print_truth(started, 0);
}

/* Children of a parent that ignores them: nobody gets their time. Theirs comes by a pipe. */
static void run_ignored(char **a, double started)
{
	int told[2];
	double used, all = 0;
	signal(SIGCHLD, SIG_IGN);
	if (pipe(told) != 0)
		exit(3);
	for (int i = 0; i < atoi(a[0]); i++) {
		if (fork() == 0) {
			burn(atof(a[1]) / 1e3);
			be_seen(0);
			used = now(CLOCK_PROCESS_CPUTIME_ID);
			_exit(write(told[1], &used, sizeof(used)) != sizeof(used));
		}
		if (read(told[0], &used, sizeof(used)) == sizeof(used))
			all += used;
	}
	printf("{\"ignored_s\": %.6f, \"own_s\": %.6f, \"life_s\": %.6f}\n", all,
		now(CLOCK_PROCESS_CPUTIME_ID), now(CLOCK_MONOTONIC) - started);
}

/* A double fork and setsid(); what it used comes by a pipe. */
static void run_daemon(char **a, double started)
{
	int told[2];
	double used = 0;
	if (pipe(told) != 0)
		exit(3);
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		if (fork() != 0)
			_exit(0);
		burn(atof(a[0]) / 1e3);
		used = now(CLOCK_PROCESS_CPUTIME_ID);
		_exit(write(told[1], &used, sizeof(used)) != sizeof(used));
	}
	waitpid(pid, NULL, 0);
	if (read(told[0], &used, sizeof(used)) != sizeof(used))
		exit(3);
	printf("{\"daemon_s\": %.6f, \"own_s\": %.6f, \"life_s\": %.6f}\n", used,
		now(CLOCK_PROCESS_CPUTIME_ID), now(CLOCK_MONOTONIC) - started);
}

static void run_burst(char **a, double started)
{
	double busy = atof(a[0]) / 1e3, period = atof(a[1]) / 1e3, seconds = atof(a[2]);
	for (double next = started; now(CLOCK_MONOTONIC) < started + seconds;) {
		burn(busy);
		next += period;
		double left = next - now(CLOCK_MONOTONIC);
		if (left > 0)
			nap(left);
	}
	print_truth(started, 0);
}

static void *burn_thread(void *ms)
{
	burn(atof(ms) / 1e3);
	be_seen(0);
	return NULL;
}

static void run_threads(char **a, double started)
{
	pthread_t threads[MAPPINGS];
	int n = atoi(a[0]);
	for (int i = 0; i < n && i < MAPPINGS; i++)
		pthread_create(&threads[i], NULL, burn_thread, a[1]);
	for (int i = 0; i < n && i < MAPPINGS; i++)
		pthread_join(threads[i], NULL);
	print_truth(started, 0);
}

static void run_sleep(char **a, double started)
{
	nap(atof(a[0]));
	print_truth(started, 0);
}

/* The child stays who we are; the parent becomes UID, and executes something so that UID may
 * look at it. */
static void run_other(char **a, double started)
{
	(void)started;
	pid_t pid = fork();
	if (pid == 0) {
		while (access(a[2], F_OK) != 0)
			nap(0.01);
		burn(atof(a[1]) / 1e3);
		be_seen(0);
		_exit(0);
	}
	printf("%d\n", (int)getpid());
	fflush(stdout);
	if (setgid((gid_t)atoi(a[0])) != 0 || setuid((uid_t)atoi(a[0])) != 0)
		exit(3);
	execl("/proc/self/exe", "workload", "collect", (char *)NULL);
	exit(3);
}

static void run_collect(char **a, double started)
{
	(void)a;
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	print_truth(started, 0);
	be_seen(0);
}

static void run_wait(char **a, double started)
{
	(void)a;
	(void)started;
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	printf("%d %d\n", (int)getpid(), (int)pid);
	fflush(stdout);
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int arguments;
		void (*run)(char **arguments, double started);
	} all[] = { { "private", 1, run_private }, { "shared", 2, run_shared },
		{ "cow", 2, run_cow }, { "pool", 1, run_pool }, { "spike", 1, run_spike },
		{ "sequential", 2, run_sequential }, { "ignored", 2, run_ignored },
		{ "daemon", 1, run_daemon }, { "burst", 3, run_burst },
		{ "threads", 2, run_threads }, { "sleep", 1, run_sleep },
		{ "other", 3, run_other }, { "collect", 0, run_collect },
		{ "wait", 0, run_wait } };
	double started = now(CLOCK_MONOTONIC);
	for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(argv[1], all[i].name) == 0 && argc - 2 == all[i].arguments) {
			all[i].run(argv + 2, started);
			return 0;
		}
	fprintf(stderr, "workload: see the head of workload.c\n");
	return 2;
}
