/* What gua install makes on a host, and the list of it that gua uninstall reads. The table is
 * fixed: the list only says which of its items were made, so it cannot name anything else. */
#ifndef GUA_CMD_INSTALLATION_H
#define GUA_CMD_INSTALLATION_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define INSTALLED_LIST "/etc/gua/installed"
#define INSTALLED_DATA "/var/lib/gua"
#define INSTALLED_USER "gua"
#define INSTALLED_UNIT "gua.service"

enum item_kind {
	ITEM_DIRECTORY,
	ITEM_FILE,
	ITEM_USER, /* with its group */
	ITEM_DATA, /* a directory of the user's, made as tmpfiles.d says */
	ITEM_SERVICE,
};

struct item {
	enum item_kind kind;
	const char *name;     /* a path below the root, or a name */
	const char *packaged; /* a package has it here below a lib directory; NULL: none does */
	/* Appends what the file contains. */
	void (*content)(struct str *out, const char *program);
};

enum { ITEM_SYSUSERS = 3, N_ITEMS = 12 };
extern const struct item installation_items[N_ITEMS];

struct installation {
	const char *root; /* "": this host */
	bool made[N_ITEMS];
	uint64_t sum[N_ITEMS]; /* text_sum() of a file as it was written */
};

/* The path of an item below the root. */
int installation_path(
	const struct installation *in, const char *name, char path[PATH_MAX], struct err *e);
/* Where a package has the item; false: nowhere. */
bool installation_packaged(
	const struct installation *in, const struct item *item, char path[PATH_MAX]);

/* Reads the list; a list that is missing is empty. */
int installation_read(struct installation *in, struct err *e);
/* Writes it; an empty one is removed. */
int installation_write(const struct installation *in, struct err *e);

#endif
