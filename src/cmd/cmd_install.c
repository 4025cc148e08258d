/* gua install and gua uninstall: make the recorder a service of the system, step by step, and
 * remove it again by the list of what was made. */
#include <spawn.h>
#include <sys/wait.h>

#include "cmd/share/configure.h"
#include "cmd/share/hand_over.h"
#include "gua-service.h"
#include "gua-sysusers.h"
#include "gua-tmpfiles.h"

#define INSTALLED_LIST "/etc/gua/installed"
#define INSTALLED_DATA "/var/lib/gua"
#define INSTALLED_USER "gua"
#define INSTALLED_UNIT "gua.service"

enum item_kind {
	ITEM_DIRECTORY,
	ITEM_FILE,
	ITEM_USER, /* with its group */
	ITEM_DATA, /* a directory that belongs to that user, made as tmpfiles.d says */
	ITEM_SERVICE,
};

struct item {
	enum item_kind kind;
	const char *name;     /* a path below the root, or a name */
	const char *packaged; /* path below a lib directory where a package has it, or what it
				 is made for; NULL: no package does */
	const char *text;     /* content of the file; NULL: an example of the configuration */
};

enum { ITEM_SYSUSERS = 3, ITEM_UNIT = 8, N_ITEMS = 12 };

struct install {
	const char *root;    /* "": this host */
	const char *program; /* path of the program that the unit starts */
	bool dry_run;	     /* print what would be done, and do nothing */
	bool no_start;	     /* install: neither enable nor start the service */
	bool purge, yes; /* uninstall: remove the data and its user too; without a question */
	bool made[N_ITEMS];
	uint64_t sum[N_ITEMS]; /* str_sum() of the file as it was written */
};

/* What gua install makes on a host, and the list of it that gua uninstall reads. The table is
 * fixed: the list only says which of its items were made, so it cannot name anything else. */

static const struct item items[N_ITEMS] = {
	{ ITEM_DIRECTORY, "/etc/gua", NULL, NULL },
	{ ITEM_FILE, SYSTEM_CONFIG, NULL, NULL },
	{ ITEM_DIRECTORY, "/etc/sysusers.d", "sysusers.d/gua.conf", NULL },
	[ITEM_SYSUSERS] = { ITEM_FILE, "/etc/sysusers.d/gua.conf", "sysusers.d/gua.conf",
		gua_sysusers },
	{ ITEM_DIRECTORY, "/etc/tmpfiles.d", "tmpfiles.d/gua.conf", NULL },
	{ ITEM_FILE, "/etc/tmpfiles.d/gua.conf", "tmpfiles.d/gua.conf", gua_tmpfiles },
	{ ITEM_DIRECTORY, "/etc/systemd", NULL, NULL },
	{ ITEM_DIRECTORY, "/etc/systemd/system", NULL, NULL },
	[ITEM_UNIT] = { ITEM_FILE, "/etc/systemd/system/" INSTALLED_UNIT,
		"systemd/system/" INSTALLED_UNIT, gua_service },
	{ ITEM_USER, INSTALLED_USER, NULL, NULL },
	{ ITEM_DATA, INSTALLED_DATA, NULL, NULL },
	{ ITEM_SERVICE, INSTALLED_UNIT, NULL, NULL },
};

static const char *const kind_names[] = {
	[ITEM_DIRECTORY] = "directory",
	[ITEM_FILE] = "file",
	[ITEM_USER] = "user",
	[ITEM_DATA] = "data",
	[ITEM_SERVICE] = "service",
};

/* The path of an item below the root. */
static int path_of(
	const struct install *s, const char *name, char path[PATH_MAX], struct err *e)
{
	if (!file_path(path, "%s%s", s->root, name))
		return err_set(e, ERR_USAGE, "the path %s%s is too long", s->root, name);
	return 0;
}

/* Finds where a package has a file, below a lib directory; false: nowhere. */
static bool find_packaged(const struct install *s, const char *name, char path[PATH_MAX])
{
	static const char *const libs[] = { "/usr/lib", "/usr/local/lib", "/lib" };
	for (size_t i = 0; name && i < sizeof(libs) / sizeof(libs[0]); i++)
		if (file_path(path, "%s%s/%s", s->root, libs[i], name) &&
			access(path, F_OK) == 0)
			return true;
	return false;
}

