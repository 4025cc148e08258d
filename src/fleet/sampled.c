/* Reads samples of other exporters, and judges them card by card. */
#include "fleet/sampled.h"

#include <ctype.h>

#include "fleet/roster.h"

enum { LABEL_TEXT_CAP = 256, HOLDERS_MAX = 32 };
/* What series and their names may take, about: an engine can invent them without end. */
enum { SERIES_BYTES = 256, MOST_NAME_BYTES = 1 << 29 };
/* Samples that are kept at a time: 24 bytes each. */
enum { MOST_RAWS = 8000000 };

const int64_t sampled_steps_ms[SAMPLED_STEPS] = { 1000, 2000, 3000, 5000, 7000, 10000, 15000,
	20000, 30000, 45000, 60000, 90000, 120000, 180000, 240000, 300000, 450000, 600000 };

/* Missed scrapes make it look longer than it was set. */
int64_t sampled_interval(const struct sampled *s, uint32_t host)
{
	double n = host < s->n_scrapes ? s->scrapes[host] : 0;
	if (n < 1)
		return s->step_ms;
	double least_ms = 1000 * SAMPLED_COUNTED_S / n,
	       most_ms = 1000 * SAMPLED_COUNTED_S / fmax(n - 1, 1);
	for (size_t i = 0; i < SAMPLED_STEPS; i++)
		if ((double)sampled_steps_ms[i] >= 0.9 * least_ms &&
			(double)sampled_steps_ms[i] <= 1.05 * most_ms)
			return sampled_steps_ms[i];
	return clock_later(llround(least_ms), 1000);
}

int64_t sampled_step(int64_t interval_ms)
{
	size_t i = SAMPLED_STEPS - 1;
	while (i > 0 && sampled_steps_ms[i] > interval_ms)
		i--;
	return sampled_steps_ms[i];
}

/* The state of a card that a sample shows. NAN: not known. */
static enum card_state judge_sample(
	const struct rules *rules, double use_pct, double mem_bytes, bool leased)
{
	bool held = mem_bytes > (double)rules->held_mem_bytes;
	if (use_pct >= rules->active_util_pct)
		return CARD_ACTIVE;
	if (isnan(mem_bytes))
		return CARD_UNOBSERVED;
	if (isnan(use_pct) && held)
		return CARD_USE_UNKNOWN;
	return held ? CARD_IDLE_HELD : leased ? CARD_RESERVED : CARD_TRULY_IDLE;
}

int64_t sampled_limit(int64_t interval_ms)
{
	return 2 * interval_ms + interval_ms / 10;
}

double sampled_error(double changes)
{
	return 1 + 2 * sqrt(changes + 1);
}

void sampled_finish(struct sampled *s)
{
	struct names *const all[] = { &s->hosts, &s->card_names, &s->models, &s->holder_names,
		&s->series_names };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		names_finish(all[i]);
	for (size_t i = 0; i < s->n_cards; i++)
		free(s->cards[i].columns);
	free(s->cards);
	free(s->holders);
	free(s->parts);
	free(s->series);
	free(s->raws);
	free(s->scrapes);
	idmap_finish(&s->part_map);
	arena_finish(&s->texts);
}

/* A label, safe to show. */
struct safe {
	char text[LABEL_TEXT_CAP];
};
static struct safe safe_label(
	const struct sampled *s, const struct labels *l, enum exporter_label label)
{
	struct safe safe = { "" };
	const char *value = exporter_label(s->x, l, label);
	str_escape(safe.text, sizeof(safe.text), value, strlen(value));
	return safe;
}

/* The name of a host: what the exporter calls it, unless --host-label was given. */
int sampled_host(struct sampled *s, const struct labels *l, uint32_t *number,
	char target[HOST_KEY_CAP], struct err *e)
{
	char key[HOST_KEY_CAP], name[HOST_KEY_CAP];
	struct safe own = safe_label(s, l, EXPORTER_HOST);
	struct err no_target = { 0 };
	fleet_host(s->f, l, key, &no_target);
	roster_short_name(target, HOST_KEY_CAP, key);
	if (*own.text && strcmp(s->f->by, "instance") == 0)
		str_copy(key, sizeof(key), own.text);
	else if (no_target.code) {
		*e = no_target;
		return ERR_WORLD;
	}
	roster_short_name(name, sizeof(name), key);
	*number = names_find(&s->hosts, 0, name, e);
	return *number == IDMAP_NONE ? ERR_WORLD : fleet_bound(s->f, s->hosts.n, e);
}

