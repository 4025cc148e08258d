/* Matches sessions with rules and exemptions; checks who may change the configuration. */
#include "policy/rules.h"

#include "base/pattern.h"
#include "model/card.h"

#define MINUTE_MS INT64_C(60000)
/* Times shorter than these are useful in tests only. */
#define WARN_LEAST_MS (5 * MINUTE_MS)
#define FINAL_LEAST_MS (2 * MINUTE_MS)
#define QUIET_LONGEST_MS (31 * 24 * 60 * MINUTE_MS)

/* For sessions that no rule of the file matches. */
static const struct config_rule default_rule = {
	.name = "default",
	.match = { .min_memory_bytes = INT64_C(1) << 30 },
	.warn_ms = 60 * MINUTE_MS,
	.again_ms = 105 * MINUTE_MS,
	.final_ms = 10 * MINUTE_MS,
	.end_ms = AT_USUAL,
	.idle_below = IDLE_BELOW_USUAL,
	.level = "observe",
};
static const int64_t usual_end_ms[SESSION_USES] = {
	[USE_INTERACTIVE] = 8 * 60 * MINUTE_MS,
	[USE_BATCH] = 2 * 60 * MINUTE_MS,
	[USE_SERVICE] = AT_NEVER,
};

size_t rules_count(const struct policy *p)
{
	return p->config->policy_rules.n + 1;
}

const struct config_rule *rules_get(const struct policy *p, size_t i)
{
	const struct config_rule *rules = p->config->policy_rules.items;
	return i < p->config->policy_rules.n ? &rules[i] : &default_rule;
}

enum policy_level rules_level(const struct config_rule *rule)
{
	int level = str_place(policy_level_names, POLICY_LEVELS, rule->level);
	return level < POLICY_LEVELS ? (enum policy_level)level : LEVEL_OBSERVE;
}

static int64_t first_warning(const struct config_rule *rule)
{
	return rule->reserved_for_ms > 0 ? rule->reserved_for_ms : rule->warn_ms;
}

static bool any_matches(const struct config_patterns *all, const char *text)
{
	for (size_t i = 0; i < all->n; i++)
		if (text && pattern_matches(all->items[i], text))
			return true;
	return false;
}

static bool matches_cards(const struct policy *p, const struct session_facts *f,
	const struct config_patterns *all, bool by_model)
{
	for (size_t c = 0; p->history && c < p->history->n_cards; c++) {
		const struct card_id *card = &p->history->cards[c];
		if (!facts_has_card(&f->cards, c))
			continue;
		if (by_model && any_matches(all, card->name))
			return true;
		for (size_t i = 0; i < all->n && !by_model; i++)
			if (card_is_named(all->items[i], card))
				return true;
	}
	return false;
}

static bool fails(char why[WHY_CAP], const char *what, const char *value)
{
	if (value && *value)
		snprintf(why, WHY_CAP, "its %s is %s", what, value);
	else
		snprintf(why, WHY_CAP, "it has no %s", what);
	return false;
}

/* Matches the patterns with the texts of a session. */
static bool matches_texts(const struct policy *p, const struct config_match *m,
	const struct session_facts *f, char why[WHY_CAP])
{
	const struct idle_session *s = f->session;
	const char *group = config_groups_find(&p->config->groups, s->user);
	const char *path = s->texts[PROCESS_NOTEBOOK_PATH];
	char space[LABEL_CAP];
	process_namespace(space, s->texts[PROCESS_POD]);
	const struct {
		const struct config_patterns *all;
		const char *what, *text, *other;
	} rows[] = {
		{ &m->users, "user", s->user, NULL },
		{ &m->groups, "group", group, NULL },
		{ &m->notebooks, "notebook", s->texts[PROCESS_NOTEBOOK], path },
		{ &m->containers, "container", s->texts[PROCESS_CONTAINER], NULL },
		{ &m->jobs, "job", s->texts[PROCESS_JOB], NULL },
		{ &m->units, "unit", s->texts[PROCESS_UNIT], NULL },
		{ &m->namespaces, "namespace", *space ? space : NULL, NULL },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].all->n && !any_matches(rows[i].all, rows[i].text) &&
			!any_matches(rows[i].all, rows[i].other))
			return fails(why, rows[i].what,
				rows[i].other ? rows[i].other : rows[i].text);
	return true;
}

/* If the driver does not report the memory, the session may hold less than a rule requires,
 * so the rule does not match. Exemptions have no such limit. */
static bool holds_enough(
	const struct config_match *m, const struct session_facts *f, char why[WHY_CAP])
{
	if (f->mem_bytes >= m->min_memory_bytes || m->min_memory_bytes == 0 ||
		f->session->kind == SESSION_LEASE)
		return true;
	long long least_mib = (long long)(m->min_memory_bytes >> 20);
	if (f->mem_bytes < 0)
		snprintf(why, WHY_CAP,
			"how much memory it holds is not known, and the rule is for %lld MiB "
			"or more",
			least_mib);
	else
		snprintf(why, WHY_CAP, "it holds %lld MiB, less than %lld MiB",
			(long long)(f->mem_bytes >> 20), least_mib);
	return false;
}

