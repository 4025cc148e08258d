/* Asks an engine for the samples of another exporter. */
#include "fleet/sampled.h"

static int take_scrapes(void *context, const struct sample *sample, struct err *e)
{
	struct sampled *s = context;
	char target[HOST_KEY_CAP];
	uint32_t host;
	int rc = sampled_host(s, sample->labels, &host, target, e);
	for (; rc == 0 && s->n_scrapes <= host; s->n_scrapes++) {
		if (!array_one_more(&s->scrapes, s->n_scrapes))
			return err_memory(e);
		s->scrapes[s->n_scrapes] = 0;
	}
	if (rc == 0)
		s->scrapes[host] = fmax(s->scrapes[host], sample->value);
	return rc;
}

/* Finds how often hosts are scraped: most of them, and the one with the longest interval. */
static int find_steps(struct sampled *s, const struct probe *window, struct err *e)
{
	struct probe p = *window;
	size_t counts[SAMPLED_STEPS] = { 0 }, most = 0;
	int rc = 0;
	p.range_s = SAMPLED_COUNTED_S;
	for (enum exporter_role role = EXPORTER_MEMORY;; role = EXPORTER_USE) {
		const char *by = s->f->by;
		for (size_t k = EXPORTER_SPELLINGS; k-- > 0;)
			if (s->x->labels[EXPORTER_HOST][k])
				by = arena_textf(
					&s->texts, "%s,%s", s->x->labels[EXPORTER_HOST][k], by);
		const char *before =
			arena_textf(&s->texts, "max by (%s) (count_over_time(", by);
		const struct probe_query q = { before, "))", s->x, role, NULL, take_scrapes,
			s };
		rc = s->texts.failed ? err_memory(e) : probe_ask(&p, &q, e);
		if (rc || s->n_scrapes || role == EXPORTER_USE)
			break;
	}
	s->step_ms = sampled_steps_ms[SAMPLED_STEPS - 1];
	for (uint32_t host = 0; host < s->n_scrapes; host++) {
		int64_t interval_ms = sampled_interval(s, host);
		for (size_t i = 0; i < SAMPLED_STEPS; i++)
			counts[i] += sampled_steps_ms[i] == sampled_step(interval_ms);
		s->longest_ms = clock_later(s->longest_ms, interval_ms);
	}
	for (size_t i = 0; i < SAMPLED_STEPS; i++)
		if (counts[i] > most) {
			most = counts[i];
			s->step_ms = sampled_steps_ms[i];
		}
	s->longest_ms = clock_earlier(
		clock_later(s->longest_ms, s->step_ms), sampled_steps_ms[SAMPLED_STEPS - 1]);
	return rc;
}

/* Adds the query for all samples with a role. */
static void ask_raw(struct sampled *s, struct batch *b, enum exporter_role role)
{
	double slack_s = (double)sampled_limit(s->longest_ms) / 1000;
	double to_s = (double)s->a->until_ms / 1000, from_s = (double)s->a->since_ms / 1000;
	const char *names = exporter_match(s->x, role, &b->texts);
	if (names)
		fleet_query(b,
			arena_textf(&b->texts, "%s[%llds]", fleet_select(b, "", names),
				(long long)ceil(to_s - from_s + 2 * slack_s)),
			to_s + slack_s, sampled_take, s);
}

/* Takes what the labels of a series say, and no sample. */
static int take_labels(void *context, const struct sample *sample, struct err *e)
{
	uint32_t number;
	return sampled_series(context, sample->labels, NULL, &number, e);
}

static int take_least(void *context, const struct sample *sample, struct err *e)
{
	struct sampled *s = context;
	uint32_t number;
	if (sampled_number(s, sample, NULL, &number, e))
		return e->code;
	struct sampled_card *card = &s->cards[s->series[number].card];
	card->floor_bytes = fmin(card->floor_bytes, sample->value);
	return 0;
}

/* Asks for the least used memory of cards at the moments of the probe: what the driver keeps
 * for itself. */
static int ask_least(struct sampled *s, struct probe *p, struct err *e)
{
	const struct probe_query q = { "min_over_time(", ")", s->x, EXPORTER_MEMORY, NULL,
		take_least, s };
	return probe_ask(p, &q, e);
}

static int take_odd(void *context, const struct sample *sample, struct err *e)
{
	struct sampled *s = context;
	uint32_t number;
	int rc = sampled_series(s, sample->labels, NULL, &number, e);
	if (rc == 0)
		s->cards[s->series[number].card].odd = true;
	return rc;
}