/* Reads the list; a missing list counts as empty. Lines that name no item were written by
 * another version. */
static int read_list(struct install *s, struct err *e)
{
	char path[PATH_MAX], kind[16], name[256];
	uint64_t sum;
	struct file_content list = { 0 };
	int rc = path_of(s, INSTALLED_LIST, path, e);
	if (rc || access(path, F_OK) != 0)
		return rc;
	rc = file_read_regular(path, 64 * 1024, &list, e);
	char *rest = rc ? NULL : list.data;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		if (sscanf(line, "%15s %" SCNx64 " %255s", kind, &sum, name) != 3)
			continue;
		for (size_t i = 0; i < N_ITEMS; i++)
			if (strcmp(kind, kind_names[items[i].kind]) == 0 &&
				strcmp(name, items[i].name) == 0) {
				s->made[i] = true;
				s->sum[i] = sum;
			}
	}
	free(list.data);
	return rc;
}

/* Writes the list; an empty list is removed. */
static int write_list(const struct install *s, struct err *e)
{
	char path[PATH_MAX];
	struct str out = { 0 };
	size_t n = 0;
	int rc = path_of(s, INSTALLED_LIST, path, e);
	if (rc)
		return rc;
	str_add(&out, "# What gua install has made: gua uninstall reads this.\n");
	for (size_t i = 0; i < N_ITEMS; i++) {
		if (!s->made[i])
			continue;
		str_addf(&out, "%s %" PRIx64 " %s\n", kind_names[items[i].kind], s->sum[i],
			items[i].name);
		n++;
	}
	if (out.failed)
		rc = err_memory(e);
	else if (n)
		rc = file_replace(path, out.data, out.len, e);
	else if (unlink(path) != 0 && errno != ENOENT)
		rc = err_set(e, ERR_WORLD, "cannot remove %s: %s", path, strerror(errno));
	str_finish(&out);
	return rc;
}

/* Makes and removes the items of an installation. Other programs are started by their path,
 * with a vector of arguments, never by a shell. */

enum { MAX_ARGS = 16, MAX_FILE = 256 * 1024 };

