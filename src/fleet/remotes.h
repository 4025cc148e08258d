/* Hosts whose stores are fetched with the user's own ssh, for a report without an engine:
 * each runs `gua export --format store`, several at a time, within a deadline and a size
 * limit. What they send is kept in a directory of the caller and is not trusted. */
#pragma once

#include "base/base.h"

enum { REMOTE_NAME_CAP = 128, REMOTE_WHY_CAP = 640, REMOTES_MAX = 1000 };

enum remote_state {
	REMOTE_FAILED,
	REMOTE_FETCHED,
	REMOTE_SAME, /* the same host as another name in the list */
};

struct remote {
	char name[REMOTE_NAME_CAP]; /* as passed to ssh: HOST or USER@HOST */
	enum remote_state state;
	const char *path;	  /* of its store */
	char why[REMOTE_WHY_CAP]; /* why it was not fetched, else its message; safe to show */
};

/* Zero-initialise. */
struct remotes {
	struct remote *items;
	size_t n;
	struct arena texts;
};

struct remotes_wish {
	int64_t since_ms, until_ms; /* the window of the report */
	int64_t timeout_ms;	    /* for each host */
	const char *directory;	    /* of the stores */
	const char *const *env;	    /* environment of ssh */
	/* Called when a host has finished; may be NULL. */
	void (*progress)(size_t n_done, size_t n_all);
};

/* Reads the names: one per line, # begins a comment. A name that occurs twice is used once,
 * with a notice. ERR_USAGE: a line is not a host name, or there is no name. */
int remotes_read(struct remotes *r, const char *text, struct err *e);
/* Fetches all stores; the state of each host says what happened. Fails only if no host can
 * be tried. */
int remotes_fetch(struct remotes *r, const struct remotes_wish *w, struct err *e);
void remotes_finish(struct remotes *r);
