/* Combines what /proc, the cgroup tree and the user database say about a process. */
#include "proc/owners.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/helper.h"
#include "base/str.h"
#include "proc/cgroup.h"
#include "proc/command.h"
#include "proc/jupyter.h"
#include "proc/origin.h"
#include "proc/proc.h"
#include "proc/system.h"
#include "proc/piece.h"
#include "proc/user.h"

struct proc_identity {
	uint64_t start_ticks;	   /* 0: cannot be read */
	int64_t uid;		   /* the real uid; -1 unknown */
	int64_t owner_uid;	   /* whose time it is; -1 unknown */
	int64_t posix_session;	   /* the pid of its session leader; 0 unknown */
	char command[COMMAND_CAP]; /* see command.h */
	char notebook[LABEL_CAP];  /* "jupyter:ID", or "" */
	struct cgroup_labels labels;
	struct proc_origin origin;
};

/* The identity of a process from /proc: one life, read through one handle, as plain values.
 *
 * Whose time it is (owner_uid) is decided only by what the process cannot choose:
 *
 * - It is the real uid, with two exceptions, both of which need the login slice of a user in
 * the cgroup path (/user.slice/user-UID.slice), where only the system's service manager puts a
 *   process.
 * - Root and the uids of services: the login uid, if it is that of the slice. It names the
 *   person behind sudo and su. The login uid alone proves nothing: a process that has none
 *   (containers, batch jobs, services) may write any number into it.
 * - A subordinate uid, which a user's rootless container has in a user namespace: the uid of
 * the slice.
 *
 * owners_describe() asks the user database for the name. Labels, titles, notebooks and origins
 * are claims of the process or of its manager: they are shown, and decide nothing. */

enum { CGROUP_CAP = 16 * 1024 };

/* The uids of services: those of the system (SYS_UID_MAX of login.defs(5)), the dynamic ones of
 * systemd, and nobody. Subordinate uids begin at SUB_UID_MIN. */
enum {
	SYSTEM_UID_MAX = 999,
	DYNAMIC_UID_MIN = 61184,
	DYNAMIC_UID_MAX = 65519,
	NOBODY_UID = 65534,
	SUBORDINATE_UID_MIN = 100000,
};

static void read_uid(int handle, struct proc_identity *id)
{
	struct proc_status status;
	if (proc_read_status(handle, 0, &status) == 0)
		id->uid = status.uid;
}

static void read_labels(int handle, struct proc_identity *id)
{
	char bytes[CGROUP_CAP];
	ssize_t n = proc_read_cgroup(handle, 0, bytes, sizeof(bytes));
	cgroup_parse(bytes, n < 0 ? 0 : (size_t)n, &id->labels);
}

static bool is_service(int64_t uid)
{
	return (uid >= 0 && uid <= SYSTEM_UID_MAX) || uid == NOBODY_UID ||
	       (uid >= DYNAMIC_UID_MIN && uid <= DYNAMIC_UID_MAX);
}

/* Whether the process has the uid of a rootless container although it is in the host's user
 * namespace: it runs in the login slice of another user, and the number is a subordinate one. A
 * setuid file that the container made can do that. Then it is the slice's user, unless a
 * person has this number. */
static bool proc_may_be_subordinate(const struct proc_identity *id)
{
	return id->uid >= SUBORDINATE_UID_MIN && id->labels.slice_uid >= 0 &&
	       id->uid != id->labels.slice_uid;
}

/* See above. A directory server may give a number of the subordinate range to
 * a person: such a process is in the host's user namespace. */
static int64_t find_owner(int handle, const struct proc_identity *id)
{
	int64_t slice_uid = id->labels.slice_uid;
	if (slice_uid < 0 || id->uid == slice_uid)
		return id->uid;
	if (id->uid < 0 || is_service(id->uid))
		return proc_read_login_uid(handle, 0) == slice_uid ? slice_uid : id->uid;
	bool container = proc_may_be_subordinate(id) && proc_read_user_namespace(handle, 0);
	return container ? slice_uid : id->uid;
}

/* Returns -1 with `why` as errno. Uses the owner of a directory that may not be read. */
static int identify_hidden(int handle, int why, struct proc_identity *id)
{
	struct stat info;
	bool denied = handle >= 0 && (why == EACCES || why == EPERM);
	if (denied && fstat(handle, &info) == 0)
		id->uid = id->owner_uid = info.st_uid;
	if (handle >= 0)
		close(handle);
	errno = why;
	return -1;
}

