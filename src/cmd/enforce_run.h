/* gua enforce run: the service. Only for gua-enforce. */
#ifndef GUA_CMD_ENFORCE_RUN_H
#define GUA_CMD_ENFORCE_RUN_H

#include "cmd/enforce.h"

int enforce_run(struct enforce *x);
/* gua enforce test-notice USER. */
int enforce_test_notice(struct enforce *x);

#endif
