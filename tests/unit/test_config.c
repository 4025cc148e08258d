/* Settings from files and options: defaults, what overrides what, errors with their lines; and
 * the values of gua.conf(5). */
#include "test.h"

#include <math.h>
#include <stdio.h>

#include "base/pattern.h"
#include "config/config.h"
#include "config/settings.h"

/* A schema with blocks, as rules of a policy are. */
struct rule {
	const char *name;
	int64_t idle_ms;
	const char *action;
};
struct world {
	double level;
	bool on;
	const char *text;
	struct config_blocks rules;
};
#define IN_RULE(member) .offset = offsetof(struct rule, member)
static const struct config_section world_sections[] = {
	{ .name = "world", .help = "All." },
	{ .name = "rule",
		.help = "Rules.",
		.block_size = sizeof(struct rule),
		.offset = offsetof(struct world, rules) },
	{ 0 },
};
static const struct config_key world_keys[] = {
	{ "world",
		{ OPTION_REAL, 0, "level", "N", "", .offset = offsetof(struct world, level),
			.max = 9 },
		.initial = "3" },
	{ "world", { OPTION_FLAG, 0, "on", "", "", .offset = offsetof(struct world, on) },
		.initial = "no" },
	{ "world", { OPTION_TEXT, 0, "text", "", "", .offset = offsetof(struct world, text) },
		.example = "" },
	{ "rule", { OPTION_DURATION, 0, "idle", "D", "", IN_RULE(idle_ms) }, .initial = "2h" },
	{ "rule", { OPTION_CHOICE, 0, "action", "", "", "warn|end", IN_RULE(action) },
		.initial = "warn" },
	{ 0 },
};
static const struct config_schema world_schema = { world_sections, world_keys,
	sizeof(struct world) };

static void read_file(struct settings *s, const char *file, const char *text)
{
	struct err e = { 0 };
	assert_int_equal(settings_read(s, file, text, strlen(text), &e), 0);
}

static void apply(struct settings *s, void *values)
{
	struct err e = { 0 };
	assert_int_equal(settings_apply(s, values, &e), 0);
}

static void expect_errors(const struct settings *s, const char *expected)
{
	struct str got = { 0 };
	char text[600];
	for (size_t i = 0; i < s->n_errors; i++) {
		settings_error_text(s, i, text, sizeof(text));
		str_addf(&got, "%s\n", text);
	}
	assert_string_equal(str_text(&got), expected);
	str_finish(&got);
}

static void test_later_files_override(void **state)
{
	(void)state;
	struct settings s = { .schema = &world_schema };
	struct world w;
	read_file(&s, "etc", "[world]\nlevel = 5\non = yes\n");
	read_file(&s, "own", "[world]\nlevel = 7\n");
	apply(&s, &w);
	assert_true(w.level == 7 && w.on && !w.text);
	assert_true(s.items[0].beaten && !s.items[1].beaten && !s.items[2].beaten);
	expect_errors(&s, "");
	settings_finish(&s);
	/* A wrong value leaves the earlier one, and is an error wherever it is. */
	read_file(&s, "etc", "[world]\nlevel = 5\non = perhaps\n");
	read_file(&s, "own", "[world]\nlevel = 99\non = on\n");
	apply(&s, &w);
	assert_true(w.level == 5 && w.on);
	expect_errors(&s, "etc:3: on takes yes or no, not 'perhaps'\n"
			  "own:2: level 99 is out of range: 0 to 9\n");
	settings_finish(&s);
	apply(&s, &w);
	assert_true(w.level == 3 && !w.on && !w.text);
	settings_finish(&s);
}

static const struct rule *rule_at(const struct world *w, size_t i)
{
	return (const struct rule *)w->rules.items + i;
}

