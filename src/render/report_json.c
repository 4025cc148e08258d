/* The report for programs, as JSON: man/report.schema.json describes it. */
#include "audit/audit.h"
#include "render/report_formats.h"
#include "render/rows.h"

static void add_seconds(struct json *j, const char *key, int64_t ms)
{
	json_number(j, key, (double)ms / 1000, 3);
}

static void add_window(struct json *j, const struct report *r)
{
	json_open(j, "window", '{');
	json_moment(j, "since", r->a->since_ms);
	json_moment(j, "until", r->a->until_ms);
	json_moment(j, "asked_since", r->a->asked_since_ms);
	json_moment(j, "asked_until", r->a->asked_until_ms);
	json_bool(j, "clipped", r->a->clipped_start || r->a->clipped_end);
	add_seconds(j, "seconds", r->length_ms);
	json_number(j, "observed", r->observed, 6);
	add_seconds(j, "resolution_seconds", r->a->resolution_ms);
	json_close(j, '}');
	/* The rules that were in force; those of a fleet's hosts are not known. */
	static const char *const keys[] = { "active_util_pct", "held_mem_bytes",
		"count_graphics", "spell_seconds", "mixed", "privacy" };
	bool known = !r->fleet || r->fleet->sampled_ms;
	json_open(j, "rules", '{');
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && !known; i++)
		json_text(j, keys[i], NULL);
	if (known) {
		json_number(j, "active_util_pct", r->a->rules.active_util_pct, 6);
		json_number(j, "held_mem_bytes", (double)r->a->rules.held_mem_bytes, 0);
		json_bool(j, "count_graphics", r->a->rules.count_graphics);
		add_seconds(j, "spell_seconds", r->a->rules.spell_ms);
		json_bool(j, "mixed", r->a->rules_mixed);
		json_text(j, "privacy",
			privacy_names[r->a->strict ? PRIVACY_STRICT : PRIVACY_NORMAL]);
	}
	json_close(j, '}');
}

static void add_restriction(struct json *j, const struct report *r)
{
	json_open(j, "only", '{');
	for (size_t i = 0; i < RESTRICTIONS && r->only; i++) {
		struct restriction_word word = { 0 };
		if (!r->only->lists[i].n)
			continue;
		json_open(j, restriction_names[i], '[');
		while (restriction_next(r->only, (enum restriction_kind)i, &word))
			json_text(j, NULL, word.safe);
		json_close(j, ']');
	}
	json_close(j, '}');
}

/* Shares of observed time or, in a report about users, of the time that they held. */
static void add_headline(struct json *j, const struct report *r)
{
	json_open(j, "headline", '{');
	json_text(j, "of", r->a->of_users ? "held" : "observed");
	for (int state = 0; state < CARD_STATES; state++)
		if (state != CARD_UNOBSERVED && state != CARD_RESERVED)
			json_number(j, state_looks[state].key,
				r->a->of_users ? r->held_share[state] : r->share[state], 6);
	json_number(j, "squatting", r->a->of_users ? r->held_share[HOLDER_SQUATTING] : NAN, 6);
	json_number(j, "idle_held_uncertainty", r->a->of_users ? NAN : r->uncertainty, 6);
	bool reserved = r->a->has_leases && !r->a->of_users;
	json_number(j, "reserved", reserved ? r->share[CARD_RESERVED] : NAN, 6);
	json_close(j, '}');
	json_open(j, "gpu_seconds", '{');
	for (int state = 0; state < CARD_STATES; state++)
		if (state == CARD_RESERVED && !r->a->has_leases)
			json_number(j, state_looks[state].key, NAN, 6);
		else
			add_seconds(j, state_looks[state].key, r->ms[state]);
	json_close(j, '}');
}

