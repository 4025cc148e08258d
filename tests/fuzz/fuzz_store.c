/* A store that somebody else made or something damaged, asked for its whole report in every
 * format. */
#include "fuzz_file.h"

#include <jansson.h>
#include <math.h>

#include "audit/audit.h"
#include "report/report.h"
#include "render/report_formats.h"

static void check_texts(const struct audit *a)
{
	for (size_t i = 0; i < a->n_hosts; i++)
		CHECK(memchr(a->hosts[i].hostname, '\0', sizeof(a->hosts[i].hostname)));
	for (size_t i = 0; i < a->n_cards; i++)
		CHECK(a->cards[i].host < a->n_hosts);
	for (size_t i = 0; i < a->n_identities; i++)
		CHECK(memchr(a->identities[i].identity, '\0', USER_CAP));
	for (size_t i = 0; i < a->n_processes; i++) {
		CHECK(a->processes[i].host < a->n_hosts);
		CHECK(a->processes[i].card < a->n_cards);
	}
}

/* Nothing but line ends may be left that a terminal would obey. */
static void check_output(struct str *out)
{
	CHECK(!out->failed && strlen(str_text(out)) == out->len);
	for (char *c = out->data; c && *c; c++)
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	check_safe(str_text(out));
	str_clear(out);
}

static void check_report(const struct audit *a, const struct by *by)
{
	struct report_style style = {
		.text = { .columns = 80, .utc = true, .ascii = by->n > 1 }, .bar_cells = 60
	};
	const struct report_request q = { .by = *by,
		.top = 10,
		.top_inner = 2,
		.rest = true,
		.has_prices = true,
		.energy_price = 0.3,
		.co2_g_per_kwh = 380,
		.currency = "EUR",
		.utc = true };
	struct report r;
	struct str out = { 0 };
	report_make(&r, a, &q);
	report_compare(&r, &(struct report_other){ a, a, 0, 1000 }, &q);
	report_text(&out, &r, &style);
	check_output(&out);
	for (int table = 0; table < REPORT_TABLES; table++)
		report_csv(&out, &r, (enum report_table)table);
	check_output(&out);
	report_json(&out, &r);
	report_finish(&r);
	json_t *parsed = json_loads(str_text(&out), 0, NULL);
	CHECK(parsed);
	json_decref(parsed);
	check_output(&out);
	str_finish(&out);
}

/* Every second card has a price. */
static double price_of(const void *context, const struct card_id *card)
{
	(void)context;
	return card->index % 2 ? (double)NAN : 2.5;
}

static void check_by(const char *path, const char *text)
{
	struct audit_question q = {
		.paths = &path,
		.n_paths = 1,
		.since_ms = INT64_C(1793952000000) - INT64_C(86400000),
		.until_ms = INT64_C(1793952000000) + INT64_C(86400000),
		.now_ms = INT64_C(1793952000000) + INT64_C(86400000),
		.utc = true,
		.price_of = price_of,
		.want_processes = true,
		.max_spells = 3,
	};
	struct audit a = { 0 };
	struct err e = { 0 };
	CHECK(identity_by_parse(&q.by, text, &e) == 0);
	if (audit_run(&a, &q, &e) == 0) {
		check_texts(&a);
		check_report(&a, &q.by);
	} else {
		CHECK(e.text[0]);
		check_safe(e.text);
	}
	audit_finish(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const kinds[] = { "user", "process", "card", "notebook,job",
		"model,process" };
	char name[FUZZ_PATH];
	fuzz_file_at(name, "db", data, size);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		check_by(name, kinds[i]);
	fuzz_file_remove(name);
	return 0;
}