/* A UUID with its prefix and in small letters, as the driver writes it; exporters differ. */
static void write_uuid(char *dst, size_t cap, const char *text)
{
	bool bare = strncasecmp(text, "GPU-", 4) != 0 && strncasecmp(text, "MIG-", 4) != 0;
	snprintf(dst, cap, "%s%s", bare ? "GPU-" : "", text);
	for (char *at = dst + 4; strlen(dst) > 4 && *at; at++)
		*at = (char)tolower((unsigned char)*at);
}

/* Numbers a name; IDMAP_NONE for "". */
static int number_of(struct names *names, const char *text, uint32_t *number, struct err *e)
{
	*number = IDMAP_NONE;
	if (!*text)
		return 0;
	*number = names_find(names, 0, text, e);
	return *number == IDMAP_NONE ? ERR_WORLD : 0;
}

static int add_card(struct sampled *s, const char *uuid, const char *instance, struct err *e)
{
	struct sampled_card card = { .uuid = arena_text(&s->texts, uuid),
		.instance = arena_text(&s->texts, instance),
		.target = "",
		.place = IDMAP_NONE,
		.model = IDMAP_NONE,
		.parent = IDMAP_NONE,
		.index = -1,
		.first_ms = -1,
		.last_ms = -1,
		.divided_from_ms = -1,
		.divided_to_ms = -1,
		.counter_ms = -1,
		.util_pct_ms = -1,
		.floor_bytes = NAN };
	if (!card.uuid || !card.instance || !array_one_more(&s->cards, s->n_cards))
		return err_memory(e);
	s->cards[s->n_cards++] = card;
	return 0;
}

/* The card with that UUID; an instance also makes its card. */
static int find_card(struct sampled *s, const char *uuid, const char *instance,
	uint32_t *number, struct err *e)
{
	char key[HOST_KEY_CAP + 2 * LABEL_TEXT_CAP];
	uint32_t parent = IDMAP_NONE;
	int rc = *instance ? find_card(s, uuid, "", &parent, e) : 0;
	if (rc)
		return rc;
	snprintf(key, sizeof(key), "%s\t%s", uuid, instance);
	*number = names_find(&s->card_names, 0, key, e);
	if (*number == IDMAP_NONE)
		return ERR_WORLD;
	if (*number == s->n_cards)
		rc = add_card(s, uuid, instance, e);
	if (rc == 0)
		s->cards[*number].parent = parent;
	return rc;
}

static int take_card(struct sampled *s, const struct labels *l, uint32_t *number, struct err *e)
{
	char uuid[HOST_KEY_CAP + LABEL_TEXT_CAP], target[HOST_KEY_CAP];
	struct safe own = safe_label(s, l, EXPORTER_CARD);
	struct safe index = safe_label(s, l, EXPORTER_INDEX);
	struct safe model = safe_label(s, l, EXPORTER_MODEL);
	struct safe instance = safe_label(s, l, EXPORTER_INSTANCE);
	uint32_t host = 0, name = IDMAP_NONE;
	if (sampled_host(s, l, &host, target, e) || number_of(&s->models, model.text, &name, e))
		return e->code;
	if (*own.text)
		write_uuid(uuid, sizeof(uuid), own.text);
	else
		snprintf(uuid, sizeof(uuid), "%s/%s", s->hosts.items[host].text, index.text);
	if (find_card(s, uuid, instance.text, number, e))
		return e->code;
	struct sampled_card *card = &s->cards[*number];
	card->host = host;
	if (!card->label) {
		card->label = arena_text(
			&s->texts, engine_answer_label(l, s->x->labels[EXPORTER_CARD][0]));
		card->target = arena_text(&s->texts, target);
	}
	struct safe driver = safe_label(s, l, EXPORTER_DRIVER);
	if (*driver.text && (!card->driver || strcmp(card->driver, driver.text) != 0))
		card->driver = arena_text(&s->texts, driver.text);
	if (!card->label || !card->target)
		return err_memory(e);
	if (card->parent != IDMAP_NONE) {
		s->cards[card->parent].host = host;
		s->cards[card->parent].target = card->target;
	}
	if (name != IDMAP_NONE)
		card->model = name;
	if (isdigit((unsigned char)*index.text))
		card->index = atoi(index.text);
	return 0;
}

