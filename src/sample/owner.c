/* Putting together what /proc, the cgroup tree and the user database say about a process. */
#include "sample/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "proc/cgroup.h"
#include "proc/jupyter.h"
#include "proc/proc.h"
#include "proc/user.h"

enum {
	STAT_CAP = 2048,
	SCRATCH_CAP = 16 * 1024, /* status, cmdline, cgroup: more of them says nothing new */
	PASSWD_MAX = 1024 * 1024,
	BOOT_TIME_US = 200000, /* the boot time is believed for so long */
};

struct owners {
	char proc[PATH_MAX]; /* "/proc", or that of a recorded tree */
	bool recorded;	     /* a tree, not this host */
	char boot_id[BOOT_ID_CAP];
	int64_t ticks_per_s;
	int64_t boot_ms; /* when the host was booted, as it was read last; or -1 */
	int64_t boot_us; /* monotonic time of that; 0: never */
	struct users *users;
	char stat[STAT_CAP]; /* of the process that is described: its comm is used to the end */
	char scratch[SCRATCH_CAP];
};

static void read_boot_id(struct owners *o)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/sys/kernel/random/boot_id", o->proc);
	if (n < 0 || (size_t)n >= sizeof(path) ||
		file_read_at(AT_FDCWD, path, o->scratch, sizeof(o->scratch)) < 0)
		return;
	size_t len = strcspn(o->scratch, "\n");
	text_escape(o->boot_id, sizeof(o->boot_id), o->scratch, len);
}

/* A recorded tree without a passwd file has users without names. */
static int open_users(struct owners *o, const char *root, struct err *e)
{
	if (!o->recorded)
		return users_new(&o->users, user_find_system, NULL, USER_DEADLINE_MS, e);
	char path[PATH_MAX], *bytes = NULL;
	size_t len = 0;
	if (snprintf(path, sizeof(path), "%s/etc/passwd", root) >= (int)sizeof(path) ||
		file_read_all(path, PASSWD_MAX, &bytes, &len, NULL) != 0)
		bytes = calloc(1, 1);
	if (!bytes)
		return err_set(e, ERR_WORLD, "out of memory");
	int rc = users_new_file(&o->users, bytes, len, e);
	if (rc)
		free(bytes);
	return rc;
}

int owners_open(struct owners **out, const char *root, struct err *e)
{
	struct owners *o = calloc(1, sizeof(*o));
	struct stat info;
	if (!o)
		return err_set(e, ERR_WORLD, "out of memory");
	int rc = 0, n = snprintf(o->proc, sizeof(o->proc), "%s/proc", root);
	if (n < 0 || (size_t)n >= sizeof(o->proc))
		rc = err_set(e, ERR_USAGE, "the path %s is too long", root);
	else if (stat(o->proc, &info) != 0)
		rc = err_set(e, ERR_WORLD, "cannot look at processes in %s: %s", o->proc,
			strerror(errno));
	o->recorded = root[0] != '\0';
	o->ticks_per_s = sysconf(_SC_CLK_TCK) > 0 ? sysconf(_SC_CLK_TCK) : 100;
	if (rc == 0)
		rc = open_users(o, root, e);
	if (rc) {
		owners_close(o);
		return rc;
	}
	read_boot_id(o);
	*out = o;
	return 0;
}

void owners_close(struct owners *o)
{
	if (!o)
		return;
	users_free(o->users);
	free(o);
}

const char *owners_boot_id(struct owners *o)
{
	return o->boot_id;
}

/* Reads and parses the stat file behind `dirfd`; 0, or -1 with errno. */
static int read_stat(struct owners *o, int dirfd, struct proc_stat *stat)
{
	ssize_t n = file_read_at(dirfd, "stat", o->stat, sizeof(o->stat));
	if (n < 0)
		return -1;
	if (proc_parse_stat(o->stat, (size_t)n, stat))
		return 0;
	errno = ENODATA;
	return -1;
}

/* Reads one of the process' files into the scratch buffer; 0 bytes when it cannot. */
static size_t read_scratch(struct owners *o, int dirfd, const char *name)
{
	ssize_t n = file_read_at(dirfd, name, o->scratch, sizeof(o->scratch));
	return n < 0 ? 0 : (size_t)n;
}

static int64_t monotonic_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void set_user(struct owners *o, struct process_id *id, uint32_t uid)
{
	users_name(o->users, uid, monotonic_us(), id->user, sizeof(id->user));
}

/* The identity is who logged in, which survives su and sudo, when somebody other than root did;
 * else the uid that it runs as. Services and containers have no login uid. */
static void describe_user(struct owners *o, int dirfd, struct process_id *id)
{
	uint32_t uid = 0;
	uint64_t login = 0;
	size_t len = read_scratch(o, dirfd, "status");
	bool known = proc_parse_uid(o->scratch, len, &uid);
	id->uid = known ? (int64_t)uid : -1;
	len = read_scratch(o, dirfd, "loginuid");
	bool logged_in =
		proc_parse_number(o->scratch, len, &login) && login != 0 && login < UINT32_MAX;
	if (logged_in)
		set_user(o, id, (uint32_t)login);
	else if (known)
		set_user(o, id, uid);
	else
		text_copy(id->user, sizeof(id->user), "_unknown");
}

