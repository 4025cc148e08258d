/* gua demo: records a simulated lab on a simulated clock, and prints the report. */
#include "cmd/share/terminal.h"
#include "record/recorder.h"
#include "audit/audit.h"
#include "audit/idle_history.h"
#include "policy/simulate.h"
#include "report/report.h"
#include "render/report_formats.h"

/* The ticks begin on Monday 2026-11-02 08:00 UTC, so the report is the same each time. */
#define TICKS_START_MS 1793606400000LL
#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)
#define WEEK_MS (7 * 24 * HOUR_MS)
/* The demo of two weeks uses ticks of an hour and slots of five minutes, because minutes become
 * five minutes after a day anyway. So it takes less than a second. */
#define WEEKS_DRAIN_MS (2 * MINUTE_MS)
#define WEEKS_SLOT_S 300
/* The longest spells that are printed. */
#define WEEKS_SPELLS 3
/* The rule that is shown after the report ends a session after this many idle hours. */
#define RULE_END "4"

struct values {
	const char *db, *scenario, *now;
	int64_t ticks, interval_ms; /* 0: not given */
	bool no_pager;
};

#define AT(member) .offset = offsetof(struct values, member)
static const struct option_row options[] = {
	{ OPTION_COUNT, 0, "ticks", "N",
		"record N ticks of one day of the lab instead of its weeks (default 30)",
		AT(ticks), .min = 1, .max = 1000 },
	{ OPTION_DURATION, 'i', "interval", "D",
		"the same with this time between ticks, simulated (default 1m)",
		AT(interval_ms), .min = 100, .max = 86400e3 },
	{ OPTION_TEXT, 0, "db", "PATH",
		"keep the store in PATH (default: in the cache, until the next demo)", AT(db) },
	{ OPTION_TEXT, 0, "scenario", "FILE", "play FILE instead of the built-in lab",
		AT(scenario) },
	PAGER_ROW(struct values, no_pager),
	NOW_OPTION(struct values, now),
	{ 0 },
};

/* The store of a demo without --db is in the user's cache, and each demo replaces it. */
struct place {
	char now[PATH_MAX];  /* the new file, while it is being made */
	char kept[PATH_MAX]; /* its name afterwards; "": there is no cache, and it is removed */
};

static int make_file(struct place *p, struct err *e)
{
	char directory[PATH_MAX - 32];
	const char *temporary = secure_getenv("TMPDIR");
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	*p = (struct place){ 0 };
	int n = -1;
	/* A home directory that does not exist is not made. */
	if (cache && *cache == '/')
		n = snprintf(directory, sizeof(directory), "%s/gua", cache);
	else if (home && *home == '/' && access(home, W_OK) == 0)
		n = snprintf(directory, sizeof(directory), "%s/.cache/gua", home);
	if (n > 0 && (size_t)n < sizeof(directory) &&
		file_make_directories(directory, 0700, NULL) == 0 &&
		access(directory, W_OK) == 0)
		snprintf(p->kept, sizeof(p->kept), "%s/demo.db", directory);
	else
		snprintf(directory, sizeof(directory), "%s",
			temporary && *temporary ? temporary : "/tmp");
	snprintf(p->now, sizeof(p->now), "%s/demo-XXXXXX.db", directory);
	int fd = mkstemps(p->now, 3);
	if (fd < 0)
		return err_set(e, ERR_WORLD, "cannot create %s: %s", p->now, strerror(errno));
	close(fd);
	return 0;
}

/* Whether the two weeks are played, instead of a number of ticks. */
static bool plays_weeks(const struct values *v)
{
	return !v->ticks && !v->interval_ms && !v->scenario;
}

/* What both kinds of demo have in common. */
static struct recorder_options options_for(const struct values *v, struct clock *clock)
{
	return (struct recorder_options){
		.db = v->db,
		.source = { .name = "sim",
			.scenario = v->scenario,
			.root = "",
			.clock = clock },
		.rules = RULES_DEFAULT,
		.deadline_ms = 0, /* nothing in it can block */
		.keep = RETENTION_DEFAULT,
		.stop_fd = -1,
	};
}

/* Long intervals are sampled less often, so that a simulated month takes no longer than a
 * simulated minute. */
