/* The rows of `gua top` as a tree of processes: those on cards below those that started them.
 */
#ifndef GUA_TOP_TREE_H
#define GUA_TOP_TREE_H

#include "top/top_model.h"

/* Puts the sorted rows into the order of a tree, adding the ancestors that lead to them; false:
 * out of memory, the rows are as they were. Siblings keep their order. */
bool top_tree_order(struct top_model *m, const struct top_now *now);

#endif
