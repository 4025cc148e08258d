/* Makes and removes the items of an installation. Other programs are started by their path,
 * with a vector of arguments, never by a shell. */
#include "cmd/install_steps.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

enum { MAX_ARGS = 12, MAX_FILE = 256 * 1024 };

/* One line: what was done, or would be, and to what. */
static void say(const struct install_steps *s, const char *did, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void say(const struct install_steps *s, const char *did, const char *format, ...)
{
	char text[PATH_MAX + 256], safe[sizeof(text)];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	text_escape(safe, sizeof(safe), text, strlen(text));
	printf("%s%-8s %s\n", s->dry_run ? "would " : "", did, safe);
	fflush(stdout);
}

static void keep(const char *path, const char *why)
{
	char safe[PATH_MAX];
	text_escape(safe, sizeof(safe), path, strlen(path));
	printf("kept     %s (%s)\n", safe, why);
}

/* Finds a program of the system; false: it is not installed. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	static const char *const places[] = { "/usr/bin", "/bin", "/usr/sbin", "/sbin" };
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, PATH_MAX, "%s/%s", places[i], name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static int wait_for(pid_t pid, const char *name, struct err *e)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(e, ERR_WORLD, "%s: %s", name, strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(e, ERR_WORLD, "%s failed; see its message above", name);
}

/* Runs a program of the system with the given words, and waits. Empty words are left out. */
#define RUN(s, e, ...) run(s, (const char *const[]){ __VA_ARGS__, NULL }, e)
static int run(const struct install_steps *s, const char *const *words, struct err *e)
{
	static char *const environment[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	char *argv[MAX_ARGS + 1] = { NULL }, path[PATH_MAX], line[PATH_MAX] = "";
	size_t n = 0, used = 0;
	for (const char *const *word = words; n < MAX_ARGS && *word; word++) {
		if (!**word)
			continue;
		argv[n++] = (char *)(uintptr_t)*word;
		if (used < sizeof(line))
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s",
				used ? " " : "", *word);
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
	return wait_for(pid, words[0], e);
}

/* "--root=DIR" for a program that has the option, "" for this host. */
static void root_option(const struct install_steps *s, const char *option, char word[PATH_MAX])
{
	word[0] = '\0';
	if (s->in.root[0])
		snprintf(word, PATH_MAX, "%s=%s", option, s->in.root);
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

static int make_directory(struct install_steps *s, size_t i, const char *path, struct err *e)
{
	struct stat st;
	if (stat(path, &st) == 0)
		return 0;
	say(s, "make", "%s/", path);
	int rc = s->dry_run ? 0 : make_directories(path, 0755, e);
	s->in.made[i] |= !rc && !s->dry_run;
	return rc;
}

/* Whether the file must be written: it is missing, or as an earlier version wrote it. */
static bool must_write(const struct install_steps *s, size_t i, const char *there,
	const char *content, const char *path)
{
	if (!there)
		return true;
	if (strcmp(there, content) == 0) {
		keep(path, "as it should be");
		return false;
	}
	if (s->in.made[i] && text_sum(there) == s->in.sum[i])
		return true;
	keep(path, s->in.made[i] ? "it was changed" : "it was there before");
	return false;
}

static int write_file(
	struct install_steps *s, size_t i, const char *path, const char *content, struct err *e)
{
	say(s, "write", "%s", path);
	if (s->dry_run)
		return 0;
	int rc = file_replace(path, content, strlen(content), e);
	if (!rc && chmod(path, 0644) != 0)
		rc = err_set(e, ERR_WORLD, "%s: %s", path, strerror(errno));
	s->in.made[i] |= !rc;
	s->in.sum[i] = text_sum(content);
	return rc;
}

static int make_file(struct install_steps *s, size_t i, const char *path, struct err *e)
{
	const struct item *item = &installation_items[i];
	char packaged[PATH_MAX], *there = NULL;
	struct str content = { 0 };
	if (installation_packaged(&s->in, item, packaged)) {
		keep(packaged, "installed with the program");
		return 0;
	}
	item->content(&content, s->program);
	int rc = content.failed ? err_memory(e) : read_text(path, &there, e);
	if (!rc && must_write(s, i, there, content.data, path))
		rc = write_file(s, i, path, content.data, e);
	free(there);
	str_finish(&content);
	return rc;
}

/* Reads the home directory of the user below the root; false: there is no such user. */
static bool find_user(const struct install_steps *s, char home[PATH_MAX])
{
	char path[PATH_MAX];
	bool found = false;
	if (installation_path(&s->in, "/etc/passwd", path, NULL) != 0)
		return false;
	FILE *file = fopen(path, "re");
	for (struct passwd *p; file && !found && (p = fgetpwent(file)) != NULL;) {
		found = strcmp(p->pw_name, INSTALLED_USER) == 0;
		text_copy(home, PATH_MAX, p->pw_dir);
	}
	if (file)
		fclose(file);
	return found;
}

static bool find_group(const struct install_steps *s)
{
	char path[PATH_MAX];
	bool found = false;
	if (installation_path(&s->in, "/etc/group", path, NULL) != 0)
		return false;
	FILE *file = fopen(path, "re");
	for (struct group *g; file && !found && (g = fgetgrent(file)) != NULL;)
		found = strcmp(g->gr_name, INSTALLED_USER) == 0;
	if (file)
		fclose(file);
	return found;
}

static int make_user(struct install_steps *s, size_t i, struct err *e)
{
	char word[PATH_MAX], unused[PATH_MAX];
	if (find_user(s, unused)) {
		keep("user " INSTALLED_USER, "there already");
		return 0;
	}
	int rc;
	if (find_program("systemd-sysusers", unused)) {
		root_option(s, "--root", word);
		rc = RUN(s, e, "systemd-sysusers", word, "gua.conf");
	} else {
		root_option(s, "--prefix", word);
		rc = RUN(s, e, "useradd", word, "--system", "--user-group", "--no-create-home",
			"--home-dir", INSTALLED_DATA, "--shell", "/usr/sbin/nologin",
			INSTALLED_USER);
	}
	s->in.made[i] |= !rc && !s->dry_run;
	return rc;
}

/* Makes the directories that tmpfiles.d lists: that of the data is among them. */
static int make_data(struct install_steps *s, size_t i, const char *path, struct err *e)
{
	char word[PATH_MAX];
	struct stat st;
	bool there = stat(path, &st) == 0;
	root_option(s, "--root", word);
	/* What is in /run belongs to a running system. */
	int rc = RUN(s, e, "systemd-tmpfiles", word, "--create",
		s->in.root[0] ? "--exclude-prefix=/run" : "", "gua.conf");
	s->in.made[i] |= !rc && !there && !s->dry_run;
	return rc;
}

/* Whether systemd runs this host: else the service starts at the next boot. */
static bool systemd_runs(const struct install_steps *s)
{
	return !s->in.root[0] && access("/run/systemd/system", F_OK) == 0;
}

static int make_service(struct install_steps *s, size_t i, struct err *e)
{
	char word[PATH_MAX];
	if (!s->start)
		return 0;
	bool runs = systemd_runs(s);
	root_option(s, "--root", word);
	int rc = runs ? RUN(s, e, "systemctl", "daemon-reload") : 0;
	if (!rc)
		rc = RUN(
			s, e, "systemctl", word, "enable", runs ? "--now" : "", INSTALLED_UNIT);
	s->in.made[i] |= !rc && !s->dry_run;
	return rc;
}

static int make_item(struct install_steps *s, size_t i, struct err *e)
{
	const struct item *item = &installation_items[i];
	char path[PATH_MAX];
	int rc = installation_path(&s->in, item->name, path, e);
	if (rc)
		return rc;
	switch (item->kind) {
	case ITEM_DIRECTORY:
		return make_directory(s, i, path, e);
	case ITEM_FILE:
		return make_file(s, i, path, e);
	case ITEM_USER:
		return make_user(s, i, e);
	case ITEM_DATA:
		return make_data(s, i, path, e);
	case ITEM_SERVICE:
		return make_service(s, i, e);
	}
	return 0;
}

int install_steps_make(struct install_steps *s, struct err *e)
{
	int rc = installation_read(&s->in, e);
	for (size_t i = 0; !rc && i < N_ITEMS; i++) {
		rc = make_item(s, i, e);
		struct err unwritten = { 0 };
		/* The list is written after each step, so that a part can be undone. */
		int listed = s->dry_run ? 0 : installation_write(&s->in, &unwritten);
		if (!rc && listed) {
			*e = unwritten;
			rc = listed;
		}
	}
	return rc;
}

static int remove_file(struct install_steps *s, size_t i, const char *path, struct err *e)
{
	char *there = NULL;
	int rc = read_text(path, &there, e);
	if (rc || !there)
		return rc;
	if (text_sum(there) != s->in.sum[i]) {
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

/* A directory with something in it stays. */
static int remove_directory(const struct install_steps *s, const char *path, struct err *e)
{
	if (s->dry_run) {
		say(s, "remove", "%s/ if it is empty", path);
		return 0;
	}
	if (rmdir(path) == 0)
		say(s, "remove", "%s/", path);
	else if (errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY)
		keep(path, "it is not empty");
	else if (errno != ENOENT)
		return err_set(e, ERR_WORLD, "cannot remove %s: %s", path, strerror(errno));
	return 0;
}

/* The user stays as long as there is data: another user could get its number. */
static int remove_user(const struct install_steps *s, struct err *e)
{
	char word[PATH_MAX], data[PATH_MAX], home[PATH_MAX];
	int rc = installation_path(&s->in, INSTALLED_DATA, data, e);
	if (rc || !find_user(s, home))
		return rc;
	if (strcmp(home, INSTALLED_DATA) != 0)
		keep("user " INSTALLED_USER, "it has another home directory");
	else if (access(data, F_OK) == 0 && !(s->dry_run && s->purge))
		keep("user " INSTALLED_USER, "the data belongs to it");
	else {
		root_option(s, "--prefix", word);
		rc = RUN(s, e, "userdel", word, INSTALLED_USER);
		/* It depends on /etc/login.defs whether the group is gone too. */
		if (!rc && !s->dry_run && find_group(s))
			rc = RUN(s, e, "groupdel", word, INSTALLED_USER);
	}
	return rc;
}

/* Removes the data. The directory is the service's user's own, so a program that follows no
 * link does it. */
static int purge(const struct install_steps *s, struct err *e)
{
	char path[PATH_MAX];
	int rc = installation_path(&s->in, INSTALLED_DATA, path, e);
	if (rc || access(path, F_OK) != 0)
		return rc;
	return RUN(s, e, "rm", "-r", "--one-file-system", "--", path);
}

static int remove_service(const struct install_steps *s, struct err *e)
{
	char word[PATH_MAX];
	root_option(s, "--root", word);
	return RUN(s, e, "systemctl", word, "disable", systemd_runs(s) ? "--now" : "",
		INSTALLED_UNIT);
}

static int remove_item(struct install_steps *s, size_t i, struct err *e)
{
	const struct item *item = &installation_items[i];
	char path[PATH_MAX];
	int rc = installation_path(&s->in, item->name, path, e);
	if (rc)
		return rc;
	switch (item->kind) {
	case ITEM_DIRECTORY:
	case ITEM_DATA:
		return remove_directory(s, path, e);
	case ITEM_FILE:
		return remove_file(s, i, path, e);
	case ITEM_USER:
		return remove_user(s, e);
	case ITEM_SERVICE:
		return remove_service(s, e);
	}
	return 0;
}

/* Whether the item is to be removed: with the data, its user goes too, even if an earlier
 * uninstall took it off the list. */
static bool is_due(const struct install_steps *s, size_t i)
{
	char path[PATH_MAX];
	const struct item *user_file = &installation_items[ITEM_SYSUSERS];
	bool orphan = installation_items[i].kind == ITEM_USER && s->purge &&
		      !installation_packaged(&s->in, user_file, path);
	return s->in.made[i] || orphan;
}

int install_steps_undo(struct install_steps *s, struct err *e)
{
	int rc = installation_read(&s->in, e);
	for (size_t i = N_ITEMS; !rc && i-- > 1;) {
		if (s->purge && installation_items[i].kind == ITEM_DATA)
			rc = purge(s, e);
		if (!rc && is_due(s, i))
			rc = remove_item(s, i, e);
		if (rc || s->dry_run)
			continue;
		s->in.made[i] = false;
		rc = installation_write(&s->in, e);
	}
	if (!rc && systemd_runs(s))
		rc = RUN(s, e, "systemctl", "daemon-reload");
	if (rc || !s->in.made[0])
		return rc;
	/* The directory of the list comes last: the list is in it. */
	s->in.made[0] = false;
	rc = s->dry_run ? 0 : installation_write(&s->in, e);
	return rc ? rc : remove_item(s, 0, e);
}
