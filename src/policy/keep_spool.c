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

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/timetext.h"
#include "policy/keep_limits.h"
#include "proc/proc.h"

#define SYSTEM_STORE "/var/lib/gua/gua.db"
/* Of one user, at most this many requests are taken over in one pass; the others are removed.
 * More names than this are not looked at: /run has not so many, so that nobody can hide the
 * requests of others behind directories, which cannot be removed. */
enum { MOST_OF_USER = 32, MOST_NAMES = 1000000 };
/* A file that is none of ours is removed when it is this old: it may be half written. */
#define LEFT_OVER_S 60
/* Of the directory. */
#define MODE 03733
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
		/* The service may not set the set-group-id bit; then the directory has it. */
		if (chmod(directory, MODE) != 0 &&
			(lstat(directory, &st) != 0 || (st.st_mode & 07777) != MODE))
			chmod(directory, MODE & ~S_ISGID);
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

/* Writes a new file with all of the JSON, which is freed. */
static int write_json(const char *path, json_t *root, mode_t mode, struct err *e)
{
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	if (!text)
		return err_memory(e);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	size_t len = strlen(text);
	bool ok = fd >= 0 && fchmod(fd, mode) == 0 && write(fd, text, len) == (ssize_t)len;
	int why = errno;
	if (fd >= 0)
		close(fd);
	free(text);
	return ok ? 0 : err_set(e, ERR_WORLD, "cannot write %s: %s", path, strerror(why));
}

/* One name for each process, so that a later request takes the place of an earlier one. */
static void request_path(
	char dst[PATH_MAX], const char *directory, uint32_t pid, const char *rest)
{
	snprintf(dst, PATH_MAX, "%s/%u-%u%s", directory, (unsigned)getuid(), pid, rest);
}

int keep_spool_ask(const char *directory, const struct keep_request *r, struct err *e)
{
	char path[PATH_MAX], whole[PATH_MAX], other[48];
	struct stat st;
	if (stat(directory, &st) != 0)
		return err_set(e, ERR_WORLD,
			"cannot ask to keep a session: %s: %s; 'gua enforce run' makes this "
			"directory when it runs",
			directory, strerror(errno));
	snprintf(other, sizeof(other), "-%llx", (unsigned long long)clock_monotonic_us());
	request_path(path, directory, r->pid, other);
	/* gua enforce has a user of its own, and no privilege. A file gets the group of a
	 * directory with the set-group-id bit, which is its group. */
	int rc = write_json(path,
		json_pack("{s:I, s:I, s:I, s:s, s:b}", "pid", (json_int_t)r->pid, "start_ticks",
			(json_int_t)r->start_ticks, "for_ms", (json_int_t)r->for_ms, "reason",
			r->reason, "drop", (int)r->drop),
		st.st_mode & S_ISGID ? 0640 : 0644, e);
	request_path(whole, directory, r->pid, ".json");
	if (rc == 0 && rename(path, whole) != 0) {
		/* Somebody else has made a file of this name. */
		snprintf(whole, sizeof(whole), "%.*s.json", PATH_MAX - 6, path);
		if (rename(path, whole) != 0)
			rc = err_set(
				e, ERR_WORLD, "cannot make %s: %s", whole, strerror(errno));
	}
	if (rc)
		unlink(path);
	return rc;
}

bool keep_spool_asked(const char *directory, uint32_t pid)
{
	char path[PATH_MAX];
	struct stat st;
	request_path(path, directory, pid, ".json");
	return lstat(path, &st) == 0 && st.st_uid == getuid();
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
		.start_ticks =
			(uint64_t)json_integer_value(json_object_get(root, "start_ticks")),
		.kept = json_is_true(json_object_get(root, "kept")),
		.until_ms = json_integer_value(json_object_get(root, "until_ms")) };
	copy_text(answer->reason, sizeof(answer->reason), json_object_get(root, "reason"));
	copy_text(answer->why, sizeof(answer->why), json_object_get(root, "why"));
	json_decref(root);
	return 0;
}

static void write_answer(const char *directory, uint32_t uid, const struct keep_answer *a)
{
	char path[PATH_MAX], part[PATH_MAX];
	answer_path(path, sizeof(path), directory, uid, a->pid);
	snprintf(part, sizeof(part), "%.*s.part", PATH_MAX - 6, path);
	unlink(part);
	int rc = write_json(part,
		json_pack("{s:b, s:I, s:I, s:s, s:s}", "kept", (int)a->kept, "until_ms",
			(json_int_t)a->until_ms, "start_ticks", (json_int_t)a->start_ticks,
			"reason", a->reason, "why", a->why),
		0644, NULL);
	if (rc == 0)
		rename(part, path);
}