/* Reads the command line, and where the process comes from, which may block. */
static void read_work(struct origin_known *known, struct proc_identity *id)
{
	char bytes[PROC_ARGUMENTS_CAP];
	ssize_t n = proc_read_arguments(known->handle, 0, bytes, sizeof(bytes));
	size_t len = n < 0 ? 0 : (size_t)n;
	command_text(id->command, sizeof(id->command), bytes, len, known->stat);
	known->kernel = jupyter_label(id->notebook, sizeof(id->notebook), bytes, len);
	known->program = (struct piece){ bytes, strnlen(bytes, len) };
	origin_read(&id->origin, known);
}

static int identify(int proc, uint32_t pid, bool brief, struct proc_identity *id)
{
	struct proc_stat stat;
	*id = (struct proc_identity){ .uid = -1, .owner_uid = -1 };
	int handle = proc_open_process(proc, pid);
	if (handle < 0 || proc_read_stat(handle, 0, &stat) != 0)
		return identify_hidden(handle, errno, id);
	struct origin_known known = { proc, handle, pid, &stat, &id->labels, false, { 0 } };
	id->start_ticks = stat.start_ticks;
	id->posix_session = stat.session > 0 ? stat.session : 0;
	read_uid(handle, id);
	read_labels(handle, id);
	id->owner_uid = find_owner(handle, id);
	if (brief) {
		command_text(id->command, sizeof(id->command), "", 0, &stat);
		origin_read(&id->origin, &known);
	} else {
		read_work(&known, id);
	}
	close(handle);
	return 0;
}

/* Fills all of `id`; -1 with errno when the process cannot be read (see proc.h). If it exists
 * but may not be read (EACCES, EPERM: hidepid), the uid is that of its directory's owner, which
 * is the effective uid: the kernel gives no other. */
static int proc_identify(int proc, uint32_t pid, struct proc_identity *id)
{
	return identify(proc, pid, false, id);
}

/* The same without the files that may block (see proc.h): the command is "[comm]", there is no
 * notebook, and the origin is brief. */
static int proc_identify_brief(int proc, uint32_t pid, struct proc_identity *id)
{
	return identify(proc, pid, true, id);
}

enum {
	PASSWD_MAX = 1024 * 1024,
	BOOT_TIME_US = 200000, /* how long the boot time is cached */
};

struct owners {
	int proc;      /* open /proc of this host or of a recorded tree; or -1 */
	bool recorded; /* a recorded tree, not this host */
	char boot_id[BOOT_ID_CAP];
	int64_t ticks_per_s;
	int64_t boot_ms;	  /* when the host was booted, as it was read last; or -1 */
	int64_t boot_us;	  /* monotonic time of that reading; 0: never */
	struct user_names *users; /* NULL: users have no names */
	char *place;		  /* see owners_say_where(), or NULL */
	uint64_t places;	  /* how many texts it has had */
};

/* In a recorded tree without a passwd file, users have no names. */
static int open_users(struct owners *o, const char *root, struct err *e)
{
	if (!o->recorded)
		return user_names_new(&o->users, user_find_system, NULL, USER_DEADLINE_MS, e);
	char path[PATH_MAX], *bytes = NULL;
	size_t len = 0;
	if (snprintf(path, sizeof(path), "%s/etc/passwd", root) >= (int)sizeof(path) ||
		file_read_all(path, PASSWD_MAX, &bytes, &len, NULL) != 0)
		bytes = calloc(1, 1);
	if (!bytes)
		return err_memory(e);
	int rc = user_names_new_file(&o->users, bytes, len, e);
	if (rc)
		free(bytes);
	return rc;
}

static int open_owners(struct owners **out, const char *root, bool names, struct err *e)
{
	struct owners *o = calloc(1, sizeof(*o));
	if (!o)
		return err_memory(e);
	o->proc = -1;
	o->recorded = root[0] != '\0';
	o->ticks_per_s = sysconf(_SC_CLK_TCK) > 0 ? sysconf(_SC_CLK_TCK) : 100;
	int rc = proc_open(&o->proc, root, e);
	if (rc == 0 && names)
		rc = open_users(o, root, e);
	if (rc) {
		owners_close(o);
		return rc;
	}
	proc_read_boot_id(o->proc, o->boot_id, sizeof(o->boot_id));
	*out = o;
	return 0;
}

int owners_open(struct owners **o, const char *root, struct err *e)
{
	return open_owners(o, root, true, e);
}

int owners_open_nameless(struct owners **o, const char *root, struct err *e)
{
	return open_owners(o, root, false, e);
}

void owners_say_where(struct owners *o, char *place)
{
	o->place = place;
}

static void say_where(struct owners *o, const char *what, uint32_t number)
{
	if (o->place)
		snprintf(o->place, HELPER_PLACE_CAP, "%s %u #%llu", what, number,
			(unsigned long long)++o->places);
}

void owners_mark_process(struct owners *o, uint32_t pid)
{
	say_where(o, "pid", pid);
}