static void test_blocks(void **state)
{
	(void)state;
	struct settings s = { .schema = &world_schema };
	struct world w;
	read_file(&s, "etc",
		"[rule day]\nidle = 1h\n[rule \"late night\"]\n[rule weekend]\naction = end\n");
	read_file(&s, "own", "[rule own]\nidle=5m\n[rule day]\naction = end\n");
	apply(&s, &w);
	expect_errors(&s, "");
	assert_int_equal(w.rules.n, 4);
	assert_string_equal(rule_at(&w, 0)->name, "own");
	assert_int_equal(rule_at(&w, 0)->idle_ms, 300000);
	assert_string_equal(rule_at(&w, 0)->action, "warn");
	assert_string_equal(rule_at(&w, 1)->name, "day");
	assert_int_equal(rule_at(&w, 1)->idle_ms, 3600000);
	assert_string_equal(rule_at(&w, 1)->action, "end");
	assert_string_equal(rule_at(&w, 2)->name, "late night");
	assert_int_equal(rule_at(&w, 2)->idle_ms, 7200000);
	assert_string_equal(rule_at(&w, 3)->name, "weekend");
	settings_finish(&s);
	read_file(&s, "f",
		"[rule]\nidle=1h\n[rule a]\nidel=1h\n[rule a]\n[world x]\nlevel=1\n"
		"[rule b]\naction=kill\n");
	apply(&s, &w);
	expect_errors(&s, "f:1: this section needs a name: [rule NAME]\n"
			  "f:4: idel: [rule] has no such key; did you mean 'idle'?\n"
			  "f:5: a: given already, in line 3\n"
			  "f:6: the section [world] takes no name\n"
			  "f:9: action takes one of warn|end, not 'kill'\n");
	settings_finish(&s);
}

static void test_options(void **state)
{
	(void)state;
	struct settings s = { .schema = &world_schema };
	struct world w;
	struct err e = { 0 };
	const struct text_list list = {
		{ "world.level=6", "rule.a.b.idle=1h", "world.text=a = b" }, 3
	};
	read_file(&s, "etc", "[world]\nlevel = 5\n");
	assert_int_equal(settings_set(&s, "--set", &list, &e), 0);
	apply(&s, &w);
	expect_errors(&s, "");
	assert_true(w.level == 6);
	assert_string_equal(w.text, "a = b");
	assert_string_equal(rule_at(&w, 0)->name, "a.b");
	/* The command's own option beats both. */
	const struct option_row table[] = { { .name = "lv", .key = "world.level" }, { 0 } };
	struct option_row rows[OPTIONS_MAX];
	const struct world options = { .level = 8 };
	settings_rows(&world_schema, table, rows);
	assert_true(rows[0].kind == OPTION_REAL && !rows[1].name);
	assert_string_equal(rows[0].name, "lv");
	settings_override(rows, &w, &options, (bool[]){ false });
	assert_true(w.level == 6);
	settings_override(rows, &w, &options, (bool[]){ true });
	assert_true(w.level == 8);
	settings_finish(&s);
}

static void test_wrong_options(void **state)
{
	(void)state;
	static const char *const bad[] = { "level=1", "world", "world.level", "world=a.b",
		"rule.idle=1h", "world.text=a\nb", "world.\"x=1" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct settings s = { .schema = &world_schema };
		struct text_list list = { { bad[i] }, 1 };
		struct err e = { 0 };
		assert_int_equal(settings_set(&s, "--set", &list, &e), ERR_USAGE);
		settings_finish(&s);
	}
	struct settings s = { .schema = &world_schema };
	struct text_list list = { { "world.lever=1" }, 1 };
	struct err e = { 0 };
	assert_int_equal(settings_set(&s, "--set", &list, &e), 0);
	expect_errors(&s, "--set: lever: [world] has no such key; did you mean 'level'?\n");
	settings_finish(&s);
}

static void test_many_errors_and_settings(void **state)
{
	(void)state;
	struct settings s = { .schema = &world_schema };
	struct str text = { 0 };
	for (int i = 0; i < 5000; i++)
		str_addf(&text, "[rule r%d]\nidel = %d\n", i, i);
	read_file(&s, "f", str_text(&text));
	assert_int_equal(s.n_errors, SETTINGS_MAX_ERRORS);
	assert_int_equal(s.n_items, SETTINGS_MAX);
	settings_finish(&s);
	str_finish(&text);
}

