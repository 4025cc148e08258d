/* A source whose calls a helper makes: passes each call to it, and mirrors what it answers. */
#include "driver/host/apart_site.h"

/* Begins a request. */
static struct str *apart_source_begin(struct apart_source *s, enum apart_call call)
{
	str_clear(&s->request);
	s->request.failed = false;
	s->n_expected = 0;
	wire_write_number(&s->request, call);
	return &s->request;
}

static void add_flags(struct apart_source *s, struct str *out, const bool *which)
{
	wire_write_number(out, which ? (int64_t)s->n_at : APART_ALL);
	for (size_t i = 0; which && i < s->n_at; i++) {
		unsigned char flag = s->at[i] != NOWHERE && which[s->at[i]];
		wire_write(out, &flag, 1);
	}
}

/* Finds the place of a card that the helper reports for the first time. A card that cannot be
 * asked may have no UUID in the helper; it is found by its index. */
static size_t find_place(const struct apart_source *s, const struct card_reading *r)
{
	const struct card_reading *cards = s->base.cards;
	size_t n = s->base.n_cards;
	for (size_t i = 0; i < n; i++)
		if (strcmp(cards[i].id.uuid, r->id.uuid) == 0)
			return i;
	for (size_t i = 0; i < n; i++) {
		bool same = cards[i].id.index == r->id.index;
		if (same && r->status != CARD_STATUS_OK)
			return NOWHERE;
		if (same && !card_has_uuid(&cards[i].id) && r->id.mig_index < 0)
			return i;
	}
	return n;
}

/* Gives a card of the helper its place: it is a new card, or one that answers again. */
static bool place_card(struct apart_source *s, size_t card)
{
	const struct card_reading *r = &s->mirror.source.cards[card];
	bool is_new = card == s->n_at;
	if (!is_new && (s->at[card] != NOWHERE || r->status != CARD_STATUS_OK))
		return true;
	size_t place = find_place(s, r);
	if (is_new && !array_one_more(&s->at, card))
		return false;
	if (place == s->base.n_cards) {
		if (!array_one_more(&s->base.cards, place))
			return false;
		s->base.cards[place] = *r;
		s->base.n_cards++;
	}
	s->at[card] = place;
	s->n_at += is_new;
	return true;
}

/* Finds the helper's number of a card; NOWHERE: the helper does not have it. */
static size_t find_card(const struct apart_source *s, size_t place)
{
	for (size_t i = 0; i < s->n_at; i++)
		if (s->at[i] == place)
			return i;
	return NOWHERE;
}

/* A card that the helper avoids has no name there, but may have one here. */
static void name_avoided(const struct apart_source *s, struct card_id *id)
{
	for (size_t i = 0; !card_has_uuid(id) && i < s->told.n; i++) {
		const struct source_avoid *one = &s->told.cards[i];
		if (one->index != id->index || !one->uuid[0])
			continue;
		str_copy(id->uuid, UUID_CAP, one->uuid);
		str_copy(id->name, CARD_NAME_CAP, one->name);
		str_copy(id->pci, PCI_CAP, one->pci);
	}
}

static bool join_cards(struct apart_source *s)
{
	const struct source *from = &s->mirror.source;
	for (size_t i = 0; i < from->n_cards; i++)
		if (!place_card(s, i))
			return false;
	for (size_t i = 0; i < s->n_at; i++) {
		if (s->at[i] == NOWHERE)
			continue;
		s->base.cards[s->at[i]] = from->cards[i];
		name_avoided(s, &s->base.cards[s->at[i]].id);
	}
	for (size_t i = 0; i < s->base.n_cards; i++) {
		struct card_reading *r = &s->base.cards[i];
		if (find_card(s, i) != NOWHERE)
			continue;
		source_lose_card(r, source_is_avoided(&s->told, r->id.index, r->id.pci)
					    ? CARD_CODE_STUCK
					    : 0);
	}
	return true;
}

static bool join_xids(struct apart_source *s)
{
	const struct source *from = &s->mirror.source;
	s->base.n_xids = 0;
	if (!array_reserve(&s->xids, &s->cap_xids, from->n_xids))
		return false;
	s->base.xids = s->xids;
	for (size_t i = 0; i < from->n_xids; i++) {
		struct source_xid xid = from->xids[i];
		xid.card = s->at[xid.card];
		if (xid.card != NOWHERE)
			s->xids[s->base.n_xids++] = xid;
	}
	return true;
}

