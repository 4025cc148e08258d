/* The report for programs: JSON as man/report.schema.json describes it, and CSV. */
#include <math.h>
#include <string.h>

#include "render/json.h"
#include "render/report.h"
#include "render/rows.h"

static void add_seconds(struct json *j, const char *key, int64_t ms)
{
	json_number(j, key, (double)ms / 1000, 3);
}

static void add_hosts(struct json *j, const struct audit *a)
{
	json_open(j, "hosts", '[');
	for (size_t i = 0; i < a->n_hosts; i++) {
		const struct audit_host *host = &a->hosts[i];
		json_open(j, NULL, '{');
		json_text(j, "hostname", host->hostname);
		json_text(j, "environment", *host->environment ? host->environment : NULL);
		json_text(j, "driver", *host->driver ? host->driver : NULL);
		json_number(j, "gpus", (double)host->n_cards, 0);
		json_bool(j, "simulated", host->simulated);
		json_bool(j, "imported", host->imported);
		json_bool(j, "recording", host->recording);
		json_moment(j, "last_tick", host->last_tick_ms);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void add_window(struct json *j, const struct audit *a)
{
	int64_t observed_ms = report_observed_ms(a->ms);
	json_open(j, "window", '{');
	json_moment(j, "since", a->since_ms);
	json_moment(j, "until", a->until_ms);
	add_seconds(j, "seconds", a->until_ms - a->since_ms);
	json_number(j, "observed",
		report_share(observed_ms, observed_ms + a->ms[CARD_UNOBSERVED]), 6);
	add_seconds(j, "resolution_seconds", a->resolution_ms);
	json_close(j, '}');
	json_open(j, "rules", '{');
	json_number(j, "active_util_pct", a->rules.active_util_pct, 6);
	json_number(j, "held_mem_mb", (double)a->rules.held_mem_bytes / 1e6, 6);
	json_bool(j, "count_graphics", a->rules.count_graphics);
	json_bool(j, "mixed", a->rules_mixed);
	json_close(j, '}');
}

static void add_gpu_seconds(struct json *j, const int64_t ms[CARD_STATES])
{
	json_open(j, "gpu_seconds", '{');
	for (int state = 0; state < CARD_STATES; state++)
		add_seconds(j, card_state_names[state], ms[state]);
	json_close(j, '}');
}

static void add_headline(struct json *j, const struct audit *a)
{
	json_open(j, "headline", '{');
	for (int state = 0; state < CARD_STATES; state++)
		if (state != CARD_UNOBSERVED)
			json_number(j, card_state_names[state],
				report_share(a->ms[state], report_observed_ms(a->ms)), 6);
	json_number(j, "idle_held_uncertainty", report_uncertainty(a->unsure_ms, a->ms), 6);
	json_close(j, '}');
	add_gpu_seconds(j, a->ms);
}

static void add_waste(struct json *j, const struct audit *a, const struct report_style *style)
{
	int64_t observed_ms = report_observed_ms(a->ms);
	double held_h = (double)a->ms[CARD_IDLE_HELD] / 3600e3;
	double cards = (double)report_observed_cards(a);
	const char *verdict = report_breaks_rule(a) ? "allocation_policy" : "within_rule";
	json_open(j, "waste", '{');
	json_number(j, "idle_held_gpu_hours", held_h, 6);
	json_number(j, "truly_idle_gpu_hours", (double)a->ms[CARD_TRULY_IDLE] / 3600e3, 6);
	json_number(j, "equivalent_gpus_unavailable",
		cards * report_share(a->ms[CARD_IDLE_HELD], observed_ms), 6);
	json_number(j, "equivalent_gpus_free",
		cards * report_share(a->ms[CARD_TRULY_IDLE], observed_ms), 6);
	json_number(j, "energy_kwh",
		report_energy_kwh(a->energy_mj, a->energy_known_ms, a->ms, CARD_IDLE_HELD), 6);
	json_number(j, "energy_known",
		report_share(a->energy_known_ms[CARD_IDLE_HELD], a->ms[CARD_IDLE_HELD]), 6);
	json_number(j, "cost", style->cost * held_h, 4);
	json_text(j, "currency", isfinite(style->cost) ? style->currency : NULL);
	json_text(j, "verdict", observed_ms > 0 ? verdict : NULL);
	json_close(j, '}');
}

static void add_heatmap(struct json *j, const struct audit *a, bool utc)
{
	json_text(j, "heatmap_zone", utc ? "UTC" : "local");
	json_open(j, "heatmap", '[');
	for (int dow = 0; dow < 7; dow++) {
		for (int hour = 0; hour < 24; hour++) {
			const int64_t *ms = a->heat[dow][hour].ms;
			if (ms[0] + ms[1] + ms[2] == 0)
				continue;
			json_open(j, NULL, '{');
			json_number(j, "dow", dow, 0);
			json_number(j, "hour", hour, 0);
			for (int state = 0; state < CARD_UNOBSERVED; state++)
				add_seconds(j, card_state_names[state], ms[state]);
			json_close(j, '}');
		}
	}
	json_close(j, ']');
}

void report_json(struct str *out, const struct audit *a, const struct report_style *style)
{
	struct json j = { .out = out, .lines = 2 };
	struct table t;
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-report-1");
	add_hosts(&j, a);
	add_window(&j, a);
	add_headline(&j, a);
	add_waste(&j, a, style);
	report_cards_table(&t, a, SIZE_MAX);
	json_table(&j, "gpus", &t);
	table_finish(&t);
	report_identities_table(&t, a, style->top);
	json_table(&j, "identities", &t);
	table_finish(&t);
	add_seconds(&j, "unattributed_share_gpu_seconds", a->unattributed_ms);
	if (style->by == REPORT_BY_PROCESS) {
		report_processes_table(&t, a, style->top);
		json_table(&j, "processes", &t);
		table_finish(&t);
	}
	add_heatmap(&j, a, style->text.utc);
	json_close(&j, '}');
}

void report_csv(struct str *out, const struct audit *a, const struct report_style *style)
{
	struct table t;
	if (style->by == REPORT_BY_USER)
		report_identities_table(&t, a, style->top);
	else if (style->by == REPORT_BY_PROCESS)
		report_processes_table(&t, a, style->top);
	else
		report_cards_table(&t, a, SIZE_MAX);
	csv_table(out, &t);
	table_finish(&t);
}
