/* When a notice is sent: pure functions over numbers, so that a restart changes nothing. */
#ifndef GUA_POLICY_BACKOFF_H
#define GUA_POLICY_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/notice.h"

/* When a delivery that has failed `tries` times, the last time at `failed_ms`, is tried again:
 * after 1, 2, 4 ... 60 minutes. */
int64_t backoff_next_ms(int64_t tries, int64_t failed_ms);

/* Whether a notice must wait until the next day: the user has had `sent` others within the last
 * day. Only warnings wait. Without a final notice nothing may be ended, and what was done must
 * be told. */
bool backoff_must_wait(int64_t sent, int64_t per_day, enum notice_kind kind);

/* When the digest of a user is due: a day after the first notice that counts against the limit
 * was sent. */
int64_t backoff_digest_ms(int64_t first_sent_ms);

#endif
