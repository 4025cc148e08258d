/* Sends the notices that wait in policy.db: keeps the limit of a day, makes digests, tries
 * again. Only for gua-enforce. */
#ifndef GUA_POLICY_SENDER_H
#define GUA_POLICY_SENDER_H

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

/* A session is warned no more: removes the login notice of its user; if other sessions of the
 * user are warned, it is written again, about these. */
void sender_clear_login(const struct config_notices *config, struct policy_file *f,
	const char *key, const char *user);

#endif