static void add_waste(struct json *j, const struct report_waste *w)
{
	json_open(j, "waste", '{');
	json_number(j, "idle_held_gpu_hours", w->idle_held_hours, 6);
	json_number(j, "truly_idle_gpu_hours", w->truly_idle_hours, 6);
	json_number(j, "squatting_gpu_hours", w->squatting_hours, 6);
	json_number(j, "equivalent_gpus_unavailable", w->equivalent_unavailable, 6);
	json_number(j, "equivalent_gpus_free", w->equivalent_free, 6);
	json_number(j, "energy_kwh", w->energy_kwh, 6);
	json_number(j, "energy_known", w->energy_known, 6);
	json_number(j, "cost", w->cost, 6);
	json_text(j, "currency", w->currency);
	json_text(j, "verdict", w->verdict);
	json_number(j, "reserved_gpu_hours", w->reserved_hours, 6);
	json_number(j, "equivalent_gpus_reserved", w->equivalent_reserved, 6);
	json_number(j, "reserved_cost", w->reserved_cost, 6);
	json_close(j, '}');
}

static void add_heatmap(struct json *j, const struct report *r)
{
	json_text(j, "heatmap_zone", r->utc ? "UTC" : "local");
	json_open(j, "heatmap", '[');
	for (int dow = 0; dow < 7; dow++) {
		for (int hour = 0; hour < 24; hour++) {
			const int64_t *ms = r->a->heat[dow][hour].ms;
			if (!r->hours[dow][hour].observed)
				continue;
			json_open(j, NULL, '{');
			json_number(j, "dow", dow, 0);
			json_number(j, "hour", hour, 0);
			for (int state = 0; state < CARD_UNOBSERVED; state++)
				add_seconds(j, state_looks[state].key, ms[state]);
			if (r->a->has_leases)
				add_seconds(j, "reserved", ms[CARD_RESERVED]);
			json_close(j, '}');
		}
	}
	json_close(j, ']');
}

