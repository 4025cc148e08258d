/* An audit that no store filled becomes a report: its figures, sentences and tables, and that
 * the formats agree. */
#include "test.h"

#include <jansson.h>
#include <math.h>

#include "audit/audit.h"
#include "report/report.h"
#include "render/report_formats.h"

#define HOUR_MS INT64_C(3600000)

static const struct report_request by_user = { .by = { { IDENTITY_USER }, 1 },
	.has_prices = true,
	.energy_price = NAN,
	.co2_g_per_kwh = NAN,
	.currency = "EUR",
	.utc = true,
	.top = 1,
	.rest = true };

static void add_card(struct audit *a, int index, int64_t active_ms, int64_t held_ms)
{
	struct err e = { 0 };
	struct audit_card *card = audit_add_card(a, &e);
	assert_non_null(card);
	card->host = a->n_hosts - 1;
	card->id.index = index;
	snprintf(card->id.uuid, sizeof(card->id.uuid), "GPU-1234567%d-0", index);
	strcpy(card->id.name, "NVIDIA A100");
	strcpy(card->status, "ok");
	card->price = 2;
	card->ms[CARD_ACTIVE] = active_ms;
	card->ms[CARD_IDLE_HELD] = held_ms;
	card->ms[CARD_UNOBSERVED] = 10 * HOUR_MS - active_ms - held_ms;
	card->energy_mj[CARD_IDLE_HELD] = INT64_C(3600000000); /* 1 kWh */
	card->energy_known_ms[CARD_IDLE_HELD] = held_ms;
	a->hosts[card->host].n_cards++;
}

/* Two cards: 6 h active, 4 h held, 10 h unobserved. Users have 3, 2 and 1 h of it. */
static void fill(struct audit *a)
{
	static const char *const names[] = { "alice", "bob", "carol" };
	struct err e = { 0 };
	audit_init(a);
	a->until_ms = 10 * HOUR_MS;
	struct audit_host *host = audit_add_host(a, &e);
	assert_non_null(host);
	strcpy(host->hostname, "lab");
	host->last_tick_ms = 9 * HOUR_MS;
	host->until_ms = a->until_ms;
	add_card(a, 0, 6 * HOUR_MS, 4 * HOUR_MS);
	add_card(a, 1, 0, 0);
	for (int i = 0; i < 3; i++) {
		struct audit_identity *identity = audit_add_identity(a, &e);
		assert_non_null(identity);
		strcpy(identity->identity, names[i]);
		identity->sums.ms[HOLDER_ACTIVE] = (3 - i) * HOUR_MS;
		identity->sums.active_share_ms = (3 - i) * HOUR_MS;
	}
	struct audit_process *process = audit_add_process(a, &e);
	assert_non_null(process);
	process->pid = 7;
	process->sums.ms[HOLDER_ACTIVE] = HOUR_MS;
	a->heat[1][8].ms[CARD_ACTIVE] = 3;
	a->heat[1][8].ms[CARD_IDLE_HELD] = 1;
	audit_add_up(a);
}

static const struct sentence *find(const struct report *r, enum sentence_kind kind, size_t n)
{
	for (size_t i = 0; i < r->n_sentences; i++)
		if (r->sentences[i].kind == kind && n-- == 0)
			return &r->sentences[i];
	return NULL;
}

static void test_figures(void **state)
{
	(void)state;
	struct audit a;
	struct report r;
	fill(&a);
	report_make(&r, &a, &by_user);
	assert_false(r.failed);
	assert_int_equal(r.observed_ms, 10 * HOUR_MS);
	assert_int_equal(r.observed_cards, 1);
	assert_int_equal(a.unattributed_ms, 4 * HOUR_MS);
	assert_true(r.observed == 0.5 && r.share[CARD_UNOBSERVED] == 0.5);
	assert_true(r.share[CARD_ACTIVE] == 0.6 && r.share[CARD_IDLE_HELD] == 0.4);
	assert_int_equal(r.n_states, 3);
	assert_true(r.waste.idle_held_hours == 4 && r.waste.cost == 8);
	assert_true(r.waste.equivalent_unavailable == 0.4);
	assert_true(r.waste.energy_kwh == 2 && r.waste.energy_known == 1);
	assert_string_equal(r.waste.verdict, "allocation_policy");
	assert_true(r.hours[1][8].observed && r.hours[1][8].share[CARD_IDLE_HELD] == 0.25);
	assert_false(r.hours[1][9].observed);
	report_finish(&r);
	audit_finish(&a);
}

static void test_sentences(void **state)
{
	(void)state;
	struct audit a;
	struct report r;
	fill(&a);
	report_make(&r, &a, &by_user);
	assert_string_equal(find(&r, SENTENCE_COVERAGE, 0)->text,
		"Thu 1970-01-01 00:00 UTC to Thu 1970-01-01 10:00 UTC, 50.0% of it observed");
	assert_string_equal(find(&r, SENTENCE_ABSENT, 0)->text,
		"No recorder on lab since Thu 1970-01-01 09:00 UTC.");
	assert_string_equal(find(&r, SENTENCE_WASTE, 0)->label, "idle-held");
	assert_string_equal(find(&r, SENTENCE_VERDICT, 0)->text,
		"Idle-held is 40.0% of observed time, above 20%: the problem is the allocation "
		"policy, not the hardware.");
	assert_null(find(&r, SENTENCE_VERDICT, 1));
	assert_string_equal(find(&r, SENTENCE_HOLDERS, 0)->text, "--top 0 shows all.");
	/* One user, and the others together. */
	assert_int_equal(r.identities.n_rows, 1);
	assert_int_equal(r.breakdown.table.n_rows, 2);
	assert_true(!r.breakdown.rows[0].rest && r.breakdown.rows[1].rest);
	assert_null(find(&r, SENTENCE_SIMULATED, 0));
	assert_null(find(&r, SENTENCE_CARD, 0));
	report_finish(&r);
	audit_finish(&a);
}

