/* Starts the process that asks the driver, records, and notes which processes cannot be ended.
 */
#include "cmd/daemon_run.h"

#include "driver/host/apart.h"

void daemon_stuck_read(struct daemon_stuck *stuck, const char *db)
{
	stuck->n = statusfile_read_stuck(db, stuck->list, SOURCE_STUCK_MAX);
}

void daemon_stuck_publish(const struct daemon_stuck *stuck, struct statusfile *status)
{
	statusfile_set_stuck(status, stuck->list, stuck->n);
	if (stuck->n)
		statusfile_publish(status, -1, NULL, 0);
}

int daemon_run(struct recorder_options *o, int64_t patience_ms, struct daemon_stuck *stuck,
	struct err *e)
{
	struct apart *apart = NULL;
	struct apart_manner manner = apart_manner_of(o->deadline_ms);
	if (patience_ms)
		manner.patience_ms = patience_ms;
	int rc = apart_new(&apart, &o->source, &manner, e);
	if (rc)
		return rc;
	struct source_host *host = apart_host(apart);
	o->source.host = host;
	for (size_t i = 0; i < stuck->n; i++)
		apart_remember(apart, &stuck->list[i]);
	rc = recorder_run(o, e);
	o->source.host = NULL;
	apart_stop(apart);
	stuck->n = host->stuck(host, stuck->list, SOURCE_STUCK_MAX);
	apart_free(apart);
	return rc;
}