bool rules_match(const struct policy *p, const struct config_match *m,
	const struct session_facts *f, int64_t now_ms, char why[WHY_CAP])
{
	why[0] = '\0';
	if (!matches_texts(p, m, f, why))
		return false;
	if (m->kinds && !(m->kinds >> f->session->use & 1))
		return fails(why, "kind", session_use_names[f->session->use]);
	if (m->cards.n && !matches_cards(p, f, &m->cards, false)) {
		snprintf(why, WHY_CAP, "it holds none of these cards");
		return false;
	}
	if (m->models.n && !matches_cards(p, f, &m->models, true)) {
		snprintf(why, WHY_CAP, "it holds no card of these models");
		return false;
	}
	if (!holds_enough(m, f, why))
		return false;
	if (!m->working_hours)
		return true;
	struct tm local = moment_fields(now_ms, p->utc);
	bool working = config_is_working(&p->config->calendar, &local);
	if (working != (strcmp(m->working_hours, "yes") == 0)) {
		snprintf(
			why, WHY_CAP, "it is %s working hours", working ? "within" : "outside");
		return false;
	}
	return true;
}

bool rules_applies(const struct policy *p, const struct config_rule *rule,
	const struct session_facts *f, int64_t now_ms, char why[WHY_CAP])
{
	bool is_lease = f->session->kind == SESSION_LEASE;
	if (is_lease == (rule->reserved_for_ms > 0))
		return rules_match(p, &rule->match, f, now_ms, why);
	snprintf(why, WHY_CAP, "it is %s lease", is_lease ? "a" : "not a");
	return false;
}

const struct config_rule *rules_find(
	const struct policy *p, const struct session_facts *f, int64_t now_ms)
{
	char why[WHY_CAP];
	for (size_t i = 0; i < rules_count(p); i++)
		if (rules_applies(p, rules_get(p, i), f, now_ms, why))
			return rules_get(p, i);
	return NULL;
}

const char *rules_exemption_fault(const struct config_exemption *x, int64_t now_ms, bool utc)
{
	struct tm day = moment_fields(now_ms, utc);
	int32_t today = (day.tm_year + 1900) * 10000 + (day.tm_mon + 1) * 100 + day.tm_mday;
	if (!x->owner || !*x->owner)
		return "it has no owner";
	if (x->until == 0)
		return "it has no expiry date (until)";
	return today > x->until ? "it has expired" : NULL;
}

void rules_set_limits(const struct policy *p, struct idle_history *h)
{
	for (size_t i = 0; i < rules_count(p); i++) {
		idle_history_limit(h, rules_get(p, i)->idle_below);
		h->leases |= rules_get(p, i)->reserved_for_ms > 0;
	}
}

const struct config_exemption *rules_find_exemption(
	const struct policy *p, const struct session_facts *f, int64_t now_ms)
{
	char why[WHY_CAP];
	const struct config_exemption *all = p->config->exemptions.items;
	for (size_t i = 0; i < p->config->exemptions.n; i++)
		if (!rules_exemption_fault(&all[i], now_ms, p->utc) &&
			rules_match(p, &all[i].match, f, now_ms, why))
			return &all[i];
	return NULL;
}

bool rules_is_quiet(const struct policy *p, int64_t now_ms)
{
	if (p->config->quiet.n_hours == 0 && p->config->calendar.n_holidays == 0)
		return false;
	struct tm local = moment_fields(now_ms, p->utc);
	return config_is_quiet(p->config, &local);
}

/* The first minute of the day after `minute` at which hours begin or end; `next` if that comes
 * earlier. */
static int next_edge(const struct config_calendar *c, int minute, int next)
{
	for (size_t i = 0; i < c->n_hours; i++) {
		const int edges[] = { c->hours[i].from_min, c->hours[i].until_min };
		for (size_t k = 0; k < 2; k++)
			if (edges[k] > minute && edges[k] < next)
				next = edges[k];
	}
	return next;
}

int64_t rules_next_hours(const struct policy *p, int64_t now_ms)
{
	struct tm local = moment_fields(now_ms, p->utc);
	int minute = local.tm_hour * 60 + local.tm_min, next = (local.tm_hour + 1) * 60;
	next = next_edge(&p->config->calendar, minute, next);
	next = next_edge(&p->config->quiet, minute, next);
	return now_ms - now_ms % MINUTE_MS + (next - minute) * MINUTE_MS;
}

int64_t rules_after_quiet(const struct policy *p, int64_t at_ms)
{
	int64_t free_ms = at_ms;
	while (rules_is_quiet(p, free_ms) && free_ms - at_ms < QUIET_LONGEST_MS)
		free_ms = rules_next_hours(p, free_ms);
	return free_ms;
}

