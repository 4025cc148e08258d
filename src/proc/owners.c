/* Combines what /proc, the cgroup tree and the user database say about a process. */
#include "proc/owners.h"

#include <signal.h>

#include "base/helper.h"
#include "proc/cgroup.h"
#include "proc/command.h"
#include "proc/environment.h"
#include "proc/pods.h"
#include "proc/proc.h"
#include "proc/secret.h"
#include "proc/user.h"

/* The origin of a process, for people: what started it, in which session, which programs are
 * between, and what its environment says that it is for. Processes choose their names and their
 * environment, so all of this is a label and decides nothing. */

/* What is already known of the process. */
struct origin_known {
	int proc;   /* an open /proc */
	int handle; /* of the process; see proc.h */
	uint32_t pid;
	const struct proc_stat *stat;
	const struct cgroup_labels *labels;
	bool kernel;	      /* it is a Jupyter kernel: */
	const char *notebook; /* jupyter:ID */
	/* Its argv[0]. If `at` is NULL, nothing is read that may block, and python_env and the
	 * last four members of the origin stay empty. */
	struct piece program;
};

struct ancestry {
	char parents[LABEL_CAP]; /* "bash > torchrun": from the session leader to the nearest
				    parent. "": there are none. If there are many, the outermost
				    are left out: "... > a > b" */
	char login[LOGIN_CAP]; /* ssh, tmux, vscode, cron ...: from the nearest parent that the
				  table below knows, inside or outside the session; "": it knows
				  none */
	bool editor;	       /* that parent is the server of an editor */
	char job[LABEL_CAP];   /* slurm:ID of the nearest slurmstepd above; "": none, or its
				  cgroup names the job */
};

enum {
	PARENTS_MAX = 32, /* how far the walk goes */
	NAMES_MAX = 8,	  /* how many of the nearest names are kept */
	COMM_TEXT_CAP = 64,
	ARGUMENTS_CAP = 1024, /* of a parent: its program and script are at the beginning */
};
#define SEPARATOR " > "
#define LEFT_OUT "... > "

/* Parents by their name, '*' as in piece_is_like(). */
static const struct starter {
	const char *name, *login;
} starters[] = {
	{ "tmux*", "tmux" },
	{ "screen", "screen" },
	{ "SCREEN", "screen" },
	{ "jupyter*", "jupyter" },
	{ "rsession*", "rstudio" },
	{ "code-server", "vscode" },
	{ "code-tunnel", "vscode" },
	{ "code", "vscode" },
	{ "mosh-server", "mosh" },
	{ "sshd*", "ssh" },
	{ "dropbear", "ssh" },
	{ "slurmstepd", "batch" },
	{ "pbs_mom", "batch" },
	{ "sge_shepherd", "batch" },
	{ "cron", "cron" },
	{ "CRON", "cron" },
	{ "crond", "cron" },
	{ "anacron", "cron" },
	{ "atd", "at" },
	{ "login", "tty" },
	{ "agetty", "tty" },
	{ "gnome-shell", "desktop" },
	{ "gnome-terminal*", "desktop" },
	{ "gdm-session-wor", "desktop" },
	{ "plasmashell", "desktop" },
	{ "konsole", "desktop" },
	{ "sddm-helper", "desktop" },
	{ "lightdm", "desktop" },
	{ "xrdp*", "desktop" },
	{ "Xvnc", "desktop" },
};

/* The servers of editors are run by node or a shell; the path of their program or script shows
 * what they are. */
static const struct editor {
	const char *path, *login;
} editors[] = {
	{ "/.vscode-server", "vscode" },
	{ "/.vscodium-server", "vscode" },
	{ "/.cursor-server", "cursor" },
	{ "/.windsurf-server", "windsurf" },
	{ "/JetBrains/", "jetbrains" },
};

static void recognise_path(struct ancestry *a, int proc, uint32_t pid)
{
	char bytes[ARGUMENTS_CAP];
	ssize_t n = proc_read_arguments(proc, pid, bytes, sizeof(bytes));
	struct proc_arguments arguments = { .bytes = bytes, .len = n < 0 ? 0 : (size_t)n };
	struct piece arg = { bytes, 0 };
	for (int k = 0; k < 2 && proc_next_argument(&arguments, &arg.at, &arg.len); k++)
		for (size_t i = 0; i < sizeof(editors) / sizeof(editors[0]) && !*a->login; i++)
			if (memmem(arg.at, arg.len, editors[i].path, strlen(editors[i].path)))
				str_copy(a->login, sizeof(a->login), editors[i].login);
	a->editor = *a->login != '\0';
}

