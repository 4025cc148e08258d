/* Requests and answers as files. */
#include "policy/keep_spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/timetext.h"
#include "policy/keep_limits.h"

#define SYSTEM_STORE "/var/lib/gua/gua.db"
/* At most this many requests are taken over in one pass, and no more names are looked at. */
enum { MOST_REQUESTS = 200, MOST_NAMES = 100000 };
/* Longer than any time that can be kept, and short enough to be added to a moment. */
#define LONGEST_MS (INT64_C(366) * 86400000)

void keep_spool_path(char *dst, size_t cap, const struct config_policy *config, const char *db)
{
	const char *slash = strrchr(db, '/');
	if (config->keep_directory)
		text_copy(dst, cap, config->keep_directory);
	else if (strcmp(db, SYSTEM_STORE) == 0)
		text_copy(dst, cap, "/run/gua/keep");
	else
		snprintf(dst, cap, "%.*skeep", slash ? (int)(slash + 1 - db) : 0, db);
}

void keep_spool_make(const char *directory)
{
	struct stat st;
	file_make_parent(directory, 0755, NULL);
	if (mkdir(directory, 0700) == 0 ||
		(lstat(directory, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid()))
		chmod(directory, 01733);
}

/* Reads a file that somebody else may have put there: a regular one of one name, and short.
 * Returns its length, or -1. */
static ssize_t read_small(const char *path, char bytes[KEEP_FILE_MAX + 1], struct stat *st)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -1;
	ssize_t n = -1;
	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_nlink == 1 &&
		st->st_size <= KEEP_FILE_MAX)
		n = read(fd, bytes, KEEP_FILE_MAX);
	close(fd);
	if (n >= 0)
		bytes[n] = '\0';
	return n;
}

static void copy_text(char *dst, size_t cap, const json_t *value)
{
	const char *text = json_string_value(value);
	text_escape(dst, cap, text ? text : "", text ? strlen(text) : 0);
}

static bool parse_request(const char *bytes, size_t len, struct keep_request *r)
{
	json_t *root = json_loadb(bytes, len, 0, NULL);
	json_int_t pid = json_integer_value(json_object_get(root, "pid"));
	json_int_t ticks = json_integer_value(json_object_get(root, "start_ticks"));
	json_int_t for_ms = json_integer_value(json_object_get(root, "for_ms"));
	*r = (struct keep_request){ .drop = json_is_true(json_object_get(root, "drop")) };
	copy_text(r->reason, sizeof(r->reason), json_object_get(root, "reason"));
	json_decref(root);
	if (pid <= 0 || pid > INT32_MAX || ticks <= 0)
		return false;
	if (r->drop)
		for_ms = 0;
	else if (for_ms <= 0 || for_ms > LONGEST_MS)
		return false;
	r->pid = (uint32_t)pid;
	r->start_ticks = (uint64_t)ticks;
	r->for_ms = for_ms;
	return true;
}

/* Writes a new file with all of the JSON, which is freed; what is there is replaced, never
 * followed. */
static int write_json(const char *path, json_t *root, mode_t mode, struct err *e)
{
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	if (!text)
		return err_memory(e);
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	size_t len = strlen(text);
	bool ok = fd >= 0 && fchmod(fd, mode) == 0 && write(fd, text, len) == (ssize_t)len;
	int why = errno;
	if (fd >= 0)
		close(fd);
	free(text);
	return ok ? 0 : err_set(e, ERR_WORLD, "cannot write %s: %s", path, strerror(why));
}

