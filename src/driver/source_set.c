/* Several sources as one. The set's cards are its members' cards, one member after the other.
 * Cards that a member finds later come at the end, so that a card never changes its place. A
 * card is left out if another member has a card with the same UUID, so that no time is counted
 * twice.
 *
 * A member that fails is down until the next scan, which tries it again; until then its cards
 * are lost, with the driver's code. A member that does not answer in time is late: its call
 * goes on, the other members do not wait for it, and its cards are lost until the call has
 * returned. A call fails only when every member is down. Readings are copied; the arrays that
 * they point to stay the member's. */
#include "driver/source.h"

#include "base/fault.h"

enum call_kind { CALL_SCAN, CALL_DRAIN, CALL_GLANCE, CALL_LOOK, CALL_OTHER };

struct set_member {
	const struct source_kind *kind;
	struct source *source; /* NULL: it has never opened */
	bool down;	       /* not asked before the next scan, or before it has answered */
	bool late;	       /* a call goes on: the others do not wait for it ... */
	bool kept; /* ... the call has returned, and its result waits until it can be taken */
	enum call_kind called; /* which call that is */
	bool up;	       /* it has answered at least once */
	bool asked;	       /* by the call in progress */
	struct err why;	       /* the last failure */
	struct fault fault;
	size_t n;    /* its cards that are known to the set */
	bool *flags; /* room for a flag for each of them */
};

struct set {
	struct source base;
	struct source_ops ops;	    /* with the set's own name */
	char name[SOURCE_LIST_CAP]; /* "nvml,sim" */
	struct source_options options;
	struct set_member members[SOURCE_KINDS_MAX];
	size_t n_members;
	struct set_place {
		size_t member, card; /* the member, and the index of the card in it */
	} * places;		     /* as many as base.cards */
	struct source_xid *xids;
	size_t cap_xids;
};

/* What all members are asked. */
struct member_call {
	enum call_kind kind;
	const bool *which; /* cards of the set, or NULL */
	unsigned what;	   /* for a glance */
};

static void lose(struct set *s, struct set_member *m, const struct err *why)
{
	int64_t now_ms = clock_wall_ms(s->options.clock);
	/* A member that fails at the start is logged as an error: views show errors only. */
	if (!m->up && !m->fault.on) {
		log_error("source %s: %s", m->kind->name, why->text);
		m->fault = (struct fault){ .on = true, .since_ms = now_ms, .count = 1 };
		snprintf(m->fault.text, sizeof(m->fault.text), "source %s: %.200s",
			m->kind->name, why->text);
	} else {
		fault_raise(&m->fault, now_ms, "source %s: %s", m->kind->name, why->text);
	}
	m->down = true;
	m->why = *why;
}

/* Whether one of the member's cards is selected; fills its flags. */
static bool fill_flags(struct set *s, struct set_member *m, const bool *which)
{
	bool any = which == NULL;
	if (which && m->n)
		memset(m->flags, 0, m->n * sizeof(*m->flags));
	for (size_t i = 0; which && i < s->base.n_cards; i++) {
		if (&s->members[s->places[i].member] != m)
			continue;
		m->flags[s->places[i].card] = which[i];
		any |= which[i];
	}
	return any;
}

static int call_member(
	struct set *s, struct set_member *m, const struct member_call *c, struct err *e)
{
	const bool *which = c->which ? m->flags : NULL;
	if (!m->source) {
		struct source_options options = s->options;
		options.name = m->kind->name;
		options.shared = true;
		int rc = source_kind_open(m->kind, &m->source, &options, e);
		if (rc && rc != ERR_BUSY)
			m->source = NULL;
		return rc;
	}
	m->source->drains = s->base.drains;
	switch (c->kind) {
	case CALL_SCAN:
		return source_scan(m->source, e);
	case CALL_DRAIN:
		return source_drain(m->source, which, e);
	case CALL_GLANCE:
		return source_glance(m->source, c->what, e);
	case CALL_LOOK:
		return source_look(m->source, which, e);
	case CALL_OTHER:
		break;
	}
	return 0;
}