/* Whether a cgroup leaves the number of a Slurm job open: it names none, or a SLUID. Who is
 * root in a container could start a slurmstepd of any title. */
static bool lacks_job(const struct cgroup_labels *labels)
{
	return strncmp(labels->job, "slurm:s", 7) == 0 ||
	       !(*labels->job || *labels->container || *labels->pod);
}

/* "slurmstepd: [3385.batch]", root's, is above all processes of a step. */
static void recognise_step(
	struct ancestry *a, int proc, uint32_t pid, const struct proc_stat *parent)
{
	static const char title[] = "slurmstepd: [";
	char bytes[ARGUMENTS_CAP];
	struct proc_status status;
	if (!piece_is_like((struct piece){ parent->comm, parent->comm_len }, "slurmstepd") ||
		proc_read_status(proc, pid, &status) != 0 || status.uid != 0 ||
		proc_read_arguments(proc, pid, bytes, sizeof(bytes)) <= 0 ||
		strncmp(bytes, title, sizeof(title) - 1) != 0)
		return;
	const char *id = bytes + sizeof(title) - 1;
	size_t len = strspn(id, "0123456789");
	if (len && id[len] == '.')
		snprintf(a->job, sizeof(a->job), "slurm:%.*s", (int)len, id);
}

/* The nearest names, nearest first. */
struct parent_names {
	char texts[NAMES_MAX][COMM_TEXT_CAP];
	size_t n;
	bool more; /* there were others, further up */
};

/* "tmux: server" is "tmux". */
static void add_name(struct parent_names *names, const struct proc_stat *parent)
{
	if (names->n == NAMES_MAX) {
		names->more = true;
		return;
	}
	char *text = names->texts[names->n];
	command_name(text, COMM_TEXT_CAP, parent);
	size_t len = strlen(text);
	if (len > 1 && text[len - 1] == ':')
		text[len - 1] = '\0';
	if (*text)
		names->n++;
}

/* Writes the names that fit; the outermost are left out first. */
static void write_names(const struct parent_names *names, char dst[LABEL_CAP])
{
	size_t used = 0, from = 0;
	size_t room = LABEL_CAP - strlen(LEFT_OUT) - 1;
	for (; from < names->n; from++) {
		size_t len = strlen(names->texts[from]) + (from ? strlen(SEPARATOR) : 0);
		if (used + len > room)
			break;
		used += len;
	}
	str_copy(dst, LABEL_CAP, names->more || from < names->n ? LEFT_OUT : "");
	while (from-- > 0) {
		size_t at = strlen(dst);
		str_copy(dst + at, LABEL_CAP - at, names->texts[from]);
		at = strlen(dst);
		str_copy(dst + at, LABEL_CAP - at, from ? SEPARATOR : "");
	}
}

/* Walks up from the process. The names are those that processes gave themselves. `brief`: read
 * nothing that may block (proc.h); then servers of editors and jobs are not found, because only
 * arguments show what they are. A parent that ended meanwhile ends the walk. */
static void ancestry_read(struct ancestry *a, const struct origin_known *known, bool brief)
{
	struct parent_names names = { .n = 0 };
	struct proc_stat parent;
	const struct proc_stat *stat = known->stat;
	int proc = known->proc;
	bool outside = (pid_t)known->pid == stat->session; /* of the session */
	bool wants_job = !brief && lacks_job(known->labels);
	uint64_t born = stat->start_ticks;
	pid_t next = stat->ppid;
	*a = (struct ancestry){ 0 };
	for (int i = 0; i < PARENTS_MAX && next > 1 && (!outside || !*a->login || wants_job);
		i++) {
		pid_t at = next;
		/* A process that is younger than its child has reused the parent's pid. */
		if (proc_read_stat(proc, (uint32_t)at, &parent) != 0 ||
			parent.start_ticks > born)
			break;
		if (!outside)
			add_name(&names, &parent);
		outside |= at == stat->session;
		const struct piece name = { parent.comm, parent.comm_len };
		for (size_t k = 0; k < sizeof(starters) / sizeof(starters[0]) && !*a->login;
			k++)
			if (piece_is_like(name, starters[k].name))
				str_copy(a->login, sizeof(a->login), starters[k].login);
		if (!*a->login && !brief)
			recognise_path(a, proc, (uint32_t)at);
		if (wants_job)
			recognise_step(a, proc, (uint32_t)at, &parent);
		wants_job = wants_job && !*a->job;
		born = parent.start_ticks;
		next = parent.ppid;
	}
	write_names(&names, a->parents);
}

