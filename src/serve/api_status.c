/* Answers with the status of a recorder. */
#include <string.h>

#include "store/recorder_status.h"
#include "render/documents.h"
#include "serve/api.h"
#include "serve/world.h"

void api_status(const struct request *q, struct answer *a)
{
	const struct store_list *stores = q->world->stores;
	const char *host = request_param(q, "host");
	struct recorder_status s;
	struct err e = { 0 };
	for (size_t i = 0; i < stores->n; i++) {
		int rc = recorder_status_read(&s, stores->paths[i], q->now_ms, &e);
		if (host && strcmp(s.store.hostname, host) != 0)
			continue;
		if (rc)
			answer_err(a, q, &e);
		else
			documents_status(&a->body, &s);
		return;
	}
	err_set(&e, ERR_NOTHING, "no store is of the host '%s'", host ? host : "");
	answer_err(a, q, &e);
}