/* Notes the names of the cards on which a process is stuck: the index of a card may change, and
 * the next process cannot ask the card. */
static void name_stuck(struct apart_source *s)
{
	for (size_t i = 0; i < s->site->left.n_cards; i++) {
		struct source_avoid *card = &s->site->left.cards[i].card;
		for (size_t k = 0; !card->uuid[0] && k < s->base.n_cards; k++) {
			const struct card_id *id = &s->base.cards[k].id;
			if (id->index != card->index || id->mig_index >= 0 ||
				!card_has_uuid(id))
				continue;
			str_copy(card->pci, PCI_CAP, id->pci);
			str_copy(card->uuid, UUID_CAP, id->uuid);
			str_copy(card->name, CARD_NAME_CAP, id->name);
		}
	}
}

/* Forgets the helper's arrays, because the helper has ended. */
static void apart_source_forget(struct apart_source *s)
{
	name_stuck(s);
	s->rounds = (struct wire){ 0 };
	wire_mirror_finish(&s->mirror);
	s->n_at = 0;
	s->open = false;
	s->base.n_xids = 0;
	for (size_t i = 0; i < s->base.n_cards; i++) {
		struct card_reading *r = &s->base.cards[i];
		enum card_status status = r->status;
		source_lose_card(r, r->code);
		r->status = status;
	}
}

/* Ends the helper, because its answer makes no sense. Returns ERR_WORLD. */
static int apart_source_refuse(struct apart_source *s, struct err *e)
{
	int rc = apart_site_refuse(s->site, e);
	apart_source_forget(s);
	return rc;
}

/* Reads the state of the helper's source from an answer; false: it makes no sense. */
static bool apart_source_read(struct apart_source *s, struct wire *in)
{
	if (!wire_mirror_read(&s->mirror, in))
		return false;
	in->bad |= !join_cards(s) || !join_xids(s);
	const struct source *from = &s->mirror.source;
	struct source *base = &s->base;
	str_copy(base->driver_version, VERSION_CAP, from->driver_version);
	str_copy(base->hostname, sizeof(base->hostname), from->hostname);
	base->sample_period_us = from->sample_period_us;
	base->code = from->code;
	base->incomplete = from->incomplete;
	base->ring_us = from->ring_us;
	base->memory_cost_us = from->memory_cost_us;
	base->energy_cost_us = from->energy_cost_us;
	return !in->bad;
}

/* Reads the common part of a reply: what the call returned and the state of the source. Or
 * handles the failure to get a reply. */
static int take_reply(
	struct apart_source *s, int rc, const struct str *reply, struct wire *in, struct err *e)
{
	struct err got;
	if (rc) {
		if (!s->site->helper)
			apart_source_forget(s);
		return rc;
	}
	*in = (struct wire){ .bytes = str_text(reply), .left = reply->len };
	rc = wire_read_err(in, &got);
	s->open = wire_read_number(in, 0, 1) != 0;
	if (s->open)
		apart_source_read(s, in);
	return rc ? err_number(e, err_set(e, rc, "%s", got.text), got.number) : 0;
}

/* Sends the request and reads the state; `in` is then at the call's own answer. For a call that
 * returns no code, `e` is base.unsaid. */
static int exchange(struct apart_source *s, struct wire *in, struct err *e)
{
	const struct str *reply = NULL;
	s->plain = false;
	int rc = apart_site_ask(s->site, &s->request, &reply, e);
	return take_reply(s, rc, reply, in, e);
}

/* Reads the end of a reply: what the call cost, and when it ended. */
static int finish(struct apart_source *s, struct wire *in, int rc, struct err *e)
{
	if (!s->site->helper || s->site->busy)
		return rc;
	int64_t cost_us = wire_read_number(in, 0, INT64_MAX / 2);
	int64_t wall_ms = wire_read_number(in, INT64_MIN, INT64_MAX);
	if (in->bad)
		return apart_source_refuse(s, e);
	if (!clock_is_virtual(s->site->options.clock))
		s->base.apart_cost_us += cost_us;
	s->base.apart_wall_ms = wall_ms;
	return rc;
}

static int call(struct apart_source *s, struct err *e)
{
	struct wire in = { 0 };
	int rc = exchange(s, &in, e);
	s->plain = true;
	return finish(s, &in, rc, e);
}

