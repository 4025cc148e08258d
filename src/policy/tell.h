/* Tells people about their sessions: makes notices from the steps of a pass, sends what waits
 * in the queue of policy.db, and stores what became of it. Only for gua-enforce. */
#pragma once

#include "policy/courier.h"
#include "policy/enforcer.h"
#include "policy/notice.h"
#include "store/policy/policy_notice.h"

/* Fills a notice of this kind with what is known about the session. */
void tell_describe(struct notice *n, const struct enforcer_step *s, enum notice_kind kind);

/* What the queue stores about a notice, beside its text. */
struct tell_queue {
	const struct config_notices *config;
	const char *key;   /* of the session */
	const char *stage; /* the name of the notice in the queue */
	const struct policy_state *state;
	int64_t now_ms;
};
/* Makes the rows of a notice, one for each configured channel, for the record of a step. Texts
 * that do not last are copied into the arena. */
int tell_make(struct arena *texts, const struct tell_queue *q, const struct notice *n,
	struct policy_record *r, struct err *e);

/* Makes an alarm for root, through the channels that reach administrators (`alarms` in
 * channel_kinds). */
int tell_alarm(struct arena *texts, const struct enforcer_step *s, const char *text,
	struct policy_record *r, struct err *e);

/* Makes the notices of a step: a warning is queued; when a session recovered, was kept,
 * exempted or released, its waiting notices are withdrawn. */
int tell_step(struct arena *texts, const struct enforcer_step *s, struct policy_record *r,
	struct err *e);

/* Sends the notices that wait in policy.db: keeps the daily limit, makes digests, tries
 * again. The caller sets all members but the last. */
struct sender {
	const struct enforcer *enforcer; /* its policy.db is open */
	struct courier *courier;
	int64_t fixed_ms; /* the moment that passes judge; -1: read the clock */
	bool moved;	  /* private: notices were moved to other channels */
};

/* When a delivery that has failed `tries` times, the last time at `failed_ms`, is tried again:
 * after 1, 2, 4 ... 60 minutes. */
int64_t tell_next_ms(int64_t tries, int64_t failed_ms);

/* Decides about the notices that wait for a user who was sent `sent` notices within the last
 * 24 hours. Two or more that would need more than half of what is left of the limit become
 * one digest, so that later ones can still be sent. Nothing is exempt from the limit: a
 * waiting notice, also a final one, delays the stages after it. */
enum tell_plan { TELL_WAIT, TELL_EACH, TELL_DIGEST };
enum tell_plan tell_decide(int64_t waiting, int64_t sent, int64_t per_day);

/* Starts the deliveries that are due. */
void tell_send(struct sender *s);
/* Stores the results of finished deliveries. */
void tell_take_results(struct sender *s);

/* Call when a session is no longer warned: removes the login notice of its user, or rewrites
 * it if other sessions of the user are still warned. */
void tell_clear_login(const struct config_notices *config, struct policy_file *f,
	const char *key, const char *user);
