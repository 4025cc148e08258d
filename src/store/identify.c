/* Identifies a file: by its header first, then by its tables. */
#include "store/identify.h"

#include "model/process.h"
#include "proc/user.h"
#include "store/foreign.h"
#include "store/sql.h"
#include "store/store.h"

/* Finds what denies the access, the file or its directory, and names its group. Names come from
 * the local files, because a name service could block. */

enum { NAMES_MAX = 4 << 20 };

/* The group that may read the stores of the service; dist/gua.sysusers makes it. */
#define SERVICE_GROUP "gua"

/* Finds the name of an id in a file like /etc/passwd; /etc/group has ids in the same field. */
static bool find_name(const char *file, uint32_t id, char *name, size_t cap)
{
	char *bytes = NULL, raw[USER_CAP];
	size_t len = 0;
	struct err unread = { 0 };
	bool found = file_read_all(file, NAMES_MAX, &bytes, &len, &unread) == 0 &&
		     user_find_in_passwd(bytes, len, id, raw, sizeof(raw));
	if (found)
		str_escape(name, cap, raw, strlen(raw));
	free(bytes);
	return found;
}

/* What denies the access: the file, or its directory if that cannot be entered. */
struct barrier {
	char path[PATH_MAX];
	bool directory;
	struct stat st;
};

static bool find_barrier(struct barrier *b, const char *path)
{
	str_copy(b->path, sizeof(b->path), path);
	if (stat(path, &b->st) == 0)
		return true;
	char *slash = strrchr(b->path, '/');
	if (errno != EACCES || !slash || slash == b->path)
		return false;
	*slash = '\0';
	b->directory = true;
	return stat(b->path, &b->st) == 0;
}

/* Whether members of its group have access. */
static bool lets_group_in(const struct barrier *b)
{
	return b->st.st_mode & (b->directory ? S_IXGRP : S_IRGRP);
}

/* The advice has commands to run as root, so it must not give a group access to another
 * program's file. */
static bool is_named_as_store(const char *path)
{
	return str_ends_with(path, ".db");
}

int identify_denied(const char *path, struct err *e)
{
	struct barrier b = { 0 };
	char group[USER_CAP] = "", user[USER_CAP] = "NAME";
	err_set(e, ERR_WORLD, "cannot open the store %s: %s", path, strerror(EACCES));
	struct err why = *e;
	if (!is_named_as_store(path) || !find_barrier(&b, path) || !lets_group_in(&b))
		return e->code;
	find_name("/etc/passwd", geteuid(), user, sizeof(user));
	if (b.st.st_gid == 0)
		return err_set(e, ERR_WORLD,
			"%s; only root may read it. To share it, run as root: groupadd -f "
			"" SERVICE_GROUP "; chgrp -R " SERVICE_GROUP
			" %s%s; usermod -aG " SERVICE_GROUP " %s (then log in again)",
			why.text, b.path, b.directory ? "" : "*", user);
	if (!find_name("/etc/group", b.st.st_gid, group, sizeof(group)))
		snprintf(group, sizeof(group), "%u", (unsigned)b.st.st_gid);
	return err_set(e, ERR_WORLD,
		"%s; members of the group %s may read it. Run as root: usermod -aG %s %s (then "
		"log in again)",
		why.text, group, group, user);
}

/* The head of every SQLite file (https://sqlite.org/fileformat.html, 1.3). */
enum { HEADER_BYTES = 100, OFFSET_USER_VERSION = 60, OFFSET_APPLICATION_ID = 68 };
static const char magic[16] = "SQLite format 3";