enum {
	ENVIRONMENT_CAP = 256 * 1024,
	PROGRAM_CAP = 4096,
	SESSION_FILE_CAP = 2048,
};

/* The process chose the name, so secrets are cut from it. They are cut before it is shortened,
 * because the end of a secret is needed to recognise it. */
static void write_env(char dst[TAG_CAP], const char *kind, struct piece name)
{
	char word[PROGRAM_CAP];
	if (!name.len || piece_is_like(name, "/"))
		return;
	size_t len = name.len < sizeof(word) ? name.len : sizeof(word);
	memcpy(word, name.at, len);
	size_t used = str_escape(dst, TAG_CAP, kind, strlen(kind));
	str_escape(dst + used, TAG_CAP - used, word, secret_cut(word, len, SECRET_WORD));
}

/* A name like ".venv" says nothing; then the name of the project directory above is used. */
static struct piece venv_name(struct piece path)
{
	static const char *const usual[] = { ".venv", "venv", ".env", "env" };
	struct piece name = piece_basename(path);
	struct piece above = piece_basename(piece_directory(path));
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (piece_is_like(name, usual[i]) && above.len && !piece_is_like(above, "/"))
			return above;
	return name;
}

/* Finds the environment in the path of a program: ".../envs/NAME/bin/python" of conda,
 * ".../.pixi/envs/NAME/bin/python", ".../PROJECT/.venv/bin/python". */
static bool env_of_path(char dst[TAG_CAP], struct piece program)
{
	struct piece bin = piece_directory(program), env = piece_directory(bin);
	struct piece name = piece_basename(env), envs = piece_directory(env);
	if (!piece_is_like(piece_basename(bin), "bin") || !name.len)
		return false;
	if (piece_is_like(piece_basename(envs), "envs")) {
		bool pixi = piece_is_like(piece_basename(piece_directory(envs)), ".pixi");
		write_env(dst, pixi ? "pixi:" : "conda:", name);
		return true;
	}
	if (!piece_is_like(name, ".venv") && !piece_is_like(name, "venv"))
		return false;
	write_env(dst, "venv:", venv_name(env));
	return true;
}

/* A venv runs the program file of another environment, so argv[0] and VIRTUAL_ENV name the
 * environment more reliably than the program file. */
static void find_python_env(struct proc_origin *origin, const struct origin_known *known,
	const struct environment *env)
{
	char program[PROGRAM_CAP];
	struct piece venv = env->values[VARIABLE_VENV], conda = env->values[VARIABLE_CONDA];
	if (env_of_path(origin->python_env, known->program))
		return;
	if (venv.len) {
		write_env(origin->python_env, "venv:", venv_name(venv));
		return;
	}
	ssize_t n = proc_read_link(known->handle, 0, "exe", program, sizeof(program));
	if (n > 0 && env_of_path(origin->python_env, (struct piece){ program, (size_t)n }))
		return;
	if (conda.len)
		write_env(origin->python_env, "conda:", piece_basename(conda));
}

/* The login manager's name of the service that began a session, and the login shown for it. */
static const struct session_service {
	const char *service, *login;
} session_services[] = {
	{ "sshd*", "ssh" },
	{ "login", "tty" },
	{ "cron*", "cron" },
	{ "atd", "at" },
	{ "gdm*", "desktop" },
	{ "sddm*", "desktop" },
	{ "lightdm*", "desktop" },
	{ "xrdp*", "desktop" },
};

/* Reads from the login manager's file (systemd-logind) how the session began. The file is
 * beside /proc, in memory. */
