/* SQLite's memory, for the whole process, and the most that it may be: a file of unknown origin
 * could want any amount. */
#ifndef GUA_STORE_HEAP_H
#define GUA_STORE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* For programs whose threads read stores at the same time: SQLite counts its memory behind one
 * lock, for which they would mostly wait. From here on it is counted without. To be called
 * before anything else of SQLite, in one thread; afterwards it has no effect. */
void heap_start(void);

void heap_set_limit(int64_t bytes);
bool heap_has_limit(void);

#endif
