/* Makes one store from many: `gua merge`. */
#pragma once

#include "base/base.h"

/* The row of a host in a store, and the machine that it is about. */
struct merge_host {
	size_t path; /* index of the store among those that are merged */
	int64_t id;
	size_t machine; /* the same number for all rows of one host */
	bool newest;	/* the newest of these rows, which describes the host */
	char name[128], machine_id[64];
};

struct merge_hosts {
	struct merge_host *items;
	size_t n;
};

struct merge_wish {
	const char *path;	  /* of the new store; must not exist */
	const char *const *paths; /* stores; they are only read */
	size_t n_paths;
	const struct merge_hosts *hosts; /* all rows of hosts, by path and id */
	/* Called after each store; a result that is not 0 ends the merge. */
	int (*progress)(void *context, int64_t done, int64_t total);
	void *context;
};

struct merge_summary {
	int64_t hosts, cards, first_ms, last_ms; /* -1: it has no run */
	int64_t bytes;
};

/* Copies every row of the stores. The caller has checked that no time is in two of them. The
 * rows of one host become one row; another host of the same name becomes NAME#2. The cards of
 * one host are joined too, and their sums added. The new store appears when it is complete, or
 * not at all. */
int merge_stores(const struct merge_wish *wish, struct merge_summary *summary, struct err *e);
