/* Answers /healthz from the last ticks of the recorders. */
#include "serve/health.h"

#include <math.h>

#include "store/status.h"
#include "render/json.h"
#include "serve/world.h"

/* A last tick that is older than one interval plus this is a fault. */
#define LATE_MS 10000

/* Adds a store; returns whether it is up to date. */
static bool add_store(struct json *j, const char *path, int64_t now_ms)
{
	struct store_status s = { 0 };
	struct err e = { 0 };
	int rc = status_read(&s, path, &e);
	bool known = rc == 0 && s.any_run;
	int64_t age_ms = now_ms - s.last_tick_ms;
	bool fresh = known && s.ended_ms < 0 && age_ms <= 2 * s.interval_ms + LATE_MS;
	json_open(j, NULL, '{');
	json_text(j, "host", known ? s.hostname : NULL);
	json_bool(j, "fresh", fresh);
	json_moment(j, "last_tick", known ? s.last_tick_ms : -1);
	json_number(j, "age_seconds", known ? (double)age_ms / 1000 : NAN, 3);
	json_number(j, "interval_seconds", known ? (double)s.interval_ms / 1000 : NAN, 3);
	json_text(j, "error", rc ? e.text : known ? NULL : "nothing has been recorded yet");
	json_close(j, '}');
	return fresh;
}

void health_answer(const struct request *q, struct answer *a)
{
	struct json j = { .out = &a->body, .lines = 2 };
	const struct store_list *stores = q->world->stores;
	bool fresh = true;
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-health-1");
	json_moment(&j, "time", q->now_ms);
	json_open(&j, "stores", '[');
	for (size_t i = 0; i < stores->n; i++)
		fresh &= add_store(&j, stores->paths[i], q->now_ms);
	json_close(&j, ']');
	json_bool(&j, "fresh", fresh);
	json_close(&j, '}');
	a->status = fresh ? 200 : 503;
}
