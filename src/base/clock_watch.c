/* Compares the differences of the three clocks with the earlier ones. */
#include "base/clock_watch.h"

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
