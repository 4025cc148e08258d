/* The directory of the locks of gua pick. */
#ifndef GUA_CMD_PICK_PLACE_H
#define GUA_CMD_PICK_PLACE_H

#include "base/err.h"

/* Opens it: `asked`; or ROOT/run/lock/gua, if it belongs to root and has mode 1777 (root
 * creates it); or a private directory of the user, with a warning on standard error. Returns a
 * descriptor, or ERR_WORLD. */
int pick_place_open(const char *asked, const char *root, struct err *e);

#endif
