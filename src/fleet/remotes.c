/* Reads a list of hosts. */
#include "fleet/remotes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/str.h"

/* The characters of host and user names; ':' and '%' occur in IPv6 addresses. A name is
 * passed to ssh as one argument, but the ssh configuration may pass it to a shell. */
static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			      "._-@:%+";

/* Fails unless the text can only be a host name, and not an option of ssh. */
static int check_name(const char *name, size_t len, size_t line, struct err *e)
{
	char safe[2 * REMOTE_NAME_CAP];
	const char *at = memchr(name, '@', len);
	const char *host = at ? at + 1 : name;
	bool good = strspn(name, allowed) >= len && host < name + len && at != name &&
		    *name != '-' && *host != '-';
	str_escape(safe, sizeof(safe), name, len < REMOTE_NAME_CAP ? len : REMOTE_NAME_CAP);
	if (len >= REMOTE_NAME_CAP)
		return err_set(
			e, ERR_USAGE, "line %zu: '%s...' is too long for a host", line, safe);
	if (!good)
		return err_set(e, ERR_USAGE,
			"line %zu: '%s' is not a host: write HOST or USER@HOST, one a line; a "
			"port belongs into ~/.ssh/config",
			line, safe);
	return 0;
}

static bool has_name(const struct remotes *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->items[i].name, name) == 0)
			return true;
	return false;
}

static int add_name(struct remotes *r, const char *name, size_t len, struct err *e)
{
	struct remote new = { .state = REMOTE_FAILED };
	memcpy(new.name, name, len);
	if (has_name(r, new.name)) {
		log_notice("%s is in the list twice and is asked once", new.name);
		return 0;
	}
	if (r->n == REMOTES_MAX)
		return err_set(e, ERR_USAGE,
			"there are more than %d hosts: use an engine (--from)", REMOTES_MAX);
	if (!array_one_more(&r->items, r->n))
		return err_memory(e);
	r->items[r->n++] = new;
	return 0;
}

int remotes_read(struct remotes *r, const char *text, struct err *e)
{
	int rc = 0;
	for (size_t line = 1; *text && rc == 0; line++) {
		size_t end = strcspn(text, "\n");
		size_t until = strcspn(text, "#\n");
		while (until && strchr(" \t\r", text[until - 1]))
			until--;
		size_t from = strspn(text, " \t");
		if (from < until)
			rc = check_name(text + from, until - from, line, e);
		if (from < until && rc == 0)
			rc = add_name(r, text + from, until - from, e);
		text += end + (text[end] == '\n');
	}
	if (rc == 0 && r->n == 0)
		rc = err_set(e, ERR_USAGE, "the list has no hosts");
	return rc;
}

void remotes_finish(struct remotes *r)
{
	free(r->items);
	arena_finish(&r->texts);
	*r = (struct remotes){ 0 };
}
