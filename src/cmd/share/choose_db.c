/* Finds the user's own store and the system's, and decides between them. */
#include "cmd/share/choose_db.h"

#include "cmd/cmd.h"
#include "store/identify.h"
#include "store/statusfile.h"

int choose_db_own(char *path, size_t cap, struct err *e)
{
	const char *named = cmd_variable("GUA_DB"), *state = cmd_variable("XDG_STATE_HOME");
	const char *home = cmd_variable("HOME");
	int n;
	if (named)
		n = snprintf(path, cap, "%s", named);
	else if (state && *state == '/')
		n = snprintf(path, cap, "%s/gua/gua.db", state);
	else if (geteuid() == 0)
		n = snprintf(path, cap, SYSTEM_DB);
	else if (home && *home == '/')
		n = snprintf(path, cap, "%s/.local/state/gua/gua.db", home);
	else
		return err_set(e, ERR_USAGE,
			"none of GUA_DB, XDG_STATE_HOME and HOME is set: give --db PATH");
	if (n < 0 || (size_t)n >= cap)
		return err_set(
			e, ERR_USAGE, "the path of the store is too long: give --db PATH");
	return 0;
}

/* What this user can do with the system's store. */
enum reach { REACH_NOTHING, REACH_DENIED, REACH_READ };

static enum reach reach_system(void)
{
	if (access(SYSTEM_DB, R_OK) == 0)
		return REACH_READ;
	return errno == EACCES ? REACH_DENIED : REACH_NOTHING;
}

int choose_db_to_read(struct chosen_db *c, struct err *e)
{
	struct err denied = { 0 };
	*c = (struct chosen_db){ .named = cmd_variable("GUA_DB") != NULL };
	int rc = choose_db_own(c->path, sizeof(c->path), e);
	/* Root's own store is the system's, unless a variable names another one. */
	if (c->named || geteuid() == 0)
		return rc;
	bool has_own = rc == 0 && access(c->path, F_OK) == 0;
	enum reach system = reach_system();
	bool recorded = system == REACH_READ && statusfile_is_running(SYSTEM_DB) == 1;
	if (has_own && recorded)
		snprintf(c->note, sizeof(c->note),
			"reading the system's store " SYSTEM_DB
			", which is being recorded; your own: --db %.400s",
			c->path);
	else if (has_own && system == REACH_DENIED && statusfile_is_running(c->path) != 1) {
		identify_denied(SYSTEM_DB, &denied);
		snprintf(c->note, sizeof(c->note), "reading your own store; %s", denied.text);
	}
	if (recorded || (!has_own && system != REACH_NOTHING)) {
		str_copy(c->path, sizeof(c->path), SYSTEM_DB);
		return 0;
	}
	return rc;
}

int choose_db_list(struct store_list *stores, const struct texts *named, struct err *e)
{
	struct chosen_db chosen;
	int rc = 0;
	for (size_t i = 0; i < named->n && rc == 0; i++)
		rc = store_list_add(stores, named->items[i], e);
	if (named->n)
		return rc;
	rc = choose_db_to_read(&chosen, e);
	if (rc == 0 && *chosen.note)
		log_notice("%s", chosen.note);
	return rc ? rc : store_list_add(stores, chosen.path, e);
}

void choose_db_note_unread(const struct store_list *stores)
{
	for (size_t i = 0; i < stores->n_unread; i++)
		log_notice("skipped: %s", stores->unread[i]);
}

void choose_db_warn(const char *own, char *note, size_t cap)
{
	struct err denied = { 0 };
	enum reach system = reach_system();
	*note = '\0';
	if (strcmp(own, SYSTEM_DB) == 0 || geteuid() == 0 || cmd_variable("GUA_DB"))
		return;
	if (system == REACH_DENIED) {
		identify_denied(SYSTEM_DB, &denied);
		snprintf(note, cap, "the system may have a store already; %s", denied.text);
	} else if (statusfile_is_running(SYSTEM_DB) == 1) {
		snprintf(note, cap,
			"the system's store " SYSTEM_DB
			" is being recorded already, and commands without --db read that one");
	}
}
