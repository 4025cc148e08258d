/* The connection to gua-end (end_server.h), which holds and signals processes: a child with a
 * socket, or a service behind one. gua-end reads only /proc, which is fast, so callers wait
 * for its reply. */
#pragma once

#include "base/base.h"
#include "policy/end_wire.h"
#include "proc/activity.h"

struct end_link;

/* `program` is started when it is first needed, and again if it has ended; if `socket` is not
 * NULL, that is connected to instead. Both are borrowed. */
int end_link_new(struct end_link **l, const char *program, const char *socket, struct err *e);
void end_link_free(struct end_link *l);

/* Asks, and waits at most a few seconds. ERR_WORLD: there is no gua-end, or it does not answer;
 * then it is not known whether it did what it was asked for. The answer is in `reply`. */
int end_link_ask(struct end_link *l, enum end_ask ask, const struct proc_life *p,
	struct end_reply *reply, struct err *e);
/* Takes a held process that has ended; false: there is none, or no more. */
bool end_link_ended(struct end_link *l, struct proc_life *p);
/* For poll(2); -1: not connected. */
int end_link_fd(const struct end_link *l);