/* Adds the rows of a level from row `*at` on, each with its rows of the next level. */
static void add_rows(
	struct json *j, const struct report_breakdown *b, unsigned level, size_t *at)
{
	const struct table *t = &b->table;
	json_open(j, "rows", '[');
	while (*at < t->n_rows && b->rows[*at].level == level) {
		size_t row = (*at)++;
		if (b->rows[row].rest)
			continue;
		json_open(j, NULL, '{');
		rows_json_cells(j, t->columns, t->n_columns, table_cell(t, row, 0));
		if (level + 1 < b->by.n)
			add_rows(j, b, level + 1, at);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void add_breakdown(struct json *j, const struct report_breakdown *b)
{
	size_t at = 0;
	json_open(j, "breakdown", '{');
	json_open(j, "by", '[');
	for (size_t i = 0; i < b->by.n; i++)
		json_text(j, NULL, identity_kinds[b->by.kinds[i]].name);
	json_close(j, ']');
	json_open(j, "measures", '[');
	for (size_t i = 0; i < b->by.n; i++)
		json_text(j, NULL, measure_names[b->measures[i]]);
	json_close(j, ']');
	j->lines++; /* one row per line */
	add_rows(j, b, 0, &at);
	j->lines--;
	json_close(j, '}');
	j->out->failed |= b->table.failed;
}

static void add_compare(struct json *j, const struct report *r)
{
	const struct report_compare *c = &r->compare;
	json_open(j, "compare", '{');
	json_open(j, "window", '{');
	json_moment(j, "since", c->since_ms);
	json_moment(j, "until", c->until_ms);
	json_bool(j, "empty", c->empty);
	json_number(j, "observed", c->observed, 6);
	json_close(j, '}');
	json_open(j, "cautions", '[');
	for (size_t i = 0; i < r->n_sentences; i++)
		if (r->sentences[i].kind == SENTENCE_COMPARE)
			json_text(j, NULL, r->sentences[i].text);
	json_close(j, ']');
	j->lines++; /* one row per line */
	rows_json_table(j, "figures", &c->figure_table);
	rows_json_table(j, "identities", &c->user_table);
	j->lines--;
	json_close(j, '}');
}

static void add_fleet(struct json *j, const struct report *r)
{
	const struct audit_fleet *f = r->fleet;
	json_open(j, "fleet", '{');
	json_text(j, "url", f->url);
	json_text(j, "engine", f->engine);
	json_text(j, "metrics", f->metrics);
	json_number(j, "sample_seconds",
		f->sampled_ms ? (double)f->sampled_ms / 1000 : (double)NAN, 3);
	json_number(j, "hosts_seen", (double)f->n_seen, 0);
	json_known(j, "hosts_expected", f->n_expected);
	json_number(j, "hosts_missing", (double)f->n_missing, 0);
	json_number(j, "hosts_first_seen", (double)f->n_late, 0);
	json_number(j, "hosts_not_seen_at_end", (double)f->n_silent, 0);
	json_number(j, "counter_resets", (double)f->n_resets, 0);
	json_number(j, "users_taken_from_zero", (double)f->n_assumed, 0);
	json_number(j, "gpus_reported_twice", (double)f->n_twice, 0);
	json_number(j, "hosts_in_part", (double)f->n_partial, 0);
	json_number(j, "values_left_out", (double)f->n_not_finite, 0);
	json_open(j, "warnings", '[');
	for (size_t i = 0; i < f->n_warnings; i++)
		json_text(j, NULL, f->warnings[i]);
	json_close(j, ']');
	json_close(j, '}');
}

static void add_asked(struct json *j, const struct asked_hosts *asked)
{
	json_open(j, "ssh", '{');
	json_number(j, "hosts_asked", (double)asked->n_asked, 0);
	json_number(j, "hosts_answered", (double)asked->n_answered, 0);
	json_open(j, "failed", '[');
	for (size_t i = 0; i < asked->n_failed; i++) {
		json_open(j, NULL, '{');
		json_text(j, "host", asked->failed[i].host);
		json_text(j, "reason", asked->failed[i].why);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void add_stores(struct json *j, const struct audit_stores *s)
{
	json_open(j, "stores", '{');
	json_number(j, "asked", (double)s->n, 0);
	json_number(j, "read", (double)(s->n - s->n_unread), 0);
	json_open(j, "not_read", '[');
	for (size_t i = 0; i < s->n_unread; i++)
		json_text(j, NULL, s->unread[i]);
	json_close(j, ']');
	json_close(j, '}');
}

void report_json(struct str *out, const struct report *r)
{
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-report-1");
	rows_json_table(&j, "hosts", &r->host_table);
	add_window(&j, r);
	add_restriction(&j, r);
	add_headline(&j, r);
	add_waste(&j, &r->waste);
	rows_json_table(&j, "gpus", &r->cards);
	rows_json_table(&j, "identities", &r->identities);
	if (r->a->of_users || (r->fleet && r->fleet->n_partial))
		json_text(&j, "unattributed_share_gpu_seconds", NULL);
	else
		add_seconds(&j, "unattributed_share_gpu_seconds", r->a->unattributed_ms);
	if (!identity_by_is(&r->breakdown.by, IDENTITY_USER) &&
		!identity_by_is(&r->breakdown.by, IDENTITY_CARD))
		add_breakdown(&j, &r->breakdown);
	rows_json_table(&j, "longest", &r->longest);
	if (r->a->has_leases)
		rows_json_table(&j, "leases", &r->leases);
	else
		json_text(&j, "leases", NULL);
	rows_json_table(&j, "orphan_memory", &r->orphans);
	if (r->compare.asked)
		add_compare(&j, r);
	json_open(&j, "bill", '{');
	json_text(&j, "currency", r->bill.currency);
	json_number(&j, "energy_price", r->bill.energy_price, 6);
	json_number(&j, "co2_g_per_kwh", r->bill.co2_g_per_kwh, 6);
	j.lines++; /* one line of the bill per line */
	rows_json_table(&j, "lines", &r->bill.lines);
	j.lines--;
	json_close(&j, '}');
	add_heatmap(&j, r);
	json_open(&j, "trend", '{');
	json_text(&j, "unit", period_unit_names[r->trend.unit]);
	json_text(&j, "zone", r->utc ? "UTC" : "local");
	rows_json_table(&j, "periods", &r->trend.table);
	json_close(&j, '}');
	rows_json_table(&j, "events", &r->events);
	if (r->policy.n_rows)
		rows_json_table(&j, "policy", &r->policy);
	if (r->fleet)
		add_fleet(&j, r);
	else if (r->a->stores.n_unread)
		add_stores(&j, &r->a->stores);
	if (r->asked)
		add_asked(&j, r->asked);
	json_close(&j, '}');
	out->failed |= r->failed;
}
