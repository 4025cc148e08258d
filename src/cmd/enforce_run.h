/* gua enforce run: the service. Only for gua-enforce. */
#ifndef GUA_CMD_ENFORCE_RUN_H
#define GUA_CMD_ENFORCE_RUN_H

#include "cmd/enforce.h"
#include "policy/post.h"

int enforce_run(struct enforce *x);
/* gua enforce test-notice USER. */
int enforce_test_notice(struct enforce *x);

/* Finds gua-post, which belongs to the running program; `path` lasts as long as it is used. */
struct post_program enforce_post(char path[PATH_MAX]);

#endif