static void ask_session(struct proc_origin *origin, int proc)
{
	static const char key[] = "\nSERVICE=";
	char path[64 + SESSION_CAP], bytes[SESSION_FILE_CAP];
	if (!*origin->session)
		return;
	snprintf(path, sizeof(path), "../run/systemd/sessions/%s", origin->session);
	ssize_t n = file_read_at(proc, path, bytes, sizeof(bytes));
	const char *line = n > 0 ? memmem(bytes, (size_t)n, key, sizeof(key) - 1) : NULL;
	if (!line)
		return;
	struct piece service = { line + sizeof(key) - 1, 0 };
	service.len = strcspn(service.at, "\n");
	for (size_t i = 0; i < sizeof(session_services) / sizeof(session_services[0]); i++)
		if (!*origin->login && piece_is_like(service, session_services[i].service))
			str_copy(origin->login, sizeof(origin->login),
				session_services[i].login);
}

static void or_login(struct proc_origin *origin, bool is, const char *login)
{
	if (is && !*origin->login)
		str_copy(origin->login, sizeof(origin->login), login);
}

/* The nearest known parent decides; without one, the environment that the process inherited;
 * then what its managers know. A kernel counts as Jupyter's, unless an editor started it. */
static void find_login(struct proc_origin *origin, const struct origin_known *known,
	const struct ancestry *ancestry, const struct environment *env)
{
	const struct cgroup_labels *labels = known->labels;
	size_t unit = strlen(labels->unit);
	or_login(origin, known->kernel && !ancestry->editor, "jupyter");
	or_login(origin, *ancestry->login, ancestry->login);
	or_login(origin, env->values[VARIABLE_VSCODE].len, "vscode");
	or_login(origin, env->values[VARIABLE_TERMINAL_TMUX].len, "tmux");
	or_login(origin, env->values[VARIABLE_TERMINAL_SCREEN].len, "screen");
	or_login(origin, env->values[VARIABLE_SSH].len, "ssh");
	ask_session(origin, known->proc);
	or_login(origin, *labels->job, "batch");
	or_login(origin, *labels->container || *labels->pod, "container");
	or_login(origin, piece_is_like((struct piece){ labels->unit, unit }, "*.service"),
		"service");
	enum { CONSOLE_MAJOR = 4 };
	or_login(origin, (known->stat->tty >> 8 & 0xfff) == CONSOLE_MAJOR, "tty");
}

/* A server that does not name the notebook (notebook 6) starts its kernel in the directory of
 * the notebook: that and the beginning of the kernel's id stand for the path. */
static void take_notebook(struct proc_origin *origin, const struct origin_known *known)
{
	enum { SHORT_ID = 8, ROOM = NOTEBOOK_CAP - 24 };
	char directory[PATH_MAX];
	const char *id = strchr(known->notebook, ':');
	ssize_t n = proc_read_link(known->handle, 0, "cwd", directory, sizeof(directory));
	if (n <= 0 || directory[0] != '/' || !id)
		return;
	environment_path(origin->notebook_path, ROOM, (struct piece){ directory, (size_t)n });
	size_t used = strlen(origin->notebook_path);
	if (used)
		snprintf(origin->notebook_path + used, sizeof(origin->notebook_path) - used,
			" (kernel %.*s)", SHORT_ID, id + 1);
}

static bool is_number(struct piece text)
{
	size_t n = 0;
	while (n < text.len && text.at[n] >= '0' && text.at[n] <= '9')
		n++;
	return n && n == text.len && n <= 10;
}

/* Where no manager names the job, the environment may: anyone can write a number there, so it
 * is called a claim, and no manager is ever asked to end such a job. */
static void claim_job(char job[LABEL_CAP], struct piece id)
{
	if (is_number(id))
		snprintf(job, LABEL_CAP, JOB_CLAIM "slurm:%.*s", (int)id.len, id.at);
}

/* The task of an array by the number that its user knows, "slurm:3_2", where Slurm's job is
 * "slurm:5". */
