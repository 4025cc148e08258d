/* The orphan memory of an audit. Only for model/audit.h. */
#ifndef GUA_MODEL_AUDIT_ORPHANS_H
#define GUA_MODEL_AUDIT_ORPHANS_H

#include <stddef.h>
#include <stdint.h>

/* Memory that no living process explains, on a card at the last tick of its recorder. */
struct audit_orphan {
	size_t card;	   /* index */
	uint32_t pid;	   /* of a process that the driver lists and the host does not have; 0:
			      the driver lists none */
	int64_t mem_bytes; /* -1 unknown */
	int64_t since_ms;  /* it has been seen since */
};

struct audit_orphans {
	struct audit_orphan *items; /* in the order of the stores */
	size_t n;
};

#endif