static uint32_t big_endian_32(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

/* A database without our application id: empty, the Python tool's, or another program's. */
static int identify_foreign(const char *path, struct err *e)
{
	const struct foreign_file file = { .path = path, .immutable = true };
	sqlite3 *db = NULL;
	int rc = SQLITE_OK, failed = foreign_open(&db, &file, e);
	if (failed)
		return failed;
	int64_t tables = sql_value(db, "SELECT count(*) FROM sqlite_schema", 0, &rc);
	int64_t python = 0;
	if (rc == SQLITE_OK)
		python = sql_value(db,
			"SELECT count(*) FROM sqlite_schema WHERE type = 'table'"
			" AND name IN ('gpu_sample', 'proc_sample')",
			0, &rc);
	failed = rc == SQLITE_OK ? 0 : sql_fail(e, db, "read", path);
	sqlite3_close(db);
	if (failed)
		return failed;
	if (python == 2)
		return err_set(e, ERR_WORLD,
			"%s is a database of the Python tool; take it over with: gua import %s",
			path, path);
	if (tables > 0 || foreign_has_log(path))
		return err_set(
			e, ERR_WORLD, "%s is a database of another program, not of gua", path);
	return STORE_EMPTY;
}

bool identify_knows(int64_t version)
{
	return version == 0 || (version >= STORE_OLDEST && version <= STORE_VERSION);
}

int identify_refuse_version(const char *path, int64_t version, struct err *e)
{
	if (version > 0 && version < STORE_OLDEST)
		return err_set(e, ERR_WORLD,
			"%s has schema version %lld, from before the first release: begin a "
			"new store",
			path, (long long)version);
	return err_set(e, ERR_WORLD,
		"%s has schema version %lld and this gua knows up to %d: use a newer gua", path,
		(long long)version, STORE_VERSION);
}

static int identify_header(const char *path, const unsigned char *header, struct err *e)
{
	if (memcmp(header, magic, sizeof(magic)) != 0)
		return err_set(e, ERR_WORLD, "%s is not a store of gua (not a database)", path);
	if (big_endian_32(header + OFFSET_APPLICATION_ID) != STORE_APPLICATION_ID)
		return identify_foreign(path, e);
	uint32_t version = big_endian_32(header + OFFSET_USER_VERSION);
	return identify_knows(version) ? STORE_OURS : identify_refuse_version(path, version, e);
}

static int identify_open(int fd, const char *path, struct err *e)
{
	unsigned char header[HEADER_BYTES];
	struct stat st;
	if (fstat(fd, &st) != 0)
		return err_set(e, ERR_WORLD, "cannot read %s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_WORLD, "%s is a directory; a store is a file", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_WORLD, "%s is not a regular file", path);
	if (st.st_size == 0)
		return STORE_EMPTY;
	ssize_t n = pread(fd, header, sizeof(header), 0);
	if (n < 0)
		return err_set(e, ERR_WORLD, "cannot read %s: %s", path, strerror(errno));
	if (n < HEADER_BYTES)
		return err_set(e, ERR_WORLD, "%s is not a store of gua (not a database)", path);
	return identify_header(path, header, e);
}

/* Returns the application id of a database; 0: it has none, or the file is not a database. */
static uint32_t application_of(const char *path)
{
	unsigned char header[HEADER_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool database = fd >= 0 && pread(fd, header, sizeof(header), 0) == HEADER_BYTES &&
			memcmp(header, magic, sizeof(magic)) == 0;
	file_close(fd);
	return database ? big_endian_32(header + OFFSET_APPLICATION_ID) : 0;
}

bool identify_is_likely(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t len = strlen(name);
	uint32_t application = application_of(path);
	if (application == POLICY_APPLICATION_ID || application == POLICY_OLD_APPLICATION_ID ||
		strcmp(name, "policy.db") == 0)
		return false;
	return application == STORE_APPLICATION_ID ||
	       (len >= 3 && strcmp(name + len - 3, ".db") == 0);
}

int identify_store(const char *path, struct err *e)
{
	if (!*path)
		return err_set(e, ERR_USAGE, "the path of the store is empty");
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return STORE_MISSING;
	if (fd < 0 && errno == EACCES)
		return identify_denied(path, e);
	if (fd < 0)
		return err_set(
			e, ERR_WORLD, "cannot open the store %s: %s", path, strerror(errno));
	int kind = identify_open(fd, path, e);
	close(fd);
	return kind;
}

/* Fails if the file is damaged; else reads its first run. */
static int read_origin(sqlite3 *db, const char *path, char origin[ORIGIN_CAP], struct err *e)
{
	sqlite3_stmt *row = NULL;
	char found[128] = "", host[160], machine[80], source[64];
	int rc = sql_prepare(db, &row, e, "PRAGMA quick_check(1)");
	if (sql_next(&row, &rc, e))
		sql_text(row, 0, found, sizeof(found));
	sqlite3_finalize(row);
	if (rc)
		return rc;
	if (strcmp(found, "ok") != 0)
		return err_set(e, ERR_WORLD, "%s is damaged: %s", path, found);
	rc = sql_prepare(db, &row, e,
		"SELECT hostname, machine_id, source, started_ms FROM run JOIN host ON "
		"host.id = run.host ORDER BY started_ms, run.id LIMIT 1");
	if (sql_next(&row, &rc, e)) {
		sql_text(row, 0, host, sizeof(host));
		sql_text(row, 1, machine, sizeof(machine));
		sql_text(row, 2, source, sizeof(source));
		snprintf(origin, ORIGIN_CAP, "%s %s %s %lld", host, machine, source,
			(long long)sql_int(row, 3, 0));
	}
	sqlite3_finalize(row);
	return rc;
}

int identify_origin(const char *path, char origin[ORIGIN_CAP], struct err *e)
{
	sqlite3 *db = NULL;
	*origin = '\0';
	int rc = store_open_read(&db, path, e);
	if (rc == 0)
		rc = read_origin(db, path, origin, e);
	sqlite3_close(db);
	return rc;
}
