/* Sends the notices that wait in policy.db: keeps the daily limit, makes digests, tries
 * again. Only for gua-enforce. */
#ifndef GUA_POLICY_SENDER_H
#define GUA_POLICY_SENDER_H

#include "base/clock.h"
#include "policy/courier.h"
#include "store/policy/policy_file.h"

/* The caller sets all members but the last. */
struct sender {
	const struct config_notices *config;
	struct courier *courier;
	struct policy_file *file;
	struct clock *clock;
	int64_t fixed_ms; /* the moment that passes judge; -1: read the clock */
	bool moved;	  /* private: notices were moved to other channels */
};

/* Decides when a notice is sent: pure functions over numbers, so that a restart changes
 * nothing. */
/* When a delivery that has failed `tries` times, the last time at `failed_ms`, is tried again:
 * after 1, 2, 4 ... 60 minutes. */
int64_t sender_next_ms(int64_t tries, int64_t failed_ms);

/* Decides about the notices that wait for a user who was sent `sent` notices within the last
 * 24 hours. Two or more that would need more than half of what is left of the limit become
 * one digest, so that later ones can still be sent. Nothing is exempt from the limit: a
 * waiting notice, also a final one, delays the stages after it. */
enum sender_plan { SENDER_WAIT, SENDER_EACH, SENDER_DIGEST };
enum sender_plan sender_decide(int64_t waiting, int64_t sent, int64_t per_day);

/* Starts the deliveries that are due. */
void sender_send(struct sender *s);
/* Stores the results of finished deliveries. */
void sender_take_results(struct sender *s);

/* Call when a session is no longer warned: removes the login notice of its user, or rewrites
 * it if other sessions of the user are still warned. */
void sender_clear_login(const struct config_notices *config, struct policy_file *f,
	const char *key, const char *user);

#endif