/* The own answer of a call that was late is no longer needed. */
static int apart_late(struct source *base, struct err *e)
{
	struct apart_source *s = (struct apart_source *)base;
	const struct str *reply = NULL;
	struct wire in = { 0 };
	int rc = apart_site_late(s->site, &reply, e);
	rc = take_reply(s, rc, reply, &in, e);
	if (s->plain)
		return finish(s, &in, rc, e);
	return in.bad ? apart_source_refuse(s, e) : rc;
}

static int apart_scan(struct source *base, struct err *e)
{
	struct apart_source *s = (struct apart_source *)base;
	int rc = apart_site_start(s->site, e);
	if (rc < 0)
		return rc;
	if (rc > 0)
		apart_source_forget(s);
	struct str *out = apart_source_begin(s, s->open ? APART_SCAN : APART_OPEN);
	apart_site_avoids(s->site, &s->told);
	wire_write_number(out, (int64_t)s->told.n);
	for (size_t i = 0; i < s->told.n; i++) {
		struct source_avoid *one = &s->told.cards[i];
		for (size_t k = 0; !one->pci[0] && k < s->base.n_cards; k++)
			if (s->base.cards[k].id.index == one->index)
				str_copy(one->pci, PCI_CAP, s->base.cards[k].id.pci);
		wire_write_form(out, one, &wire_avoid);
	}
	return call(s, e);
}

static int apart_drain(struct source *base, const bool *which, struct err *e)
{
	struct apart_source *s = (struct apart_source *)base;
	struct str *out = apart_source_begin(s, APART_DRAIN);
	wire_write_number(out, base->drains);
	add_flags(s, out, which);
	return call(s, e);
}

static int apart_glance(struct source *base, unsigned what, struct err *e)
{
	struct apart_source *s = (struct apart_source *)base;
	wire_write_number(apart_source_begin(s, APART_GLANCE), what);
	return call(s, e);
}

static int apart_look(struct source *base, const bool *which, struct err *e)
{
	struct apart_source *s = (struct apart_source *)base;
	add_flags(s, apart_source_begin(s, APART_LOOK), which);
	return call(s, e);
}

/* Begins a call about one card; false: the helper does not have it. */
static bool begin_card(struct apart_source *s, enum apart_call which, size_t place)
{
	size_t card = find_card(s, place);
	if (card != NOWHERE)
		wire_write_number(apart_source_begin(s, which), (int64_t)card);
	return card != NOWHERE;
}

/* Asks for all of them. Cards that the helper does not have are left out, here and when the
 * answers are read. */
static int apart_expect(struct source *base, const struct metric_request *requests, size_t n,
	bool refresh, struct err *e)
{
	struct apart_source *s = (struct apart_source *)base;
	struct wire in = { 0 };
	size_t n_known = 0;
	for (size_t i = 0; i < n; i++)
		n_known += find_card(s, requests[i].card) != NOWHERE;
	if (n_known == 0 && !refresh)
		return 0;
	wire_write_number(apart_source_begin(s, APART_METRICS), refresh);
	wire_write_number(&s->request, base->drains);
	wire_write_number(&s->request, (int64_t)n_known);
	for (size_t i = 0; i < n; i++) {
		size_t card = find_card(s, requests[i].card);
		if (card == NOWHERE)
			continue;
		wire_write_number(&s->request, (int64_t)card);
		wire_write_number(&s->request, requests[i].board);
		wire_write(&s->request, requests[i].wanted, METRIC_COUNT);
	}
	int rc = exchange(s, &in, e);
	if (rc)
		return finish(s, &in, rc, e);
	size_t len = (size_t)wire_read_number(&in, 0, (int64_t)in.left);
	s->metrics = (struct wire){ .bytes = in.bytes, .left = len };
	in.bytes += len;
	in.left -= len;
	rc = finish(s, &in, 0, e);
	s->expected = requests;
	s->n_expected = rc ? 0 : n;
	return rc;
}

static void read_metrics(
	struct wire *in, const unsigned char *wanted, double *values, metric_texts texts)
{
	static const uint64_t unread = APART_UNREAD;
	for (int m = 0; m < METRIC_COUNT; m++) {
		double got;
		if (!wanted[m])
			continue;
		wire_read(in, &got, sizeof(got));
		if (!in->bad && memcmp(&got, &unread, sizeof(got)) != 0)
			values[m] = got;
	}
	for (int m = 0; m < METRIC_DRIVER_TEXTS; m++) {
		char got[METRIC_TEXT_CAP];
		if (!wanted[m])
			continue;
		bool read = wire_read_number(in, 0, 1) != 0;
		wire_read_text(in, got, sizeof(got));
		if (!in->bad && read)
			str_copy(texts[m], METRIC_TEXT_CAP, got);
	}
}

