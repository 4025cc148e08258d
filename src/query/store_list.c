/* Collects the paths of stores, and finds the stores in a directory. */
#include "query/store_list.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/log.h"
#include "store/identify.h"

static int add_path(struct store_list *l, const char *path, struct err *e)
{
	char *copy = strdup(path);
	if (!copy || !array_one_more(&l->paths, l->n)) {
		free(copy);
		return err_memory(e);
	}
	l->paths[l->n++] = copy;
	return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Adds a file of a directory if it is a store. */
static int add_file(struct store_list *l, const char *path, struct err *e)
{
	struct stat st;
	struct err why = { 0 };
	if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	int kind = store_identify(path, &why);
	if (kind == STORE_OURS)
		return add_path(l, path, e);
	if (kind < 0 && store_is_likely(path))
		log_notice("skipped: %s", why.text);
	return 0;
}

static int add_directory(struct store_list *l, const char *path, struct err *e)
{
	struct dirent **found = NULL;
	size_t before = l->n;
	int n = scandir(path, &found, NULL, by_name), rc = 0;
	if (n < 0)
		return err_set(e, ERR_WORLD, "cannot read the directory %s: %s", path,
			strerror(errno));
	for (int i = 0; i < n; i++) {
		char name[PATH_MAX];
		int len = snprintf(name, sizeof(name), "%s/%s", path, found[i]->d_name);
		if (rc == 0 && len > 0 && (size_t)len < sizeof(name))
			rc = add_file(l, name, e);
		free(found[i]);
	}
	free(found);
	if (rc == 0 && l->n == before)
		return err_set(
			e, ERR_WORLD, "the directory %s has no store that can be read", path);
	return rc;
}

int store_list_add(struct store_list *l, const char *path, struct err *e)
{
	struct stat st;
	bool directory = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	return directory ? add_directory(l, path, e) : add_path(l, path, e);
}

void store_list_finish(struct store_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->paths[i]);
	free(l->paths);
	*l = (struct store_list){ 0 };
}
