/* Removes processes that nothing refers to any more. */
#ifndef GUA_STORE_SWEEP_H
#define GUA_STORE_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct store;

/* Are there processes that ended before `before_ms` and that this connection has not examined?
 * Returns SQLite's code, like the next. */
int store_sweep_due(struct store *s, int64_t before_ms, bool *due);
/* Examines some of them and removes those without slots, within the caller's transaction. */
int store_sweep(struct store *s, int64_t now_ms, int64_t before_ms);

#endif