/* Whether the time of a holder counts. */
static bool takes_holder(const struct sampled *s, const struct sampled_holder *h)
{
	const struct audit_question *q = s->q;
	const struct text_list *lists = q->only.lists;
	const char *group = q->group_of ? q->group_of(q->group_context, h->user) : NULL;
	bool of_names = lists[ONLY_USER].n || lists[ONLY_GROUP].n;
	return (!of_names || (*h->user && restriction_takes_user(&q->only, h->user, group))) &&
	       (!lists[ONLY_JOB].n || (*h->job && restriction_takes_job(&q->only, h->job, "")));
}

static int add_holder(struct sampled *s, const struct safe labels[5], struct err *e)
{
	const char *namespace = labels[0].text, *pod = labels[1].text, *job = labels[3].text,
		   *user = labels[4].text;
	struct arena *texts = &s->texts;
	/* The user is the user's number, or the namespace as in leases of Kubernetes. */
	struct sampled_holder h = { .namespace = arena_text(texts, namespace),
		.pod = arena_textf(texts, "%s%s%s", *pod ? namespace : "",
			*pod && *namespace ? "/" : "", pod),
		.container = arena_text(texts, labels[2].text),
		.job = arena_textf(
			texts, "%s%s", isdigit((unsigned char)*job) ? "slurm:" : "", job),
		.user = arena_textf(texts, "%s%s", isdigit((unsigned char)*user) ? "uid:" : "",
			*user ? user : namespace) };
	if (texts->failed || !array_one_more(&s->holders, s->n_holders))
		return err_memory(e);
	h.left_out = !takes_holder(s, &h);
	s->holders[s->n_holders++] = h;
	return 0;
}

/* What labels say of a holder, in the order of a key. */
struct said {
	struct safe labels[5];
};
static int find_holder(
	struct sampled *s, const struct said *said, uint32_t *number, struct err *e)
{
	static const struct said nobody;
	char key[5 * (LABEL_TEXT_CAP + 1)] = "";
	size_t len = 0;
	if (s->n_holders == 0 &&
		(names_find(&s->holder_names, 0, "\t\t\t\t\t", e) == IDMAP_NONE ||
			add_holder(s, nobody.labels, e)))
		return ERR_WORLD;
	for (size_t i = 0; i < 5; i++)
		len += (size_t)snprintf(
			key + len, sizeof(key) - len, "%s\t", said->labels[i].text);
	*number = names_find(&s->holder_names, 0, key, e);
	if (*number == IDMAP_NONE)
		return ERR_WORLD;
	return *number == s->n_holders ? add_holder(s, said->labels, e) : 0;
}

static int take_holder(
	struct sampled *s, const struct labels *l, uint32_t *number, struct err *e)
{
	static const enum exporter_label which[] = { EXPORTER_NAMESPACE, EXPORTER_POD,
		EXPORTER_CONTAINER, EXPORTER_JOB, EXPORTER_USER };
	struct said said;
	for (size_t i = 0; i < 5; i++)
		said.labels[i] = safe_label(s, l, which[i]);
	/* A user is the one of a job. */
	if (!*said.labels[3].text && said.labels[4].text[0] == '0')
		said.labels[4].text[0] = '\0';
	return find_holder(s, &said, number, e);
}

int sampled_series(struct sampled *s, const struct labels *l,
	const struct exporter_metric *metric, uint32_t *number, struct err *e)
{
	uint32_t card, holder;
	char key[64];
	if (!metric)
		metric = exporter_metric(s->x, engine_answer_label(l, "__name__"));
	if (take_card(s, l, &card, e) || take_holder(s, l, &holder, e))
		return e->code;
	snprintf(key, sizeof(key), "%u %u %td", card, holder,
		metric ? metric - s->x->metrics : (ptrdiff_t)-1);
	*number = names_find(&s->series_names, 0, key, e);
	if (*number == IDMAP_NONE)
		return ERR_WORLD;
	if (*number < s->n_series)
		return 0;
	s->name_bytes += SERIES_BYTES + 2 * l->text.len;
	if (s->name_bytes > MOST_NAME_BYTES)
		return err_set(e, ERR_WORLD,
			"it has more than about 500,000 series in this window, or very long "
			"labels; choose some with --match");
	if (!array_one_more(&s->series, s->n_series))
		return err_memory(e);
	s->series[s->n_series++] = (struct sampled_series){ card, holder, metric, -1, 0, 0 };
	return 0;
}

