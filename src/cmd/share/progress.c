/* Draws the bar, ten times a second at most, and looks for signals. */
#include "cmd/share/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { BAR_WIDTH = 30, REDRAW_MS = 100 };

void progress_init(struct progress *p, const char *unit)
{
	*p = (struct progress){ .unit = unit, .terminal = isatty(STDERR_FILENO) };
	sigemptyset(&p->signals);
	sigaddset(&p->signals, SIGINT);
	sigaddset(&p->signals, SIGTERM);
	sigaddset(&p->signals, SIGHUP);
}

int progress_hold_signals(struct progress *p)
{
	return sigprocmask(SIG_BLOCK, &p->signals, NULL);
}

static void draw(struct progress *p, int64_t done, int64_t total)
{
	char fill[BAR_WIDTH + 1];
	int64_t now = clock_monotonic_us() / 1000;
	if (!p->terminal || total <= 0 || (p->shown && now - p->drawn_ms < REDRAW_MS))
		return;
	int64_t part = done >= total ? BAR_WIDTH : done * BAR_WIDTH / total;
	memset(fill, '.', BAR_WIDTH);
	memset(fill, '#', (size_t)part);
	fill[BAR_WIDTH] = '\0';
	fprintf(stderr, "\r[%s] %" PRId64 "/%" PRId64 " %s", fill, done, total, p->unit);
	fflush(stderr);
	p->shown = true;
	p->drawn_ms = now;
}

int progress_step(void *progress, int64_t done, int64_t total)
{
	struct progress *p = progress;
	const struct timespec at_once = { 0, 0 };
	draw(p, done, total);
	return sigtimedwait(&p->signals, NULL, &at_once) > 0;
}

void progress_erase(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}