static bool is_same(const struct metric_request *a, const struct metric_request *b)
{
	return a->card == b->card && a->board == b->board && a->wanted == b->wanted;
}

static void apart_metrics(struct source *base, const struct metric_request *request,
	double *values, metric_texts texts)
{
	struct apart_source *s = (struct apart_source *)base;
	if (s->n_expected == 0 || !is_same(s->expected, request))
		apart_expect(base, request, 1, false, &base->unsaid);
	if (s->n_expected == 0)
		return;
	s->expected++;
	s->n_expected--;
	if (find_card(s, request->card) != NOWHERE)
		read_metrics(&s->metrics, request->wanted, values, texts);
	if (s->metrics.bad)
		apart_source_refuse(s, &base->unsaid);
}

static void apart_board(struct source *base, size_t card, struct card_id *id)
{
	struct apart_source *s = (struct apart_source *)base;
	struct wire in = { 0 };
	struct card_id got = { 0 };
	if (!begin_card(s, APART_BOARD, card) || exchange(s, &in, &base->unsaid) != 0)
		return;
	wire_read_form(&in, &got, &wire_id);
	if (finish(s, &in, 0, &base->unsaid) == 0)
		*id = got;
}

static size_t apart_accounts(
	struct source *base, size_t card, struct process_account *out, size_t max)
{
	struct apart_source *s = (struct apart_source *)base;
	struct wire in = { 0 };
	if (!begin_card(s, APART_ACCOUNTS, card))
		return 0;
	max = max < APART_ACCOUNTS_MAX ? max : APART_ACCOUNTS_MAX;
	wire_write_number(&s->request, (int64_t)max);
	if (exchange(s, &in, &base->unsaid) != 0)
		return 0;
	size_t n = (size_t)wire_read_number(&in, 0, (int64_t)max);
	wire_read(&in, out, n * sizeof(*out));
	return finish(s, &in, 0, &base->unsaid) == 0 ? n : 0;
}

static size_t apart_facilities(struct source *base, struct facility *rows, size_t max)
{
	struct apart_source *s = (struct apart_source *)base;
	struct wire in = { 0 };
	struct facility row;
	apart_source_begin(s, APART_FACILITIES);
	if (exchange(s, &in, &base->unsaid) != 0)
		return 0;
	size_t n = (size_t)wire_read_number(&in, 0, APART_FACILITIES_MAX), kept = 0;
	for (size_t i = 0; i < n && !in.bad; i++) {
		char job[APART_HOW_CAP], how[APART_HOW_CAP];
		wire_read_text(&in, job, sizeof(job));
		wire_read_text(&in, how, sizeof(how));
		wire_read_text(&in, row.note, sizeof(row.note));
		row.fallback = wire_read_number(&in, 0, 1) != 0;
		row.works = wire_read_number(&in, 0, 1) != 0;
		row.job = arena_text(&s->texts, job);
		row.how = arena_text(&s->texts, how);
		in.bad |= s->texts.failed;
		if (!in.bad && kept < max)
			rows[kept++] = row;
	}
	return finish(s, &in, 0, &base->unsaid) == 0 ? kept : 0;
}

static void apart_close(struct source *base)
{
	struct apart_source *s = (struct apart_source *)base;
	if (s->open || s->site->busy)
		apart_site_end(s->site);
	name_stuck(s);
	wire_mirror_finish(&s->mirror);
	free(s->at);
	free(s->xids);
	str_finish(&s->request);
	arena_finish(&s->texts);
	free(base->cards);
	free(s);
}

static const struct source_ops apart_ops = {
	.scan = apart_scan,
	.drain = apart_drain,
	.glance = apart_glance,
	.look = apart_look,
	.metrics = apart_metrics,
	.expect = apart_expect,
	.accounts = apart_accounts,
	.board = apart_board,
	.late = apart_late,
	.facilities = apart_facilities,
	.close = apart_close,
};

bool apart_source_can_round(const struct source *s)
{
	return s->ops->close == apart_close;
}

