/* Remembers which processes blocked their reader, and for how long to avoid their users. */
#pragma once

#include "model/process.h"

enum { WARY_PROCESSES = 32, WARY_USERS = 64 };

/* A uid with a process that blocked. */
struct wary_user {
	int64_t uid;
	int64_t until_us; /* 0: the entry is free */
	int64_t wait_us;  /* how long it is avoided for */
};

/* Zero-initialise. Times are from a monotonic clock. */
struct wary {
	struct process_id processes[WARY_PROCESSES]; /* brief; pid 0: the entry is free */
	struct wary_user users[WARY_USERS];
	int64_t calm_us;    /* nothing that may block is read before this */
	int64_t pause_us;   /* how long the last pause was */
	int64_t blocked_us; /* when a process blocked last */
	bool any;	    /* something has blocked */
	size_t next;	    /* index of the next entry to use */
};

/* Notes that a process blocked: it and its user are avoided from now on. NULL: it is not known
 * which one blocked. If another one blocked a moment ago, nothing that may block is read for
 * some time. */
void wary_add(struct wary *w, const struct process_id *id, int64_t now_us);

/* Returns the entry of a life that blocked, or NULL. */
struct process_id *wary_find(struct wary *w, uint32_t pid, uint64_t start_ticks);
/* Whether nothing has blocked so far. */
bool wary_is_calm(const struct wary *w);
/* Whether files of this process that may block can be read now. */
bool wary_allows(struct wary *w, const struct process_id *id, int64_t now_us);
