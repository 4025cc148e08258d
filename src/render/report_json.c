/* The report for programs: JSON as man/report.schema.json describes it, and CSV. */
#include "render/json.h"
#include "render/report.h"
#include "render/rows.h"

static void add_seconds(struct json *j, const char *key, int64_t ms)
{
	json_number(j, key, (double)ms / 1000, 3);
}

static void add_window(struct json *j, const struct report *r)
{
	json_open(j, "window", '{');
	json_moment(j, "since", r->since_ms);
	json_moment(j, "until", r->until_ms);
	add_seconds(j, "seconds", r->length_ms);
	json_number(j, "observed", r->observed, 6);
	add_seconds(j, "resolution_seconds", r->resolution_ms);
	json_close(j, '}');
	json_open(j, "rules", '{');
	json_number(j, "active_util_pct", r->rules.active_util_pct, 6);
	json_number(j, "held_mem_bytes", (double)r->rules.held_mem_bytes, 0);
	json_bool(j, "count_graphics", r->rules.count_graphics);
	json_bool(j, "mixed", r->rules_mixed);
	json_close(j, '}');
}

static void add_headline(struct json *j, const struct report *r)
{
	json_open(j, "headline", '{');
	for (int state = 0; state < CARD_STATES; state++)
		if (state != CARD_UNOBSERVED)
			json_number(j, card_state_names[state], r->share[state], 6);
	json_number(j, "idle_held_uncertainty", r->uncertainty, 6);
	json_close(j, '}');
	json_open(j, "gpu_seconds", '{');
	for (int state = 0; state < CARD_STATES; state++)
		add_seconds(j, card_state_names[state], r->ms[state]);
	json_close(j, '}');
}

static void add_waste(struct json *j, const struct report_waste *w)
{
	json_open(j, "waste", '{');
	json_number(j, "idle_held_gpu_hours", w->idle_held_hours, 6);
	json_number(j, "truly_idle_gpu_hours", w->truly_idle_hours, 6);
	json_number(j, "equivalent_gpus_unavailable", w->equivalent_unavailable, 6);
	json_number(j, "equivalent_gpus_free", w->equivalent_free, 6);
	json_number(j, "energy_kwh", w->energy_kwh, 6);
	json_number(j, "energy_known", w->energy_known, 6);
	json_number(j, "cost", w->cost, 4);
	json_text(j, "currency", w->currency);
	json_text(j, "verdict", w->verdict);
	json_close(j, '}');
}

static void add_heatmap(struct json *j, const struct report *r)
{
	json_text(j, "heatmap_zone", r->utc ? "UTC" : "local");
	json_open(j, "heatmap", '[');
	for (int dow = 0; dow < 7; dow++) {
		for (int hour = 0; hour < 24; hour++) {
			const struct report_hour *h = &r->hours[dow][hour];
			if (!h->observed)
				continue;
			json_open(j, NULL, '{');
			json_number(j, "dow", dow, 0);
			json_number(j, "hour", hour, 0);
			for (int state = 0; state < CARD_UNOBSERVED; state++)
				add_seconds(j, card_state_names[state], h->ms[state]);
			json_close(j, '}');
		}
	}
	json_close(j, ']');
}

void report_json(struct str *out, const struct report *r)
{
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-report-1");
	json_table(&j, "hosts", &r->host_table);
	add_window(&j, r);
	add_headline(&j, r);
	add_waste(&j, &r->waste);
	json_table(&j, "gpus", &r->cards);
	json_table(&j, "identities", &r->identities);
	add_seconds(&j, "unattributed_share_gpu_seconds", r->unattributed_ms);
	if (r->by == REPORT_BY_PROCESS)
		json_table(&j, "processes", &r->processes);
	add_heatmap(&j, r);
	json_table(&j, "events", &r->events);
	json_close(&j, '}');
	out->failed |= r->failed;
}

void report_csv(struct str *out, const struct report *r)
{
	if (r->by == REPORT_BY_USER)
		csv_table(out, &r->identities);
	else if (r->by == REPORT_BY_PROCESS)
		csv_table(out, &r->processes);
	else
		csv_table(out, &r->cards);
	out->failed |= r->failed;
}