/* Finds the cards of which there is use or memory alone. */
static int find_odd(struct sampled *s, struct probe *p, struct err *e)
{
	static const enum exporter_role roles[] = { EXPORTER_USE, EXPORTER_MEMORY };
	struct batch texts = { .fleet = s->f };
	int rc = 0;
	for (int i = 0; i < 2 && rc == 0; i++) {
		const char *other = exporter_match(s->x, roles[!i], &texts.texts);
		const char *before =
			arena_textf(&texts.texts, "max by (%s) (last_over_time(", s->by);
		const char *after = arena_textf(&texts.texts, ")) unless %s%s[%llds]))", before,
			fleet_select(&texts, "", other ? other : ""), (long long)p->range_s);
		const struct probe_query q = { before, after, s->x, roles[i], NULL, take_odd,
			s };
		rc = texts.texts.failed ? err_memory(e) : probe_ask(p, &q, e);
	}
	fleet_finish_batch(&texts);
	return rc;
}

static int read_raw(struct sampled *s, struct err *e)
{
	struct batch b = { .fleet = s->f };
	int64_t oldest_ms = -1;
	for (enum exporter_role role = 0; role < EXPORTER_INFO; role++)
		ask_raw(s, &b, role);
	int rc = fleet_run(&b, e);
	for (size_t i = 0; i < s->n_raws; i++)
		if (oldest_ms < 0 || s->raws[i].t_ms < oldest_ms)
			oldest_ms = s->raws[i].t_ms;
	sampled_restrict(s);
	return rc || fleet_fill_window(s->fill, oldest_ms, e) ? e->code : sampled_judge(s, e);
}

/* Whether metrics say whose a card is, instead of labels. */
static int find_numbers(struct sampled *s, struct probe *p, struct err *e)
{
	const struct probe_query q = { "count(last_over_time(", ") > 0)", s->x,
		EXPORTER_JOB_NUMBER, "jobid=\"\"", NULL, NULL };
	int rc = probe_ask(p, &q, e);
	s->has_numbers = rc == 0 && probe_largest(p) > 0;
	return rc;
}

/* Copies of series, as replicas of an engine scrape them: they differ in a label. */
enum { COPY_CARDS = 16, COPY_LABELS = 16 };
struct copies {
	struct sampled *s;
	struct labels first[COPY_CARDS]; /* of a card and a holder */
	uint32_t numbers[COPY_CARDS];
	size_t n, n_labels;
	struct {
		char name[64];
		size_t votes;
	} labels[COPY_LABELS];
	const char *label; /* the one in which most of them differ */
	const char *known; /* ",a,b,": those that copies have in common */
};

/* Counts the labels of one series that another one has with another value, or not at all. */
static void compare_labels(struct copies *c, const struct labels *l, const struct labels *other)
{
	for (size_t k = 0; k < l->n; k++) {
		const char *name = str_text(&l->text) + l->names[k];
		if (strcmp(engine_answer_label(other, name),
			    str_text(&l->text) + l->values[k]) == 0)
			continue;
		char own[sizeof(c->labels[0].name) + 2];
		size_t i = 0;
		while (i < c->n_labels && strcmp(c->labels[i].name, name) != 0)
			i++;
		if (i == COPY_LABELS || strlen(name) >= sizeof(c->labels[i].name))
			continue;
		snprintf(own, sizeof(own), ",%s,", name);
		if (strstr(c->known, own))
			continue;
		str_copy(c->labels[i].name, sizeof(c->labels[i].name), name);
		c->labels[i].votes++;
		c->n_labels += i == c->n_labels;
	}
}

static int take_copy(void *context, const struct sample *sample, struct err *e)
{
	struct copies *c = context;
	const struct labels *l = sample->labels;
	uint32_t number;
	int rc = sampled_series(c->s, l, NULL, &number, e);
	size_t i = 0;
	while (i < c->n && c->numbers[i] != number)
		i++;
	if (rc || i == COPY_CARDS)
		return rc;
	if (i < c->n) {
		compare_labels(c, l, &c->first[i]);
		compare_labels(c, &c->first[i], l);
		return 0;
	}
	c->numbers[c->n] = number;
	c->first[c->n] = *l;
	c->first[c->n].text = (struct str){ 0 };
	str_add_bytes(&c->first[c->n].text, str_text(&l->text), l->text.len);
	return c->first[c->n++].text.failed ? err_memory(e) : 0;
}