/* Reads a file of gua's own keys. */
static void read_config(struct settings *s, struct config *c, const char *text)
{
	*s = (struct settings){ .schema = &config_schema };
	read_file(s, "f", text);
	apply(s, c);
}

static void test_defaults(void **state)
{
	(void)state;
	struct settings s;
	struct config c;
	read_config(&s, &c, "");
	const struct rules rules = config_rules(&c), expected = RULES_DEFAULT;
	assert_true(state_rules_equal(&rules, &expected));
	assert_int_equal(c.interval_ms, 30000);
	assert_int_equal(c.drain_ms, 5000);
	assert_int_equal(c.glance_ms, 1000);
	assert_int_equal(c.keep_five_ms, 14 * 86400000LL);
	assert_string_equal(c.currency, "USD");
	assert_null(config_groups_find(&c.groups, "alice"));
	settings_finish(&s);
}

/* Each key belongs to a section, has a default or an example, and a section has either keys
 * that users choose or keys of its own before them. */
static void test_table(void **state)
{
	(void)state;
	for (const struct config_key *key = config_schema.keys; key->section; key++) {
		bool found = false;
		for (const struct config_section *at = config_schema.sections; at->name; at++)
			found |= strcmp(at->name, key->section) == 0;
		assert_true(found);
		assert_true((key->initial != NULL) != (key->example != NULL));
		assert_true(!key->repeats || !key->initial);
		assert_true(key->value.name || !key->initial);
		assert_true(key->value.help && *key->value.help);
	}
}

static void test_groups(void **state)
{
	(void)state;
	struct settings s;
	struct config c;
	read_config(&s, &c, "[groups]\nvision = alice bob\nnlp = carol,dave\nvision = erin\n");
	expect_errors(&s, "");
	assert_int_equal(c.groups.n, 2);
	assert_string_equal(config_groups_find(&c.groups, "erin"), "vision");
	assert_string_equal(config_groups_find(&c.groups, "dave"), "nlp");
	assert_null(config_groups_find(&c.groups, "mallory"));
	settings_finish(&s);
	read_config(&s, &c, "[groups]\na = x y x\nb = z x\nc =\nd = ,\n");
	expect_errors(&s, "f:3: b: the user x is in the group a already; a user has one group\n"
			  "f:4: c needs a value after the =\n"
			  "f:5: d needs at least one word after the =\n");
	settings_finish(&s);
}

