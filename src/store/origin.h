/* Where a store comes from: whether two files are of the same recording. */
#ifndef GUA_STORE_ORIGIN_H
#define GUA_STORE_ORIGIN_H

#include "base/err.h"

enum { ORIGIN_CAP = 512 };

/* Fills `origin` with a text that two stores share if they have the same first run of the same
 * host; "" if the store has no run. ERR_WORLD: the file is not a store, or is damaged. */
int store_origin(const char *path, char origin[ORIGIN_CAP], struct err *e);

#endif
