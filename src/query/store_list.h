/* The stores of a question: files, and directories of files. */
#ifndef GUA_QUERY_STORE_LIST_H
#define GUA_QUERY_STORE_LIST_H

#include <stddef.h>

#include "base/err.h"

/* Zero-initialise. */
struct store_list {
	char **paths;
	size_t n;
};

/* Adds a path. A directory stands for all stores in it: regular files, in the order of their
 * names. A file there that looks like a store and cannot be read is skipped with a notice; a
 * directory without a store is ERR_WORLD. */
int store_list_add(struct store_list *l, const char *path, struct err *e);
void store_list_finish(struct store_list *l);

#endif
