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

/* When a notice is sent: pure functions over numbers, so that a restart changes nothing. */
/* When a delivery that has failed `tries` times, the last time at `failed_ms`, is tried again:
 * after 1, 2, 4 ... 60 minutes. */
int64_t sender_next_ms(int64_t tries, int64_t failed_ms);

/* What becomes of the notices that wait for a user who was sent `sent` within the last day. Two
 * or more that would need more than half of what is left of the limit become one, so that there
 * is room for what comes after them. Nothing is exempt from the limit: what waits, also a final
 * notice, delays what comes after it. */
enum sender_plan { SENDER_WAIT, SENDER_EACH, SENDER_DIGEST };
enum sender_plan sender_decide(int64_t waiting, int64_t sent, int64_t per_day);

/* Starts deliveries of what is due. */
void sender_send(struct sender *s);
/* Notes what became of deliveries that are over. */
void sender_take_results(struct sender *s);

/* A session is warned no more: removes the login notice of its user; if other sessions of the
 * user are warned, it is written again, about these. */
void sender_clear_login(const struct config_notices *config, struct policy_file *f,
	const char *key, const char *user);

#endif