/* Finds the most common time between two samples, rounded to seconds: a vote in which each
 * other length takes one away. */
static void vote(struct sampled_series *series, int64_t t_ms)
{
	int64_t step_ms = (t_ms - series->last_ms + 500) / 1000 * 1000;
	if (series->last_ms < 0 || step_ms <= 0)
		return;
	if (series->n_votes == 0)
		series->step_ms = step_ms;
	series->n_votes += series->step_ms == step_ms ? 1 : -1;
}

/* Extends a stretch of time to a moment; from -1: it has none yet. */
static void extend(int64_t *from_ms, int64_t *to_ms, int64_t t_ms)
{
	*from_ms = *from_ms < 0 ? t_ms : clock_earlier(*from_ms, t_ms);
	*to_ms = clock_later(*to_ms, t_ms);
}

int sampled_keep(struct sampled *s, struct sampled_raw raw, struct err *e)
{
	if (s->n_raws == MOST_RAWS)
		return err_set(e, ERR_WORLD,
			"it has more than %d million samples of this window; choose a shorter "
			"one, or some hosts with --match",
			MOST_RAWS / 1000000);
	if (!array_reserve(&s->raws, &s->raws_cap, s->n_raws + 1))
		return err_memory(e);
	s->raws[s->n_raws++] = raw;
	/* Cards in MIG mode have samples of their own beside their instances', which count. */
	const struct sampled_series *series = &s->series[raw.series];
	uint32_t parent = s->cards[series->card].parent;
	if (parent != IDMAP_NONE &&
		(!series->metric || series->metric->role <= EXPORTER_MEMORY))
		extend(&s->cards[parent].divided_from_ms, &s->cards[parent].divided_to_ms,
			raw.t_ms);
	return 0;
}

int sampled_number(struct sampled *s, const struct sample *sample,
	const struct exporter_metric *metric, uint32_t *number, struct err *e)
{
	bool first = !*sample->note;
	*number = (uint32_t)*sample->note - 1;
	int rc = first ? sampled_series(s, sample->labels, metric, number, e) : 0;
	if (rc)
		return rc;
	if (first) {
		const struct labels *l = sample->labels;
		uint64_t sum = 0;
		for (size_t i = 0; i < l->n; i++)
			sum += str_sum(str_text(&l->text) + l->names[i]) ^
			       31 * str_sum(str_text(&l->text) + l->values[i]);
		s->series[*number].last_ms = -1;
		*sample->note = sum << 32 | (*number + 1);
	}
	return 0;
}

int sampled_take(void *context, const struct sample *sample, struct err *e)
{
	struct sampled *s = context;
	uint32_t number;
	if (sampled_number(s, sample, NULL, &number, e))
		return e->code;
	struct sampled_series *series = &s->series[number];
	int64_t t_ms = llround(1000 * sample->time_s);
	double value = series->metric ? sample->value * series->metric->scale : -1;
	if (value < 0 || value > exporter_most[series->metric->role])
		return 0;
	vote(series, t_ms);
	series->last_ms = t_ms;
	struct sampled_card *card = &s->cards[series->card];
	enum exporter_role role = series->metric->role;
	if (role == EXPORTER_MEMORY)
		card->floor_bytes = fmin(card->floor_bytes, value);
	if (role == EXPORTER_USE || role == EXPORTER_MEMORY)
		extend(&card->first_ms, &card->last_ms, t_ms);
	return sampled_keep(s, (struct sampled_raw){ t_ms, value, number, 0 }, e);
}

/* The part of a holder on a card. NULL: out of memory. */
static struct sampled_part *find_part(
	struct sampled *s, uint32_t card, uint32_t holder, struct err *e)
{
	int64_t key = (int64_t)card << 32 | holder;
	uint32_t found = idmap_get(&s->part_map, key);
	if (found != IDMAP_NONE)
		return &s->parts[found];
	if (!array_one_more(&s->parts, s->n_parts) ||
		!idmap_put(&s->part_map, key, (uint32_t)s->n_parts)) {
		err_memory(e);
		return NULL;
	}
	s->parts[s->n_parts] = (struct sampled_part){ .card = card, .holder = holder };
	return &s->parts[s->n_parts++];
}