/* Nothing was observed: no share, no verdict, and that is said. */
static void test_nothing_observed(void **state)
{
	(void)state;
	struct audit a;
	struct report r;
	audit_init(&a);
	report_make(&r, &a, &by_user);
	assert_true(isnan(r.share[CARD_ACTIVE]) && isnan(r.observed) && isnan(r.uncertainty));
	assert_null(r.waste.verdict);
	assert_int_equal(r.n_states, 0);
	assert_string_equal(find(&r, SENTENCE_WASTE, 0)->text, "No time was observed.");
	assert_null(find(&r, SENTENCE_VERDICT, 0));
	assert_string_equal(find(&r, SENTENCE_HOLDERS, 0)->text, "Nobody held a GPU.");
	report_finish(&r);

	a.fleet.asked = true; /* hosts that have been scraped only once */
	report_make(&r, &a, &by_user);
	const struct sentence *covered = find(&r, SENTENCE_FLEET, 2);
	assert_memory_equal(covered->text, "Window covered:", strlen("Window covered:"));
	assert_null(strstr(covered->text, "nan"));
	report_finish(&r);
	a.unattributed_ms = 60000; /* users of whom metrics still show 0 */
	report_make(&r, &a, &by_user);
	const struct sentence *nobody = find(&r, SENTENCE_HOLDERS, 0);
	assert_non_null(strstr(nobody->text, "metrics show a new user after 150 s"));
	report_finish(&r);
	audit_finish(&a);
}

static void test_formats(void **state)
{
	(void)state;
	const struct report_style style = { .text = { .columns = 80 }, .bar_cells = 20 };
	struct report_request by_process = by_user;
	struct audit a;
	struct report r;
	struct str out = { 0 };
	fill(&a);
	by_process.by.kinds[0] = IDENTITY_PROCESS;
	report_make(&r, &a, &by_process);
	assert_int_equal(r.breakdown.table.n_rows, 1);
	report_text(&out, &r, &style);
	assert_non_null(strstr(str_text(&out), "  cost        8.00 EUR for idle-held time"));
	str_clear(&out);
	report_json(&out, &r);
	json_t *root = json_loads(str_text(&out), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	json_t *waste = json_object_get(root, "waste");
	assert_int_equal(json_integer_value(json_object_get(waste, "cost")), 8);
	json_t *card = json_array_get(json_object_get(root, "gpus"), 0);
	json_t *seconds = json_object_get(card, "gpu_seconds");
	assert_int_equal(json_integer_value(json_object_get(seconds, "idle_held")), 4 * 3600);
	assert_true(json_is_null(json_object_get(card, "mig_index")));
	json_t *rows = json_object_get(json_object_get(root, "breakdown"), "rows");
	assert_int_equal(json_array_size(rows), 1);
	json_decref(root);
	str_clear(&out);
	report_csv(&out, &r, REPORT_TABLE_BY);
	assert_memory_equal(str_text(&out), "pid,started,user,", 17);
	str_finish(&out);
	report_finish(&r);
	audit_finish(&a);
}

/* A table that the formats do not know: all print it, and an empty one is not a heading. */
static void test_sections(void **state)
{
	static const struct column columns[] = {
		{ .key = "user",
			.title = "whom",
			.kind = COLUMN_TEXT,
			.get = table_get_string },
		{ .key = "seconds",
			.title = "how long",
			.kind = COLUMN_LENGTH,
			.get = table_get_known,
			.of = sizeof(char *) },
	};
	const struct {
		const char *user;
		int64_t ms;
	} row = { "<ann>", HOUR_MS };
	struct audit a;
	struct report r;
	struct str out = { 0 };
	const struct report_style style = { .text = { .columns = 80 }, .bar_cells = 60 };
	(void)state;
	fill(&a);
	report_make(&r, &a, &by_user);
	r.policy = (struct table){ .columns = columns, .n_columns = 2 };
	report_text(&out, &r, &style);
	assert_null(strstr(str_text(&out), "What was done"));
	table_add(&r.policy, &row);
	str_clear(&out);
	report_text(&out, &r, &style);
	assert_non_null(strstr(str_text(&out), "What was done\n  whom"));
	str_clear(&out);
	report_html_body(&out, &r);
	assert_non_null(strstr(str_text(&out), "<h2 id=\"policy\">What was done</h2>"));
	assert_non_null(strstr(
		str_text(&out), "<caption>Warnings and ended sessions, by user</caption>"));
	assert_non_null(strstr(str_text(&out), "&lt;ann&gt;</th><td class=\"n\">1 h 0 min"));
	str_clear(&out);
	report_json(&out, &r);
	assert_non_null(strstr(
		str_text(&out), "\"policy\": [\n    {\"user\": \"<ann>\", \"seconds\": 3600}"));
	str_finish(&out);
	report_finish(&r);
	audit_finish(&a);
}

/* A table of cards that memory did not suffice for has fewer rows than there are cards. */
static void test_part(void **state)
{
	(void)state;
	const struct column column = { .kind = COLUMN_TEXT, .get = table_get_chars };
	struct table t = { .columns = &column, .n_columns = 1 };
	assert_int_equal(table_part(&t, 2, 3).n_rows, 0);
	for (int i = 0; i < 3; i++)
		table_add(&t, "row");
	assert_int_equal(table_part(&t, 1, 1).n_rows, 1);
	assert_int_equal(table_part(&t, 1, 5).n_rows, 2);
	assert_int_equal(table_part(&t, 7, 5).n_rows, 0);
	table_finish(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_nothing_observed),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_part),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