/* Takes the result of a call. If the call goes on, the member is late. */
static void take_result(
	struct set *s, struct set_member *m, enum call_kind kind, const struct err *e)
{
	m->late = e->code == ERR_BUSY && m->source;
	m->called = kind;
	if (e->code) {
		lose(s, m, e);
		return;
	}
	m->down = false;
	m->up = true;
	fault_clear(&m->fault, clock_wall_ms(s->options.clock));
}

/* Whether the result of a late call can be taken now. A drain takes samples; a scan or a look
 * adds cards. */
static bool fits(enum call_kind called, enum call_kind now)
{
	if (called == CALL_DRAIN || called == CALL_SCAN)
		return now == called;
	return called != CALL_LOOK || now == CALL_LOOK || now == CALL_SCAN;
}

/* Whether a member is still late. The result of a late call is as good as that of a new one: it
 * is kept until it can be taken, and the member is not asked again before that. */
static bool is_late(struct set *s, struct set_member *m, enum call_kind now)
{
	struct err e = { 0 };
	if (!m->late)
		return false;
	if (!m->kept && source_late(m->source, &e) == ERR_BUSY)
		return true;
	m->kept = e.code == 0 && !fits(m->called, now);
	if (!m->kept)
		take_result(s, m, m->called, &e);
	return m->kept;
}

static void ask_member(struct set *s, struct set_member *m, const struct member_call *c)
{
	struct err e = { 0 };
	bool was_late = m->late;
	m->asked = false;
	if (is_late(s, m, c->kind))
		return;
	bool answered = was_late && !m->down && m->called == c->kind;
	m->asked = (c->kind == CALL_SCAN || !m->down) && fill_flags(s, m, c->which);
	if (!m->asked || answered)
		return;
	call_member(s, m, c, &e);
	take_result(s, m, c->kind, &e);
}

/* Gives places to the cards that are new in a member. */
static void place_cards(struct set *s, size_t member)
{
	struct set_member *m = &s->members[member];
	for (; m->n < m->source->n_cards; m->n++) {
		const struct card_reading *r = &m->source->cards[m->n];
		size_t n = s->base.n_cards;
		if (!array_one_more(&m->flags, m->n) || !array_one_more(&s->base.cards, n) ||
			!array_one_more(&s->places, n)) {
			source_log_no_room();
			return;
		}
		bool known = false;
		for (size_t i = 0; i < n && !known; i++)
			known = strcmp(s->base.cards[i].id.uuid, r->id.uuid) == 0;
		if (known)
			continue;
		s->places[n] = (struct set_place){ member, m->n };
		s->base.cards[s->base.n_cards++] = *r;
	}
}

static void join_cards(struct set *s)
{
	for (size_t i = 0; i < s->n_members; i++)
		if (s->members[i].source && !s->members[i].late)
			place_cards(s, i);
	for (size_t i = 0; i < s->base.n_cards; i++) {
		const struct set_member *m = &s->members[s->places[i].member];
		struct card_reading *r = &s->base.cards[i];
		*r = m->source->cards[s->places[i].card];
		if (m->down)
			source_lose_card(r, m->late ? CARD_CODE_STUCK : m->source->code);
	}
}

/* The place of a member's card in the set; n_cards: it is left out. */
static size_t place_of(const struct set *s, size_t member, size_t card)
{
	size_t i = 0;
	while (i < s->base.n_cards &&
		(s->places[i].member != member || s->places[i].card != card))
		i++;
	return i;
}

