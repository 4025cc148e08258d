/* The table of programs that are never ended, and the other rules that cannot be removed. */
#include "policy/builtin.h"

#include "base/pattern.h"
#include "base/piece.h"
#include "model/session.h"
#include "proc/proc.h"

enum { DEFAULT_UID_MIN = 1000, CGROUP_CAP = 4096, LOGIN_DEFS_CAP = 64 * 1024 };

/* Process names (comm, as the kernel truncates them) that displays and the driver need. Any
 * user can give a process such a name, so a name counts only if the program file belongs to
 * the system. */
static const char *const system_names[] = {
	"Xorg",
	"Xwayland",
	"gnome-shell",
	"kwin_*",
	"plasmashell",
	"gdm*",
	"sddm*",
	"lightdm*",
	"mutter*",
	"weston*",
	"sway",
	"nvidia-persiste*",
	"nvidia-cuda-mps*",
	"nv-hostengine",
	"dcgm*",
	"gua",
	"gua-*",
};

static bool is_system_name(const char *comm)
{
	for (size_t i = 0; *comm && i < sizeof(system_names) / sizeof(system_names[0]); i++)
		if (pattern_matches(system_names[i], comm))
			return true;
	return false;
}

const char *builtin_reason(const struct builtin_facts *f, int i)
{
	static const char kube_system[] = "kube-system/";
	bool in_pod = f->pod && *f->pod;
	const struct {
		bool holds;
		const char *text;
	} reasons[BUILTIN_REASONS] = {
		{ f->pid == 1, "it is the first process of the host" },
		{ f->kernel_thread, "it is a kernel thread" },
		/* Most pods run as root, and none is signalled: the cluster ends it. gua-end
		 * knows no pods, so that it signals no process of the system. */
		{ f->uid >= 0 && f->uid < f->uid_min && !in_pod,
			"its uid is below UID_MIN: it belongs to the system" },
		{ in_pod && strncmp(f->pod, kube_system, sizeof(kube_system) - 1) == 0,
			"its pod is in the namespace kube-system" },
		{ f->graphics, "it uses the card for graphics only" },
		{ f->service, "it belongs to a system service" },
		{ is_system_name(f->comm) && f->program != PROGRAM_OTHER,
			f->program == PROGRAM_SYSTEM
				? "it is part of the display or of the driver"
				: "it has the name of a program of the display or of the "
				  "driver, and its program file cannot be checked" },
	};
	return reasons[i].holds ? reasons[i].text : NULL;
}

const char *builtin_exemption(const struct builtin_facts *f)
{
	const char *why = NULL;
	for (int i = 0; !why && i < BUILTIN_REASONS; i++)
		why = builtin_reason(f, i);
	return why;
}

static enum program_owner owner_of_program(int proc, uint32_t pid)
{
	struct stat st;
	if (proc_stat_program(proc, pid, &st) != 0)
		return PROGRAM_UNKNOWN;
	return st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)) ? PROGRAM_SYSTEM
								     : PROGRAM_OTHER;
}

int builtin_read(struct builtin_facts *f, int proc, uint32_t pid)
{
	struct proc_stat stat;
	struct proc_status status;
	char cgroup[CGROUP_CAP];
	if (proc_read_stat(proc, pid, &stat) != 0 || proc_read_status(proc, pid, &status) != 0)
		return -1;
	ssize_t n = proc_read_cgroup(proc, pid, cgroup, sizeof(cgroup));
	f->start_ticks = stat.start_ticks;
	f->uid = status.least_uid;
	f->program = owner_of_program(proc, pid);
	/* Every kernel thread is a child of kthreadd (pid 2) and runs as root. */
	f->kernel_thread = status.least_uid == 0 && stat.ppid == 2;
	f->service = n > 0 && builtin_is_service(cgroup, (size_t)n);
	memcpy(f->comm, stat.comm, stat.comm_len);
	f->comm[stat.comm_len] = '\0';
	return 0;
}

int64_t builtin_parse_uid_min(const char *bytes, size_t len)
{
	static const char key[] = "UID_MIN";
	for (struct piece rest = { bytes, len }; rest.at;) {
		struct piece line = piece_cut(&rest, '\n');
		char number[24];
		if (!piece_is_like(line, "UID_MIN*") || line.len <= sizeof(key) ||
			!piece_is_blank(line.at[sizeof(key) - 1]))
			continue;
		line = piece_skip(line, sizeof(key));
		snprintf(number, sizeof(number), "%.*s", (int)line.len, line.at);
		long long value = strtoll(number, NULL, 0);
		return value > 0 ? value : DEFAULT_UID_MIN;
	}
	return DEFAULT_UID_MIN;
}

int64_t builtin_uid_min(void)
{
	char bytes[LOGIN_DEFS_CAP];
	ssize_t n = file_read_at(AT_FDCWD, "/etc/login.defs", bytes, sizeof(bytes));
	return n > 0 ? builtin_parse_uid_min(bytes, (size_t)n) : DEFAULT_UID_MIN;
}

/* Whether a cgroup path begins with /system.slice/NAME.service. The service of cron does not
 * count, because the jobs of users run in it; cron itself and the jobs of root are protected
 * by their uid. */
static bool is_service_path(struct piece path)
{
	static const char slice[] = "/system.slice/*";
	if (!piece_is_like(path, slice))
		return false;
	path = piece_skip(path, sizeof(slice) - 2);
	struct piece name = piece_cut(&path, '/');
	return piece_is_like(name, "*.service") && name.len > strlen(".service") &&
	       !session_is_job_unit(name.at, name.len);
}

bool builtin_is_service(const char *bytes, size_t len)
{
	for (struct piece rest = { bytes, len }; rest.at;) {
		struct piece line = piece_cut(&rest, '\n');
		const char *path = line.len ? memchr(line.at, '/', line.len) : NULL;
		if (path && is_service_path(piece_skip(line, (size_t)(path - line.at))))
			return true;
	}
	return false;
}
