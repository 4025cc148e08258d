/* The directory of the locks of gua pick. */
#ifndef GUA_CMD_PICK_PLACE_H
#define GUA_CMD_PICK_PLACE_H

#include "base/err.h"

/* Opens it: `asked`; or ROOT/run/lock/gua, if it belongs to root and has mode 1777 (root
 * creates it); or a private directory of the user, with a warning on standard error; or none,
 * with another warning, because a user who has put files there must not stop the pick. *fd is
 * a descriptor, or -1 for none. Fails only for `asked`. */
int pick_place_open(int *fd, const char *asked, const char *root, struct err *e);

#endif