/* Collects the XIDs of the set's cards that were reported since the drain before. */
static void join_xids(struct set *s)
{
	s->base.n_xids = 0;
	for (size_t i = 0; i < s->n_members; i++) {
		const struct set_member *m = &s->members[i];
		for (size_t k = 0; m->asked && !m->down && k < m->source->n_xids; k++) {
			struct source_xid xid = m->source->xids[k];
			xid.card = place_of(s, i, xid.card);
			if (xid.card == s->base.n_cards)
				continue;
			if (!array_reserve(&s->xids, &s->cap_xids, s->base.n_xids + 1))
				return;
			s->base.xids = s->xids;
			s->xids[s->base.n_xids++] = xid;
		}
	}
}

/* The facts about the source as a whole. A period of 0 means at most a second. */
static void join_facts(struct set *s)
{
	struct source *base = &s->base;
	bool unknown_period = false;
	base->sample_period_us = base->ring_us = 0;
	base->memory_cost_us = base->energy_cost_us = 0;
	base->apart_cost_us = base->apart_wall_ms = 0;
	base->incomplete = false;
	for (size_t i = 0; i < s->n_members; i++) {
		const struct set_member *m = &s->members[i];
		const struct source *one = m->source;
		base->incomplete |= m->down;
		if (!one)
			continue;
		unknown_period |= one->sample_period_us == 0;
		if (one->sample_period_us > base->sample_period_us)
			base->sample_period_us = one->sample_period_us;
		if (one->ring_us > 0 && (!base->ring_us || one->ring_us < base->ring_us))
			base->ring_us = one->ring_us;
		base->memory_cost_us += m->down ? 0 : one->memory_cost_us;
		base->energy_cost_us += m->down ? 0 : one->energy_cost_us;
		base->apart_cost_us += one->apart_cost_us;
		if (m->asked && !m->down && one->apart_wall_ms > base->apart_wall_ms)
			base->apart_wall_ms = one->apart_wall_ms;
		if (!base->driver_version[0])
			str_copy(base->driver_version, VERSION_CAP, one->driver_version);
		if (!base->hostname[0])
			str_copy(base->hostname, sizeof(base->hostname), one->hostname);
	}
	if (unknown_period && base->sample_period_us < 1000000)
		base->sample_period_us = 0;
}

/* Returns 0 when a member answers; else the failure of the first member. */
static int judge_sources(struct set *s, struct err *e)
{
	const struct set_member *first = &s->members[0];
	for (size_t i = 0; i < s->n_members; i++)
		if (!s->members[i].down)
			return 0;
	s->base.code = first->source ? first->source->code : 0;
	*e = first->why;
	/* ERR_BUSY would mean that this call still goes on. */
	e->code = e->code == ERR_BUSY ? ERR_WORLD : e->code;
	return e->code;
}

static int ask(struct source *base, const struct member_call *c, struct err *e)
{
	struct set *s = (struct set *)base;
	for (size_t i = 0; i < s->n_members; i++)
		ask_member(s, &s->members[i], c);
	join_cards(s);
	join_facts(s);
	if (c->kind == CALL_DRAIN)
		join_xids(s);
	return judge_sources(s, e);
}

static int set_scan(struct source *base, struct err *e)
{
	return ask(base, &(struct member_call){ .kind = CALL_SCAN }, e);
}

static int set_drain(struct source *base, const bool *which, struct err *e)
{
	return ask(base, &(struct member_call){ .kind = CALL_DRAIN, .which = which }, e);
}

static int set_glance(struct source *base, unsigned what, struct err *e)
{
	return ask(base, &(struct member_call){ .kind = CALL_GLANCE, .what = what }, e);
}

static int set_look(struct source *base, const bool *which, struct err *e)
{
	return ask(base, &(struct member_call){ .kind = CALL_LOOK, .which = which }, e);
}

static bool set_describe(struct source *base, uint32_t pid, struct process_id *id)
{
	const struct set *s = (struct set *)base;
	for (size_t i = 0; i < s->n_members; i++) {
		struct source *one = s->members[i].source;
		if (one && one->ops->describe && one->ops->describe(one, pid, id))
			return true;
	}
	return false;
}

