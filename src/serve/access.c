/* Writes the access log. */
#include "serve/access.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

void access_log_init(struct access_log *l)
{
	*l = (struct access_log){ 0 };
	pthread_mutex_init(&l->lock, NULL);
}

void access_log_finish(struct access_log *l)
{
	pthread_mutex_destroy(&l->lock);
}

void access_target(char *dst, size_t cap, const char *target)
{
	size_t n = 0, name = strcspn(target, "?");
	for (size_t at = 0; target[at] && n + 1 < cap;) {
		size_t take = n + name < cap ? name : cap - 1 - n;
		memcpy(dst + n, target + at, take);
		n += take;
		at += name;
		if (target[at] == '=')
			at += strcspn(target + at, "&");
		if (target[at] && n + 1 < cap)
			dst[n++] = target[at++];
		name = strcspn(target + at, "=&");
	}
	dst[n] = '\0';
}

/* Whether one more line may be written now; sets how many lines were dropped before it. The
 * server must not block when nobody reads the log. */
static bool may_write(struct access_log *l, int64_t now_us, unsigned *dropped)
{
	struct pollfd errors = { .fd = STDERR_FILENO, .events = POLLOUT };
	pthread_mutex_lock(&l->lock);
	if (l->second != now_us / 1000000) {
		l->second = now_us / 1000000;
		l->written = 0;
	}
	bool may = l->written < ACCESS_LINES_A_SECOND && poll(&errors, 1, 0) == 1 &&
		   (errors.revents & POLLOUT);
	*dropped = may ? l->dropped : 0;
	l->dropped = may ? 0 : l->dropped + 1;
	l->written += may;
	pthread_mutex_unlock(&l->lock);
	return may;
}

void access_log_add(struct access_log *l, const struct access_line *line, const char *target)
{
	char shown[512];
	unsigned dropped = 0;
	int64_t now_us = clock_monotonic_us();
	if (!may_write(l, now_us, &dropped))
		return;
	access_target(shown, sizeof(shown), target);
	if (dropped)
		log_notice("%u requests were not logged", dropped);
	log_notice("%s %s %s %s %d %zu bytes %.1f ms", line->address,
		*line->user ? line->user : "-", line->method, shown, line->status, line->bytes,
		(double)(now_us - line->began_us) / 1000);
}
