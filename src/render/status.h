/* The status of a recorder as JSON. */
#ifndef GUA_RENDER_STATUS_H
#define GUA_RENDER_STATUS_H

#include "base/str.h"
#include "store/recorder_status.h"

/* What `gua status --json` prints. */
void status_json(struct str *out, const struct recorder_status *s);

#endif
