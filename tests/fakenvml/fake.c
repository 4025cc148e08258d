/* The door of the fake library: scenario, clock, log, faults and handles. */
#include "fake.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { HANDLES_MAX = 65536 };
#define VIRTUAL_ORIGIN_US (3600LL * 1000000)

struct handle {
	size_t unit;
	unsigned life; /* of its card, when it was given */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct fake fake;
static bool loaded;
static int inside; /* threads between fake_enter() and fake_leave() */
static int log_fd = -1;
static struct handle handles[HANDLES_MAX];
static size_t n_handles, first_valid;
static unsigned lives[SCENARIO_UNITS_MAX];
static bool told_lost[SCENARIO_UNITS_MAX];
static int64_t calls, cpu_ns; /* for FAKENVML_COST */
static _Thread_local int64_t entered_ns;
static const char *cost_path;

struct fake *fake_state(void)
{
	return &fake;
}

void fake_abort(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("fakenvml: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	abort();
}

static bool reaps; /* processes that end leave their cards */

void fake_sleep_us(int64_t us)
{
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
	nanosleep(&t, NULL);
}

static const char *from_environment(const char *name)
{
	return getenv(name);
}

/* Whether a process has ended, as a driver knows it: a zombie has no context any more. */
static bool has_ended(uint32_t pid)
{
	char path[64], line[512] = "";
	snprintf(path, sizeof(path), "/proc/%u/stat", (unsigned)pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return true;
	bool read = fgets(line, sizeof(line), file) != NULL;
	fclose(file);
	const char *name = strrchr(line, ')');
	return !read || !name || name[1] == '\0' || name[2] == 'Z' || name[2] == 'X';
}

/* The number in a file of FAKENVML_PIDS; 0: there is none, or it is not written yet, or the
 * process has ended and FAKENVML_REAP is set. */
static uint32_t pid_in_file(const char *name)
{
	char path[4096], text[32] = "";
	snprintf(path, sizeof(path), "%s/%s", getenv(SCENARIO_PIDS), name);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	bool read = fgets(text, sizeof(text), file) != NULL;
	fclose(file);
	long pid = read ? strtol(text, NULL, 10) : 0;
	if (pid <= 0 || pid > INT32_MAX || (reaps && has_ended((uint32_t)pid)))
		return 0;
	return (uint32_t)pid;
}

bool fake_does(const char *name, const char *what)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s.%s", getenv(SCENARIO_PIDS), name, what);
	return access(path, F_OK) == 0;
}

int64_t fake_memory(const char *name, int64_t else_bytes)
{
	char path[4096];
	long long bytes = else_bytes;
	if (!*name)
		return else_bytes;
	snprintf(path, sizeof(path), "%s/%s.memory", getenv(SCENARIO_PIDS), name);
	FILE *file = fopen(path, "re");
	if (!file)
		return else_bytes;
	bool read = fscanf(file, "%lld", &bytes) == 1;
	fclose(file);
	return read ? bytes : else_bytes;
}

static void open_clock(struct err *e)
{
	const char *path = getenv("FAKENVML_CLOCK"), *start = getenv("FAKENVML_START");
	if (clock_open(&fake.clock, path ? path : "real", 0, e) != 0)
		fake_abort("FAKENVML_CLOCK: %s", e->text);
	struct moment now = clock_now(&fake.clock);
	fake.origin_us = clock_is_virtual(&fake.clock) ? VIRTUAL_ORIGIN_US : now.boot_us;
	if (start && !clock_is_virtual(&fake.clock))
		fake.origin_us = now.boot_us - (now.wall_us - (int64_t)(atof(start) * 1e6));
}

static void load(void)
{
	struct err e = { 0 };
	const char *path = getenv("FAKENVML_SCENARIO"), *log = getenv("FAKENVML_LOG");
	if (!path)
		fake_abort("FAKENVML_SCENARIO is not set");
	open_clock(&e);
	if (scenario_read(&fake.scenario, path, &e) != 0 ||
		scenario_resolve(fake.scenario, from_environment, &e) != 0 ||
		play_open(&fake.play, fake.scenario, clock_is_virtual(&fake.clock), &e) != 0)
		fake_abort("%s", e.text);
	if (log)
		log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	cost_path = getenv("FAKENVML_COST");
	reaps = getenv("FAKENVML_REAP") != NULL;
	loaded = true;
}

static void write_cost(void)
{
	FILE *cost = cost_path ? fopen(cost_path, "w") : NULL;
	if (!cost)
		return;
	fprintf(cost, "calls %lld cpu_us %lld\n", (long long)calls, (long long)(cpu_ns / 1000));
	fclose(cost);
}

/* dlclose() gives everything back, so that a program can be checked for leaks; but not under
 * the feet of a thread that hangs in a call while the program ends. */
__attribute__((destructor)) static void unload(void)
{
	pthread_mutex_lock(&mutex);
	write_cost();
	bool busy = inside > 0;
	pthread_mutex_unlock(&mutex);
	if (busy)
		return;
	play_close(fake.play);
	scenario_free(fake.scenario);
	clock_finish(&fake.clock);
	if (log_fd >= 0)
		close(log_fd);
}

static int64_t thread_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Goes to now; a card that came back after the program knew of its loss begins a new life. */
static void follow(void)
{
	play_follow(fake.play, &fake.clock, fake.origin_us);
	if (reaps)
		play_drop_pids(fake.play, has_ended);
	play_read_pids(fake.play, pid_in_file);
	for (size_t i = 0; i < fake.scenario->n_cards; i++) {
		int code = 0;
		if (!told_lost[i] || play_status(fake.play, i, &code) == CARD_STATUS_LOST)
			continue;
		told_lost[i] = false;
		lives[i]++;
	}
}

/* One line a call: scenario seconds, name, card or -1, arguments. */
static void log_call(const char *call, int unit, const char *format, va_list args)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "%.6f %s %d ", (double)play_time(fake.play) / 1e6,
		call, unit);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	n = n < (int)sizeof(line) - 1 ? n : (int)sizeof(line) - 2;
	line[n++] = '\n';
	if (write(log_fd, line, (size_t)n) != n)
		fake_abort("cannot write the log");
}