static int take_replica(void *context, const struct sample *sample, struct err *e)
{
	const struct copies *c = context;
	struct sampled *s = c->s;
	const char *value = engine_answer_label(sample->labels, c->label);
	bool old = !*value || strpbrk(value, "\"\\\n") || s->n_copies == SAMPLED_COPIES - 1;
	for (size_t i = 0; i < s->n_copies; i++)
		old |= strcmp(s->copies[i], value) == 0;
	if (old)
		return 0;
	s->copies[s->n_copies] = arena_text(&s->texts, value);
	return s->copies[s->n_copies++] ? 0 : err_memory(e);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Finds the values of the label, and makes matchers of them. */
static int find_replicas(struct copies *c, struct probe *p, struct err *e)
{
	struct sampled *s = c->s;
	const char *rest = "";
	const struct probe_query q = { arena_textf(&s->texts, "count by (%s) (last_over_time(",
					       c->label),
		"))", s->x, EXPORTER_MEMORY, NULL, take_replica, c };
	int rc = s->texts.failed ? err_memory(e) : probe_ask(p, &q, e);
	/* The answers come in any order, and not each has all of them. */
	array_sort(s->copies, s->n_copies, compare_texts);
	for (size_t i = 0; i < s->n_copies && rc == 0; i++) {
		rest = arena_textf(&s->texts, "%s,%s!=\"%s\"", rest, c->label, s->copies[i]);
		s->copies[i] = arena_textf(&s->texts, ",%s=\"%s\"", c->label, s->copies[i]);
	}
	if (rc == 0 && s->n_copies)
		s->copies[s->n_copies++] = rest;
	return rc || !s->texts.failed ? rc : err_memory(e);
}

/* Finds out how replicas can be told apart: from a few cards with several series. */
static int find_copies(struct sampled *s, struct probe *p, struct err *e)
{
	struct batch texts = { .fleet = s->f };
	struct copies c = { .s = s, .known = arena_textf(&texts.texts, ",%s,", s->by) };
	const char *names = exporter_match(s->x, EXPORTER_MEMORY, &texts.texts);
	size_t most = 0;
	const char *after = arena_textf(&texts.texts,
		") and on (%s) topk(%d, count by (%s) (last_over_time(%s[%llds])) > 1)", s->by,
		COPY_CARDS, s->by, fleet_select(&texts, "", names ? names : ""),
		(long long)p->range_s);
	const struct probe_query q = { "last_over_time(", after, s->x, EXPORTER_MEMORY, NULL,
		take_copy, &c };
	int rc = texts.texts.failed ? err_memory(e) : probe_ask(p, &q, e);
	for (size_t i = 0; i < c.n_labels; i++)
		if (c.labels[i].votes > most) {
			most = c.labels[i].votes;
			c.label = c.labels[i].name;
		}
	if (rc == 0 && c.label)
		rc = find_replicas(&c, p, e);
	for (size_t i = 0; i < c.n; i++)
		str_finish(&c.first[i].text);
	fleet_finish_batch(&texts);
	return rc;
}

static int read_hours(struct sampled *s, struct probe *p, struct err *e)
{
	bool differ = s->x->has_reserved;
	for (uint32_t host = 0; host < s->n_scrapes; host++)
		differ |= sampled_step(sampled_interval(s, host)) != s->step_ms;
	if ((differ && ask_least(s, p, e)) || find_odd(s, p, e) || find_numbers(s, p, e) ||
		find_copies(s, p, e) || (s->x->has_reserved && sampled_floors(s, e)))
		return e->code;
	return sampled_hours(s, p, e);
}

/* Whether the fill has all cards that this exporter watched at the moments of the probe: where
 * gua is on all hosts, another exporter's samples need not be read. */
static int check_known(struct sampled *s, struct probe *p, bool *known, struct err *e)
{
	*known = false;
	if (s->fill->cards.n == 0)
		return 0;
	int rc = ask_least(s, p, e);
	sampled_restrict(s);
	*known = s->n_cards > 0;
	for (size_t i = 0; i < s->n_cards; i++)
		*known &= s->cards[i].left_out;
	return rc;
}

/* With more samples of the cards' use than this in a second of --timeout, a million by default,
 * the engine judges them: it reads them much faster than it sends them. */
enum { SENT_A_SECOND = 8334 };

int sampled_ask_run(
	struct sampled *s, struct fleet_fill *fill, const struct exporter *x, struct err *e)
{
	*s = (struct sampled){ .fill = fill,
		.f = fill->f,
		.q = fill->q,
		.a = fill->a,
		.x = x,
		.rules = RULES_DEFAULT };
	struct probe p = probe_of(s->f, s->a->since_ms, s->a->until_ms);
	bool known = false;
	int rc = check_known(s, &p, &known, e);
	if (rc || known)
		return rc;
	s->by = exporter_labels(x, s->f->by, &s->texts);
	s->rules.count_graphics = true; /* used memory is of all processes */
	s->a->rules = s->rules;
	s->a->since_ms = llround(1000 * p.from_s);
	const struct probe_query info = { "last_over_time(", ")", x, EXPORTER_INFO, NULL,
		take_labels, s };
	if (find_steps(s, &p, e) || probe_count_cards(&p, x, &s->n_at_once, e) ||
		probe_ask(&p, &info, e))
		return e->code;
	double n = s->n_at_once * (p.to_s - p.from_s) * 1000 / (double)s->step_ms;
	bool many = n > SENT_A_SECOND * (double)s->f->timeout_ms / 1000;
	rc = many ? read_hours(s, &p, e) : read_raw(s, e);
	return rc ? rc : sampled_fill(s, e);
}
