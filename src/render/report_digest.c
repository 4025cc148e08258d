/* The report for mail: at most 25 lines of plain text, for the administrator or one person. */
#include "render/report_formats.h"

enum {
	COLUMNS = 72,
	LINES = 25,
	LABEL = 24,
	NUMBER = 10,
	NAME = 32,
	KINDS = 4,
	SPELLS = 3,
	USERS = 5
};

/* The state of a digest. Lists are added last, as far as there is room. */
struct digest {
	struct str *out;
	const struct report *r;
	struct text_style style;
};

static void add_text(struct digest *d, const char *text)
{
	text_add_wrapped(d->out, text, 0, 0, &d->style);
}

static size_t count_lines(const struct str *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->len; i++)
		n += s->data[i] == '\n';
	return n;
}

static void add_sentences(struct digest *d, enum sentence_kind kind, size_t most)
{
	const struct sentence *s;
	for (size_t i = 0; most && (s = report_next_sentence(d->r, kind, &i)); most--)
		add_text(d, s->text);
}

/* "GPU use of ana on lab: Mon 2026-11-02 to Sun 2026-11-08" for whole days, else with times. */
static void add_title(struct digest *d)
{
	const struct report *r = d->r;
	struct str title = { 0 };
	struct tm from = moment_fields(r->a->since_ms, r->utc);
	struct tm to = moment_fields(r->a->until_ms, r->utc);
	bool days = !from.tm_hour && !from.tm_min && !to.tm_hour && !to.tm_min;
	struct brief since = moment_text(r->a->since_ms, r->utc);
	struct brief until = moment_text(days ? r->a->until_ms - 1 : r->a->until_ms, r->utc);
	if (days)
		since.text[14] = until.text[14] = '\0'; /* "Mon 2026-11-02" */
	str_add(&title, *r->person.name ? "GPU use of " : "GPU use");
	text_add_cut(&title, process_shown_user(r->person.name), NAME, &d->style);
	str_add(&title, " on ");
	if (r->a->n_hosts == 1)
		text_add_cut(&title, r->a->hosts[0].hostname, NAME, &d->style);
	else
		str_addf(&title, "%zu hosts", r->a->n_hosts);
	str_addf(&title, ": %s to %s%s", since.text, until.text, days && r->utc ? " UTC" : "");
	add_sentences(d, SENTENCE_SIMULATED, SIZE_MAX);
	add_text(d, str_text(&title));
	str_add(d->out, "\n");
	d->out->failed |= title.failed;
	str_finish(&title);
}

/* "+12.3%", "same", "new", "gone" or "". */
static struct brief show_change(double now, double before, bool share)
{
	if (isnan(now) || isnan(before))
		return (struct brief){ "" };
	if (fabs(now - before) < (share ? 0.0005 : 0.005))
		return str_brief("%s", now > 0 ? "same" : "");
	if (share)
		return str_brief("%+.1f points", 100 * (now - before));
	double percent = before != 0 ? 100 * (now - before) / before : (double)NAN;
	return report_text_percent(&(struct report_difference){ now - before, percent });
}

static void add_heading(struct digest *d, const char *label)
{
	str_addf(d->out, "%-*s%*s%*s  change\n", LABEL, label, NUMBER, "now", NUMBER, "before");
}

static void add_figure(
	struct digest *d, const char *label, double now, double before, bool share)
{
	before = d->r->compare.empty ? (double)NAN : before;
	struct brief change = show_change(now, before, share);
	str_addf(d->out, "  %-*s%*s%*s%s%s\n", LABEL - 2, label, NUMBER,
		report_text_number(now, share).text, NUMBER,
		report_text_number(before, share).text, *change.text ? "  " : "", change.text);
}

static void add_hours(struct digest *d, const char *label, int64_t now_ms, int64_t before_ms)
{
	add_figure(d, label, (double)now_ms / 3600e3, (double)before_ms / 3600e3, false);
}

static void add_figures(struct digest *d)
{
	static const char *const keys[] = { "active", "idle_held", "reserved", "truly_idle",
		"idle_held_gpu_hours", "reserved_gpu_hours", "idle_held_cost" };
	const struct report_compare *all = &d->r->compare;
	const char *currency = d->r->waste.currency;
	char label[64];
	add_heading(d, "");
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
		for (size_t i = 0; i < all->n_figures; i++) {
			const struct report_change *c = &all->figures[i];
			if (strcmp(c->key, keys[k]) != 0)
				continue;
			str_copy(label, sizeof(label), c->label);
			if (c->unit == FIGURE_MONEY && currency)
				snprintf(label, sizeof(label), "idle-held, %.8s", currency);
			add_figure(d, label, c->shown_now, c->shown_before,
				c->unit == FIGURE_SHARE);
		}
}

