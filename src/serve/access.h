/* The access log: one line for each request, without anything that may be secret: no
 * headers, and only the names of query parameters. */
#ifndef GUA_SERVE_ACCESS_H
#define GUA_SERVE_ACCESS_H

#include <pthread.h>
#include <stdint.h>

#include "serve/secrets.h"

struct access_line {
	char address[48], user[SECRET_NAME_CAP], method[16];
	int status; /* 0: no answer was sent */
	size_t bytes;
	int64_t began_us; /* monotonic */
};

/* Lines written per second at most: a flood of requests must not fill the disk. */
enum { ACCESS_LINES_A_SECOND = 100 };

struct access_log {
	pthread_mutex_t lock;
	int64_t second;
	unsigned written, dropped;
};

void access_log_init(struct access_log *l);
void access_log_finish(struct access_log *l);
void access_log_add(struct access_log *l, const struct access_line *line, const char *target);

/* The target without the values of its parameters: "/api/v1/report?since&user". */
void access_target(char *dst, size_t cap, const char *target);

#endif
