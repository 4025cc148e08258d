/* The spells in the store: what a tick writes, and what becomes of stretches that go on when a
 * run ends. Only for src/store. */
#ifndef GUA_STORE_SPELLS_H
#define GUA_STORE_SPELLS_H

#include <stdbool.h>

#include "model/tick.h"

struct store;

/* Writes the spells of a tick, after its cards and processes. False: SQLite failed, as with the
 * next. */
bool spells_write(struct store *s, const struct tick *t);

/* A run has ended, or was killed: its open stretches that are long enough become spells that
 * ended with it. Those of this boot stay open as well: if the next run sees one go on, the
 * spell is open again. */
bool spells_close(struct store *s);

/* Before the connection is closed. */
void spells_disconnect(struct store *s);

#endif