static void test_patterns(void **state)
{
	(void)state;
	assert_true(pattern_matches("*", "") && pattern_matches("", ""));
	assert_true(pattern_matches("NVIDIA A100*", "NVIDIA A100-SXM4-80GB"));
	assert_true(pattern_matches("*a100*80gb", "NVIDIA A100-SXM4-80GB"));
	assert_true(pattern_matches("?VIDIA*?", "nvidia T4"));
	assert_true(pattern_matches("*ab*abc", "abababc"));
	assert_false(pattern_matches("A100", "NVIDIA A100"));
	assert_false(pattern_matches("*A100", "NVIDIA A100-SXM4-80GB"));
	assert_false(pattern_matches("", "x") || pattern_matches("?", ""));
	assert_false(
		pattern_matches("*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static void test_prices(void **state)
{
	(void)state;
	struct settings s = { .schema = &config_schema };
	struct config c;
	read_file(&s, "etc", "[price]\n\"*A100*\" = 2\n* = 1\n");
	read_file(&s, "own", "[price]\n*80GB = 3.5\n*A100* = 2.5\n");
	apply(&s, &c);
	expect_errors(&s, "");
	assert_int_equal(c.prices.n, 3); /* the user's first; one of the system's is replaced */
	assert_true(config_price_of(&c.prices, "NVIDIA A100-80GB", false) == 3.5);
	assert_true(config_price_of(&c.prices, "NVIDIA A100-40GB", false) == 2.5);
	assert_true(config_price_of(&c.prices, "T4", false) == 1);
	assert_true(isnan(config_price_of(&c.prices, "NVIDIA A100 MIG 1g.5gb", true)));
	assert_true(isnan(c.energy_price) && isnan(c.co2_g_per_kwh));
	settings_finish(&s);
	read_config(&s, &c,
		"[price]\na = -1\nb = much\nc = 1e3\nd =\na = 2\n[money]\n"
		"energy_price = 0.3\ncurrency = very long money\n");
	assert_true(c.energy_price == 0.3);
	expect_errors(&s, "f:2: a -1 is out of range: 0 to 1000000000\n"
			  "f:3: b takes a number, not 'much'\n"
			  "f:4: c takes a number, not '1e3'\n"
			  "f:5: d needs a value after the =\n"
			  "f:6: a: given already, in line 2\n"
			  "f:9: currency takes a short name as EUR, not 'very long money'\n");
	settings_finish(&s);
}

static bool works_at(const struct config *c, const char *date, int hour, int minute)
{
	struct tm tm = { .tm_hour = hour, .tm_min = minute };
	assert_int_equal(sscanf(date, "%d-%d-%d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday), 3);
	tm.tm_year -= 1900;
	tm.tm_mon--;
	timegm(&tm); /* fills the day of the week */
	return config_is_working(&c->calendar, &tm);
}

static void test_calendar(void **state)
{
	(void)state;
	struct settings s;
	struct config c;
	read_config(&s, &c,
		"[calendar]\nworking_hours = Mon-Fri 08:00-18:00, saturday 9:30-12:00\n"
		"working_hours = Sun-Mon 22:00-24:00\n"
		"holidays = 2026-12-25, 2026-12-28..2027-01-01\n");
	expect_errors(&s, "");
	assert_true(works_at(&c, "2026-11-02", 8, 0)); /* a Monday */
	assert_false(works_at(&c, "2026-11-02", 7, 59));
	assert_false(works_at(&c, "2026-11-02", 18, 0));
	assert_true(works_at(&c, "2026-11-02", 23, 59));
	assert_false(works_at(&c, "2026-11-07", 9, 29)); /* Saturday */
	assert_true(works_at(&c, "2026-11-07", 9, 30));
	assert_true(works_at(&c, "2026-11-08", 22, 0)); /* Sunday */
	assert_false(works_at(&c, "2026-12-25", 12, 0));
	assert_false(works_at(&c, "2026-12-31", 12, 0));
	assert_false(works_at(&c, "2027-01-01", 12, 0));
	assert_true(works_at(&c, "2027-01-04", 12, 0));
	settings_finish(&s);
}

static void test_wrong_calendars(void **state)
{
	(void)state;
	static const char *const bad[] = { "working_hours = 08:00-18:00", "working_hours = Mon",
		"working_hours = Mon 8-18", "working_hours = Mon 18:00-08:00",
		"working_hours = Mon 08:00-24:01", "working_hours = Mon 08:60-09:00",
		"working_hours = Mo 08:00-09:00", "working_hours = Mon- 08:00-09:00",
		"working_hours = Mon 08:00-09:00 Tue 08:00-09:00",
		"working_hours = Mon 008:00-09:00", "working_hours = Mon -8:00-09:00",
		"holidays = 2026-02-30", "holidays = yesterday", "holidays = 2026-12-25T08:00",
		"holidays = 2026-12-31..2026-12-01", "holidays = ..", "holidays = 1d" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct settings s;
		struct config c;
		char text[128];
		snprintf(text, sizeof(text), "[calendar]\n%s\n", bad[i]);
		read_config(&s, &c, text);
		if (s.n_errors != 1)
			fail_msg("no error: %s", bad[i]);
		assert_int_equal(s.errors[0].line, 2);
		settings_finish(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_later_files_override),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_wrong_options),
		cmocka_unit_test(test_many_errors_and_settings),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_prices),
		cmocka_unit_test(test_calendar),
		cmocka_unit_test(test_wrong_calendars),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
