/* What every unit test includes: cmocka with the headers that it asks for. */
#ifndef GUA_TESTS_UNIT_TEST_H
#define GUA_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Whether random tests play all they can, as in `make test-all`. */
static inline bool plays_all(void)
{
	return getenv("GUA_TEST_ALL") != NULL;
}

#endif
