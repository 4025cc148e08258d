/* gua enforce run: the service. Only for gua-enforce. */
#ifndef GUA_CMD_ENFORCE_RUN_H
#define GUA_CMD_ENFORCE_RUN_H

#include "cmd/enforce.h"

int enforce_run(struct enforce *x);

#endif
