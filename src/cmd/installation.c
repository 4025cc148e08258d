/* The table of what is installed, and its list: a line for each item, "KIND SUM NAME". */
#include "cmd/installation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/share/configure.h"
#include "gua-service.h"
#include "gua-sysusers.h"
#include "gua-tmpfiles.h"

static void add_config(struct str *out, const char *program)
{
	(void)program;
	configure_example(out);
}

static void add_sysusers(struct str *out, const char *program)
{
	(void)program;
	str_add(out, gua_sysusers);
}

static void add_tmpfiles(struct str *out, const char *program)
{
	(void)program;
	str_add(out, gua_tmpfiles);
}

/* The unit, with the path of this program in the place of the one that a build installs. */
static void add_unit(struct str *out, const char *program)
{
	static const char place[] = "@bindir@/gua";
	const char *at = gua_service;
	for (const char *found; (found = strstr(at, place)) != NULL;
		at = found + strlen(place)) {
		str_add_bytes(out, at, (size_t)(found - at));
		str_add(out, program);
	}
	str_add(out, at);
}

const struct item installation_items[N_ITEMS] = {
	{ ITEM_DIRECTORY, "/etc/gua", NULL, NULL },
	{ ITEM_FILE, SYSTEM_CONFIG, NULL, add_config },
	{ ITEM_DIRECTORY, "/etc/sysusers.d", NULL, NULL },
	[ITEM_SYSUSERS] = { ITEM_FILE, "/etc/sysusers.d/gua.conf", "sysusers.d/gua.conf",
		add_sysusers },
	{ ITEM_DIRECTORY, "/etc/tmpfiles.d", NULL, NULL },
	{ ITEM_FILE, "/etc/tmpfiles.d/gua.conf", "tmpfiles.d/gua.conf", add_tmpfiles },
	{ ITEM_DIRECTORY, "/etc/systemd", NULL, NULL },
	{ ITEM_DIRECTORY, "/etc/systemd/system", NULL, NULL },
	{ ITEM_FILE, "/etc/systemd/system/" INSTALLED_UNIT, "systemd/system/" INSTALLED_UNIT,
		add_unit },
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

int installation_path(
	const struct installation *in, const char *name, char path[PATH_MAX], struct err *e)
{
	int n = snprintf(path, PATH_MAX, "%s%s", in->root, name);
	if (n < 0 || n >= PATH_MAX)
		return err_set(e, ERR_USAGE, "the path %s%s is too long", in->root, name);
	return 0;
}

bool installation_packaged(
	const struct installation *in, const struct item *item, char path[PATH_MAX])
{
	static const char *const libs[] = { "/usr/lib", "/usr/local/lib", "/lib" };
	for (size_t i = 0; item->packaged && i < sizeof(libs) / sizeof(libs[0]); i++) {
		int n = snprintf(path, PATH_MAX, "%s%s/%s", in->root, libs[i], item->packaged);
		if (n > 0 && n < PATH_MAX && access(path, F_OK) == 0)
			return true;
	}
	return false;
}

/* Marks the item that a line names; lines that name none are of another version. */
static void mark(struct installation *in, const char *line)
{
	char kind[16], name[256];
	uint64_t sum;
	if (sscanf(line, "%15s %" SCNx64 " %255s", kind, &sum, name) != 3)
		return;
	for (size_t i = 0; i < N_ITEMS; i++) {
		const struct item *item = &installation_items[i];
		if (strcmp(kind, kind_names[item->kind]) == 0 &&
			strcmp(name, item->name) == 0) {
			in->made[i] = true;
			in->sum[i] = sum;
		}
	}
}

int installation_read(struct installation *in, struct err *e)
{
	char path[PATH_MAX];
	int rc = installation_path(in, INSTALLED_LIST, path, e);
	if (rc || access(path, F_OK) != 0)
		return rc;
	struct file_content list = { 0 };
	rc = file_read_regular(path, 64 * 1024, &list, e);
	if (rc)
		return rc;
	char *rest = list.data;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;)
		mark(in, line);
	free(list.data);
	return 0;
}

int installation_write(const struct installation *in, struct err *e)
{
	char path[PATH_MAX];
	struct str out = { 0 };
	size_t n = 0;
	int rc = installation_path(in, INSTALLED_LIST, path, e);
	if (rc)
		return rc;
	str_add(&out, "# What gua install has made: gua uninstall reads this.\n");
	for (size_t i = 0; i < N_ITEMS; i++)
		if (in->made[i]) {
			str_addf(&out, "%s %" PRIx64 " %s\n",
				kind_names[installation_items[i].kind], in->sum[i],
				installation_items[i].name);
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
