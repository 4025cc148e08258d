/* The parents of the processes on the cards, from /proc, for the tree of `gua top`. */
#ifndef GUA_TOP_FAMILY_H
#define GUA_TOP_FAMILY_H

#include "proc/reader.h"
#include "top/top_model.h"

struct top_family {
	struct reader *reader; /* borrowed */
	uint32_t *parents;     /* of each process; 0 unknown */
	size_t cap_parents;
	struct top_ancestor *ancestors;
	size_t n, cap;
};

void top_family_finish(struct top_family *f);
/* Reads the parents of all processes and their parents in turn, up to but without init, and
 * hands them to `now`. What cannot be read is left out. */
void top_family_read(struct top_family *f, struct reader *reader, struct top_now *now);

#endif
