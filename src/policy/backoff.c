/* Waits that double, and the limit of a day. */
#include "policy/backoff.h"

#define MINUTE_MS INT64_C(60000)
#define LONGEST_MS (60 * MINUTE_MS)

int64_t backoff_next_ms(int64_t tries, int64_t failed_ms)
{
	if (tries <= 0)
		return failed_ms;
	int64_t wait_ms = tries > 6 ? LONGEST_MS : MINUTE_MS << (tries - 1);
	return failed_ms + (wait_ms < LONGEST_MS ? wait_ms : LONGEST_MS);
}

enum backoff_plan backoff_decide(int64_t waiting, int64_t sent, int64_t per_day)
{
	int64_t left = per_day > sent ? per_day - sent : 0;
	if (left == 0 || waiting <= 0)
		return BACKOFF_WAIT;
	return waiting == 1 || waiting <= left / 2 ? BACKOFF_EACH : BACKOFF_DIGEST;
}
