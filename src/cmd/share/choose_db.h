/* Chooses the store of a command that was given no --db. */
#pragma once

#include "base/options.h"
#include "store/store_list.h"

/* The store of the service, and of root unless the environment names another one. */
#define SYSTEM_DB "/var/lib/gua/gua.db"

/* The user's own store, to record into: GUA_DB, else $XDG_STATE_HOME/gua/gua.db, else the
 * system's for root and ~/.local/state/gua/gua.db for others. */
int choose_db_own(char *path, size_t cap, struct err *e);

struct chosen_db {
	char path[PATH_MAX];
	bool named;	/* GUA_DB names it */
	char note[640]; /* "" or what the user must know about the other store */
};

/* Chooses the store to read: the user's own or the system's. The system's store is read if it
 * is being recorded, or if the user has none. If it cannot be read, store_open_read() reports
 * why. */
int choose_db_to_read(struct chosen_db *c, struct err *e);

/* Chooses the stores of a command that reads several: those named with --db, else the one
 * above; then logs the note about it. */
int choose_db_list(struct store_list *stores, const struct texts *named, struct err *e);
/* Logs which files look like stores and are not among them. */
void choose_db_note_unread(const struct store_list *stores);

/* For a recorder on the user's own store: fills `note` if the system has a store already. */
void choose_db_warn(const char *own, char *note, size_t cap);
