/* Combines what the files of one process say. */
#include "proc/identity.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/command.h"
#include "proc/jupyter.h"
#include "proc/proc.h"

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

bool proc_may_be_subordinate(const struct proc_identity *id)
{
	return id->uid >= SUBORDINATE_UID_MIN && id->labels.slice_uid >= 0 &&
	       id->uid != id->labels.slice_uid;
}

/* See the head of identity.h. A directory server may give a number of the subordinate range to
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
	proc_command(id->command, sizeof(id->command), bytes, len, known->stat);
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
		proc_command(id->command, sizeof(id->command), "", 0, &stat);
		origin_read(&id->origin, &known);
	} else {
		read_work(&known, id);
	}
	close(handle);
	return 0;
}

int proc_identify(int proc, uint32_t pid, struct proc_identity *id)
{
	return identify(proc, pid, false, id);
}

int proc_identify_brief(int proc, uint32_t pid, struct proc_identity *id)
{
	return identify(proc, pid, true, id);
}