int apart_source_open(struct source **source, struct apart_site *site, struct err *e)
{
	struct apart_source *s = calloc(1, sizeof(*s));
	if (!s)
		return err_memory(e);
	s->ops = apart_ops;
	s->ops.name = site->kind->name;
	s->base.ops = &s->ops;
	s->site = site;
	int rc = apart_scan(&s->base, e);
	if (!rc && !s->open)
		rc = apart_site_refuse(site, e);
	if (rc == ERR_BUSY && site->options.shared) {
		*source = &s->base;
		return rc;
	}
	if (rc) {
		apart_close(&s->base);
		return rc;
	}
	*source = &s->base;
	return 0;
}

/* Passes a round, and the patrol before it, to the helper of a source, and takes the rounds
 * that the helper has made.
 *
 * A request: whether power is wanted, the round, the number of cards and what is wanted of
 * each. An answer: rounds until it ends. Each round is an error code (a round with an error is
 * the last); the round; the state of the source; and what was done with each of its cards, with
 * the values that change slowly if all cards were looked at. */

int apart_source_round(struct source *base, struct round *r, struct err *e)
{
	struct apart_source *s = (struct apart_source *)base;
	const struct str *reply = NULL;
	int64_t left_us = r->patrol.until_us - clock_now(r->clock).boot_us;
	s->rounds = (struct wire){ 0 };
	if (r->scan) {
		int rc = source_scan(base, e);
		if (rc)
			return rc;
	}
	struct str *out = apart_source_begin(s, APART_ROUND);
	wire_write_number(out, s->base.drains);
	wire_write_form(out, r, &wire_asked);
	wire_write_number(out, (int64_t)s->n_at);
	for (size_t i = 0; i < s->n_at; i++) {
		/* A card without a place has not been seen yet. */
		struct round_card unseen = { .want = true, .mem_bytes = UNKNOWN_BYTES };
		bool seen = s->at[i] < r->n_cards;
		wire_write_form(out, seen ? &r->cards[s->at[i]] : &unseen, &wire_wanted);
	}
	if (!s->site->busy)
		s->site->patrol_us = left_us > 0 && !clock_is_virtual(r->clock) ? left_us : 0;
	int rc = apart_site_ask(s->site, &s->request, &reply, e);
	if (rc && !s->site->helper)
		apart_source_forget(s);
	if (!rc)
		s->rounds = (struct wire){ .bytes = str_text(reply), .left = reply->len };
	return rc;
}

/* Reads the results of a card. What was requested after the round was made is still wanted,
 * unless the round has just done it. */
static void take_card(
	struct round_card *c, const struct card_reading *r, const struct round_card *got)
{
	c->drained = got->drained;
	c->looked = got->looked;
	c->want = got->want || (c->want && !got->looked);
	if (c->looked)
		c->mem_bytes = r->mem_used_bytes;
}

static void read_cards(struct apart_source *s, struct wire *in, struct round *r)
{
	for (size_t i = 0; i < s->n_at && !in->bad; i++) {
		struct round_card unused = { 0 }, got = { 0 };
		struct round_card *c = s->at[i] == NOWHERE ? &unused : &r->cards[s->at[i]];
		wire_read_form(in, &got, &wire_done);
		take_card(c, &s->mirror.source.cards[i], &got);
		if (r->look_all)
			wire_read_form(in, c, &wire_slow);
	}
	/* A card that the helper does not have gets what the round does with a lost card. */
	for (size_t i = 0; i < s->base.n_cards; i++) {
		struct round_card *c = &r->cards[i];
		if (find_card(s, i) != NOWHERE)
			continue;
		const struct round_card lost = { .want = true,
			.drained = r->drain || (r->shared && c->shared),
			.looked = r->looks && r->look_all };
		take_card(c, &s->base.cards[i], &lost);
		c->temperature_c = c->power_limit_w = NAN;
	}
}

int apart_source_round_next(struct source *base, struct round *r, struct err *e)
{
	struct apart_source *s = (struct apart_source *)base;
	struct wire *in = &s->rounds;
	if (!in->left)
		return 0;
	struct err got;
	int rc = wire_read_err(in, &got);
	if (rc) {
		rc = err_number(e, err_set(e, rc, "%s", got.text), got.number);
	} else {
		wire_read_form(in, r, &wire_made);
		if (apart_source_read(s, in))
			rc = round_reserve(r, base->n_cards, e);
		if (!in->bad && !rc)
			read_cards(s, in, r);
	}
	if (in->bad)
		return apart_source_refuse(s, e);
	if (rc)
		in->left = 0;
	r->more = in->left > 0;
	return rc ? rc : 1;
}
