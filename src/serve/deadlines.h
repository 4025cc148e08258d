/* Deadlines of connections: a client that sends or reads too slowly is cut off, however often
 * it sends a byte. */
#ifndef GUA_SERVE_DEADLINES_H
#define GUA_SERVE_DEADLINES_H

#include <stdint.h>

#include "base/err.h"

struct deadlines;
struct deadline; /* of one connection */

/* Starts a thread that looks once a second. */
int deadlines_open(struct deadlines **d, struct err *e);
void deadlines_close(struct deadlines *d);

/* Watches a socket, until deadline_end(), which must come before the socket is closed. NULL:
 * out of memory. */
struct deadline *deadline_begin(struct deadlines *d, int fd, int64_t ms);
void deadline_end(struct deadlines *d, struct deadline *one);
/* The socket is shut down this long from now, unless another deadline is set first. */
void deadline_set(struct deadline *one, int64_t ms);

#endif
