/* A word in a file, by which a test tells a source in another process what to do. */
#ifndef GUA_TESTS_UNIT_TOLD_FIXTURE_H
#define GUA_TESTS_UNIT_TOLD_FIXTURE_H

#include "test.h"

#include <stdbool.h>

/* Makes the file's name. */
void told_start(void);
void told_finish(void);
void tell(const char *word);
bool is_told(const char *word);

#endif
