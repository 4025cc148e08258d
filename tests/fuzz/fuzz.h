/* What every fuzz target includes. A target is one function that libFuzzer calls with bytes
 * (see meson option `fuzzers`, `make fuzz`) and that run_corpus.c calls over the target's
 * corpus and mutations of it, which is the test `fuzz_NAME`. */
#ifndef GUA_TESTS_FUZZ_FUZZ_H
#define GUA_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property of the code under test that does not hold is a crash. */
#define CHECK(condition)                                                                       \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,             \
				#condition);                                                   \
			abort();                                                               \
		}                                                                              \
	} while (0)

/* The bytes as a string of their own size, so that a sanitizer sees each step beyond it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	CHECK(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* May this be shown? Text that escaping leaves alone may. */
static inline void check_safe(const char *text)
{
	size_t len = strlen(text);
	char *again = malloc(len + 1);
	CHECK(again);
	CHECK(str_escape(again, len + 1, text, len) == len);
	CHECK(memcmp(again, text, len + 1) == 0);
	free(again);
}

#endif
