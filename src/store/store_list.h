/* The stores that a command reads: files, directories of files, and patterns. */
#pragma once

#include "base/base.h"

/* Zero-initialise. */
struct store_list {
	char **paths;
	size_t n;
	char **unread; /* why files that look like stores are not among them; safe to show */
	size_t n_unread;
};

/* Adds a path. A directory stands for all stores in it, in the order of their names. A path
 * that does not exist and has * ? or [ in it is a pattern, as in a shell, for files and
 * directories. Symbolic links are followed; a link is left out if the store it leads to is in
 * the directory or pattern anyway. In a directory or pattern, a file that looks like a store
 * and cannot be read is noted in `unread`; if no store can be read, it is ERR_WORLD. */
int store_list_add(struct store_list *l, const char *path, struct err *e);
void store_list_finish(struct store_list *l);
