/* Random histories of sessions, judged in three ways: live in steps, by simulate, and by the
 * plain words of the policy. Shared by the unit test and the benchmark. */
#ifndef GUA_TESTS_UNIT_POLICY_FIXTURE_H
#define GUA_TESTS_UNIT_POLICY_FIXTURE_H

#include <stddef.h>
#include <stdint.h>

/* What was checked, so that a test can see that it checked something. */
struct policy_checked {
	size_t histories, warnings, ends, would_ends, recovered, kept, exempt, blind, quiet;
	size_t renewed; /* final notices after a long hold */
	size_t reborn;	/* sessions that began again after their end */
	size_t joined;	/* sessions that only a new process spared at the last look */
	size_t held;	/* ends that another one of the same pass delayed */
};

/* Makes the history of this seed and checks it. Returns NULL, or a sentence about what is
 * wrong, in a static buffer. */
const char *policy_check_random(uint64_t seed, struct policy_checked *sum);

#endif