static void take_task(char task[TASK_CAP], const char *job, const struct environment *env)
{
	struct piece array = env->values[VARIABLE_ARRAY_JOB];
	struct piece number = env->values[VARIABLE_ARRAY_TASK];
	const char *colon = *job ? strrchr(job, ':') : NULL;
	if (colon && colon - job >= 5 && strncmp(colon - 5, "slurm", 5) == 0 &&
		is_number(array) && is_number(number))
		snprintf(task, TASK_CAP, "%.*s:%.*s_%.*s", (int)(colon - job), job,
			(int)array.len, array.at, (int)number.len, number.at);
}

static void take_claims(struct proc_origin *origin, const struct origin_known *known,
	const struct environment *env)
{
	const struct piece *values = env->values;
	environment_label(origin->tag, sizeof(origin->tag), values[VARIABLE_TAG]);
	environment_label(origin->account, sizeof(origin->account), values[VARIABLE_ACCOUNT]);
	environment_label(
		origin->job_name, sizeof(origin->job_name), values[VARIABLE_JOB_NAME]);
	if (known->kernel)
		environment_path(origin->notebook_path, sizeof(origin->notebook_path),
			values[VARIABLE_NOTEBOOK]);
	if (known->kernel && !*origin->notebook_path)
		take_notebook(origin, known);
}

/* Fills all of `origin`, and `job` where the cgroup does not name it. What may not be read is
 * "": only root and programs with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH may read the
 * environment of other users' processes. The environment is read into memory that is wiped at
 * once; environment.h lists the variables that are used. */
static void origin_read(
	struct proc_origin *origin, const struct origin_known *known, char job[LABEL_CAP])
{
	struct ancestry ancestry;
	struct environment env = { 0 };
	bool brief = !known->program.at;
	char *bytes = brief ? NULL : malloc(ENVIRONMENT_CAP);
	ssize_t n = -1;
	*origin = (struct proc_origin){ 0 };
	memcpy(origin->session, known->labels->session, sizeof(origin->session));
	ancestry_read(&ancestry, known, brief);
	memcpy(origin->parents, ancestry.parents, sizeof(origin->parents));
	if (bytes)
		n = proc_read_environment(known->handle, 0, bytes, ENVIRONMENT_CAP);
	if (n > 0)
		environment_parse(&env, bytes, (size_t)n, n == ENVIRONMENT_CAP - 1);
	find_login(origin, known, &ancestry, &env);
	if (*ancestry.job)
		memcpy(job, ancestry.job, sizeof(ancestry.job));
	else if (!*job)
		claim_job(job, env.values[VARIABLE_JOB_ID]);
	if (!brief) {
		take_claims(origin, known, &env);
		take_task(origin->job_task, job, &env);
		find_python_env(origin, known, &env);
	}
	if (n > 0)
		explicit_bzero(bytes, (size_t)n);
	free(bytes);
}

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

/* The uids of services: those of the system (SYS_UID_MAX of login.defs(5)), systemd's dynamic
 * ones, and nobody. Subordinate uids begin at SUB_UID_MIN. */
enum {
	SYSTEM_UID_MAX = 999,
	DYNAMIC_UID_MIN = 61184,
	DYNAMIC_UID_MAX = 65519,
	NOBODY_UID = 65534,
	SUBORDINATE_UID_MIN = 100000,
};

static bool is_service(int64_t uid)
{
	return (uid >= 0 && uid <= SYSTEM_UID_MAX) || uid == NOBODY_UID ||
	       (uid >= DYNAMIC_UID_MIN && uid <= DYNAMIC_UID_MAX);
}

/* Whether the process is in the host's user namespace but has a uid of a rootless container: it
 * runs in the login slice of another user, and its uid is a subordinate one. A setuid file that
 * the container made can do that. Such a process belongs to the slice's user, unless a person
 * has this uid. */
static bool may_be_subordinate(int64_t uid, int64_t slice_uid)
{
	return uid >= SUBORDINATE_UID_MIN && slice_uid >= 0 && uid != slice_uid;
}

/* Decides as described above. A directory server may give a person a uid of the subordinate
 * range; such a person's process is in the host's user namespace. */
static int64_t find_owner(int handle, int64_t uid, int64_t slice_uid)
{
	if (slice_uid < 0 || uid == slice_uid)
		return uid;
	if (uid < 0 || is_service(uid))
		return proc_read_login_uid(handle, 0) == slice_uid ? slice_uid : uid;
	bool container =
		may_be_subordinate(uid, slice_uid) && proc_read_user_namespace(handle, 0);
	return container ? slice_uid : uid;
}

