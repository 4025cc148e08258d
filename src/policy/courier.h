/* Delivers notices: each in a process of its own, with a deadline, so that no mail server, no
 * webhook and no terminal can hold up the program. */
#pragma once

#include "policy/channel.h"

/* Largest number of deliveries at the same time. */
enum { COURIER_MOST = 8 };

struct courier;

/* `config` and `post` are borrowed; they may change only while no delivery is running. */
int courier_new(struct courier **c, const struct config_notices *config,
	const struct post_program *post, struct err *e);
/* Abandons the deliveries that are still running. */
void courier_free(struct courier *c);

/* Starts a delivery; `ticket` comes back with its result. ERR_BUSY: too many are running;
 * try again later. */
int courier_send(struct courier *c, int64_t ticket, enum channel channel,
	const struct notice *n, struct err *e);

struct courier_result {
	int64_t ticket;
	enum channel channel;
	enum delivery delivery;
	char text[CHANNEL_WHY_CAP]; /* the people reached, or the reason for the failure */
};
/* Takes the result of a delivery that has finished or is too late; false: none. */
bool courier_next(struct courier *c, struct courier_result *r);

/* For poll(2): fills at most COURIER_MOST entries and returns how many. */
size_t courier_fds(const struct courier *c, struct pollfd *fds);
/* How long the caller may wait before it calls courier_next(); -1: no delivery is running. */
int64_t courier_wait_ms(const struct courier *c);