/* Adds to the time line. `counted`: the share of the users that the audit is of. */
static void add_columns(struct sampled *s, const struct sampled_stretch *t, double counted)
{
	const struct audit_columns *c = &s->a->columns;
	struct sampled_card *card = &s->cards[t->card];
	if (!c->n || s->n_cards > HOURS_MOST_CARDS)
		return;
	if (!card->columns)
		card->columns = calloc(c->n, sizeof(*card->columns));
	for (int64_t at = t->from_ms, end; at < t->to_ms && card->columns; at = end) {
		int64_t last = (int64_t)c->n - 1;
		int64_t i = clock_earlier((at - c->first_ms) / c->width_ms, last);
		i = clock_later(i, 0);
		end = c->first_ms + (i + 1) * c->width_ms;
		end = i == last ? t->to_ms : clock_earlier(end, t->to_ms);
		double ms =
			(double)t->ms * (double)(end - at) / (double)(t->to_ms - t->from_ms);
		card->columns[i].ms[CARD_UNOBSERVED] += llround(ms);
		card->columns[i].ms[t->state] += llround(counted * ms);
	}
}

int sampled_book(struct sampled *s, const struct sampled_stretch *t, struct err *e)
{
	double of_users = 0;
	for (size_t i = 0; i < t->n_holders; i++) {
		const struct sampled_holder *h = &s->holders[t->holders[i]];
		if (h->left_out)
			continue;
		of_users += 1 / (double)t->n_holders;
		struct sampled_part *part = find_part(s, t->card, t->holders[i], e);
		if (!part)
			return ERR_WORLD;
		part->ms[t->state] += (double)t->ms / (double)t->n_holders;
	}
	s->cards[t->card].ms[t->state] += t->ms;
	s->cards[t->card].leased |= t->n_holders > 0;
	double counted = !s->a->of_users ? 1 : t->state != CARD_TRULY_IDLE ? of_users : 0;
	add_columns(s, t, counted);
	fleet_fill_time(s->fill, (struct fleet_stretch){ t->from_ms, t->to_ms }, (int)t->state,
		llround(counted * (double)t->ms));
	return 0;
}

/* One moment of a card: all samples of one scrape. */
struct scraped {
	int64_t t_ms;
	enum card_state state;
	double values[EXPORTER_ROLES];
	int rank;
	uint32_t holders[HOLDERS_MAX];
	size_t n_holders;
};

static void note_holder(struct scraped *m, uint32_t holder)
{
	for (size_t i = 0; i < m->n_holders; i++)
		if (m->holders[i] == holder)
			return;
	if (holder != SAMPLED_NOBODY && m->n_holders < HOLDERS_MAX)
		m->holders[m->n_holders++] = holder;
}

/* Several pods on a card have copies of its value: the largest counts. */
static void take_value(struct scraped *m, const struct sampled_series *series, double value)
{
	enum exporter_role role = series->metric->role;
	if (role == EXPORTER_USE && series->metric->rank < m->rank)
		return;
	if (role == EXPORTER_USE && series->metric->rank > m->rank)
		m->values[role] = NAN;
	if (role == EXPORTER_USE)
		m->rank = series->metric->rank;
	m->values[role] = fmax(m->values[role], value);
	if (role == EXPORTER_USE || role == EXPORTER_MEMORY)
		note_holder(m, series->holder);
}

/* Notes the job that a metric names, unless labels do. */
static int note_number(struct sampled *s, struct scraped *m, struct err *e)
{
	struct said said = { 0 };
	uint32_t number;
	if (m->n_holders || !(m->values[EXPORTER_JOB_NUMBER] > 0))
		return 0;
	snprintf(said.labels[3].text, LABEL_TEXT_CAP, "%.0f", m->values[EXPORTER_JOB_NUMBER]);
	if (!isnan(m->values[EXPORTER_USER_NUMBER]))
		snprintf(said.labels[4].text, LABEL_TEXT_CAP, "%.0f",
			m->values[EXPORTER_USER_NUMBER]);
	int rc = find_holder(s, &said, &number, e);
	if (rc == 0)
		note_holder(m, number);
	return rc;
}

/* Reads the moment at `*at`, and moves it on. */
static struct scraped read_moment(
	const struct sampled *s, const struct sampled_raw **at, const struct sampled_raw *end)
{
	struct scraped m = { .t_ms = (*at)->t_ms, .rank = -1 };
	for (int role = 0; role < EXPORTER_ROLES; role++)
		m.values[role] = NAN;
	for (; *at < end && (*at)->t_ms == m.t_ms; ++*at)
		take_value(&m, &s->series[(*at)->series], (*at)->value);
	return m;
}

