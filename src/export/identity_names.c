/* Names users for an exporter. */
#include "export/identity_names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/hmac.h"
#include "base/str.h"

enum {
	HASH_DIGITS = 16, /* 64 bits: no two of a million users get the same one */
	KEY_LEAST = 16,	  /* bytes: a shorter key could be found by trying */
};

static const char *const words[] = { "user", "group", "hashed", "off" };

/* Takes the first line of the file. */
static int take_key(struct identity_names *n, const char *path, const struct file_content *file,
	struct err *e)
{
	size_t len = strcspn(file->data, "\r\n");
	if (file->st.st_mode & 077)
		return err_set(e, ERR_WORLD,
			"%s can be read by others than its owner: make it chmod 600, and take "
			"another key",
			path);
	if (len < KEY_LEAST || len >= sizeof(n->key))
		return err_set(e, ERR_WORLD,
			"the first line of %s must be a key of %d to %zu characters; make one "
			"with: head -c 32 /dev/urandom | base64",
			path, KEY_LEAST, sizeof(n->key) - 1);
	memcpy(n->key, file->data, len);
	n->key_len = len;
	return 0;
}

static int read_key(struct identity_names *n, const char *path, struct err *e)
{
	struct file_content file = { 0 };
	if (!path || !*path)
		return err_set(e, ERR_USAGE,
			"hashed identities need a key: set key_file in [metrics] of gua.conf");
	int rc = file_read_regular(path, sizeof(n->key), &file, e);
	if (rc == 0)
		rc = take_key(n, path, &file, e);
	if (file.data)
		explicit_bzero(file.data, file.len);
	free(file.data);
	return rc;
}

int identity_names_init(
	struct identity_names *n, const struct config *config, const char *how, struct err *e)
{
	*n = (struct identity_names){ .max = config->metrics.identity_max,
		.groups = &config->groups };
	if (!how)
		how = config->metrics.identities;
	for (int i = 0; i <= IDENTITIES_OFF; i++)
		if (strcmp(how, words[i]) == 0)
			n->how = (enum identity_how)i;
	if (n->how == IDENTITIES_HASHED)
		return read_key(n, config->metrics.key_file, e);
	if (n->how == IDENTITIES_GROUP && n->groups->n == 0)
		return err_set(e, ERR_USAGE,
			"identities by group need groups: gua.conf has none in [groups]");
	return 0;
}

static void hash(const struct identity_names *n, const char *user, char dst[IDENTITY_NAME_CAP])
{
	char hex[HMAC_HEX_CAP];
	hmac_sha256_hex(hex, &(struct hmac_key){ n->key, n->key_len }, user, strlen(user));
	hex[HASH_DIGITS] = '\0';
	text_copy(dst, IDENTITY_NAME_CAP, hex);
}

void identity_name(const struct identity_names *n, const char *user, int64_t place,
	char dst[IDENTITY_NAME_CAP])
{
	const char *name = user;
	if (strcmp(user, IDENTITY_UNKNOWN) == 0)
		name = IDENTITY_UNKNOWN;
	else if (n->how == IDENTITIES_GROUP)
		name = config_groups_find(n->groups, user);
	else if (place > n->max)
		name = NULL;
	else if (n->how == IDENTITIES_HASHED) {
		hash(n, user, dst);
		return;
	}
	name = name ? name : IDENTITY_OTHER;
	text_escape(dst, IDENTITY_NAME_CAP, name, strlen(name));
}