int keep_spool_ask(const char *directory, const struct keep_request *r, struct err *e)
{
	char path[PATH_MAX];
	struct stat st;
	if (stat(directory, &st) != 0)
		return err_set(e, ERR_WORLD,
			"cannot ask to keep a session: %s: %s; 'gua enforce run' makes this "
			"directory when it runs",
			directory, strerror(errno));
	snprintf(path, sizeof(path), "%s/%u-%u-%lld.json", directory, (unsigned)getuid(),
		r->pid, (long long)getpid());
	/* Readable: gua enforce has a user of its own, and no privilege. */
	return write_json(path,
		json_pack("{s:I, s:I, s:I, s:s, s:b}", "pid", (json_int_t)r->pid, "start_ticks",
			(json_int_t)r->start_ticks, "for_ms", (json_int_t)r->for_ms, "reason",
			r->reason, "drop", (int)r->drop),
		0644, e);
}

static void answer_path(
	char *dst, size_t cap, const char *directory, uint32_t uid, uint32_t pid)
{
	snprintf(dst, cap, "%s/%u-%u.answer", directory, uid, pid);
}

int keep_spool_answer(const char *directory, uint32_t uid, uint32_t pid,
	struct keep_answer *answer, struct err *e)
{
	char path[PATH_MAX], bytes[KEEP_FILE_MAX + 1];
	struct stat st, owner;
	answer_path(path, sizeof(path), directory, uid, pid);
	ssize_t n = read_small(path, bytes, &st);
	if (n < 0 || stat(directory, &owner) != 0 || st.st_uid != owner.st_uid)
		return err_set(e, ERR_NOTHING, "there is no answer for process %u", pid);
	json_t *root = json_loadb(bytes, (size_t)n, 0, NULL);
	*answer = (struct keep_answer){ .pid = pid,
		.kept = json_is_true(json_object_get(root, "kept")),
		.until_ms = json_integer_value(json_object_get(root, "until_ms")) };
	copy_text(answer->reason, sizeof(answer->reason), json_object_get(root, "reason"));
	copy_text(answer->why, sizeof(answer->why), json_object_get(root, "why"));
	json_decref(root);
	return 0;
}

static void write_answer(const char *directory, uint32_t uid, const struct keep_answer *a)
{
	char path[PATH_MAX];
	answer_path(path, sizeof(path), directory, uid, a->pid);
	write_json(path,
		json_pack("{s:b, s:I, s:s, s:s}", "kept", (int)a->kept, "until_ms",
			(json_int_t)a->until_ms, "reason", a->reason, "why", a->why),
		0644, NULL);
}

/* Takes over one request. What cannot be removed, such as a directory, does not count: it would
 * be in the way of others in every pass. */
static int take_one(struct keep_limits *l, const char *directory, const char *name,
	int *n_taken, struct err *e)
{
	char path[PATH_MAX], bytes[KEEP_FILE_MAX + 1];
	struct keep_request r;
	struct keep_answer answer = { 0 };
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	ssize_t n = read_small(path, bytes, &st);
	/* What is not a request is not worth an answer. */
	if (n < 0 || !parse_request(bytes, (size_t)n, &r)) {
		*n_taken += unlink(path) == 0;
		return 0;
	}
	int rc = keep_limits_apply(l, &r, st.st_uid, &answer, e);
	if (rc)
		return rc;
	write_answer(directory, st.st_uid, &answer);
	unlink(path);
	++*n_taken;
	return 0;
}

static bool is_request(const char *name)
{
	size_t len = strlen(name);
	return len > 5 && len < 64 && strcmp(name + len - 5, ".json") == 0;
}

int keep_spool_take(struct enforcer *x, const char *directory, int64_t now_ms, struct err *e)
{
	DIR *dir = opendir(directory);
	struct keep_limits limits = { .x = x, .now_ms = now_ms };
	struct dirent *entry;
	int rc = 0, n = 0, names = 0;
	while (rc == 0 && dir && n < MOST_REQUESTS && names++ < MOST_NAMES &&
		(entry = readdir(dir)))
		if (is_request(entry->d_name))
			rc = take_one(&limits, directory, entry->d_name, &n, e);
	if (dir)
		closedir(dir);
	keep_limits_finish(&limits);
	return rc;
}