void owners_close(struct owners *o)
{
	if (!o)
		return;
	if (o->proc >= 0)
		close(o->proc);
	user_names_free(o->users);
	free(o);
}

void owners_ask_again(struct owners *o)
{
	if (o->users)
		user_names_expire(o->users);
}

const char *owners_boot_id(struct owners *o)
{
	return o->boot_id;
}

int owners_proc(const struct owners *o)
{
	return o->proc;
}

static int64_t monotonic_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* Returns whether the user has a name. */
static bool set_user(struct owners *o, struct process_id *id, int64_t uid)
{
	id->owner_uid = uid;
	if (!o->users) {
		snprintf(id->user, sizeof(id->user), "uid:%lld", (long long)uid);
		return false;
	}
	say_where(o, "uid", (uint32_t)uid);
	return user_names_get(
		o->users, (uint32_t)uid, monotonic_us(), id->user, sizeof(id->user));
}

static void describe_user(
	struct owners *o, const struct proc_identity *found, struct process_id *id)
{
	id->uid = found->uid;
	if (found->owner_uid < 0) {
		str_copy(id->user, sizeof(id->user), USER_UNKNOWN);
		return;
	}
	bool named = set_user(o, id, found->owner_uid);
	if (!named && o->users && found->owner_uid == found->uid &&
		proc_may_be_subordinate(found))
		set_user(o, id, found->labels.slice_uid);
}

static void describe_work(const struct proc_identity *found, struct process_id *id)
{
	memcpy(id->command, found->command, sizeof(id->command));
	memcpy(id->notebook, found->notebook, sizeof(id->notebook));
	memcpy(id->job, found->labels.job, sizeof(id->job));
	memcpy(id->container, found->labels.container, sizeof(id->container));
	memcpy(id->pod, found->labels.pod, sizeof(id->pod));
	memcpy(id->unit, found->labels.unit, sizeof(id->unit));
	id->posix_session = found->posix_session;
	id->origin = found->origin;
}

/* The boot time changes when the wall clock is set, and reading it takes a millisecond on a
 * large host: it is read once for all processes that are described in a row. */
static int64_t boot_time(struct owners *o)
{
	int64_t now_us = monotonic_us();
	if (!o->boot_us || o->recorded || now_us - o->boot_us > BOOT_TIME_US) {
		o->boot_ms = proc_boot_ms(o->proc, !o->recorded);
		o->boot_us = now_us;
	}
	return o->boot_ms;
}

static void describe_start(struct owners *o, uint64_t start_ticks, struct process_id *id)
{
	id->start_ticks = start_ticks;
	int64_t boot_ms = boot_time(o);
	uint64_t seconds = start_ticks / (uint64_t)o->ticks_per_s;
	uint64_t rest = start_ticks % (uint64_t)o->ticks_per_s;
	if (boot_ms >= 0 && seconds < INT64_MAX / 4000)
		id->started_ms = boot_ms + (int64_t)seconds * 1000 +
				 (int64_t)(rest * 1000 / (uint64_t)o->ticks_per_s);
}

/* The process could not be read: it is gone, or /proc is mounted with hidepid. A process that
 * is hidden completely still answers to signal 0. */
static bool describe_hidden(
	struct owners *o, int why, const struct proc_identity *found, struct process_id *id)
{
	if (found->uid >= 0) {
		id->uid = found->uid;
		set_user(o, id, found->uid);
		return true;
	}
	bool hidden = why == ENOENT && !o->recorded && id->pid > 0 && id->pid <= INT_MAX &&
		      (kill((pid_t)id->pid, 0) == 0 || errno == EPERM);
	str_copy(id->user, sizeof(id->user), hidden ? USER_UNKNOWN : USER_DEAD);
	return hidden;
}

static bool describe(struct owners *o, uint32_t pid, bool brief, struct process_id *id)
{
	struct proc_identity found;
	*id = (struct process_id){ .pid = pid, .started_ms = -1, .uid = -1, .owner_uid = -1 };
	say_where(o, "pid", pid);
	int rc = brief ? proc_identify_brief(o->proc, pid, &found)
		       : proc_identify(o->proc, pid, &found);
	if (rc != 0)
		return describe_hidden(o, errno, &found, id);
	describe_start(o, found.start_ticks, id);
	describe_user(o, &found, id);
	describe_work(&found, id);
	return true;
}

bool owners_describe(struct owners *o, uint32_t pid, struct process_id *id)
{
	return describe(o, pid, false, id);
}

bool owners_describe_brief(struct owners *o, uint32_t pid, struct process_id *id)
{
	return describe(o, pid, true, id);
}

bool owners_names_are_late(const struct owners *o)
{
	return o->users && user_names_are_late(o->users);
}

uint64_t owners_start_ticks(struct owners *o, uint32_t pid)
{
	return proc_start_ticks(o->proc, pid);
}