/* "card lost 2, XID 79 1": the number of events of each kind. */
static void add_events(struct digest *d)
{
	struct str text = { 0 };
	const struct table *t = &d->r->events;
	for (size_t i = 0; i < t->n_rows && i < KINDS; i++) {
		char label[40];
		event_label(label, sizeof(label), table_cell(t, i, 0)->text,
			(int64_t)table_cell(t, i, 1)->number);
		str_addf(&text, "%s%s %.0f", i ? ", " : "Events: ", label,
			table_cell(t, i, 3)->number);
	}
	if (t->n_rows) {
		str_addf(&text, "%s: see gua events.", t->n_rows > KINDS ? " and more" : "");
		add_text(d, str_text(&text));
	}
	d->out->failed |= text.failed;
	str_finish(&text);
}

static void add_spells(struct digest *d, const char *title, size_t lines)
{
	const struct table *all = &d->r->longest;
	size_t n = lines > 2 ? lines - 2 : 0; /* two for the titles */
	n = n > SPELLS ? SPELLS : n;
	struct table longest = table_part(all, 0, n);
	if (!longest.n_rows)
		return;
	str_addf(d->out, "%s\n", title);
	text_add_table(d->out, &longest, &d->style);
}

/* Users with unused hours, most first, in `lines` lines. */
static void add_users(struct digest *d, size_t lines)
{
	const struct report_compare *c = &d->r->compare;
	size_t shown = 0;
	for (size_t i = 0; i < c->n_users && shown + 1 < lines; i++) {
		const struct report_user_change *u = &c->users[i];
		char name[USER_CAP];
		struct str cut = { 0 };
		if (u->now.unused_ms <= 0)
			continue;
		if (shown++ == 0)
			add_heading(d, "Unused GPU-hours");
		text_add_cut(&cut, process_shown_user(u->identity), LABEL - 4, &d->style);
		snprintf(name, sizeof(name), "%s", str_text(&cut));
		add_hours(d, name, u->now.unused_ms, u->before.unused_ms);
		str_finish(&cut);
	}
}

/* A moment as --since takes it: "2026-11-02", or with a time. */
static void show_option(char dst[40], int64_t ms, bool utc)
{
	struct tm tm = moment_fields(ms, utc);
	size_t len = strftime(dst, 40, "%Y-%m-%d", &tm);
	if (tm.tm_hour || tm.tm_min || utc)
		strftime(dst + len, 40 - len, utc ? "T%H:%MZ" : "T%H:%M", &tm);
}

/* The command that prints the full report, also when the mail is read later. */
static void add_more(struct digest *d, const char *options)
{
	char since[40], until[40], text[512];
	const struct audit_fleet *f = d->r->fleet;
	show_option(since, d->r->a->since_ms, d->r->utc);
	show_option(until, d->r->a->until_ms, d->r->utc);
	snprintf(text, sizeof(text), "More: gua report%s%s --since %s --until %s%s",
		f ? " --from " : "", f ? f->url : "", since, until, options);
	add_text(d, text);
}

/* Whether a host is recorded now: old data does not show what is held now. */
static bool is_recorded_now(const struct report *r)
{
	for (size_t i = 0; i < r->a->n_hosts; i++)
		if (r->a->hosts[i].recording)
			return true;
	return false;
}

static void add_overview(struct digest *d)
{
	struct str end = { 0 };
	struct digest last = { &end, d->r, d->style };
	char text[160];
	const struct report *r = d->r;
	double hours = (double)(r->observed_ms + r->ms[CARD_UNOBSERVED]) / 3600e3;
	snprintf(text, sizeof(text), "%zu GPU%s; %.1f%% of %.*f GPU-hours were observed.",
		r->observed_cards, r->observed_cards == 1 ? "" : "s", 100 * r->shown_observed,
		hours < 10 ? 2 : 0, hours);
	add_text(d, text);
	add_sentences(d, SENTENCE_CLIPPED, 1);
	add_sentences(d, SENTENCE_COMPARE, 1);
	add_figures(d);
	str_add(d->out, "\n");
	add_sentences(d, SENTENCE_VERDICT, 1);
	add_sentences(d, SENTENCE_POLICY, 2);
	add_sentences(d, SENTENCE_LEASE, 2);
	str_add(d->out, "\n");
	add_events(&last);
	add_more(&last, " --compare");
	if (is_recorded_now(d->r))
		str_add(&end, "Who holds idle memory now: gua who --idle 2h\n");
	size_t used = count_lines(d->out) + 1 + count_lines(&end);
	size_t left = used < LINES ? LINES - used : 0;
	size_t spells = d->r->longest.n_rows < SPELLS ? d->r->longest.n_rows : SPELLS;
	size_t for_users = left > spells + 2 ? left - spells - 2 : 0;
	/* Three users come before the second spell. */
	for_users = for_users < 4 ? 4 : for_users > USERS + 1 ? USERS + 1 : for_users;
	used = count_lines(d->out);
	add_users(d, for_users < left ? for_users : left);
	left -= count_lines(d->out) - used;
	add_spells(d, "Longest idle spells", left);
	str_addf(d->out, "\n%s", str_text(&end));
	d->out->failed |= end.failed;
	str_finish(&end);
}