/* Returns -1 with errno set to `why`. If the directory may not be read, uses its owner. */
static int identify_hidden(int handle, int why, struct process_id *id)
{
	struct stat info;
	bool denied = handle >= 0 && (why == EACCES || why == EPERM);
	if (denied && fstat(handle, &info) == 0)
		id->uid = id->owner_uid = info.st_uid;
	file_close(handle);
	errno = why;
	return -1;
}

/* Reads the command line and the origin of the process, which may block. */
static void read_work(
	struct origin_known *known, char bytes[PROC_ARGUMENTS_CAP], struct process_id *id)
{
	ssize_t n = proc_read_arguments(known->handle, 0, bytes, PROC_ARGUMENTS_CAP);
	size_t len = n < 0 ? 0 : (size_t)n;
	command_text(id->command, sizeof(id->command), bytes, len, known->stat);
	known->kernel = command_kernel(id->notebook, sizeof(id->notebook), bytes, len);
	known->program = (struct piece){ bytes, strnlen(bytes, len) };
	origin_read(&id->origin, known, id->job);
}

/* Fills all of `id` but its user, pod and moment; -1 with errno when the process cannot be read
 * (see proc.h). If it exists but may not be read (EACCES, EPERM: hidepid), the uid is that of
 * its directory's owner, which is the effective uid: the kernel gives no other. `brief`:
 * without the files that may block; then the command is "[comm]", there is no notebook, and the
 * origin is brief. */
static int identify(int proc, bool brief, struct process_id *id, struct cgroup_labels *labels)
{
	struct proc_stat stat;
	struct proc_status status;
	char bytes[PROC_ARGUMENTS_CAP]; /* of the cgroups, then the arguments */
	int handle = proc_open_process(proc, id->pid);
	if (handle < 0 || proc_read_stat(handle, 0, &stat) != 0)
		return identify_hidden(handle, errno, id);
	struct origin_known known = { proc, handle, id->pid, &stat, labels, false, id->notebook,
		{ 0 } };
	id->start_ticks = stat.start_ticks;
	id->posix_session = stat.session > 0 ? stat.session : 0;
	if (proc_read_status(handle, 0, &status) == 0)
		id->uid = status.uid;
	ssize_t n = proc_read_cgroup(handle, 0, bytes, sizeof(bytes));
	cgroup_parse(bytes, n < 0 ? 0 : (size_t)n, labels);
	memcpy(id->job, labels->job, sizeof(id->job));
	memcpy(id->container, labels->container, sizeof(id->container));
	memcpy(id->pod, labels->pod, sizeof(id->pod));
	memcpy(id->unit, labels->unit, sizeof(id->unit));
	id->owner_uid = find_owner(handle, id->uid, labels->slice_uid);
	if (brief) {
		command_text(id->command, sizeof(id->command), "", 0, &stat);
		origin_read(&id->origin, &known, id->job);
	} else {
		read_work(&known, bytes, id);
	}
	close(handle);
	return 0;
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
	struct pods pods;	  /* their names; unused if users have none */
	unsigned manner;	  /* of enum owners_manner */
	char *place;		  /* see owners_say_where(), or NULL */
	uint64_t places;	  /* how many texts `place` has had */
};

/* In a recorded tree without a passwd file, users have no names. */
static int open_users(struct owners *o, const char *root, struct err *e)
{
	if (!o->recorded)
		return user_names_new(&o->users, user_find_system, NULL, USER_DEADLINE_MS, e);
	char path[PATH_MAX], *bytes = NULL;
	size_t len = 0;
	if (!file_path(path, "%s/etc/passwd", root) ||
		file_read_all(path, PASSWD_MAX, &bytes, &len, NULL) != 0)
		bytes = calloc(1, 1);
	if (!bytes)
		return err_memory(e);
	int rc = user_names_new_file(&o->users, bytes, len, e);
	if (rc)
		free(bytes);
	return rc;
}

