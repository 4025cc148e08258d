/* Finds and names the process that holds a lock. */
#include "pick/pick_owner.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/duration.h"
#include "proc/proc.h"
#include "model/process.h"

static int64_t boot_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* How much longer a keeper keeps its cards: the kernel reports when it started, and its name
 * says for how long. */
static int64_t time_left_ms(const struct lock_owner *owner)
{
	char again[sizeof(owner->comm)];
	long long seconds = 0;
	if (sscanf(owner->comm, "gua-hold %9llds", &seconds) != 1 || seconds < 0)
		return -1;
	snprintf(again, sizeof(again), PICK_KEEPER_NAME, seconds);
	if (strcmp(owner->comm, again) != 0)
		return -1;
	int64_t ticks = sysconf(_SC_CLK_TCK);
	int64_t started_ms = (int64_t)(owner->start_ticks / (uint64_t)ticks) * 1000;
	int64_t left_ms = started_ms + (seconds + 1) * 1000 - boot_ms();
	return left_ms > 0 ? left_ms : 0;
}

static void describe(struct pick_owner *o, int proc)
{
	struct lock_owner owner;
	if (!proc_lock_owner(&owner, proc, o->pid)) {
		o->pid = -1; /* it has ended: its children have the lock */
		return;
	}
	o->uid = owner.uid;
	o->left_ms = time_left_ms(&owner);
	str_copy(o->comm, sizeof(o->comm), owner.name);
}

void pick_owner_find(struct pick_owner *o, int fd)
{
	struct stat s;
	struct err ignored = { 0 };
	int proc = -1;
	*o = (struct pick_owner){ .file_uid = -1, .pid = -1, .uid = -1, .left_ms = -1 };
	if (fstat(fd, &s) != 0)
		return;
	o->file_uid = s.st_uid;
	if (proc_open(&proc, "", &ignored) != 0)
		return;
	struct proc_file file = { .device = s.st_dev, .inode = s.st_ino };
	o->pid = proc_lock_pid(proc, &file);
	if (o->pid > 0)
		describe(o, proc);
	close(proc);
}

bool pick_owner_is_other(const struct pick_owner *o)
{
	int64_t uid = pick_owner_uid(o);
	return uid >= 0 && uid != geteuid();
}

int64_t pick_owner_uid(const struct pick_owner *o)
{
	return o->uid >= 0 ? o->uid : o->file_uid;
}

static void add_user(struct str *out, int64_t uid, struct user_names *names)
{
	char user[USER_CAP] = "another user";
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
	if (uid == geteuid())
		str_copy(user, sizeof(user), "you");
	else if (uid >= 0)
		user_names_get(names, (uint32_t)uid, now_us, user, sizeof(user));
	str_add(out, user);
}

void pick_owner_add(struct str *out, const struct pick_owner *o, struct user_names *names)
{
	char left[40];
	add_user(out, pick_owner_uid(o), names);
	if (o->pid < 0)
		return;
	str_addf(out, " (pid %lld, %s", (long long)o->pid, o->comm);
	if (o->left_ms >= 0) {
		duration_text(left, sizeof(left), o->left_ms);
		str_addf(out, "; %s left", left);
	}
	if (o->uid >= 0 && o->uid != o->file_uid) {
		str_add(out, "; the lock file belongs to ");
		add_user(out, o->file_uid, names);
	}
	str_add(out, ")");
}
