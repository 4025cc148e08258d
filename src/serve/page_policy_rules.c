/* Writes rules and exemptions in words. */
#include "serve/page_policy.h"

#include <string.h>

#include "base/size.h"
#include "base/timetext.h"
#include "model/policy.h"
#include "render/html.h"

/* Conditions while they are written: "(interactive; user b*, dave)". */
struct conditions {
	struct str *out;
	size_t n;
};

static void begin_condition(struct conditions *c)
{
	str_add(c->out, c->n++ ? "; " : " (");
}

static void add_patterns(
	struct conditions *c, const char *what, const struct config_patterns *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (i == 0) {
			begin_condition(c);
			str_addf(c->out, "%s ", what);
		} else
			str_add(c->out, ", ");
		html_text(c->out, p->items[i]);
	}
}

/* What a session must be like, after "sessions". */
static void add_match(struct str *out, const struct config_match *m)
{
	struct conditions c = { .out = out };
	char size[SIZE_TEXT_CAP];
	for (int use = 0; use < SESSION_USES; use++)
		if (m->kinds & 1U << use) {
			begin_condition(&c);
			str_add(out, session_use_names[use]);
		}
	add_patterns(&c, "user", &m->users);
	add_patterns(&c, "group", &m->groups);
	add_patterns(&c, "card", &m->cards);
	add_patterns(&c, "model", &m->models);
	add_patterns(&c, "notebook", &m->notebooks);
	add_patterns(&c, "container", &m->containers);
	add_patterns(&c, "job", &m->jobs);
	add_patterns(&c, "unit", &m->units);
	if (m->working_hours) {
		begin_condition(&c);
		str_add(out, strcmp(m->working_hours, "yes") == 0 ? "in working hours"
								  : "outside of working hours");
	}
	if (m->min_memory_bytes > 0) {
		begin_condition(&c);
		size_text(size, (double)m->min_memory_bytes);
		str_addf(out, "at least %s", size);
	}
	str_add(out, c.n ? ")" : "");
}

static void add_time(struct str *out, const char *before, int64_t ms)
{
	char text[40];
	duration_text(text, sizeof(text), ms);
	str_addf(out, "%s%s", before, text);
}

static void add_rule(struct str *out, const struct config_rule *r)
{
	str_add(out, "<dt>");
	html_text(out, r->name);
	str_addf(out, "</dt><dd><strong>%s</strong> sessions that hold a GPU idle",
		strcmp(r->level, "end") == 0	? "warns and ends"
		: strcmp(r->level, "warn") == 0 ? "warns"
						: "observes");
	add_match(out, &r->match);
	add_time(out, ". A warning after ", r->warn_ms);
	if (r->again_ms != AT_NEVER)
		add_time(out, ", again after ", r->again_ms);
	if (r->end_ms == AT_NEVER)
		str_add(out, "; never the end");
	else if (r->end_ms == AT_USUAL)
		str_add(out, "; the end after 2 h for batch and 8 h for interactive sessions, "
			     "never for services");
	else
		add_time(out, "; the end after ", r->end_ms);
	if (r->end_ms != AT_NEVER) {
		add_time(out, "; a final notice ", r->final_ms);
		str_add(out, " before the end");
	}
	str_add(out, ".</dd>\n");
}

static void add_exemption(struct str *out, const struct config_exemption *x)
{
	str_add(out, "<dt>");
	html_text(out, x->name);
	str_add(out, "</dt><dd><strong>exempts</strong> sessions");
	add_match(out, &x->match);
	str_add(out, ". Owner: ");
	html_text(out, x->owner ? x->owner : "nobody, so that it does not count");
	if (x->until)
		str_addf(out, "; until %04d-%02d-%02d", x->until / 10000, x->until / 100 % 100,
			x->until % 100);
	if (x->reason) {
		str_add(out, "; ");
		html_text(out, x->reason);
	}
	str_add(out, ".</dd>\n");
}

void policy_rules_html(struct str *out, const struct config *c)
{
	const struct config_rule *rules = c->policy_rules.items;
	const struct config_exemption *exemptions = c->exemptions.items;
	bool enforce = c->policy.mode && strcmp(c->policy.mode, "enforce") == 0;
	str_add(out, "<h2 id=\"rules\">Rules</h2>\n");
	if (!c->policy_rules.n) {
		str_add(out,
			"<p>No policy is configured: every session that holds a GPU idle is "
			"observed, and nobody is warned or ended. Sections "
			"<code>[policy]</code> "
			"and <code>[rule NAME]</code> of gua.conf change that: <code>man "
			"gua-policy</code> explains how, and <code class=\"copy\">gua enforce "
			"simulate</code> says what rules would have done in the past.</p>\n");
		return;
	}
	str_addf(out,
		"<p>Mode <strong>%s</strong>: %s. The first rule that matches a session "
		"counts.</p>\n<dl>\n",
		enforce ? "enforce" : "observe",
		enforce ? "rules act" : "what rules would do is written down, and not done");
	for (size_t i = 0; i < c->policy_rules.n; i++)
		add_rule(out, &rules[i]);
	for (size_t i = 0; i < c->exemptions.n; i++)
		add_exemption(out, &exemptions[i]);
	str_add(out, "</dl>\n");
}
