/* Runs in the process that opens a source and serves its calls. */
#include "driver/host/apart_site.h"

void apart_serve_begin(void *context, struct helper_place *unused)
{
	struct apart_serving *v = context;
	(void)unused;
	v->options.avoids = &v->avoids;
	v->cost_us = clock_cost_us(v->options.clock);
}

void apart_serve_end(void *context)
{
	struct apart_serving *v = context;
	source_close(v->source);
}

static void read_avoids(struct apart_serving *v, struct wire *in)
{
	v->avoids.n = (size_t)wire_read_number(in, 0, SOURCE_AVOID_MAX);
	for (size_t i = 0; i < v->avoids.n; i++)
		wire_read_form(in, &v->avoids.cards[i], &wire_avoid);
}

/* Reads flags for the cards that this process has; NULL: all. */
static const bool *read_flags(struct apart_serving *v, struct wire *in)
{
	size_t n_cards = v->source->n_cards;
	int64_t n = wire_read_number(in, APART_ALL, (int64_t)n_cards);
	if (n == APART_ALL || !array_reserve(&v->flags, &v->cap_flags, n_cards + 1))
		return NULL;
	for (size_t i = 0; i < n_cards; i++) {
		unsigned char flag = 0;
		if ((int64_t)i < n)
			wire_read(in, &flag, 1);
		v->flags[i] = flag != 0;
	}
	return v->flags;
}

static int call_source(struct apart_serving *v, enum apart_call call, struct wire *in,
	struct wire_fresh *fresh, struct err *e)
{
	struct source *s = v->source;
	int rc;
	if (call != APART_OPEN && !s)
		return err_set(e, ERR_WORLD, "the source is not open");
	switch (call) {
	case APART_OPEN:
		read_avoids(v, in);
		if (v->kind->open(&v->source, &v->options, e) != 0)
			v->source = NULL;
		return v->source ? 0 : e->code;
	case APART_SCAN:
		read_avoids(v, in);
		fresh->drained = fresh->looked = true;
		return source_scan(s, e);
	case APART_DRAIN:
		s->drains = (unsigned)wire_read_number(in, 0, DRAIN_ALL);
		fresh->drained_cards = read_flags(v, in);
		fresh->drained = true;
		return source_drain(s, fresh->drained_cards, e);
	case APART_GLANCE:
		return source_glance(s, (unsigned)wire_read_number(in, 0, UINT16_MAX), e);
	case APART_LOOK:
		fresh->looked_cards = read_flags(v, in);
		fresh->looked = true;
		return source_look(s, fresh->looked_cards, e);
	case APART_METRICS:
		fresh->drained = fresh->looked = wire_read_number(in, 0, 1) != 0;
		s->drains = (unsigned)wire_read_number(in, 0, DRAIN_ALL);
		rc = fresh->drained ? source_drain(s, NULL, e) : 0;
		return rc || !fresh->looked ? rc : source_look(s, NULL, e);
	default:
		return 0;
	}
}

static void answer_metrics_of(struct apart_serving *v, struct wire *in, struct str *reply)
{
	static const uint64_t unread = APART_UNREAD;
	static const char unread_text = 1;
	unsigned char wanted[METRIC_COUNT];
	double values[METRIC_COUNT];
	metric_texts texts;
	struct source *s = v->source;
	struct metric_request request = { .wanted = wanted };
	request.card = (size_t)wire_read_number(in, 0, (int64_t)s->n_cards - 1);
	request.board = wire_read_number(in, 0, 1) != 0;
	wire_read(in, wanted, sizeof(wanted));
	if (in->bad)
		return;
	for (int m = 0; m < METRIC_COUNT; m++)
		memcpy(&values[m], &unread, sizeof(unread));
	for (int m = 0; m < METRIC_DRIVER_TEXTS; m++)
		texts[m][0] = unread_text;
	if (s->ops->metrics && s->cards[request.card].status == CARD_STATUS_OK)
		s->ops->metrics(s, &request, values, texts);
	for (int m = 0; m < METRIC_COUNT; m++)
		if (wanted[m])
			wire_write(reply, &values[m], sizeof(values[m]));
	for (int m = 0; m < METRIC_DRIVER_TEXTS; m++)
		if (wanted[m]) {
			bool read = texts[m][0] != unread_text;
			wire_write_number(reply, read);
			wire_write_text(reply, read ? texts[m] : "");
		}
}

static void answer_accounts(struct apart_serving *v, struct wire *in, struct str *reply)
{
	struct source *s = v->source;
	size_t card = (size_t)wire_read_number(in, 0, (int64_t)s->n_cards - 1);
	size_t max = (size_t)wire_read_number(in, 0, APART_ACCOUNTS_MAX), n = 0;
	struct process_account *found = calloc(max + 1, sizeof(*found));
	if (!in->bad && found && s->ops->accounts)
		n = s->ops->accounts(s, card, found, max);
	wire_write_number(reply, (int64_t)n);
	wire_write(reply, found, n * sizeof(*found));
	reply->failed |= !found;
	free(found);
}

