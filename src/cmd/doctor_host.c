/* The checks of `gua doctor` other than those of the sources: the system, whether processes are
 * visible and can be read, the store. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/size.h"
#include "base/str.h"
#include "cmd/share/configure.h"
#include "cmd/cmd_doctor.h"
#include "policy/channel.h"
#include "policy/rules.h"
#include "proc/reader.h"
#include "store/identify.h"

enum { TEXT_FILE = 65536, LOW_SPACE_MIB = 100 };

/* "ROOT/PATH"; false when it does not fit. */
static bool below(char *dst, size_t cap, const char *root, const char *path)
{
	int n = snprintf(dst, cap, "%s%s", root, path);
	return n >= 0 && (size_t)n < cap;
}

static ssize_t read_below(const char *root, const char *path, char *dst, size_t cap)
{
	char whole[PATH_MAX];
	return below(whole, sizeof(whole), root, path) ? file_read_at(AT_FDCWD, whole, dst, cap)
						       : -1;
}

static bool is_below(const char *root, const char *path)
{
	char whole[PATH_MAX];
	return below(whole, sizeof(whole), root, path) && access(whole, F_OK) == 0;
}

/* The value of PRETTY_NAME in os-release(5), without quotes. */
static void read_system_name(const char *root, char *dst, size_t cap)
{
	char text[8192];
	text_copy(dst, cap, "unknown system");
	if (read_below(root, "/etc/os-release", text, sizeof(text)) <= 0)
		return;
	const char *found = strstr(text, "PRETTY_NAME=");
	if (!found)
		return;
	found += strlen("PRETTY_NAME=");
	found += strspn(found, "\"'");
	text_escape(dst, cap, found, strcspn(found, "\"'\n"));
}

void examine_system(const struct examination *x, struct findings *f)
{
	char name[128];
	struct utsname u;
	read_system_name(x->root, name, sizeof(name));
	if (uname(&u) != 0)
		finding_add(f, FINDING_OK, "system", "%s", name);
	else
		finding_add(f, FINDING_OK, "system", "%s, %s %s %s", name, u.sysname, u.release,
			u.machine);
}

/* Whether some mount is of this kind (proc(5), mountinfo). */
static bool has_mount(const char *root, const char *kind)
{
	char text[TEXT_FILE], word[32];
	snprintf(word, sizeof(word), " - %s ", kind);
	return read_below(root, "/proc/self/mountinfo", text, sizeof(text)) > 0 &&
	       strstr(text, word);
}

void capture_system(const char *root, struct str *out)
{
	char name[128];
	struct utsname u;
	read_system_name(root, name, sizeof(name));
	for (char *quote; (quote = strchr(name, '"')) != NULL;)
		*quote = '\'';
	str_addf(out, "system \"%s\"\n", name);
	if (uname(&u) == 0)
		str_addf(out, "kernel \"%s %s %s\"\n", u.sysname, u.release, u.machine);
	str_addf(out, "cgroup %s\n",
		has_mount(root, "cgroup")    ? "v1"
		: has_mount(root, "cgroup2") ? "v2"
					     : "unknown");
	str_addf(out, "as %s\n", geteuid() == 0 ? "root" : "a user");
}

/* The superblock options of the file system on /proc (proc(5), mountinfo), or NULL. */
static const char *find_proc_options(char *mountinfo)
{
	const char *options = NULL;
	for (char *line; (line = strsep(&mountinfo, "\n")) != NULL;) {
		char *dash = strstr(line, " - proc ");
		if (dash && strstr(line, " /proc "))
			options = dash; /* the last one mounted is the visible one */
	}
	return options;
}

/* Checks hidepid, which hides the processes of other users from everyone but root. */
static bool examine_hidepid(const struct examination *x, struct findings *f)
{
	char text[TEXT_FILE];
	if (read_below(x->root, "/proc/self/mountinfo", text, sizeof(text)) <= 0)
		return false;
	const char *options = find_proc_options(text);
	const char *hidepid = options ? strstr(options, "hidepid=") : NULL;
	if (!hidepid || strncmp(hidepid, "hidepid=0", 9) == 0 ||
		strncmp(hidepid, "hidepid=off", 11) == 0)
		return false;
	char value[32];
	text_escape(value, sizeof(value), hidepid, strcspn(hidepid, ", \n"));
	if (geteuid() == 0) {
		finding_add(f, FINDING_OK, "processes",
			"/proc is mounted with %s, which does not restrict root", value);
		return true;
	}
	finding_advise(finding_add(f, FINDING_WARNING, "processes",
			       "/proc is mounted with %s: holders that belong to other users "
			       "cannot be named",
			       value),
		"run the recorder as root, or as a member of the group in /proc's gid= option");
	return true;
}

/* Checks the pid namespace. The initial one has a fixed number (proc_ns.h,
 * PROC_PID_INIT_INO). */
