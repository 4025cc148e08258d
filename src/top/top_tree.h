/* The rows of `gua top` as a tree of processes: each process below its parent. */
#ifndef GUA_TOP_TREE_H
#define GUA_TOP_TREE_H

#include "top/top_model.h"
#include "proc/reader.h"

/* Puts the sorted rows into the order of a tree, and adds their ancestors. Siblings keep their
 * order. False: out of memory; the rows are unchanged. */
bool top_tree_order(struct top_model *m, const struct top_now *now);

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
