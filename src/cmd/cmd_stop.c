/* gua stop: terminates the recorder of a store, and waits for its end. */
#include <signal.h>
#include <sys/syscall.h>

#include "cmd/share/choose_db.h"
#include "cmd/cmd.h"
#include "proc/cgroup.h"
#include "proc/proc.h"
#include "store/recorder_status.h"
#include "store/statusfile.h"

struct values {
	const char *db;
	int64_t timeout_ms;
};

#define AT(member) .offset = offsetof(struct values, member)
static const struct option_row options[] = {
	{ OPTION_TEXT, 0, "db", "PATH", "the store (default: see FILES in man gua)", AT(db) },
	{ OPTION_DURATION, 0, "timeout", "D",
		"wait this long for the recorder to end (default 30s)", AT(timeout_ms),
		.min = 0, .max = 3600e3 },
	{ 0 },
};

/* Refuses a process that cannot have made the status file. The owner of a store controls which
 * pid its status file names: he may use a file system of his own (FUSE), and a lock can outlive
 * its process. */
static int check_owner(int proc, const struct published *now, struct err *e)
{
	struct proc_status status;
	if (proc_read_status(proc, (uint32_t)now->pid, &status) == 0 &&
		status.uid == (int64_t)now->owner)
		return 0;
	return err_set(e, ERR_WORLD,
		"pid %d is not stopped: the status file belongs to the user with uid %u, and "
		"the process does not; if it is the recorder, end it with: kill %d",
		(int)now->pid, (unsigned)now->owner, (int)now->pid);
}

/* Refuses the main process of a service: systemd would start it again a second later. What a
 * service starts inherits the variable, but has another pid. */
static int check_service(int proc, pid_t pid, struct err *e)
{
	char bytes[32 * 1024], own[48];
	struct cgroup_labels labels = { 0 };
	int len = snprintf(own, sizeof(own), "SYSTEMD_EXEC_PID=%d", (int)pid);
	ssize_t n = proc_read_environment(proc, (uint32_t)pid, bytes, sizeof(bytes));
	bool is_main = n > 0 && memmem(bytes, (size_t)n, own, (size_t)len + 1);
	explicit_bzero(bytes, sizeof(bytes));
	n = is_main ? proc_read_cgroup(proc, (uint32_t)pid, bytes, sizeof(bytes)) : -1;
	if (n > 0)
		cgroup_parse(bytes, (size_t)n, &labels);
	if (!labels.unit[0])
		return 0;
	return err_set(e, ERR_WORLD,
		"the recorder (pid %d) is %s, which systemd would start again; run: systemctl "
		"%sstop %s",
		(int)pid, labels.unit, labels.slice_uid >= 0 ? "--user " : "", labels.unit);
}

/* Signals exactly the recorder. The pidfd is opened first and the kernel is asked again who the
 * recorder is, so that a new process with the same pid is not signalled. */
static int end_recorder(const char *db, pid_t pid, int64_t timeout_ms, struct err *e)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return errno == ESRCH
			       ? 0
			       : err_set(e, ERR_WORLD, "pid %d: %s", (int)pid, strerror(errno));
	struct published now;
	int proc = -1, rc = statusfile_read(&now, db, e);
	bool same = !rc && now.pid == pid;
	if (same && (proc_open(&proc, "", e) || check_owner(proc, &now, e) ||
			    check_service(proc, pid, e)))
		rc = e->code;
	if (!rc && same && syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) != 0)
		rc = err_set(e, ERR_WORLD, "cannot stop the recorder (pid %d): %s", (int)pid,
			strerror(errno));
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };
	if (!rc && same && poll(&fd, 1, (int)timeout_ms) <= 0)
		rc = err_set(e, ERR_WORLD,
			"the recorder (pid %d) was asked to stop and has not ended yet",
			(int)pid);
	file_close(proc);
	close(pidfd);
	return rc;
}

/* If the user named no store, perhaps the system's recorder was meant. */
static int say_none(const char *db, bool chosen, struct err *e)
{
	if (chosen && geteuid() != 0 && statusfile_is_running(SYSTEM_DB) == 1)
		return err_set(e, ERR_WORLD,
			"no recorder is running on %s; the one of the system is, and root can "
			"stop it: gua stop --db " SYSTEM_DB,
			db);
	return err_set(e, ERR_WORLD, "no recorder is running on %s", db);
}

static int run(const struct call *call, struct err *e)
{
	const struct values *v = call->values;
	char path[PATH_MAX], safe[PATH_MAX];
	struct published now;
	if (!v->db && choose_db_own(path, sizeof(path), e))
		return e->code;
	const char *db = v->db ? v->db : path;
	if (statusfile_read(&now, db, e))
		return e->code;
	pid_t pid = now.pid;
	if (!pid)
		return say_none(db, !v->db && !secure_getenv("GUA_DB"), e);
	if (pid == RECORDER_ELSEWHERE)
		return err_set(e, ERR_WORLD,
			"the recorder of %s runs outside of this container; stop it there", db);
	if (end_recorder(db, pid, v->timeout_ms, e))
		return e->code;
	str_escape(safe, sizeof(safe), db, strlen(db));
	struct str out = { 0 };
	str_addf(&out, "stopped the recorder of %s (pid %d", safe, (int)pid);
	if (now.told && now.started_ms >= 0)
		str_addf(&out, ", recording since %s",
			moment_text(
				recorder_status_bound(now.started_ms, STATUS_LAST_MS), false)
				.text);
	str_add(&out, ")\n");
	return cmd_print(call->self, &out);
}

const struct command cmd_stop = {
	.name = "stop",
	.summary = "stop the recorder",
	.usage = "[--db PATH]",
	.options = options,
	.values_size = sizeof(struct values),
	.initial = &(const struct values){ .timeout_ms = 30000 },
	.run = run,
};