static bool examine_namespace(const struct examination *x, struct findings *f)
{
	char path[PATH_MAX], target[64];
	ssize_t n = below(path, sizeof(path), x->root, "/proc/self/ns/pid")
			    ? readlink(path, target, sizeof(target) - 1)
			    : -1;
	if (n <= 0)
		return false;
	target[n] = '\0';
	if (strcmp(target, "pid:[4026531836]") == 0)
		return false;
	bool container =
		is_below(x->root, "/.dockerenv") || is_below(x->root, "/run/.containerenv");
	finding_advise(
		finding_add(f, FINDING_WARNING, "processes",
			"this is %s with a pid namespace of its own: processes outside of "
			"it cannot be seen or named",
			container ? "a container" : "a place"),
		"record on the host itself, or give the container the host's pids "
		"(--pid=host)");
	return true;
}

void examine_visibility(const struct examination *x, struct findings *f)
{
	bool hidden = examine_hidepid(x, f);
	if (!examine_namespace(x, f) && !hidden)
		finding_add(f, FINDING_OK, "processes",
			"the processes of all users can be seen (as uid %u)",
			(unsigned)geteuid());
}

/* Adds the pids of this host that a source lists; false: out of memory. */
static bool add_pids(const struct source *s, uint32_t **pids, size_t *n, size_t *cap)
{
	for (size_t i = 0; i < s->n_cards; i++) {
		const struct card_reading *r = &s->cards[i];
		bool listed = r->status == CARD_STATUS_OK && r->processes_known;
		if (!listed || r->own_processes)
			continue;
		if (!array_reserve(pids, cap, *n + r->n_processes))
			return false;
		for (size_t k = 0; k < r->n_processes; k++)
			(*pids)[(*n)++] = r->processes[k].pid;
	}
	return true;
}

void examine_processes(
	const struct examination *x, const struct source *const *sources, struct findings *f)
{
	uint32_t *pids = NULL;
	size_t n = 0, cap = 0;
	struct reader *reader = NULL;
	char text[256];
	bool all = true;
	for (; all && *sources; sources++)
		all = add_pids(*sources, &pids, &n, &cap);
	if (all && n && reader_open(&reader, x->root, NULL) == 0) {
		reader_expect(reader, pids, n);
		if (reader_trouble(reader, text, sizeof(text)))
			finding_advise(finding_add(f, FINDING_WARNING, "processes", "%s", text),
				"find out what it waits for (as root: cat /proc/PID/stack): "
				"usually a file system or a driver that does not answer");
	}
	reader_close(reader);
	free(pids);
}

static void examine_space(const char *path, struct findings *f)
{
	char dir[PATH_MAX], size[SIZE_TEXT_CAP];
	struct statvfs v;
	file_nearest_directory(dir, sizeof(dir), path);
	if (statvfs(dir, &v) != 0) {
		finding_add(f, FINDING_WARNING, "free space", "cannot be read for %s: %s", dir,
			strerror(errno));
		return;
	}
	double bytes = (double)v.f_bavail * (double)v.f_frsize;
	bool low = bytes < LOW_SPACE_MIB * 1048576.0;
	size_text(size, bytes);
	struct finding *row = finding_add(f, low ? FINDING_WARNING : FINDING_OK, "free space",
		"%s where the store is (%s)", size, dir);
	if (low)
		finding_advise(row,
			"make room, or put the store elsewhere with --db PATH; a year "
			"of 12 cards takes about 30 MiB");
	if (faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) != 0)
		finding_advise(finding_add(f, FINDING_WARNING, "store",
				       "%s cannot be written: %s", dir, strerror(errno)),
			"to record, run gua as its owner or choose another place with --db "
			"PATH");
}

void examine_store(const struct examination *x, struct findings *f)
{
	struct err e = { 0 };
	int kind = store_identify(x->db, &e);
	if (kind < 0)
		finding_advise(finding_add(f, FINDING_PROBLEM, "store", "%s", e.text),
			"choose another file with --db PATH");
	else if (kind == STORE_OURS)
		finding_add(f, FINDING_OK, "store", "%s is a store of gua", x->db);
	else
		finding_add(f, FINDING_OK, "store", "%s: nothing is recorded yet", x->db);
	examine_space(x->db, f);
}

void examine_notices(const struct examination *x, struct findings *f)
{
	struct configuration conf = { .root = x->root };
	const struct configure_options none = { 0 };
	struct err e = { 0 };
	char missed[CHANNEL_REACH_CAP];
	bool tells = false;
	if (configure_read(&conf, &none, &e) == 0) {
		const struct policy policy = { .config = &conf.values };
		for (size_t i = 0; i < policy_rules_count(&policy); i++)
			tells |= policy_rule_level(policy_rule(&policy, i)) != LEVEL_OBSERVE;
		tells = tells && strcmp(conf.values.policy.mode, "enforce") == 0;
		if (tells && channel_misses(&conf.values.notices, missed))
			finding_advise(finding_add(f, FINDING_WARNING, "notices", "%s", missed),
				"try it with 'gua enforce test-notice USER'");
		else if (tells)
			finding_add(f, FINDING_OK, "notices",
				"gua enforce has a channel that reaches every user");
	}
	configuration_finish(&conf);
}
