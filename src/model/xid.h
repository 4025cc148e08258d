/* What the driver's XID numbers mean. */
#ifndef GUA_MODEL_XID_H
#define GUA_MODEL_XID_H

#include <stdint.h>

/* What happened and what to do, in one or two sentences without a final full stop; NULL: the
 * number is not one of the common ones. The numbers are those of "XID Errors" in NVIDIA's
 * documentation and of nverror.h in its kernel modules; the words are ours. */
const char *xid_meaning(int64_t number);

#endif
