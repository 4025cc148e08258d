/* Collects the paths of stores, also those in a directory or of a pattern. */
#include "store/store_list.h"

#include <glob.h>

#include "store/identify.h"

/* Adds a copy of a text to a list of *n. */
static int add_text(char ***list, size_t *n, const char *text, struct err *e)
{
	char *copy = strdup(text);
	if (!copy || !array_one_more(list, *n)) {
		free(copy);
		return err_memory(e);
	}
	(*list)[(*n)++] = copy;
	return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static bool is_link(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Adds a file from a directory or pattern, if it is a store. */
static int add_file(struct store_list *l, const char *path, struct err *e)
{
	struct stat st;
	struct err why = { 0 };
	if (stat(path, &st) != 0) {
		/* A link that leads nowhere is noted if its name is that of a store. Other
		 * missing files were deleted meanwhile. */
		if (errno != ENOENT || !is_link(path) || !identify_is_likely(path))
			return 0;
		err_set(&why, ERR_WORLD, "%s is a symbolic link to a file that does not exist",
			path);
		return add_text(&l->unread, &l->n_unread, why.text, e);
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	int kind = identify_store(path, &why);
	if (kind == STORE_OURS)
		return add_text(&l->paths, &l->n, path, e);
	if (kind == STORE_EMPTY)
		err_set(&why, ERR_WORLD, "%s is empty: nothing was recorded yet", path);
	if (kind == STORE_MISSING || !identify_is_likely(path))
		return 0;
	return add_text(&l->unread, &l->n_unread, why.text, e);
}

static int add_directory(struct store_list *l, const char *path, struct err *e)
{
	struct dirent **found = NULL;
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
	return rc;
}

static int add_matches(struct store_list *l, const char *pattern, struct err *e)
{
	glob_t found = { 0 };
	int rc = glob(pattern, 0, NULL, &found) == GLOB_NOSPACE ? err_memory(e) : 0;
	if (rc == 0 && found.gl_pathc == 0)
		rc = err_set(e, ERR_WORLD, "no file matches %s", pattern);
	for (size_t i = 0; i < found.gl_pathc && rc == 0; i++) {
		const char *path = found.gl_pathv[i];
		struct stat st;
		bool directory = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
		rc = directory ? add_directory(l, path, e) : add_file(l, path, e);
	}
	globfree(&found);
	return rc;
}

/* A file from a directory or pattern, to find links to other such files. */
struct listed {
	struct file_id id;
	bool link;
	size_t at;
};

/* Orders by file; the file itself comes before links to it. */
static int compare_listed(const void *x, const void *y)
{
	const struct listed *a = x, *b = y;
	int order = file_id_compare(&a->id, &b->id);
	if (order)
		return order;
	if (a->link != b->link)
		return a->link ? 1 : -1;
	return array_compare((int64_t)a->at, (int64_t)b->at);
}

/* Removes links from the paths from `from` on if their store is there without them. */
static int drop_links(struct store_list *l, size_t from, struct err *e)
{
	struct listed *all = calloc(l->n - from + 1, sizeof(*all));
	size_t n = 0;
	if (!all)
		return err_memory(e);
	for (size_t i = from; i < l->n; i++) {
		struct stat st;
		if (stat(l->paths[i], &st) == 0)
			all[n++] = (struct listed){ { st.st_dev, st.st_ino },
				is_link(l->paths[i]), i };
	}
	qsort(all, n, sizeof(*all), compare_listed);
	for (size_t i = 1; i < n; i++)
		if (all[i].link && file_id_compare(&all[i].id, &all[i - 1].id) == 0) {
			free(l->paths[all[i].at]);
			l->paths[all[i].at] = NULL;
		}
	free(all);
	size_t kept = from;
	for (size_t i = from; i < l->n; i++)
		if (l->paths[i])
			l->paths[kept++] = l->paths[i];
	l->n = kept;
	return 0;
}

int store_list_add(struct store_list *l, const char *path, struct err *e)
{
	struct stat st;
	size_t before = l->n, unread = l->n_unread;
	bool exists = stat(path, &st) == 0, directory = exists && S_ISDIR(st.st_mode);
	if (!directory && (!strpbrk(path, "*?[") || exists))
		return add_text(&l->paths, &l->n, path, e);
	int rc = directory ? add_directory(l, path, e) : add_matches(l, path, e);
	if (rc == 0)
		rc = drop_links(l, before, e);
	if (rc || l->n > before)
		return rc;
	bool why = l->n_unread > unread;
	return err_set(e, ERR_WORLD, "the %s %s has no store that can be read%s%s",
		directory ? "directory" : "pattern", path, why ? ": " : "",
		why ? l->unread[unread] : "");
}

static void free_list(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void store_list_finish(struct store_list *l)
{
	free_list(l->paths, l->n);
	free_list(l->unread, l->n_unread);
	*l = (struct store_list){ 0 };
}