static void log_line(const char *call, int unit, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	if (log_fd >= 0)
		log_call(call, unit, format, args);
	va_end(args);
}

/* The call's handle, or the end of the program. */
static size_t check_handle(const char *call, const void *device)
{
	const struct handle *h = device;
	if (!h)
		fake_abort("%s was called with a NULL handle", call);
	if (h < handles || h >= handles + n_handles ||
		((const char *)device - (const char *)handles) % (long)sizeof(*h) != 0)
		fake_abort("%s was called with a handle that was never given", call);
	if (h < handles + first_valid)
		fake_abort("%s was called with a handle from before nvmlShutdown", call);
	if (h->life != lives[h->unit])
		fake_abort("%s was called with a handle from before its card was lost", call);
	return h->unit;
}

static bool is_there(const char *variable)
{
	const char *path = getenv(variable);
	return path && access(path, F_OK) == 0;
}

/* Whether a hanging call is let go from outside, or not yet made to hang. */
static bool released(void)
{
	return is_there("FAKENVML_RELEASE") ||
	       (getenv("FAKENVML_HANG") && !is_there("FAKENVML_HANG"));
}

static void play_slow_and_hang(const char *call, int unit)
{
	const struct scenario_fault *slow = play_fault(fake.play, FAULT_SLOW, call, unit);
	if (slow && clock_is_virtual(&fake.clock)) {
		clock_advance(&fake.clock, slow->slow_us);
	} else if (slow) {
		pthread_mutex_unlock(&mutex);
		fake_sleep_us(slow->slow_us);
		pthread_mutex_lock(&mutex);
	}
	if (slow)
		follow();
	while (play_fault(fake.play, FAULT_HANG, call, unit) && !released()) {
		pthread_mutex_unlock(&mutex);
		fake_sleep_us(2000);
		pthread_mutex_lock(&mutex);
		follow();
	}
}

static void check_missing(const char *call)
{
	for (size_t i = 0; i < fake.scenario->n_missing; i++)
		if (strcmp(fake.scenario->missing[i], call) == 0)
			fake_abort("%s was called and is missing in this scenario", call);
}

/* The code that the scenario has for the call, 0: none. */
static int code_of(enum door door, const char *call, size_t unit)
{
	if (door != DOOR_FREE && fake.initialised == 0)
		return UNINITIALIZED;
	const struct scenario_fault *fault =
		play_fault(fake.play, FAULT_FAIL, call, door == DOOR_DEVICE ? (int)unit : -1);
	if (fault)
		return fault->code;
	return door == DOOR_DEVICE ? fake_lost(unit) : 0;
}

int fake_enter(enum door door, const char *call, const void *device, size_t *unit,
	const char *log_format, ...)
{
	pthread_mutex_lock(&mutex);
	if (!loaded)
		load();
	calls++;
	inside++;
	entered_ns = cost_path ? thread_ns() : 0;
	follow();
	check_missing(call);
	size_t checked = door == DOOR_DEVICE ? check_handle(call, device) : 0;
	int card = door == DOOR_DEVICE ? (int)checked : -1;
	va_list args;
	va_start(args, log_format);
	if (log_fd >= 0 && log_format)
		log_call(call, card, log_format, args);
	va_end(args);
	play_slow_and_hang(call, card);
	int code = code_of(door, call, checked);
	if (unit)
		*unit = checked;
	return code ? fake_leave(code) : 0;
}

int fake_leave(int code)
{
	if (cost_path)
		cpu_ns += thread_ns() - entered_ns;
	inside--;
	pthread_mutex_unlock(&mutex);
	return code;
}

int fake_lost(size_t unit)
{
	int code = 0;
	enum card_status status = play_status(fake.play, unit, &code);
	if (status == CARD_STATUS_ASLEEP)
		log_line("woken", (int)unit, "%s", "");
	if (status != CARD_STATUS_LOST)
		return 0;
	told_lost[unit] = true;
	return code;
}

uint64_t fake_stamp(int64_t t_us, int64_t wall_us)
{
	return (uint64_t)(fake.scenario->boot_stamps ? fake.origin_us + t_us : wall_us);
}

uint64_t fake_stamp_now(void)
{
	int64_t t_us = play_time(fake.play);
	return fake_stamp(t_us, play_wall(fake.play, t_us));
}

void *fake_handle(size_t unit)
{
	for (size_t i = n_handles; i-- > first_valid;)
		if (handles[i].unit == unit && handles[i].life == lives[unit])
			return &handles[i];
	if (n_handles == HANDLES_MAX)
		fake_abort("more than %d handles were asked for", HANDLES_MAX);
	handles[n_handles] = (struct handle){ unit, lives[unit] };
	return &handles[n_handles++];
}

void fake_forget_handles(void)
{
	first_valid = n_handles;
}