/* Prints one line: what was done, or would be done, and to what. */
static void say(const struct install *s, const char *did, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void say(const struct install *s, const char *did, const char *format, ...)
{
	char text[PATH_MAX + 256], safe[sizeof(text)];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	str_escape(safe, sizeof(safe), text, strlen(text));
	printf("%s%-8s %s\n", s->dry_run ? "would " : "", did, safe);
	fflush(stdout);
}

static void keep(const char *path, const char *why)
{
	char safe[PATH_MAX];
	str_escape(safe, sizeof(safe), path, strlen(path));
	printf("kept     %s (%s)\n", safe, why);
}

/* Finds a program of the system; false: it is not installed. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	static const char *const places[] = { "/usr/bin", "/bin", "/usr/sbin", "/sbin" };
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (file_path(path, "%s/%s", places[i], name) && access(path, X_OK) == 0)
			return true;
	return false;
}

/* Runs a program of the system with the given words, and waits. Empty words are left out. The
 * root follows a word that ends with "=", which is left out on this host. */
#define RUN(s, e, ...) run_program(s, (const char *const[]){ __VA_ARGS__, NULL }, e)
static int run_program(const struct install *s, const char *const *words, struct err *e)
{
	static char *const environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	char *argv[MAX_ARGS + 1] = { NULL }, path[PATH_MAX], root[PATH_MAX],
			      line[PATH_MAX] = "";
	size_t n = 0, used = 0;
	int status = 0;
	for (const char *const *at = words; n < MAX_ARGS && *at; at++) {
		const char *word = *at;
		if (!*word || (word[strlen(word) - 1] == '=' && !s->root[0]))
			continue;
		if (word[strlen(word) - 1] == '=') {
			snprintf(root, sizeof(root), "%s%s", word, s->root);
			word = root;
		}
		argv[n++] = (char *)(uintptr_t)word;
		if (used < sizeof(line))
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s",
				used ? " " : "", word);
	}
	if (!find_program(words[0], path))
		return err_set(e, ERR_WORLD, "%s is needed and not installed", words[0]);
	say(s, "run", "%s", line);
	pid_t pid;
	if (s->dry_run)
		return 0;
	int why = posix_spawn(&pid, path, NULL, NULL, argv, environment);
	if (why)
		return err_set(e, ERR_WORLD, "cannot run %s: %s", path, strerror(why));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(e, ERR_WORLD, "%s: %s", words[0], strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(e, ERR_WORLD, "%s failed; see its message above", words[0]);
}

/* Reads a file that may be missing: *text is NULL then. */
static int read_text(const char *path, char **text, struct err *e)
{
	struct file_content f = { 0 };
	*text = NULL;
	int rc = file_read_regular(path, MAX_FILE, &f, e);
	if (rc && f.error == ENOENT)
		return 0;
	*text = rc ? NULL : f.data;
	return rc;
}

/* Why a file that is there is left alone; NULL: it must be written, because it is missing or an
 * earlier version wrote it. */
static const char *why_kept(
	const struct install *s, size_t i, const char *there, const char *content)
{
	if (!there)
		return NULL;
	if (strcmp(there, content) == 0)
		return "as it should be";
	if (!s->made[i])
		return "it was there before";
	return str_sum(there) == s->sum[i] ? NULL : "it was changed";
}

static int make_file(struct install *s, size_t i, const char *path, struct err *e)
{
	static const char place[] = "@bindir@/gua";
	const char *text = items[i].text;
	char packaged[PATH_MAX], *there = NULL;
	struct str content = { 0 };
	if (find_packaged(s, items[i].packaged, packaged)) {
		keep(packaged, "installed with the program");
		return 0;
	}
	if (!text)
		configure_example(&content);
	/* With the path of this program in place of the one that a build installs. */
	for (const char *found; text && (found = strstr(text, place)) != NULL;
		text = found + strlen(place)) {
		str_add_bytes(&content, text, (size_t)(found - text));
		str_add(&content, s->program);
	}
	str_add(&content, text ? text : "");
	int rc = content.failed ? err_memory(e) : read_text(path, &there, e);
	const char *why = rc ? NULL : why_kept(s, i, there, content.data);
	if (why) {
		keep(path, why);
	} else if (!rc) {
		say(s, "write", "%s", path);
		rc = s->dry_run ? 1 : file_replace(path, content.data, content.len, e);
		if (!rc && chmod(path, 0644) != 0)
			rc = err_set(e, ERR_WORLD, "%s: %s", path, strerror(errno));
		s->sum[i] = str_sum(content.data);
		rc = rc ? rc : 1;
	}
	free(there);
	str_finish(&content);
	return rc;
}

/* Finds the line of the user in /etc/passwd below the root, or of the group in /etc/group;
 * false: there is none. */
static bool find_entry(const struct install *s, const char *name, char line[PATH_MAX])
{
	static const char head[] = INSTALLED_USER ":";
	char path[PATH_MAX];
	bool found = false;
	FILE *file = path_of(s, name, path, NULL) == 0 ? fopen(path, "re") : NULL;
	while (file && !found && fgets(line, PATH_MAX, file))
		found = strncmp(line, head, strlen(head)) == 0;
	if (file)
		fclose(file);
	return found;
}

/* Whether systemd runs on this host; if not, the service starts at the next boot. */
static bool systemd_runs(const struct install *s)
{
	return !s->root[0] && access("/run/systemd/system", F_OK) == 0;
}

/* Makes an item. Returns 1 if it was made, 0 if there was nothing to do, or an error. */
static int make_item(struct install *s, size_t i, struct err *e)
{
	char path[PATH_MAX], unused[PATH_MAX];
	struct stat st;
	int rc = path_of(s, items[i].name, path, e);
	if (rc)
		return rc;
	bool there = stat(path, &st) == 0;
	switch (items[i].kind) {
	case ITEM_DIRECTORY:
		if (there || find_packaged(s, items[i].packaged, unused))
			return 0;
		say(s, "make", "%s/", path);
		rc = s->dry_run ? 0 : file_make_directories(path, 0755, e);
		break;
	case ITEM_FILE:
		return make_file(s, i, path, e);
	case ITEM_USER:
		if (find_entry(s, "/etc/passwd", unused)) {
			keep("user " INSTALLED_USER, "there already");
			return 0;
		}
		if (find_program("systemd-sysusers", unused))
			rc = RUN(s, e, "systemd-sysusers", "--root=", "gua.conf");
		else
			rc = RUN(s, e, "useradd", "--prefix=", "--system", "--user-group",
				"--no-create-home", "--home-dir", INSTALLED_DATA, "--shell",
				"/usr/sbin/nologin", INSTALLED_USER);
		break;
	case ITEM_DATA:
		/* One of several directories in tmpfiles.d. Those in /run are only for a
		 * running system. */
		rc = RUN(s, e, "systemd-tmpfiles", "--root=", "--create",
			s->root[0] ? "--exclude-prefix=/run" : "", "gua.conf");
		return rc ? rc : !there;
	case ITEM_SERVICE:
		if (s->no_start)
			return 0;
		if (systemd_runs(s))
			rc = RUN(s, e, "systemctl", "daemon-reload");
		if (!rc)
			rc = RUN(s, e, "systemctl", "--root=", "enable",
				systemd_runs(s) ? "--now" : "", INSTALLED_UNIT);
	}
	return rc ? rc : 1;
}

static int remove_file(struct install *s, size_t i, const char *path, struct err *e)
{
	char *there = NULL;
	int rc = read_text(path, &there, e);
	if (rc || !there)
		return rc;
	if (str_sum(there) != s->sum[i]) {
		keep(path, "it was changed");
	} else {
		say(s, "remove", "%s", path);
		if (!s->dry_run && unlink(path) != 0)
			rc = err_set(
				e, ERR_WORLD, "cannot remove %s: %s", path, strerror(errno));
	}
	free(there);
	return rc;
}

/* The user stays while there is data: otherwise another user could get the same uid. */
static int remove_user(const struct install *s, struct err *e)
{
	char data[PATH_MAX], line[PATH_MAX], *home = line;
	int rc = path_of(s, INSTALLED_DATA, data, e);
	if (rc || !find_entry(s, "/etc/passwd", line))
		return rc;
	for (int field = 0; field < 5; field++) /* passwd(5) */
		strsep(&home, ":");
	if (!home || strcmp(strsep(&home, ":"), INSTALLED_DATA) != 0) {
		keep("user " INSTALLED_USER, "it has another home directory");
	} else if (access(data, F_OK) == 0 && !(s->dry_run && s->purge)) {
		keep("user " INSTALLED_USER, "the data belongs to it");
	} else {
		rc = RUN(s, e, "userdel", "--prefix=", INSTALLED_USER);
		/* /etc/login.defs decides whether the group was removed too. */
		if (!rc && !s->dry_run && find_entry(s, "/etc/group", line))
			rc = RUN(s, e, "groupdel", "--prefix=", INSTALLED_USER);
	}
	return rc;
}

/* Whether the data is there; writes its path. */
static bool has_data(const struct install *s, char path[PATH_MAX])
{
	return path_of(s, INSTALLED_DATA, path, NULL) == 0 && access(path, F_OK) == 0;
}

/* Disables the service, and what the administrator has enabled beside it: all of that works
 * with what the recorder writes. */
static int disable_units(const struct install *s, struct err *e)
{
	static const struct {
		const char *unit, *file; /* below a lib directory */
	} others[] = {
		{ "gua-enforce.service", "systemd/system/gua-enforce.service" },
		{ "gua-end.socket", "systemd/system/gua-end.socket" },
		{ "gua-serve.socket", "systemd/system/gua-serve.socket" },
		{ "gua-serve.service", "systemd/system/gua-serve.service" },
		{ "gua-digest.timer", "systemd/system/gua-digest.timer" },
		{ "gua-metrics.timer", "systemd/system/gua-metrics.timer" },
		{ "gua-lease@slurm.service", "systemd/system/gua-lease@.service" },
		{ "gua-lease@kubelet.service", "systemd/system/gua-lease@kubelet.service" },
	};
	char path[PATH_MAX];
	const char *words[MAX_ARGS + 1] = { "systemctl", "--root=", "disable",
		systemd_runs(s) ? "--now" : "", INSTALLED_UNIT };
	size_t n = 5;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (find_packaged(s, others[i].file, path))
			words[n++] = others[i].unit;
	return run_program(s, words, e);
}

static int remove_item(struct install *s, size_t i, struct err *e)
{
	char path[PATH_MAX];
	if (path_of(s, items[i].name, path, e))
		return e->code;
	switch (items[i].kind) {
	case ITEM_DIRECTORY:
	case ITEM_DATA:
		/* A directory that is not empty stays. */
		if (s->dry_run)
			say(s, "remove", "%s/ if it is empty", path);
		else if (rmdir(path) == 0)
			say(s, "remove", "%s/", path);
		else if (errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY)
			keep(path, "it is not empty");
		else if (errno != ENOENT)
			return err_set(
				e, ERR_WORLD, "cannot remove %s: %s", path, strerror(errno));
		return 0;
	case ITEM_FILE:
		return remove_file(s, i, path, e);
	case ITEM_USER:
		return remove_user(s, e);
	case ITEM_SERVICE:
		return disable_units(s, e);
	}
	return 0;
}

/* Removes what is on the list, last first. Changed files, directories that are not empty, and
 * the user of remaining data are kept. */
static int remove_all(struct install *s, struct err *e)
{
	char path[PATH_MAX];
	int rc = 0;
	for (size_t i = N_ITEMS; !rc && i-- > 1;) {
		/* The directory of the data belongs to the user of the service, so a program
		 * that does not follow links removes it. */
		if (s->purge && items[i].kind == ITEM_DATA && has_data(s, path))
			rc = RUN(s, e, "rm", "-r", "--one-file-system", "--", path);
		/* With the data its user is removed, too, even if an earlier uninstall took the
		 * user off the list. */
		bool orphan = items[i].kind == ITEM_USER && s->purge &&
			      !find_packaged(s, items[ITEM_SYSUSERS].packaged, path);
		if (!rc && (s->made[i] || orphan))
			rc = remove_item(s, i, e);
		if (rc || s->dry_run)
			continue;
		s->made[i] = false;
		rc = write_list(s, e);
	}
	if (!rc && systemd_runs(s))
		rc = RUN(s, e, "systemctl", "daemon-reload");
	if (rc || !s->made[0])
		return rc;
	/* The directory of the list comes last, because the list is in it. */
	s->made[0] = false;
	rc = s->dry_run ? 0 : write_list(s, e);
	return rc ? rc : remove_item(s, 0, e);
}

#define AT(member) .offset = offsetof(struct install, member)
static const struct option_row options[] = {
	{ OPTION_FLAG, 0, "dry-run", .help = "print every step, and do none", AT(dry_run) },
	{ OPTION_TEXT, 0, "root", "DIR", "install into the system image below DIR", AT(root) },
	{ OPTION_FLAG, 0, "no-start", .help = "neither enable nor start the service",
		AT(no_start) },
	{ 0 },
};

static const struct option_row uninstall_options[] = {
	{ OPTION_FLAG, 0, "dry-run", .help = "print every step, and do none", AT(dry_run) },
	{ OPTION_TEXT, 0, "root", "DIR", "remove from the system image below DIR", AT(root) },
	{ OPTION_FLAG, 0, "purge", .help = "remove the data too, after a question", AT(purge) },
	{ OPTION_FLAG, 0, "yes", .help = "with --purge: do not ask", AT(yes) },
	{ 0 },
};

static int check(const struct install *s, struct err *e)
{
	/* The service cannot see home directories, and has its own /tmp. */
	static const char *const hidden[] = { "/home/", "/root/", "/run/user/", "/tmp/",
		"/var/tmp/" };
	char path[PATH_MAX];
	if (geteuid() != 0 && !s->dry_run && !s->root[0])
		return err_set(e, ERR_WORLD,
			"only root can install a service: run 'sudo gua install'; 'gua install "
			"--dry-run' prints what it would do, and 'gua start' records as you");
	/* The image may have a program that this host does not have. */
	if (s->root[0] || find_packaged(s, items[ITEM_UNIT].packaged, path))
		return 0;
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (strncmp(s->program, hidden[i], strlen(hidden[i])) == 0)
			return err_set(e, ERR_WORLD,
				"a service cannot start %s, because it sees nothing in %s; put "
				"gua into the system first, for example with 'make install', "
				"and run it from there",
				s->program, hidden[i]);
	return 0;
}

static void print_next(const struct install *s)
{
	if (s->dry_run)
		return;
	printf("\nData: " INSTALLED_DATA "; settings: /etc/gua/gua.conf. ");
	printf("Members of the group " INSTALLED_USER " can read the data:\n"
	       "  usermod -a -G " INSTALLED_USER " USER\n");
	if (s->no_start)
		printf("Start the recorder with: systemctl enable --now " INSTALLED_UNIT "\n");
	else if (s->root[0])
		printf("The recorder starts when the image is booted.\n");
	else
		printf("'gua status' says what the recorder does; 'gua uninstall' undoes all "
		       "this and keeps the data.\n");
}

static int run(const struct call *call, struct err *e)
{
	struct install *s = call->values;
	char program[PATH_MAX];
	s->root = strcmp(s->root, "/") == 0 ? "" : s->root;
	s->program = program;
	if (!hand_over_self(program))
		return err_set(e, ERR_WORLD, "the path of this program is not known");
	if (check(s, e) || read_list(s, e))
		return e->code;
	/* Makes what is missing. What exists and is not on the list is left as it is. */
	for (size_t i = 0; i < N_ITEMS; i++) {
		int made = make_item(s, i, e);
		s->made[i] |= made > 0 && !s->dry_run;
		/* The list is written after each step, so that a part can be undone. */
		int listed = s->dry_run ? 0 : write_list(s, made < 0 ? NULL : e);
		if (made < 0 || listed)
			return e->code;
	}
	print_next(s);
	return 0;
}

const struct command cmd_install = {
	.name = "install",
	.summary = "make the recorder a service of this system",
	.usage = "[--dry-run] [--root DIR] [--no-start]",
	.details = "Makes the user and the group gua, /var/lib/gua, an example of\n"
		   "/etc/gua/gua.conf and the systemd unit gua.service, unless a package has\n"
		   "installed them, and starts the service. Running it again is harmless:\n"
		   "what is there stays as it is.",
	.options = options,
	.values_size = sizeof(struct install),
	.initial = &(const struct install){ .root = "" },
	.run = run,
};

/* Asks on the terminal whether the data may be removed. */
static int confirm(const struct install *s, struct err *e)
{
	char answer[16] = "";
	if (!isatty(STDIN_FILENO))
		return err_set(e, ERR_USAGE,
			"--purge asks before it removes data, and standard input is not a "
			"terminal: add --yes, or leave out --purge");
	printf("Remove all that was recorded in %s%s? This cannot be undone. [y/N] ", s->root,
		INSTALLED_DATA);
	fflush(stdout);
	if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
		return 0;
	return err_set(e, ERR_WORLD, "nothing was removed");
}

static int run_uninstall(const struct call *call, struct err *e)
{
	struct install *s = call->values;
	char path[PATH_MAX];
	s->root = strcmp(s->root, "/") == 0 ? "" : s->root;
	if (read_list(s, e))
		return e->code;
	bool due = s->purge && (find_entry(s, "/etc/passwd", path) || has_data(s, path));
	for (size_t i = 0; i < N_ITEMS; i++)
		due |= s->made[i];
	if (!due)
		printf("Nothing to remove: 'gua install' has made no service here. The "
		       "package manager removes a package, 'make uninstall' what 'make "
		       "install' copied.\n");
	else if (geteuid() != 0 && !s->dry_run && !s->root[0])
		err_set(e, ERR_WORLD,
			"only root can remove a service: run 'sudo gua uninstall'");
	else if (s->purge && !s->yes && !s->dry_run)
		confirm(s, e);
	if (e->code || (due && remove_all(s, e)))
		return e->code;
	if (has_data(s, path) && !s->dry_run)
		printf("\nThe data stays in %s; 'gua uninstall --purge' removes it. 'gua "
		       "report --db %s/gua.db' still reads it.\n",
			path, path);
	return 0;
}

const struct command cmd_uninstall = {
	.name = "uninstall",
	.summary = "undo what gua install has done, and keep the data",
	.usage = "[--dry-run] [--root DIR] [--purge [--yes]]",
	.details =
		"Stops and disables gua's services, and removes what gua install has made and\n"
		"nobody has changed since. Programs, manual pages and what a package has\n"
		"installed stay: remove them with 'make uninstall' or the package.",
	.options = uninstall_options,
	.values_size = sizeof(struct install),
	.initial = &(const struct install){ .root = "" },
	.run = run_uninstall,
};
