/* Sends the notices that wait in policy.db: keeps the limit of a day, makes digests, tries
 * again. Only for gua-enforce. */
#ifndef GUA_CMD_ENFORCE_SEND_H
#define GUA_CMD_ENFORCE_SEND_H

#include "base/clock.h"
#include "policy/courier.h"
#include "store/policy/policy_file.h"

/* All but the last is the caller's. */
struct sender {
	const struct config_notices *config;
	struct courier *courier;
	struct policy_file *file;
	struct clock *clock;
	int64_t fixed_ms; /* what passes take for the present; -1: the clock */
	bool moved;	  /* private: notices were moved to other channels */
};

/* Starts deliveries of what is due. */
void sender_send(struct sender *s);
/* Notes what became of deliveries that are over. */
void sender_take_results(struct sender *s);

#endif