/* What was known of a card at the moment before. */
struct before {
	int64_t t_ms, use_ms, mem_ms, energy_ms; /* when; -1: never */
	double mem_bytes, energy_mj;
	int state;
};

static void add_energy(
	struct sampled_card *card, const struct scraped *m, const struct before *b, int64_t ms)
{
	double mj = NAN, energy = m->values[EXPORTER_ENERGY];
	if (energy >= b->energy_mj && b->energy_ms == b->t_ms && m->t_ms > b->t_ms)
		mj = (energy - b->energy_mj) * (double)ms / (double)(m->t_ms - b->t_ms);
	else if (isnan(energy))
		mj = m->values[EXPORTER_POWER] * (double)ms;
	/* Instances have copies of what their card takes. */
	if (!isnan(mj) && card->parent == IDMAP_NONE) {
		card->energy_mj[m->state] += llround(mj);
		card->energy_known_ms[m->state] += ms;
	}
	if (!isnan(m->values[EXPORTER_USE]))
		card->util_pct_ms = clock_later(card->util_pct_ms, 0) +
				    llround(m->values[EXPORTER_USE] * (double)ms);
	if (!isnan(m->values[EXPORTER_SM_ACTIVE])) {
		card->sm_active_pct_ms += llround(m->values[EXPORTER_SM_ACTIVE] * (double)ms);
		card->sm_active_ms += ms;
	}
}

/* The memory that is held on a card, as far as it is known at that moment. */
static double held_bytes(const struct sampled *s, const struct sampled_card *card,
	const struct before *b, int64_t t_ms)
{
	if (b->mem_ms < 0 || t_ms - b->mem_ms > sampled_limit(card->interval_ms))
		return NAN;
	return b->mem_bytes - (s->x->has_reserved ? card->floor_bytes : 0);
}

/* Adds the time from the moment before, unless it is too long ago. */
static int judge_moment(struct sampled *s, uint32_t number, const struct scraped *m,
	const struct before *b, struct err *e)
{
	struct sampled_card *card = &s->cards[number];
	struct sampled_stretch t = { .card = number,
		.state = m->state,
		.from_ms = clock_later(b->t_ms, s->a->since_ms),
		.to_ms = clock_earlier(m->t_ms, s->a->until_ms),
		.holders = m->holders,
		.n_holders = m->n_holders };
	bool seen = b->t_ms >= 0 && m->t_ms - b->t_ms <= sampled_limit(card->interval_ms);
	bool divided = m->t_ms >= card->divided_from_ms && m->t_ms <= card->divided_to_ms;
	if (!seen || divided || t.to_ms <= t.from_ms || t.state == CARD_UNOBSERVED)
		return 0;
	t.ms = t.to_ms - t.from_ms;
	card->changes += b->state != (int)t.state ? 0.5 : 0;
	add_energy(card, m, b, t.ms);
	return sampled_book(s, &t, e);
}

static int judge_card(struct sampled *s, uint32_t number, const struct sampled_raw *at,
	const struct sampled_raw *end, struct err *e)
{
	const struct sampled_card *card = &s->cards[number];
	int64_t limit_ms = sampled_limit(card->interval_ms);
	struct before b = { .t_ms = -1, .use_ms = -1, .mem_ms = -1, .energy_ms = -1 };
	int rc = 0;
	while (at < end && rc == 0) {
		struct scraped m = read_moment(s, &at, end);
		const double *values = m.values;
		if (!isnan(values[EXPORTER_MEMORY])) {
			b.mem_bytes = values[EXPORTER_MEMORY];
			b.mem_ms = m.t_ms;
		}
		if (!isnan(values[EXPORTER_USE]))
			b.use_ms = m.t_ms;
		else if (isnan(values[EXPORTER_MEMORY]) ||
			 (b.use_ms >= 0 && m.t_ms - b.use_ms <= limit_ms))
			continue; /* the next reading of use decides */
		if (note_number(s, &m, e))
			return e->code;
		m.state = judge_sample(&s->rules, values[EXPORTER_USE],
			held_bytes(s, card, &b, m.t_ms), m.n_holders > 0);
		rc = judge_moment(s, number, &m, &b, e);
		b.state = (int)m.state;
		b.t_ms = m.t_ms;
		if (!isnan(values[EXPORTER_ENERGY])) {
			b.energy_mj = values[EXPORTER_ENERGY];
			b.energy_ms = m.t_ms;
		}
	}
	return rc;
}