int owners_open(struct owners **out, const char *root, unsigned manner, struct err *e)
{
	struct owners *o = calloc(1, sizeof(*o));
	if (!o)
		return err_memory(e);
	o->proc = -1;
	pods_init(&o->pods, -1, false);
	o->manner = manner;
	o->recorded = root[0] != '\0';
	o->ticks_per_s = sysconf(_SC_CLK_TCK) > 0 ? sysconf(_SC_CLK_TCK) : 100;
	int rc = proc_open(&o->proc, root, e);
	if (rc == 0 && !(manner & OWNERS_NAMELESS))
		rc = open_users(o, root, e);
	if (rc) {
		owners_close(o);
		return rc;
	}
	proc_read_boot_id(o->proc, o->boot_id, sizeof(o->boot_id));
	pods_init(&o->pods, o->proc, o->recorded);
	*out = o;
	return 0;
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
	file_close(o->proc);
	user_names_free(o->users);
	pods_finish(&o->pods);
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
		o->users, (uint32_t)uid, clock_monotonic_us(), id->user, sizeof(id->user));
}

/* Names the pod. What runs there is mostly root's: then the namespace says whose time it is. */
static void describe_pod(struct owners *o, struct process_id *id)
{
	if (!o->users || !*id->pod)
		return;
	pods_describe(&o->pods, id);
	size_t space = strcspn(id->pod, "/");
	if (o->manner & OWNERS_BY_UID || !id->pod[space] || space >= sizeof(id->user))
		return;
	id->owner_uid = -1;
	snprintf(id->user, sizeof(id->user), "%.*s", (int)space, id->pod);
}

int64_t owners_started_ms(struct owners *o, uint64_t start_ticks)
{
	/* The boot time changes when the wall clock is set, and reading it takes a millisecond
	 * on a large host. So it is read once for all processes that are described at nearly
	 * the same time. */
	int64_t now_us = clock_monotonic_us();
	if (!o->boot_us || o->recorded || now_us - o->boot_us > BOOT_TIME_US) {
		o->boot_ms = proc_boot_ms(o->proc, !o->recorded);
		o->boot_us = now_us;
	}
	uint64_t seconds = start_ticks / (uint64_t)o->ticks_per_s;
	uint64_t rest = start_ticks % (uint64_t)o->ticks_per_s;
	if (o->boot_ms < 0 || seconds >= INT64_MAX / 4000)
		return -1;
	return o->boot_ms + (int64_t)seconds * 1000 +
	       (int64_t)(rest * 1000 / (uint64_t)o->ticks_per_s);
}

/* Describes a process that cannot be read: it has ended, or /proc is mounted with hidepid.
 * kill() with signal 0 still finds a process that is hidden completely. */
static bool describe_hidden(struct owners *o, int why, struct process_id *id)
{
	if (id->uid >= 0) {
		set_user(o, id, id->uid);
		return true;
	}
	bool hidden = why == ENOENT && !o->recorded && id->pid > 0 && id->pid <= INT_MAX &&
		      (kill((pid_t)id->pid, 0) == 0 || errno == EPERM);
	str_copy(id->user, sizeof(id->user), hidden ? USER_UNKNOWN : USER_DEAD);
	return hidden;
}

bool owners_describe(struct owners *o, uint32_t pid, bool brief, struct process_id *id)
{
	struct cgroup_labels labels;
	*id = (struct process_id){ .pid = pid, .started_ms = -1, .uid = -1, .owner_uid = -1 };
	say_where(o, "pid", pid);
	if (identify(o->proc, brief, id, &labels) != 0)
		return describe_hidden(o, errno, id);
	id->started_ms = owners_started_ms(o, id->start_ticks);
	if (id->owner_uid < 0)
		str_copy(id->user, sizeof(id->user), USER_UNKNOWN);
	else if (!set_user(o, id, id->owner_uid) && o->users && id->owner_uid == id->uid &&
		 may_be_subordinate(id->uid, labels.slice_uid))
		set_user(o, id, labels.slice_uid);
	describe_pod(o, id);
	return true;
}

bool owners_is_late(const struct owners *o, const struct process_id *id)
{
	if (o->users && *id->pod && !strchr(id->pod, '/'))
		return true; /* what names pods may start later than we */
	return strncmp(id->user, "uid:", 4) == 0 && o->users && user_names_are_late(o->users);
}

uint64_t owners_start_ticks(struct owners *o, uint32_t pid)
{
	return proc_start_ticks(o->proc, pid);
}
