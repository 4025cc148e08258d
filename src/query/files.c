/* Opens the stores of an audit together, and reads each in one transaction. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "query/gather.h"
#include "query/sql.h"
#include "store/foreign.h"
#include "store/sqlite.h"
#include "store/store.h"

/* Refuses a file that is given twice, because it would be counted twice. */
static int check_not_twice(const struct gather *g, struct err *e)
{
	struct stat st;
	struct gather_file *file = &g->files[g->n_files - 1];
	if (stat(file->path, &st) != 0)
		return 0;
	file->device = st.st_dev;
	file->inode = st.st_ino;
	for (const struct gather_file *other = g->files; other < file; other++)
		if (other->inode == file->inode && other->device == file->device)
			return err_set(e, ERR_USAGE, "%s and %s are the same store",
				other->path, file->path);
	return 0;
}

/* Starts a transaction. A small cache is enough for sequential reading. The file is not mapped,
 * because a mapped file would count as memory. */
static int begin_reading(sqlite3 *db, struct err *e)
{
	if (sqlite3_exec(db, "PRAGMA cache_size=-512; BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return err_set(e, ERR_WORLD, "cannot read %s: %s",
			sqlite3_db_filename(db, "main"), sql_why(db));
	return 0;
}

int gather_open(struct gather *g, struct err *e)
{
	g->files = calloc(g->q->n_paths + 1, sizeof(*g->files));
	if (!g->files)
		return err_memory(e);
	foreign_expect(g->q->n_paths);
	for (size_t i = 0; i < g->q->n_paths; i++) {
		struct gather_file *file = &g->files[g->n_files++];
		file->path = g->q->paths[i];
		int rc = store_open_read_until(&file->db, file->path, g->q->stop, e);
		if (rc == 0)
			rc = check_not_twice(g, e);
		if (rc == 0)
			rc = begin_reading(file->db, e);
		if (rc)
			return rc;
	}
	return 0;
}

void gather_close(struct gather *g)
{
	for (size_t i = 0; i < g->n_files; i++) {
		sqlite3_close(g->files[i].db);
		idmap_finish(&g->files[i].hosts);
		idmap_finish(&g->files[i].cards);
		idmap_finish(&g->files[i].person);
		idmap_finish(&g->files[i].wanted);
		free(g->files[i].unknown_ms);
	}
	names_finish(&g->users);
	free(g->files);
	free(g->runs);
}