/* What the person holds now, with the commands that release it. */
static void add_releases(struct digest *d)
{
	const struct report_person *p = &d->r->person;
	bool notebook = false;
	char line[320];
	if (!p->n_releases) {
		if (is_recorded_now(d->r))
			add_text(d,
				"You hold no GPU memory now that has been idle for 5 minutes.");
		return;
	}
	add_text(d, "You hold this now, idle. Save your work and release it:");
	for (size_t i = 0; i < p->n_releases; i++) {
		const struct audit_present *h = p->releases[i].held;
		struct brief idle = duration_text(h->idle_ms);
		snprintf(line, sizeof(line), "  %s: %s%sidle for %s:", p->releases[i].where,
			h->mem_bytes >= 0 ? size_text((double)h->mem_bytes).text : "",
			h->mem_bytes >= 0 ? ", " : "", idle.text);
		const char *what = h->what ? h->what : "-";
		size_t room = COLUMNS - str_columns(line) - 1;
		bool apart = h->notebook && str_columns(what) > room; /* a path is not cut */
		str_addf(d->out, "%s%s", line, apart ? "\n    " : " ");
		if (apart)
			str_add(d->out, what);
		else
			text_add_cut(d->out, what, room, &d->style);
		str_addf(d->out, "\n    %s\n", p->releases[i].command);
		notebook |= h->notebook;
	}
	if (p->n_more)
		str_addf(d->out, "  %zu more: gua who --user me\n", p->n_more);
	add_text(d, notebook ? "For a notebook, shut down its kernel in Jupyter. Other ways: "
			       "man gua-memory."
			     : "Other ways: man gua-memory.");
}

static void add_person(struct digest *d)
{
	const struct report_person *p = &d->r->person;
	char money[32];
	bool reserved = p->now.reserved_ms || p->before.reserved_ms;
	if (p->now.held_ms == 0 && p->before.held_ms == 0 && !reserved) {
		add_text(d, "You held no GPU in this time.");
		return;
	}
	add_heading(d, "Your GPU-hours");
	add_hours(d, "held", p->now.held_ms, p->before.held_ms);
	add_hours(d, "used", p->now.used_ms, p->before.used_ms);
	if (reserved)
		add_hours(d, "reserved", p->now.reserved_ms, p->before.reserved_ms);
	add_hours(d, "unused", p->now.unused_ms, p->before.unused_ms);
	snprintf(money, sizeof(money), "idle time, %.8s",
		d->r->waste.currency ? d->r->waste.currency : "");
	if (!isnan(p->now.cost))
		add_figure(d, money, p->now.cost, p->before.cost, false);
	str_add(d->out, "\n");
	if (p->rank) {
		int64_t had_ms = p->now.held_ms + p->now.reserved_ms;
		char text[256];
		snprintf(text, sizeof(text),
			"%.1f%% of the time that you %sheld a GPU, you did not use it. By "
			"unused hours you are number %zu of %zu users; number 1 has the most.",
			had_ms > 0 ? 100 * (double)p->now.unused_ms / (double)had_ms : 0,
			p->now.reserved_ms ? "had reserved or " : "", p->rank, p->n_users);
		add_text(d, text);
	}
	add_sentences(d, SENTENCE_LEASE, 2);
	add_sentences(d, SENTENCE_COMPARE, 1);
	str_add(d->out, "\n");
	struct str end = { 0 };
	struct digest last = { &end, d->r, d->style };
	add_releases(&last);
	str_add(&end, "\n");
	add_more(&last, " --mine");
	size_t used = count_lines(d->out) + count_lines(&end) + 1;
	if (d->r->longest.n_rows && used + 2 < LINES) {
		add_spells(d, "Your longest idle spells", LINES - used);
		str_add(d->out, "\n");
	}
	str_add(d->out, str_text(&end));
	d->out->failed |= end.failed;
	str_finish(&end);
}

void report_digest(struct str *out, const struct report *r, const struct text_style *style)
{
	struct digest d = { .out = out, .r = r, .style = *style };
	d.style.columns = COLUMNS;
	d.style.color = d.style.color256 = false;
	add_title(&d);
	if (*r->person.name)
		add_person(&d);
	else
		add_overview(&d);
	out->failed |= r->failed;
}
