/* What every unit test includes: cmocka with the headers that it asks for. */
#ifndef GUA_TESTS_UNIT_TEST_H
#define GUA_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
