/* Surveys the stores as an audit of all their time does. */
#include "query/stores_check.h"

#include "query/gather.h"
#include "query/sql.h"

int stores_check(const char *const *paths, size_t n, bool *simulated, struct err *e)
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
	*simulated = false;
	for (size_t i = 0; i < a.n_hosts; i++)
		*simulated |= a.hosts[i].simulated;
	gather_close(&g);
	audit_finish(&a);
	return rc;
}
