/* Waits that double, and the limit of a day. */
#include "policy/backoff.h"

#define MINUTE_MS INT64_C(60000)
#define DAY_MS (24 * 60 * MINUTE_MS)
#define LONGEST_MS (60 * MINUTE_MS)

int64_t backoff_next_ms(int64_t tries, int64_t failed_ms)
{
	if (tries <= 0)
		return failed_ms;
	int64_t wait_ms = tries > 6 ? LONGEST_MS : MINUTE_MS << (tries - 1);
	return failed_ms + (wait_ms < LONGEST_MS ? wait_ms : LONGEST_MS);
}

bool backoff_must_wait(int64_t sent, int64_t per_day, enum notice_kind kind)
{
	return (kind == NOTICE_WARNING || kind == NOTICE_AGAIN) && sent >= per_day;
}

int64_t backoff_digest_ms(int64_t first_sent_ms)
{
	return first_sent_ms + DAY_MS;
}
