/* When a notice is sent: pure functions over numbers, so that a restart changes nothing. */
#ifndef GUA_POLICY_BACKOFF_H
#define GUA_POLICY_BACKOFF_H

#include <stdint.h>

/* When a delivery that has failed `tries` times, the last time at `failed_ms`, is tried again:
 * after 1, 2, 4 ... 60 minutes. */
int64_t backoff_next_ms(int64_t tries, int64_t failed_ms);

/* What becomes of the notices that wait for a user who was sent `sent` within the last day. Two
 * or more that would need more than half of what is left of the limit become one, so that there
 * is room for what comes after them. Nothing is exempt from the limit: what waits, also a final
 * notice, delays what comes after it. */
enum backoff_plan { BACKOFF_WAIT, BACKOFF_EACH, BACKOFF_DIGEST };
enum backoff_plan backoff_decide(int64_t waiting, int64_t sent, int64_t per_day);

#endif