struct rules_times rules_times(
	const struct config_rule *rule, const struct idle_session *session)
{
	struct rules_times t = { first_warning(rule), rule->again_ms, AT_NEVER, rule->end_ms };
	const struct config_match *m = &rule->match;
	/* A service may hold a model while nobody uses it, so only a rule that names services
	 * ends them. */
	bool names_services = (m->kinds >> USE_SERVICE & 1) || m->containers.n || m->units.n ||
			      m->namespaces.n;
	if (t.again_ms != AT_NEVER && t.again_ms <= t.warn_ms)
		t.again_ms = AT_NEVER;
	if (t.end_ms == AT_USUAL)
		t.end_ms = usual_end_ms[session->use];
	if (session->use == USE_SERVICE && !names_services)
		t.end_ms = AT_NEVER;
	/* Only a manager ends a lease. */
	if (session->kind == SESSION_LEASE && !session->texts[PROCESS_JOB] &&
		!session->texts[PROCESS_POD])
		t.end_ms = AT_NEVER;
	if (t.end_ms == AT_NEVER)
		return t;
	int64_t last_ms = t.again_ms == AT_NEVER ? t.warn_ms : t.again_ms;
	if (t.end_ms < last_ms + rule->final_ms)
		t.end_ms = last_ms + rule->final_ms;
	t.final_ms = t.end_ms - rule->final_ms;
	return t;
}

bool rules_is_hasty(const struct config_rule *rule, char why[WHY_CAP])
{
	why[0] = '\0';
	if (first_warning(rule) < WARN_LEAST_MS)
		snprintf(why, WHY_CAP,
			"[rule %s] warns about sessions that are idle for less than %s; people "
			"need longer to look at a result",
			rule->name, duration_text(WARN_LEAST_MS).text);
	if (!*why && rules_level(rule) == LEVEL_END && rule->final_ms < FINAL_LEAST_MS)
		snprintf(why, WHY_CAP,
			"[rule %s] ends sessions less than %s after the final notice; users "
			"cannot react in time",
			rule->name, duration_text(FINAL_LEAST_MS).text);
	const struct idle_session session = { .use = USE_INTERACTIVE };
	int64_t end_ms = rules_times(rule, &session).end_ms;
	if (!*why && rule->end_ms > 0 && end_ms > rule->end_ms)
		snprintf(why, WHY_CAP,
			"[rule %s] has its end at %s, but ends no session before %s, because "
			"its notices come first",
			rule->name, duration_text(rule->end_ms).text,
			duration_text(end_ms).text);
	return *why;
}

static int check_owner(const char *path, const struct settings_owner *owner, struct err *e)
{
	if (!owner->known)
		return err_set(e, ERR_WORLD, "the owner of %s is unknown", path);
	if (owner->uid != 0)
		return err_set(e, ERR_WORLD, "%s belongs to uid %lld, not to root", path,
			(long long)owner->uid);
	/* Anyone who can write to a directory can delete and replace the files in it. */
	if (owner->mode & (S_IWGRP | S_IWOTH))
		return err_set(e, ERR_WORLD, "users other than root can write to %s", path);
	return 0;
}

static int check_file(const struct settings *s, size_t file, struct err *e)
{
	char directory[PATH_MAX];
	const char *path = s->files[file];
	if (*path != '/')
		return err_set(e, ERR_WORLD,
			"%s is not the absolute path of a file, so its owner is unknown", path);
	str_copy(directory, sizeof(directory), path);
	char *slash = strrchr(directory, '/');
	*(slash == directory ? slash + 1 : slash) = '\0';
	int rc = check_owner(path, &s->owners[file], e);
	return rc ? rc : check_owner(directory, &s->directories[file], e);
}

int rules_check_trust(const struct settings *s, struct err *e)
{
	if (s->n_items == 0)
		return err_set(e, ERR_WORLD, "no key of gua.conf is set");
	for (size_t i = 0; i < s->n_items; i++) {
		size_t file = s->items[i].file;
		if (i > 0 && file == s->items[i - 1].file)
			continue;
		if (s->items[i].line == 0)
			return err_set(e, ERR_WORLD,
				"a part of the configuration is from the command line (%s)",
				s->files[file]);
		int rc = check_file(s, file, e);
		if (rc)
			return rc;
	}
	return 0;
}

static uint64_t add_hash(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return (hash ^ 0xff) * 0x100000001b3u;
}

void rules_hash(char dst[RULES_HASH_CAP], const struct settings *s)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < s->n_items; i++) {
		hash = add_hash(hash, s->items[i].section ? s->items[i].section->name : "");
		hash = add_hash(hash, s->items[i].block);
		hash = add_hash(hash, s->items[i].name);
		hash = add_hash(hash, s->items[i].text);
	}
	snprintf(dst, RULES_HASH_CAP, "%016llx", (unsigned long long)hash);
}