static int record_ticks(const struct values *v, struct clock *clock, struct err *e)
{
	struct recorder_options o = options_for(v, clock);
	int64_t interval_ms = v->interval_ms ? v->interval_ms : MINUTE_MS;
	int64_t period_us = interval_ms * 1000 / 180;
	o.interval_ms = o.retry_ms = interval_ms;
	o.drain_ms = interval_ms / 6 > 5000 ? interval_ms / 6 : 5000;
	o.glance_ms = interval_ms > MINUTE_MS ? o.drain_ms : 1000;
	o.max_ticks = v->ticks ? v->ticks : 30;
	o.source.sample_period_us = period_us > 1000000 ? period_us : 0;
	o.slot_seconds = interval_ms > HOUR_MS ? 3600 : 0;
	clock_init_virtual(clock, TICKS_START_MS);
	return recorder_run(&o, e);
}

/* Moves all sums into the table for slots of their width. */
static int settle_slots(const char *db, int64_t now_ms, struct err *e)
{
	struct store *s = NULL;
	const struct compaction all = { now_ms, { 0, 3 * WEEK_MS / 1000 }, INT_MAX };
	bool more = true;
	int rc = store_open(&s, db, e);
	while (!rc && more)
		rc = compact_store(s, &all, &more, e);
	store_close(s);
	return rc;
}

/* Records the two weeks before this one. The second begins on Monday, 0:00, local time. Both
 * weeks are 168 hours long, even if clocks change in one of them, so that the figures are the
 * same in every week and time zone. */
static int record_weeks(const struct values *v, struct clock *clock, struct err *e)
{
	struct recorder_options o = options_for(v, clock);
	int64_t now_ms = 0;
	if (cmd_now(v->now, &now_ms, e))
		return e->code;
	o.source.weeks = true;
	o.source.sample_period_us = 20 * 1000000;
	o.interval_ms = o.retry_ms = HOUR_MS;
	o.drain_ms = o.glance_ms = WEEKS_DRAIN_MS;
	o.max_ticks = 2 * WEEK_MS / HOUR_MS;
	o.slot_seconds = WEEKS_SLOT_S;
	o.one_batch = true; /* settle_slots() compacts it */
	clock_init_virtual(clock, period_at(PERIOD_WEEK, now_ms, -1, false).from_ms - WEEK_MS);
	int rc = recorder_run(&o, e);
	return rc ? rc : settle_slots(v->db, clock_wall_ms(clock), e);
}

/* Prints the report; for the two weeks, that of the second week, compared with the first. */
static void print_audits(struct str *out, const struct audit *a, const struct audit *before,
	const struct report_style *style)
{
	const struct report_request request = { .by = { { IDENTITY_USER }, 1 },
		.top = 10,
		.rest = true,
		.energy_price = NAN,
		.co2_g_per_kwh = NAN,
		.currency = "",
		.utc = style->text.utc };
	struct report r;
	report_make(&r, a, &request);
	if (before)
		report_compare(&r,
			&(struct report_other){ a, before, a->since_ms - WEEK_MS, a->since_ms },
			&request);
	report_text(out, &r, style);
	report_finish(&r);
}

/* Replays a rule over the week of the audit, as gua enforce simulate does, and appends how much
 * card time it would have given back. */
static int add_rule(struct str *out, const struct audit *a, const char *db, struct err *e)
{
	const struct text_list rule = { { "rule.demo.end=" RULE_END "h" }, 1 };
	struct settings settings = { .schema = &config_schema };
	struct config config;
	struct policy policy = { .config = &config };
	struct idle_history h = {
		.path = db, .since_ms = a->since_ms, .until_ms = a->until_ms
	};
	struct simulation s = { .policy = &policy, .history = &h };
	int rc = settings_set(&settings, "demo", &rule, e);
	if (rc == 0)
		rc = settings_apply(&settings, &config, e);
	if (rc == 0) {
		rules_set_limits(&policy, &h);
		rc = idle_history_read(&h, e);
	}
	if (rc == 0) {
		policy.history = &h;
		s.interval_ms = config.policy.interval_ms;
		rc = simulate(&s, e);
	}
	if (rc == 0)
		str_addf(out,
			"\nA rule that ends what has been idle for " RULE_END
			" hours would have given back about\n"
			"%.0f of these %.0f idle-held GPU-hours.\n",
			(double)s.given_back_ms / HOUR_MS,
			(double)a->ms[CARD_IDLE_HELD] / HOUR_MS);
	simulate_finish(&s);
	idle_history_finish(&h);
	settings_finish(&settings);
	return rc;
}

