/* Configuration files: what is wrong is named with its line, and what is left is in force. The
 * bytes are read as the second of two files. */
#include "fuzz.h"

#include "config/config.h"
#include "config/settings.h"

static const char first[] = "[record]\ninterval = 10s\n[groups]\nvision = alice bob\n"
			    "[calendar]\nholidays = 2026-12-25\n";

static void check_values(const struct config *c)
{
	CHECK(c->interval_ms >= 100 && c->interval_ms <= 86400000);
	CHECK(c->drain_ms >= 100 && c->drain_ms <= 8000);
	CHECK(c->active_util_pct >= 0.1 && c->active_util_pct <= 100);
	CHECK(c->held_mem_bytes >= 0 && c->keep_five_ms >= 3600000);
	CHECK(c->currency && strlen(c->currency) <= 4 * 8);
	for (size_t i = 0; i < c->groups.n; i++)
		CHECK(c->groups.items[i].name && c->groups.items[i].name[0]);
	for (size_t i = 0; i < c->calendar.n_hours; i++) {
		const struct config_hours *h = &c->calendar.hours[i];
		CHECK(h->days && h->days < 128 && h->from_min >= 0 &&
			h->from_min < h->until_min && h->until_min <= 24 * 60);
	}
	for (size_t i = 0; i < c->calendar.n_holidays; i++)
		CHECK(c->calendar.holidays[i].first <= c->calendar.holidays[i].last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct settings s = { .schema = &config_schema };
	struct config c;
	struct err e = { 0 };
	char text[1024];
	CHECK(settings_read(&s, "first", first, strlen(first), &e) == 0);
	CHECK(settings_read(&s, "second", (const char *)data, size, &e) == 0);
	CHECK(settings_apply(&s, &c, &e) == 0);
	check_values(&c);
	for (size_t i = 0; i < s.n_errors; i++) {
		/* A user of two groups may be in the first file. */
		CHECK(s.errors[i].line >= 1 && *s.errors[i].text);
		settings_error_text(&s, i, text, sizeof(text));
		check_safe(text);
	}
	settings_finish(&s);
	return 0;
}
