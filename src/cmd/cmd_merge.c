/* gua merge: makes one store from many. */
#include "cmd/share/terminal.h"
#include "store/store_list.h"
#include "audit/audit.h"
#include "store/merge.h"

static const struct option_row options[] = { { 0 } };

static int merge(const char *path, const struct store_list *stores, struct err *e)
{
	struct progress bar;
	struct merge_summary s = { 0 };
	struct merge_hosts hosts = { 0 };
	bool simulated = false;
	char safe[PATH_MAX];
	terminal_progress_init(&bar, "stores");
	const struct merge_wish wish = { .path = path,
		.paths = (const char *const *)stores->paths,
		.n_paths = stores->n,
		.hosts = &hosts,
		.progress = terminal_progress_step,
		.context = &bar };
	file_allow_many();
	int rc = audit_check_stores(wish.paths, wish.n_paths, &simulated, &hosts, e);
	if (rc == 0) {
		terminal_progress_hold_signals(&bar);
		rc = merge_stores(&wish, &s, e);
		terminal_progress_erase(&bar);
	}
	free(hosts.items);
	if (rc)
		return rc;
	str_escape(safe, sizeof(safe), path, strlen(path));
	bool any = s.first_ms >= 0;
	printf("merged %zu store%s into %s: %" PRId64 " host%s, %" PRId64
	       " GPU%s, from %s to %s, %.1f MiB\n",
		stores->n, stores->n == 1 ? "" : "s", safe, s.hosts, s.hosts == 1 ? "" : "s",
		s.cards, s.cards == 1 ? "" : "s",
		any ? moment_iso(s.first_ms / 1000 * 1000).text : "-",
		any ? moment_iso(s.last_ms / 1000 * 1000).text : "-",
		(double)s.bytes / (1 << 20));
	if (simulated)
		log_notice("some of the data is simulated or captured; the new store says so");
	return 0;
}

static int run(const struct call *call, struct err *e)
{
	struct store_list stores = { 0 };
	char **words = call->operands;
	int rc = 0;
	if (!words[0] || !words[1])
		return err_set(e, ERR_USAGE, "give OUT and the stores to merge");
	for (char **store = words + 1; *store && rc == 0; store++)
		rc = store_list_add(&stores, *store, e);
	/* A store that cannot be read is an error, because the new store would lack it. */
	if (rc == 0 && stores.n_unread)
		rc = err_set(e, ERR_WORLD, "%s; no store was made", stores.unread[0]);
	if (rc == 0)
		rc = merge(words[0], &stores, e);
	store_list_finish(&stores);
	return rc;
}

const struct command cmd_merge = {
	.name = "merge",
	.summary = "make one store of the stores of several hosts",
	.usage = "OUT STORE...",
	.details = "OUT must not exist; it appears when it is complete. A STORE is a file, a\n"
		   "directory of stores or a pattern, and is only read. Stores that have the "
		   "same\n"
		   "time of the same cards are refused.",
	.options = options,
	.operands = "FILE",
	.run = run,
};