/* A look through the directory. */
struct scan {
	struct keep_limits limits;
	const char *directory;
	int proc; /* to see whether a process is alive; -1: not known */
	struct asker {
		uint32_t uid;
		int n, removed;
	} * askers;
	size_t n_askers;
	int64_t now_s;
};

static struct asker *find_asker(struct scan *s, uint32_t uid)
{
	for (size_t i = 0; i < s->n_askers; i++)
		if (s->askers[i].uid == uid)
			return &s->askers[i];
	if (!array_one_more(&s->askers, s->n_askers))
		return NULL;
	s->askers[s->n_askers] = (struct asker){ .uid = uid };
	return &s->askers[s->n_askers++];
}

/* Takes over one request. A process that is not there gets no answer: nobody could read it. */
static int take_one(struct scan *s, const char *path, struct err *e)
{
	char bytes[KEEP_FILE_MAX + 1];
	struct keep_request r;
	struct keep_answer answer = { 0 };
	struct stat st;
	ssize_t n = read_small(path, bytes, &st);
	if (n < 0 || !parse_request(bytes, (size_t)n, &r))
		return 0;
	int rc = keep_limits_apply(&s->limits, &r, st.st_uid, &answer, e);
	answer.start_ticks = r.start_ticks;
	if (rc == 0 && (s->proc < 0 || proc_start_ticks(s->proc, r.pid) == r.start_ticks))
		write_answer(s->directory, st.st_uid, &answer);
	return rc;
}

static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), n = strlen(end);
	return len > n && strcmp(name + len - n, end) == 0;
}

/* Whether an answer is about a process that is still there. */
static bool is_needed(const struct scan *s, const char *name, const struct stat *st)
{
	unsigned uid, pid;
	char rest[16];
	if (!ends_with(name, ".answer") || st->st_uid != geteuid() || !S_ISREG(st->st_mode) ||
		sscanf(name, "%u-%u%15s", &uid, &pid, rest) != 3)
		return false;
	return s->proc < 0 || proc_start_ticks(s->proc, pid) != 0;
}

/* Takes over or removes what has this name. The owner of the directory can remove what others
 * put there, but for directories that are not empty. */
static int look_at(struct scan *s, const char *name, struct err *e)
{
	char path[PATH_MAX];
	struct stat st;
	int rc = 0;
	snprintf(path, sizeof(path), "%s/%s", s->directory, name);
	if (lstat(path, &st) != 0)
		return 0;
	if (!ends_with(name, ".json")) {
		if (!is_needed(s, name, &st) && s->now_s - st.st_ctime > LEFT_OVER_S)
			remove(path);
		return 0;
	}
	/* Requests are regular files; what else is there must not take their places. */
	struct asker *asker = S_ISREG(st.st_mode) ? find_asker(s, st.st_uid) : NULL;
	if (asker && asker->n++ < MOST_OF_USER)
		rc = take_one(s, path, e);
	bool over = asker && asker->n > MOST_OF_USER;
	if (rc == 0 && remove(path) == 0 && over)
		asker->removed++;
	return rc;
}

int keep_spool_take(struct enforcer *x, const char *directory, int64_t now_ms, struct err *e)
{
	DIR *dir = opendir(directory);
	struct scan s = { .limits = { .x = x, .now_ms = now_ms },
		.directory = directory,
		.proc = -1,
		.now_s = now_ms / 1000 };
	struct dirent *entry;
	int rc = 0, names = 0;
	if (proc_open(&s.proc, x->root ? x->root : "", NULL) != 0)
		s.proc = -1;
	while (rc == 0 && dir && names++ < MOST_NAMES && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = look_at(&s, entry->d_name, e);
	for (size_t i = 0; i < s.n_askers; i++)
		if (s.askers[i].removed)
			log_notice("user %u made %d requests to keep sessions at once; %d were "
				   "removed",
				s.askers[i].uid, s.askers[i].n, s.askers[i].removed);
	if (dir)
		closedir(dir);
	if (s.proc >= 0)
		close(s.proc);
	free(s.askers);
	keep_limits_finish(&s.limits);
	return rc;
}
