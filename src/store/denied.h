/* Explains why a user may not read a store, and which group would help. */
#ifndef GUA_STORE_DENIED_H
#define GUA_STORE_DENIED_H

#include "base/err.h"

/* Fills `e` for a store that open(2) refuses with EACCES: who may read it, and what an
 * administrator can do. Returns ERR_WORLD. */
int store_denied(const char *path, struct err *e);

#endif