static void answer_facilities(struct apart_serving *v, struct str *reply)
{
	struct facility rows[APART_FACILITIES_MAX];
	size_t n = v->source->ops->facilities(v->source, rows, APART_FACILITIES_MAX);
	wire_write_number(reply, (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		wire_write_text(reply, rows[i].job);
		wire_write_text(reply, rows[i].how);
		wire_write_text(reply, rows[i].note);
		wire_write_number(reply, rows[i].fallback);
		wire_write_number(reply, rows[i].works);
	}
}

/* Appends the call's own answer. */
static void answer(
	struct apart_serving *v, enum apart_call call, struct wire *in, struct str *reply)
{
	if (call == APART_METRICS) {
		struct str all = { 0 };
		for (int64_t n = wire_read_number(in, 0, INT32_MAX); n > 0 && !in->bad; n--)
			answer_metrics_of(v, in, &all);
		wire_write_number(reply, (int64_t)all.len);
		wire_write(reply, str_text(&all), all.len);
		reply->failed |= all.failed;
		str_finish(&all);
	}
	if (call == APART_BOARD) {
		struct source *s = v->source;
		size_t card = (size_t)wire_read_number(in, 0, (int64_t)s->n_cards - 1);
		struct card_id id = { 0 };
		if (!in->bad) {
			id = s->cards[card].id;
			if (s->ops->board)
				s->ops->board(s, card, &id);
			wire_write_form(reply, &id, &wire_id);
		}
	}
	if (call == APART_ACCOUNTS)
		answer_accounts(v, in, reply);
	if (call == APART_FACILITIES)
		answer_facilities(v, reply);
}

static void serve_call(
	struct apart_serving *v, enum apart_call call, struct wire *in, struct str *reply)
{
	struct wire_fresh fresh = { 0 };
	struct str answered = { 0 };
	struct err e = { 0 };
	e.code = call_source(v, call, in, &fresh, &e);
	if (!e.code)
		answer(v, call, in, &answered);
	int64_t wall_ms = clock_wall_ms(v->options.clock);
	wire_write_err(reply, &e);
	wire_write_number(reply, v->source != NULL);
	if (v->source)
		wire_write_source(reply, v->source, &v->sent, &fresh);
	wire_write(reply, str_text(&answered), answered.len);
	reply->failed |= answered.failed;
	str_finish(&answered);
	int64_t cost_us = clock_cost_us(v->options.clock);
	wire_write_number(reply, cost_us - v->cost_us);
	wire_write_number(reply, wall_ms);
	v->cost_us = cost_us;
}

/* From here on: makes rounds in the process of the source. On a patrol it glances at the pace
 * that its owner has set, and returns early when the owner must know something at once. */

/* A patrol ends when the results kept for the owner are larger than this. */
#define REPLY_MOST ((size_t)1 << 20)

static bool read_request(struct apart_serving *v, struct wire *in, struct err *e)
{
	struct round *r = v->round;
	v->source->drains = (unsigned)wire_read_number(in, 0, DRAIN_ALL);
	wire_read_form(in, r, &wire_asked);
	size_t n = (size_t)wire_read_number(in, 0, (int64_t)v->source->n_cards);
	if (round_reserve(r, v->source->n_cards, e) != 0)
		return false;
	for (size_t i = 0; i < r->n_cards; i++) {
		r->cards[i] = (struct round_card){ .want = true,
			.mem_bytes = UNKNOWN_BYTES,
			.temperature_c = NAN,
			.power_limit_w = NAN };
		if (i < n)
			wire_read_form(in, &r->cards[i], &wire_wanted);
	}
	r->scan = false;
	return !in->bad;
}

/* The state of the source, with the arrays that this round has read. */
static void write_source(struct apart_serving *v, struct str *reply)
{
	const struct round *r = v->round;
	struct wire_fresh fresh = { .drained = r->drained, .looked = r->looks };
	if (!array_reserve(&v->flags, &v->cap_flags, r->n_cards + 1)) {
		reply->failed = true;
		return;
	}
	for (size_t i = 0; i < r->n_cards; i++)
		v->flags[i] = r->cards[i].drained;
	fresh.drained_cards = r->drain ? NULL : v->flags;
	fresh.looked_cards = r->look_all ? NULL : r->flags;
	wire_write_source(reply, v->source, &v->sent, &fresh);
}

/* Whether a card has come, gone or changed its status since the last reply to the owner. */
static bool has_news(const struct apart_serving *v)
{
	const struct source *s = v->source;
	bool news = s->n_cards != v->sent.n;
	for (size_t i = 0; i < s->n_cards && !news; i++) {
		const struct card_reading *was = &v->sent.cards[i], *now = &s->cards[i];
		news = now->status != was->status || now->code != was->code ||
		       now->gone != was->gone;
	}
	return news;
}

/* Makes one round and adds it to the reply. True: the owner must know now. */
static bool make_round(struct apart_serving *v, bool due, struct str *reply)
{
	struct round *r = v->round;
	struct err e = { 0 };
	bool incomplete = v->source->incomplete;
	int rc = round_run(v->source, r, &e);
	source_place_set(v->options.place, -1, "");
	e.code = rc;
	wire_write_err(reply, &e);
	if (rc)
		return true;
	bool tell =
		has_news(v) || r->looks || !r->glanced || incomplete != v->source->incomplete;
	r->due = due;
	wire_write_form(reply, r, &wire_made);
	write_source(v, reply);
	for (size_t i = 0; i < r->n_cards; i++) {
		wire_write_form(reply, &r->cards[i], &wire_done);
		if (r->look_all)
			wire_write_form(reply, &r->cards[i], &wire_slow);
	}
	return tell || reply->len > REPLY_MOST || reply->failed;
}

static void set_due(struct apart_serving *v, int64_t wait_us)
{
	int64_t due_us = clock_monotonic_us() + (wait_us > 0 ? wait_us : 0);
	if (v->options.place)
		__atomic_store_n(&v->options.place->due_us, due_us, __ATOMIC_RELAXED);
}

/* Waits until a moment. False: the owner wants an answer now, or has ended. */
static bool wait_until(struct apart_serving *v, int64_t until_us)
{
	struct clock *clock = v->options.clock;
	int64_t now_us = clock_now(clock).boot_us;
	set_due(v, clock_is_virtual(clock) ? 0 : until_us - now_us);
	while (now_us < until_us) {
		struct pollfd fds[] = { { .fd = HELPER_FD, .events = POLLIN },
			{ .fd = v->wake_fd, .events = POLLIN } };
		if (clock_wait(clock, until_us, fds, 2) > 0)
			return false;
		now_us = clock_now(clock).boot_us;
	}
	return true;
}

/* After a long time without a reading, lists are read even if used memory is the same. */
static void check_stall(struct round *r, int64_t now_us)
{
	r->look_all |= now_us - r->patrol.begun_us > round_pace_stall_us(&r->patrol.pace);
	r->patrol.begun_us = now_us;
}

/* Makes a glance of the patrol. True: the patrol ends. */
static bool glance(struct apart_serving *v, struct str *reply)
{
	struct round *r = v->round;
	struct patrol *p = &r->patrol;
	int64_t now_us = clock_now(v->options.clock).boot_us;
	int64_t before_us = clock_monotonic_us();
	r->drain = r->look_all = false;
	round_pace_ask(&p->pace, now_us, r);
	check_stall(r, now_us);
	bool ends = make_round(v, false, reply);
	round_pace_done(&p->pace, r->ended_us, r, r->ended_us - r->begun_us);
	struct moment now = clock_now(v->options.clock);
	bool suspended = !ends && clock_watch_suspend_us(&p->clocks, &now) != 0;
	bool stepped = !ends && clock_watch_step_us(&p->clocks, &now) != 0;
	return ends || suspended || stepped ||
	       clock_monotonic_us() - before_us >= p->deadline_ms * 1000;
}

/* Glances until the round is due. False: the patrol ended early. */
static bool patrol(struct apart_serving *v, struct str *reply)
{
	const struct patrol *p = &v->round->patrol;
	const struct round asked = *v->round;
	while (p->pace.next_glance_us < p->until_us) {
		if (!wait_until(v, p->pace.next_glance_us))
			return false;
		if (clock_now(v->options.clock).boot_us >= p->until_us)
			break;
		if (glance(v, reply))
			return false;
	}
	if (!wait_until(v, p->until_us))
		return false;
	v->round->drain = asked.drain;
	v->round->look_all = asked.look_all;
	v->round->energy = asked.energy;
	v->round->shared = asked.shared;
	check_stall(v->round, clock_now(v->options.clock).boot_us);
	return !p->only;
}

/* Serves APART_ROUND. */
static void apart_serve_round(struct apart_serving *v, struct wire *in, struct str *reply)
{
	struct err e = { 0 };
	if (!v->source)
		err_set(&e, ERR_WORLD, "the source is not open");
	else if (!v->round)
		round_new(&v->round, v->options.clock, &e);
	if (!e.code && !read_request(v, in, &e) && !e.code)
		err_set(&e, ERR_WORLD, "the request makes no sense");
	if (e.code) {
		wire_write_err(reply, &e);
		return;
	}
	bool on_patrol = v->round->patrol.until_us != 0;
	set_due(v, 0);
	if (!on_patrol || patrol(v, reply))
		make_round(v, on_patrol, reply);
	v->cost_us = clock_cost_us(v->options.clock);
}

void apart_serve(void *context, const struct str *request, struct str *reply)
{
	struct apart_serving *v = context;
	struct wire in = { .bytes = str_text(request), .left = request->len };
	enum apart_call call = (enum apart_call)wire_read_number(&in, 0, APART_CALLS - 1);
	if (call == APART_ROUND)
		apart_serve_round(v, &in, reply);
	else
		serve_call(v, call, &in, reply);
	source_place_set(v->options.place, -1, "");
}
