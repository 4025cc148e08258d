/* What the targets of sub-tracking share: two files are joined, and the result is printed. */
#ifndef GUA_TESTS_FUZZ_FUZZ_SUBTRACK_H
#define GUA_TESTS_FUZZ_FUZZ_SUBTRACK_H

#include "fuzz.h"
#include "subtrack/subtrack.h"

static inline void analyze(const char *tracking, const char *sub)
{
	struct subtrack s = { 0 };
	struct err e = { 0 };
	if (subtrack_analyze(&s, tracking, sub, &e) != 0) {
		CHECK(e.text[0]);
		check_safe(e.text);
	}
	for (size_t i = 0; i < TRACKING_STATICS; i++)
		check_safe(s.statics[i] ? s.statics[i] : "");
	for (size_t i = 0; i < s.n_blocks; i++) {
		const struct subtrack_block *b = &s.blocks[i];
		check_safe(b->name);
		CHECK(b->non_empty_calls >= 0 && b->non_empty_calls <= b->calls);
	}
	CHECK(s.unfinished >= 0);
	subtrack_finish(&s);
}

#endif