/* After a call of one member: if it has failed, the member's readings are no longer valid. */
static void check_member(struct set *s, struct set_member *m)
{
	struct err why = { 0 };
	if (source_unsaid(m->source, &why) == 0)
		return;
	take_result(s, m, CALL_OTHER, &why);
	join_cards(s);
	join_facts(s);
	judge_sources(s, &s->base.unsaid);
}

/* Finds the member that has a card, and the card's index there; NULL: the member is down. */
static struct set_member *find_member(struct set *s, size_t card, size_t *own)
{
	struct set_member *m = &s->members[s->places[card].member];
	*own = s->places[card].card;
	return m->down ? NULL : m;
}

static void set_metrics(struct source *base, const struct metric_request *request,
	double *values, metric_texts texts)
{
	struct set *s = (struct set *)base;
	struct metric_request own = *request;
	struct set_member *m = find_member(s, request->card, &own.card);
	if (!m || !m->source->ops->metrics)
		return;
	m->source->ops->metrics(m->source, &own, values, texts);
	base->cards[request->card] = m->source->cards[own.card];
	check_member(s, m);
}

static size_t set_accounts(
	struct source *base, size_t card, struct process_account *out, size_t max)
{
	struct set *s = (struct set *)base;
	size_t own;
	struct set_member *m = find_member(s, card, &own);
	if (!m || !m->source->ops->accounts)
		return 0;
	size_t n = m->source->ops->accounts(m->source, own, out, max);
	check_member(s, m);
	return n;
}

static void set_board(struct source *base, size_t card, struct card_id *id)
{
	struct set *s = (struct set *)base;
	size_t own;
	struct set_member *m = find_member(s, card, &own);
	if (!m || !m->source->ops->board)
		return;
	m->source->ops->board(m->source, own, id);
	check_member(s, m);
}

static size_t set_facilities(struct source *base, struct facility *rows, size_t max)
{
	const struct set *s = (struct set *)base;
	size_t n = 0;
	for (size_t i = 0; i < s->n_members; i++) {
		struct source *one = s->members[i].down ? NULL : s->members[i].source;
		if (one && one->ops->facilities)
			n += one->ops->facilities(one, rows + n, max - n);
	}
	return n;
}

static void set_close(struct source *base)
{
	struct set *s = (struct set *)base;
	for (size_t i = 0; i < s->n_members; i++) {
		source_close(s->members[i].source);
		free(s->members[i].flags);
	}
	free(s->places);
	free(s->xids);
	free(base->cards);
	free(s);
}

static const struct source_ops set_ops = {
	.scan = set_scan,
	.drain = set_drain,
	.glance = set_glance,
	.look = set_look,
	.describe = set_describe,
	.metrics = set_metrics,
	.accounts = set_accounts,
	.board = set_board,
	.facilities = set_facilities,
	.close = set_close,
};

int source_set_open(struct source **source, const struct source_list *list,
	const struct source_options *options, struct err *e)
{
	struct set *s = calloc(1, sizeof(*s));
	if (!s)
		return err_memory(e);
	source_list_text(list, s->name, sizeof(s->name));
	s->ops = set_ops;
	s->ops.name = s->name;
	s->base.ops = &s->ops;
	s->options = *options;
	for (size_t i = 0; i < list->n; i++)
		s->members[s->n_members++].kind = list->kinds[i];
	int rc = set_scan(&s->base, e);
	/* A wrong option is the user's error: it is reported even when other members answer. */
	for (size_t i = 0; !rc && i < s->n_members; i++)
		if (s->members[i].down && s->members[i].why.code == ERR_USAGE) {
			*e = s->members[i].why;
			rc = ERR_USAGE;
		}
	if (rc) {
		set_close(&s->base);
		return rc;
	}
	*source = &s->base;
	return 0;
}