static void describe_command(
	struct owners *o, int dirfd, const struct proc_stat *stat, struct process_id *id)
{
	size_t len = read_scratch(o, dirfd, "cmdline");
	proc_command(id->command, sizeof(id->command), o->scratch, len, stat);
	jupyter_label(id->notebook, sizeof(id->notebook), o->scratch, len);
}

static void describe_cgroup(struct owners *o, int dirfd, struct process_id *id)
{
	struct cgroup_labels labels;
	cgroup_parse(o->scratch, read_scratch(o, dirfd, "cgroup"), &labels);
	memcpy(id->job, labels.job, sizeof(id->job));
	memcpy(id->container, labels.container, sizeof(id->container));
	memcpy(id->pod, labels.pod, sizeof(id->pod));
	memcpy(id->unit, labels.unit, sizeof(id->unit));
}

/* /proc/stat has the boot time in whole seconds. The difference of the wall and boot clocks has
 * it to the millisecond, unless the boot clock has an offset (a time namespace). */
static int64_t finer_boot_time(int64_t boot_ms)
{
	struct timespec wall, boot;
	if (clock_gettime(CLOCK_REALTIME, &wall) != 0 ||
		clock_gettime(CLOCK_BOOTTIME, &boot) != 0)
		return boot_ms;
	int64_t finer_ms = (int64_t)(wall.tv_sec - boot.tv_sec) * 1000 +
			   (wall.tv_nsec - boot.tv_nsec) / 1000000;
	return llabs(finer_ms - boot_ms) <= 1500 ? finer_ms : boot_ms;
}

/* The boot time moves when the wall clock is set, and on a large host the kernel takes a
 * millisecond to tell it: once for all processes that are described in a row. */
static int64_t boot_time(struct owners *o)
{
	int64_t now_us = monotonic_us();
	if (!o->boot_us || o->recorded || now_us - o->boot_us > BOOT_TIME_US) {
		int64_t boot_s = proc_boot_time(o->proc, o->scratch, sizeof(o->scratch));
		o->boot_ms = boot_s < 0 || boot_s > INT64_MAX / 4000 ? -1 : boot_s * 1000;
		if (o->boot_ms >= 0 && !o->recorded)
			o->boot_ms = finer_boot_time(o->boot_ms);
		o->boot_us = now_us;
	}
	return o->boot_ms;
}

static void describe_start(
	struct owners *o, const struct proc_stat *stat, struct process_id *id)
{
	id->start_ticks = stat->start_ticks;
	int64_t boot_ms = boot_time(o);
	uint64_t seconds = stat->start_ticks / (uint64_t)o->ticks_per_s;
	uint64_t rest = stat->start_ticks % (uint64_t)o->ticks_per_s;
	if (boot_ms >= 0 && seconds < INT64_MAX / 4000)
		id->started_ms = boot_ms + (int64_t)seconds * 1000 +
				 (int64_t)(rest * 1000 / (uint64_t)o->ticks_per_s);
}

/* No stat to be had: gone, or /proc is mounted with hidepid and keeps it from us. Its
 * directory's owner is then the uid it runs as; and what is hidden whole still answers to
 * signal 0. */
static bool describe_hidden(
	struct owners *o, int dirfd, int why, uint32_t pid, struct process_id *id)
{
	struct stat info;
	bool denied = dirfd >= 0 && (why == EACCES || why == EPERM);
	if (denied && fstat(dirfd, &info) == 0) {
		id->uid = info.st_uid;
		set_user(o, id, info.st_uid);
		return true;
	}
	bool hidden = why == ENOENT && !o->recorded && pid > 0 && pid <= INT_MAX &&
		      (kill((pid_t)pid, 0) == 0 || errno == EPERM);
	text_copy(id->user, sizeof(id->user), hidden ? "_unknown" : "_dead");
	return hidden;
}

bool owners_describe(struct owners *o, uint32_t pid, struct process_id *id)
{
	*id = (struct process_id){ .pid = pid, .started_ms = -1, .uid = -1 };
	struct proc_stat stat;
	int dirfd = proc_open(o->proc, pid);
	bool alive = dirfd >= 0 && read_stat(o, dirfd, &stat) == 0;
	if (alive) {
		describe_start(o, &stat, id);
		describe_user(o, dirfd, id);
		describe_command(o, dirfd, &stat, id);
		describe_cgroup(o, dirfd, id);
	} else {
		alive = describe_hidden(o, dirfd, errno, pid, id);
	}
	if (dirfd >= 0)
		close(dirfd);
	return alive;
}

uint64_t owners_start_ticks(struct owners *o, uint32_t pid)
{
	struct proc_stat stat;
	int dirfd = proc_open(o->proc, pid);
	if (dirfd < 0)
		return 0;
	uint64_t ticks = read_stat(o, dirfd, &stat) == 0 ? stat.start_ticks : 0;
	close(dirfd);
	return ticks;
}
