/* The rows of `gua top` as a tree of processes: each process below its parent. */
#ifndef GUA_TOP_TREE_H
#define GUA_TOP_TREE_H

#include "top/top_model.h"

/* Puts the sorted rows into the order of a tree, and adds their ancestors. Siblings keep their
 * order. False: out of memory; the rows are unchanged. */
bool top_tree_order(struct top_model *m, const struct top_now *now);

#endif
