/* Surveys the stores as an audit of all their time does. */
#include "audit/stores_check.h"

#include <stdlib.h>

#include "base/str.h"
#include "audit/gather_parts.h"
#include "store/sql.h"

/* Copies which rows are of one host. */
static int copy_hosts(const struct gather *g, struct merge_hosts *to, struct err *e)
{
	to->items = calloc(g->n_records + 1, sizeof(*to->items));
	if (!to->items)
		return err_memory(e);
	for (size_t i = 0; i < g->n_records; i++) {
		const struct gather_record *record = &g->records[i];
		size_t first = hosts_first(g, i);
		struct merge_host *host = &to->items[to->n++];
		*host = (struct merge_host){ .path = record->file,
			.id = record->id,
			.machine = first,
			.newest = g->records[first].newest == i };
		text_copy(host->name, sizeof(host->name), record->hostname);
		text_copy(host->machine_id, sizeof(host->machine_id), record->machine_id);
	}
	return 0;
}

int stores_check(const char *const *paths, size_t n, bool *simulated, struct merge_hosts *hosts,
	struct err *e)
{
	const struct audit_question q = { .paths = paths,
		.n_paths = n,
		.until_ms = NUMBER_MAX / 2,
		.now_ms = NUMBER_MAX / 2 };
	struct audit a;
	struct gather g = { .a = &a, .q = &q, .strict = true };
	audit_init(&a);
	int rc = gather_list(&g, e);
	if (rc == 0)
		rc = gather_survey(&g, e);
	if (rc == 0)
		rc = gather_window(&g, e);
	if (rc == 0)
		rc = gather_check_overlap(&g, e);
	if (rc == 0)
		rc = copy_hosts(&g, hosts, e);
	*simulated = false;
	for (size_t i = 0; i < a.n_hosts; i++)
		*simulated |= a.hosts[i].simulated;
	gather_close(&g);
	audit_finish(&a);
	return rc;
}