static int print_report(const struct call *call, int64_t now_ms, struct err *e)
{
	const struct values *v = call->values;
	const char *const paths[] = { v->db };
	bool weeks = plays_weeks(v);
	struct audit a = { 0 }, before = { 0 };
	struct str out = { 0 }, rule = { 0 };
	struct audit_question q = {
		.paths = paths,
		.n_paths = 1,
		.since_ms = weeks ? now_ms - WEEK_MS : 0,
		.until_ms = now_ms,
		.now_ms = now_ms,
		.utc = !weeks,
		.by = { { IDENTITY_USER }, 1 },
		.max_spells = weeks ? SIZE_MAX : 5,
	};
	struct report_style style = {
		.text = { .columns = 80, .utc = !weeks, .ascii = !terminal_is_utf8() },
		.bar_cells = 60,
		.brief = weeks,
	};
	terminal_choose_color(NULL, &style.text.color, &style.text.color256, NULL);
	int rc = audit_run(&a, &q, e);
	if (rc == 0 && a.n_cards == 0)
		rc = err_set(e, ERR_WORLD, "the scenario has no cards");
	q.until_ms = q.since_ms;
	q.since_ms -= WEEK_MS;
	if (rc == 0 && weeks && (audit_run(&before, &q, e) || add_rule(&rule, &a, v->db, e)))
		rc = e->code;
	a.spells.n = weeks && a.spells.n > WEEKS_SPELLS ? WEEKS_SPELLS : a.spells.n;
	if (rc == 0)
		print_audits(&out, &a, weeks ? &before : NULL, &style);
	str_add(&out, str_text(&rule));
	str_finish(&rule);
	audit_finish(&a);
	audit_finish(&before);
	return rc ? rc : terminal_page(call->self, &out, v->no_pager);
}

static int run(const struct call *call, struct err *e)
{
	struct clock clock;
	struct place place;
	struct values *v = call->values;
	if (v->db && access(v->db, F_OK) == 0)
		return err_set(e, ERR_WORLD,
			"%s already exists; give --db a new file for the invented data", v->db);
	bool named = v->db != NULL;
	if (!named && make_file(&place, e))
		return e->code;
	v->db = named ? v->db : place.now;
	log_setup(LOG_LEVEL_ERROR, LOG_STYLE_PLAIN);
	int rc = plays_weeks(v) ? record_weeks(v, &clock, e) : record_ticks(v, &clock, e);
	if (rc == 0)
		rc = print_report(call, clock_wall_ms(&clock), e);
	if (!named) {
		/* The store is kept if it is complete and has a place. The files beside it are
		 * empty once it is closed. */
		static const char *const suffixes[] = { "-wal", "-shm" };
		char name[PATH_MAX + 8];
		for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
			snprintf(name, sizeof(name), "%s%s", place.now, suffixes[i]);
			unlink(name);
		}
		if (rc < 0 || !place.kept[0] || rename(place.now, place.kept) != 0)
			unlink(place.now);
	}
	const char *kept = named ? v->db : place.kept;
	if (rc < 0 || !kept[0])
		return rc;
	char safe[PATH_MAX];
	str_escape(safe, sizeof(safe), kept, strlen(kept));
	fprintf(stderr, "The simulated data is in %s.\n", safe);
	return rc;
}

const struct command cmd_demo = {
	.name = "demo",
	.summary = "record a simulated lab and print the report; no GPU needed",
	.usage = "[--ticks N] [--interval D] [--db PATH]",
	.details =
		"All data is invented. The clock is simulated too, so the command finishes "
		"at\nonce. Its two weeks are those before this one, and the same in all but\n"
		"their dates: 'gua report --db PATH --since lastweek' reports the second.",
	.options = options,
	.values_size = sizeof(struct values),
	.run = run,
};
