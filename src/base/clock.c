/* Reads the kernel's clocks, or a virtual clock of three numbers. */
#include "base/clock.h"

#include <sys/mman.h>

#include "base/base.h"

static int64_t kernel_us(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_monotonic_us(void)
{
	return kernel_us(CLOCK_MONOTONIC);
}

void clock_init_real(struct clock *c)
{
	*c = (struct clock){ 0 };
}

void clock_init_virtual(struct clock *c, int64_t wall_ms)
{
	*c = (struct clock){ 0 };
	/* Start an hour after boot, so that processes can have started before the clock. */
	c->own = (struct virtual_time){
		.magic = CLOCK_FILE_MAGIC,
		.boot_us = 3600 * 1000000LL,
		.wall_less_us = wall_ms * 1000 - 3600 * 1000000LL,
	};
	c->virtual_time = &c->own;
}

static int open_file(struct clock *c, const char *path, struct err *e)
{
	*c = (struct clock){ 0 };
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, ERR_USAGE, "cannot open the clock file %s: %s", path,
			strerror(errno));
	struct stat st;
	void *map = MAP_FAILED;
	/* If the file ends within a page, the rest of the page reads as 0. */
	if (fstat(fd, &st) == 0 && st.st_size >= (off_t)offsetof(struct virtual_time, hold_us))
		map = mmap(NULL, sizeof(struct virtual_time), PROT_READ | PROT_WRITE,
			MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return err_set(e, ERR_USAGE, "%s is not a clock file", path);
	if (((struct virtual_time *)map)->magic != CLOCK_FILE_MAGIC) {
		munmap(map, sizeof(struct virtual_time));
		return err_set(e, ERR_USAGE, "%s is not a clock file", path);
	}
	c->map = map;
	c->virtual_time = map;
	return 0;
}

int clock_open(struct clock *c, const char *how, int64_t wall_ms, struct err *e)
{
	if (!how || strcmp(how, "real") == 0)
		clock_init_real(c);
	else if (strcmp(how, "virtual") == 0)
		clock_init_virtual(c, wall_ms);
	else
		return open_file(c, how, e);
	return 0;
}

void clock_follow(struct clock *c)
{
	c->follows = c->map != NULL;
	if (c->follows)
		c->virtual_time->hold_us = c->virtual_time->boot_us;
}

void clock_finish(struct clock *c)
{
	if (c->follows)
		c->virtual_time->hold_us = 0;
	if (c->map)
		munmap(c->map, sizeof(struct virtual_time));
	*c = (struct clock){ 0 };
}

bool clock_is_virtual(const struct clock *c)
{
	return c->virtual_time != NULL;
}

bool clock_is_shared(const struct clock *c)
{
	return !c->virtual_time || c->map;
}

struct moment clock_now(const struct clock *c)
{
	const struct virtual_time *v = c->virtual_time;
	if (!v) {
		struct moment m = { 0 };
		/* The wall clock is read between two readings of the boot clock; a preemption
		 * in between would look like a clock step, so try again. */
		for (int tries = 0; tries < 10; tries++) {
			m.boot_us = kernel_us(CLOCK_BOOTTIME);
			m.wall_us = kernel_us(CLOCK_REALTIME);
			m.mono_us = kernel_us(CLOCK_MONOTONIC);
			if (kernel_us(CLOCK_BOOTTIME) - m.boot_us < 1000)
				break;
		}
		return m;
	}
	return (struct moment){
		.wall_us = v->boot_us + v->wall_less_us,
		.boot_us = v->boot_us,
		.mono_us = v->boot_us - v->suspended_us,
	};
}

int64_t clock_wall_ms(const struct clock *c)
{
	return clock_now(c).wall_us / 1000;
}

int64_t clock_cost_us(const struct clock *c)
{
	struct timespec t;
	if (c->virtual_time)
		return clock_now(c).mono_us;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* While another process holds or moves the clock, this process reads it this often. */
#define HOLD_MS 1

static int wait_virtual(
	struct virtual_time *v, int64_t until_us, struct pollfd *fds, unsigned n_fds)
{
	int ready = poll(fds, n_fds, 0);
	while (ready == 0 && v->boot_us < until_us) {
		int64_t to_us = v->hold_us && v->hold_us < until_us ? v->hold_us : until_us;
		if (v->boot_us < to_us)
			v->boot_us = to_us;
		else
			ready = poll(fds, n_fds, HOLD_MS);
	}
	return ready;
}

int clock_wait(struct clock *c, int64_t until_us, struct pollfd *fds, unsigned n_fds)
{
	if (c->follows) {
		int ready = poll(fds, n_fds, 0);
		if (ready == 0 && c->virtual_time->boot_us < until_us)
			c->virtual_time->hold_us = until_us;
		while (ready == 0 && c->virtual_time->boot_us < until_us)
			ready = poll(fds, n_fds, HOLD_MS);
		c->virtual_time->hold_us = c->virtual_time->boot_us;
		return ready;
	}
	if (c->virtual_time)
		return wait_virtual(c->virtual_time, until_us, fds, n_fds);
	int64_t left_us = until_us - clock_now(c).boot_us;
	if (left_us < 0)
		left_us = 0;
	struct timespec t = { .tv_sec = left_us / 1000000,
		.tv_nsec = left_us % 1000000 * 1000 };
	return ppoll(fds, n_fds, &t, NULL);
}

void clock_advance(struct clock *c, int64_t us)
{
	if (c->virtual_time && us > 0)
		c->virtual_time->boot_us += us;
}

/* A smaller difference of wall and boot clock is a correction, not a step. */
#define STEP_US 50000
/* A shorter suspend is not worth an event. */
#define SUSPEND_US 1000000

void clock_watch_start(struct clock_watch *w, const struct moment *now)
{
	w->wall_less_us = now->wall_us - now->boot_us;
	w->suspended_us = now->boot_us - now->mono_us;
}

int64_t clock_watch_step_us(struct clock_watch *w, const struct moment *now)
{
	int64_t step_us = now->wall_us - now->boot_us - w->wall_less_us;
	if (step_us < STEP_US && step_us > -STEP_US)
		return 0;
	w->wall_less_us += step_us;
	return step_us;
}

int64_t clock_watch_suspend_us(struct clock_watch *w, const struct moment *now)
{
	int64_t suspend_us = now->boot_us - now->mono_us - w->suspended_us;
	w->suspended_us += suspend_us;
	return suspend_us > SUSPEND_US ? suspend_us : 0;
}
