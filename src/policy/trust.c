/* Checks who may change the configuration. */
#include "policy/trust.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

static int check(const char *path, const struct settings_owner *owner, struct err *e)
{
	if (!owner->known)
		return err_set(e, ERR_WORLD, "the owner of %s is unknown", path);
	if (owner->uid != 0)
		return err_set(e, ERR_WORLD, "%s belongs to uid %lld, not to root", path,
			(long long)owner->uid);
	/* Anyone who can write to a directory can delete and replace the files in it. */
	if (owner->mode & (S_IWGRP | S_IWOTH))
		return err_set(e, ERR_WORLD, "%s can be written by others than root", path);
	return 0;
}

static int check_file(const struct settings *s, size_t file, struct err *e)
{
	char directory[PATH_MAX];
	const char *path = s->files[file];
	if (*path != '/')
		return err_set(e, ERR_WORLD,
			"%s is not the absolute path of a file, so its owner is unknown", path);
	str_copy(directory, sizeof(directory), path);
	char *slash = strrchr(directory, '/');
	*(slash == directory ? slash + 1 : slash) = '\0';
	int rc = check(path, &s->owners[file], e);
	return rc ? rc : check(directory, &s->directories[file], e);
}

int trust_settings(const struct settings *s, struct err *e)
{
	int rc = 0;
	if (s->n_items == 0)
		return err_set(e, ERR_WORLD, "there is no configuration");
	for (size_t i = 0; i < s->n_items && rc == 0; i++)
		if (i == 0 || s->items[i].file != s->items[i - 1].file)
			rc = s->items[i].line == 0 ? err_set(e, ERR_WORLD,
							     "a part of the configuration is "
							     "from the command "
							     "line (%s)",
							     s->files[s->items[i].file])
						   : check_file(s, s->items[i].file, e);
	return rc;
}

static uint64_t add(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return (hash ^ 0xff) * 0x100000001b3u;
}

void trust_hash(char dst[TRUST_HASH_CAP], const struct settings *s)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < s->n_items; i++) {
		hash = add(hash, s->items[i].section ? s->items[i].section->name : "");
		hash = add(hash, s->items[i].block);
		hash = add(hash, s->items[i].name);
		hash = add(hash, s->items[i].text);
	}
	snprintf(dst, TRUST_HASH_CAP, "%016llx", (unsigned long long)hash);
}