static int compare_raws(const void *x, const void *y, void *sampled)
{
	const struct sampled *s = sampled;
	const struct sampled_raw *p = x, *q = y;
	uint32_t a = s->series[p->series].card, b = s->series[q->series].card;
	if (a != b)
		return a < b ? -1 : 1;
	int order = array_compare(p->t_ms, q->t_ms);
	order = order ? order : array_compare(p->series, q->series);
	return order ? order : array_compare(p->labels, q->labels);
}

void sampled_sort(struct sampled *s)
{
	if (s->n_raws)
		qsort_r(s->raws, s->n_raws, sizeof(*s->raws), compare_raws, s);
}

/* Finds how often each card was sampled. */
static void set_intervals(struct sampled *s)
{
	for (size_t i = 0; i < s->n_series; i++) {
		const struct sampled_series *series = &s->series[i];
		struct sampled_card *card = &s->cards[series->card];
		if (series->n_votes <= card->n_votes)
			continue;
		card->n_votes = series->n_votes;
		card->interval_ms = series->step_ms;
	}
}

int sampled_floors(struct sampled *s, struct err *e)
{
	double *least = malloc((s->models.n + 1) * sizeof(*least));
	if (!least)
		return err_memory(e);
	for (size_t i = 0; i <= s->models.n; i++)
		least[i] = 1 << 30;
	for (size_t i = 0; i < s->n_cards; i++) {
		uint32_t model = s->cards[i].model;
		double *of = &least[model == IDMAP_NONE ? s->models.n : model];
		*of = fmin(*of, s->cards[i].floor_bytes);
	}
	for (size_t i = 0; i < s->n_cards; i++) {
		uint32_t model = s->cards[i].model;
		s->cards[i].floor_bytes = least[model == IDMAP_NONE ? s->models.n : model];
	}
	free(least);
	return 0;
}

int sampled_judge(struct sampled *s, struct err *e)
{
	set_intervals(s);
	int rc = sampled_floors(s, e);
	sampled_sort(s);
	for (size_t from = 0, to; from < s->n_raws && rc == 0; from = to) {
		uint32_t card = s->series[s->raws[from].series].card;
		for (to = from; to < s->n_raws && s->series[s->raws[to].series].card == card;)
			to++;
		if (!s->cards[card].left_out)
			rc = judge_card(s, card, s->raws + from, s->raws + to, e);
	}
	return rc;
}

void sampled_card_id(struct card_id *id, const struct sampled *s, const struct sampled_card *c)
{
	id->index = c->parent == IDMAP_NONE ? c->index : s->cards[c->parent].index;
	if (id->index < 0)
		id->index = c->index;
	id->mig_index = -1;
	if (*c->instance) {
		id->gpu_instance = id->mig_index = atoi(c->instance);
		str_copy(id->parent_uuid, sizeof(id->parent_uuid), c->uuid);
	}
	snprintf(id->uuid, sizeof(id->uuid), "%s%s%s", c->uuid, *c->instance ? "/" : "",
		c->instance);
	if (c->model != IDMAP_NONE)
		str_copy(id->name, sizeof(id->name), s->models.items[c->model].text);
}

/* Whether gua counts on that host. */
static bool has_counters(const struct sampled *s, const char *host)
{
	uint32_t number = names_get(&s->fill->hosts, 0, host);
	return number != IDMAP_NONE && strcmp(s->a->hosts[number].metrics, "gua") == 0;
}

/* Agents on each host scrape such targets: they do not say which host that is. */
static bool is_loopback(const char *host)
{
	return strcmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0 ||
	       strcmp(host, "[::1]") == 0;
}

void sampled_restrict(struct sampled *s)
{
	const struct restriction *only = &s->q->only;
	for (size_t i = 0; i < s->n_cards; i++) {
		struct sampled_card *from = &s->cards[i];
		const char *host = s->hosts.items[from->host].text;
		struct audit_card card = { 0 };
		sampled_card_id(&card.id, s, from);
		from->left_out = !restriction_takes_host(only, host) ||
				 !restriction_takes_card(only, &card) ||
				 names_has(&s->fill->cards, 0, card.id.uuid) ||
				 has_counters(s, host) ||
				 (!is_loopback(from->target) && has_counters(s, from->target));
	}
}
