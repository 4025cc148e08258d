/* gua start --dry-run: makes the checks of a start, and changes nothing. */
#include "cmd/rehearse.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/timetext.h"
#include "store/identify.h"
#include "store/statusfile.h"

static int check_unused(const char *db, struct err *e)
{
	struct published now;
	int rc = published_read(&now, db, e);
	if (rc || !now.pid)
		return rc;
	if (now.pid == RECORDER_ELSEWHERE)
		return err_set(
			e, ERR_WORLD, "a recorder outside of this container uses %s", db);
	return err_set(
		e, ERR_WORLD, "a recorder is already running on %s (pid %d)", db, (int)now.pid);
}

static int check_writable(const char *db, bool exists, struct err *e)
{
	char dir[PATH_MAX];
	file_nearest_directory(dir, sizeof(dir), db);
	const char *denied = dir;
	if (exists && faccessat(AT_FDCWD, db, W_OK, AT_EACCESS) != 0)
		denied = db;
	else if (faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) == 0)
		return 0;
	return err_set(e, ERR_WORLD,
		"%s may not be written: %s; choose another place with --db PATH", denied,
		strerror(errno));
}

static int count_cards(struct live_values *v, size_t *n, struct err *e)
{
	static struct live_session s; /* a thread that hangs may still use its clock */
	v->no_store = v->once = v->cards_only = true;
	int rc = cmd_live_open(&s, v, NULL, e);
	if (rc)
		return rc;
	rc = cmd_live_refresh(&s, e);
	*n = live_present(s.live)->n_cards;
	cmd_live_close(&s);
	return rc;
}

static int say_so(const struct command *self, const struct rehearsal *r, size_t n, bool exists)
{
	struct str out = { 0 };
	char db[PATH_MAX], every[40];
	text_escape(db, sizeof(db), r->db, strlen(r->db));
	duration_text(every, sizeof(every), r->interval_ms);
	str_addf(&out, "would record %zu card%s into %s (%s) every %s, in the %s\n", n,
		n == 1 ? "" : "s", db, exists ? "exists" : "new", every,
		r->foreground ? "foreground" : "background");
	str_add(&out, "dry run: nothing was started or written\n");
	return cmd_print(self, &out);
}

int rehearse(const struct command *self, const struct rehearsal *r, struct live_values *live)
{
	struct err e = { 0 };
	size_t n = 0;
	int kind = STORE_MISSING, rc = check_unused(r->db, &e);
	if (!rc)
		rc = kind = store_identify(r->db, &e);
	if (rc >= 0)
		rc = check_writable(r->db, kind == STORE_OURS, &e);
	if (!rc)
		rc = count_cards(live, &n, &e);
	return rc ? cmd_fail(self, &e) : say_so(self, r, n, kind == STORE_OURS);
}
