/* The log of gua enforce as JSON. */
#ifndef GUA_RENDER_POLICY_LOG_H
#define GUA_RENDER_POLICY_LOG_H

#include "base/str.h"
#include "model/table.h"

/* What `gua enforce log --json` prints, of a policy_log_table(). */
void policy_log_json(struct str *out, const struct table *log);

#endif
