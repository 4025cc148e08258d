/* Random samples and holders, accounted, against a model that judges each millisecond by
 * itself: which holders are there, what the sample says of it, and to whom the time belongs.
 * Which part of a sample is use is cover_of()'s to say: test_cover.c. */
#include "account_fixture.h"

enum { HOLDERS = 12, USERS = 3, DRAINS = 60, MAX_SAMPLES = 40, MAX_MOMENTS = 4000, SLOTS = 40 };
enum { HOLD_MS = 2000, PERIOD_MS = 200 };

static const struct rules rules = RULES_DEFAULT;

/* A sample, or (with blind) the moment up to which nothing more comes. */
struct happening {
	int64_t at_ms;
	bool blind, suspect;
	double pct;
	int drain; /* whose use judges it */
};

/* What the account was given, and what the model makes of it. */
struct model {
	uint64_t seed;
	struct holder holders[DRAINS][HOLDERS]; /* as judged by each drain */
	bool use_known[DRAINS];
	struct happening happenings[MAX_MOMENTS];
	size_t n;
	int64_t stall_from_ms, stall_to_ms, end_ms;

	int64_t usage_ms[SLOTS][CARD_STATES];
	int64_t own_ms[HOLDERS][HOLDER_STATES], presence_ms[HOLDERS][HOLDER_STATES];
	double active_share_ms[HOLDERS], idle_share_ms[HOLDERS];
	int64_t user_ms[USERS]; /* with at least one process of theirs */
	int64_t shared_ms;
	double unsure_ms2;	    /* squares of the errors of stretches that are not sure */
	double run_ms, run_held_ms; /* the one that goes on; of which is counted as held */
	double paired_ms;	    /* the error of the one before it */
	int64_t stretch_ms;	    /* of the one at hand */
	int64_t covered_ms;	    /* up to here time is judged */
	int64_t stamp_ms;	    /* of the sample before; -1: none */
	double before[2];	    /* it, and the one before it */
};

static int64_t random_below(struct model *m, int64_t n)
{
	m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(m->seed >> 33) % n;
}

/* Holders that come and go at moments that are known more or less. */
static void make_holders(struct model *m, struct holder *h)
{
	static const int64_t amounts[] = { 60 * MB, 70 * MB, 5000 * MB, 0, -1, 101 * MB };
	for (uint32_t i = 0; i < HOLDERS; i++) {
		h[i] = holder(
			i, (uint32_t)random_below(m, USERS), amounts[random_below(m, 6)], NAN);
		int64_t from = T0 + random_below(m, 200000);
		int64_t to = from + random_below(m, 150000);
		if (i > 0)
			h[i].from = edge_between(from, from + random_below(m, 1500));
		if (i > 1)
			h[i].to = edge_between(to, to + random_below(m, 1500));
	}
	/* Those that stay do not hold the card by themselves. */
	h[0].mem_bytes = 10 * MB;
	h[1].mem_bytes = 20 * MB;
	/* Two stretches of one process. */
	h[5].process = h[4].process;
	h[5].user = h[4].user;
	h[5].from = h[4].to;
}

/* Steps that leave a gap now and then; more than one sample a millisecond. */
static int64_t next_step(struct model *m)
{
	int64_t kind = random_below(m, 50);
	return kind == 0 ? random_below(m, 6000) : kind == 1 ? 0 : 100 + random_below(m, 150);
}

/* Mostly no use; sometimes the driver does not report it. */
static double random_pct(struct model *m, int64_t busy)
{
	if (random_below(m, 20) == 0)
		return NAN;
	return random_below(m, 3) > busy ? 0 : (double)random_below(m, 101);
}

static void play_drain(
	struct model *m, struct fixture *f, struct holder *h, int drain, int64_t *now_ms)
{
	struct util_sample samples[MAX_SAMPLES];
	double sm_pct[HOLDERS];
	size_t n = (size_t)random_below(m, MAX_SAMPLES + 1);
	bool known = random_below(m, 4) > 0, suspect = random_below(m, 12) == 0;
	int64_t busy = random_below(m, 3);
	for (size_t i = 0; i < n; i++) {
		*now_ms += next_step(m);
		samples[i] = (struct util_sample){ *now_ms * 1000, random_pct(m, busy) };
		m->happenings[m->n++] = (struct happening){ *now_ms, false, suspect,
			samples[i].util_pct, drain };
	}
	for (int i = 0; i < HOLDERS; i++)
		sm_pct[i] = known ? (double)random_below(m, 60) : NAN;
	sm_pct[5] = sm_pct[4];
	struct account_scene on = scene(f, h, HOLDERS);
	struct account_drain d = ring(samples, n);
	bool all[MAX_SAMPLES];
	memset(all, suspect, sizeof(all));
	d.suspect = all;
	d.use_known = known;
	d.sm_pct = sm_pct;
	account_drain(&f->account, &d, &on);
	memcpy(m->holders[drain], h, HOLDERS * sizeof(*h));
	m->use_known[drain] = known;
}

static void play(struct model *m, struct fixture *f)
{
	struct holder h[HOLDERS];
	int64_t now_ms = T0;
	make_holders(m, h);
	m->stall_from_ms = T0 + 60000;
	m->stall_to_ms = T0 + 90000;
	account_start(&f->account, 0, T0);
	account_stall(&f->account, m->stall_from_ms, m->stall_to_ms);
	for (int drain = 0; drain < DRAINS; drain++) {
		play_drain(m, f, h, drain, &now_ms);
		if (random_below(m, 8) > 0)
			continue;
		now_ms += 1 + random_below(m, 3000);
		blind(f, now_ms - T0, h, HOLDERS);
		m->happenings[m->n++] = (struct happening){ now_ms, true, false, NAN, drain };
	}
	m->end_ms = now_ms + 1500;
	blind(f, m->end_ms - T0, h, HOLDERS);
	m->happenings[m->n++] = (struct happening){ m->end_ms, true, false, NAN, 0 };
}

/* Whether no other holder of its user that is there is busier, or as busy and before it. */
static bool leads(const struct holder *h, int i, int64_t t)
{
	for (int k = 0; k < HOLDERS; k++)
		if (k != i && h[k].user == h[i].user && classify_holder_counts(&h[k], t) &&
			(h[k].sm_pct > h[i].sm_pct || (k < i && !(h[k].sm_pct < h[i].sm_pct))))
			return false;
	return true;
}

/* Who leads each user and how a millisecond is shared. */
static void model_holders(
	struct model *m, const struct happening *at, int64_t t, enum card_state state)
{
	const struct holder *h = m->holders[at->drain];
	bool by_use = state == CARD_ACTIVE && m->use_known[at->drain], even = false;
	double weights[HOLDERS] = { 0 }, total = 0;
	bool users[USERS] = { false };
	int there = 0;
	for (int i = 0; i < HOLDERS; i++) {
		if (!classify_holder_counts(&h[i], t))
			continue;
		there++;
		users[h[i].user] = true;
		weights[i] = by_use ? h[i].sm_pct : (double)h[i].mem_bytes;
		even = even || (!by_use && h[i].mem_bytes < 0);
		total += weights[i];
		m->own_ms[i][classify_holder(state, h[i].own_state)]++;
		if (leads(h, i, t))
			m->presence_ms[i][classify_holder(state, h[i].user_state)]++;
	}
	for (int user = 0; user < USERS; user++)
		m->user_ms[user] += users[user];
	bool shared = state == CARD_ACTIVE || state == CARD_IDLE_HELD;
	m->shared_ms += shared && there;
	for (int i = 0; shared && i < HOLDERS; i++) {
		if (!classify_holder_counts(&h[i], t))
			continue;
		double part = even || total <= 0 ? 1. / there : weights[i] / total;
		*(state == CARD_ACTIVE ? &m->active_share_ms[i] : &m->idle_share_ms[i]) += part;
	}
}

/* The uncertain stretch ends. Its true part that is held may be any: the square of twice the
 * standard deviation around what is counted. Two that follow each other are added up. */
static void end_run(struct model *m, bool goes_on)
{
	double around = m->run_held_ms - m->run_ms / 2;
	double root = sqrt(4 * (m->run_ms * m->run_ms / 12 + around * around));
	if (goes_on && m->paired_ms == 0) {
		m->paired_ms = root;
	} else {
		m->unsure_ms2 += (m->paired_ms + root) * (m->paired_ms + root);
		m->paired_ms = 0;
	}
	m->run_ms = m->run_held_ms = 0;
}

/* A list was read at that moment. */
static bool is_listed(const struct holder *h, int64_t t)
{
	bool listed = false;
	for (int i = 0; i < HOLDERS; i++)
		listed = listed || t == h[i].from.hi || t == h[i].to.hi;
	return listed;
}

static void model_unsure(
	struct model *m, const struct holder *h, int64_t t, bool unsure, enum card_state state)
{
	if (!unsure || is_listed(h, t))
		end_run(m, unsure && m->run_ms > 0);
	m->run_ms += unsure;
	m->run_held_ms += unsure && state != CARD_TRULY_IDLE;
}

/* One millisecond of which a sample says that use was `pct`. */
static enum card_state model_moment(
	struct model *m, const struct happening *at, double pct, int64_t t)
{
	const struct holder *h = m->holders[at->drain];
	enum card_state sure =
		classify_card(pct, classify_held_at(h, HOLDERS, t, HELD_SURELY), &rules);
	enum card_state maybe =
		classify_card(pct, classify_held_at(h, HOLDERS, t, HELD_MAYBE), &rules);
	bool stalled = t >= m->stall_from_ms && t < m->stall_to_ms;
	/* In a stall, only use and those that surely held the card are known. */
	if (at->suspect || (stalled && sure == CARD_TRULY_IDLE)) {
		model_unsure(m, h, t, false, CARD_UNOBSERVED);
		return CARD_UNOBSERVED;
	}
	enum card_state state =
		stalled ? sure
			: classify_card(
				  pct, classify_held_at(h, HOLDERS, t, HELD_COUNTED), &rules);
	model_unsure(m, h, t, sure != maybe, state);
	model_holders(m, at, t, state);
	return state;
}

/* Judges the time up to a moment; without a sample it is unobserved. */
static void model_until(struct model *m, const struct happening *at, double pct, int64_t to_ms)
{
	for (; m->covered_ms < to_ms; m->covered_ms++) {
		int64_t t = m->covered_ms;
		if (!at)
			end_run(m, false);
		enum card_state state = at ? model_moment(m, at, pct, t) : CARD_UNOBSERVED;
		m->usage_ms[(t - T0) / 60000][state]++;
	}
}

/* What follows happening `i` as its neighbour: nothing after a gap or what is not believed. */
static double follower(const struct model *m, size_t i)
{
	const struct happening *next = &m->happenings[i + 1];
	if (i + 1 >= m->n || next->blind || next->suspect ||
		next->at_ms - m->happenings[i].at_ms > HOLD_MS)
		return NAN;
	return next->pct;
}

static void model_sample(struct model *m, size_t i)
{
	const struct happening *s = &m->happenings[i];
	bool joined = m->stamp_ms >= 0 && s->at_ms - m->stamp_ms <= HOLD_MS;
	bool first = m->stamp_ms < 0 && s->at_ms - T0 <= HOLD_MS;
	int64_t begin_ms = joined ? m->stamp_ms : first ? T0 : s->at_ms - PERIOD_MS;
	double next = follower(m, i), after = NAN;
	/* The second after it is known only together with the next. */
	if (!isnan(next) && i + 2 < m->n &&
		m->happenings[i + 2].drain == m->happenings[i + 1].drain)
		after = follower(m, i + 1);
	const double around[] = { joined ? m->before[0] : NAN, joined ? m->before[1] : NAN,
		s->pct, next, after };
	struct cover c = cover_of(around, rules.active_util_pct);
	double length = (double)(s->at_ms - begin_ms);
	model_until(m, NULL, NAN, begin_ms);
	model_until(
		m, s, c.part > 0 ? c.unused_pct : s->pct, begin_ms + llround(c.from * length));
	if (c.part > 0)
		model_until(m, s, c.used_pct, begin_ms + llround((c.from + c.part) * length));
	model_until(m, s, c.part < 1 ? c.unused_pct : s->pct, s->at_ms);
	m->before[0] = joined ? m->before[1] : NAN;
	m->before[1] = s->suspect ? NAN : s->pct;
	m->stamp_ms = s->at_ms;
}

static void run_model(struct model *m)
{
	m->covered_ms = T0;
	m->stamp_ms = -1;
	m->before[0] = m->before[1] = NAN;
	for (size_t i = 0; i < m->n; i++) {
		if (m->happenings[i].blind)
			model_until(m, NULL, NAN, m->happenings[i].at_ms);
		else
			model_sample(m, i);
	}
}

static void compare_usage(const struct model *m, const struct fixture *f)
{
	size_t n = 0;
	int64_t left[SLOTS][CARD_STATES], unsure_ms2 = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	memcpy(left, m->usage_ms, sizeof(left));
	for (size_t i = 0; i < n; i++) {
		left[(rows[i].slot - T0 / 1000) / 60][rows[i].state] -= rows[i].ms;
		unsure_ms2 += rows[i].unsure_ms2;
	}
	for (int slot = 0; slot < SLOTS; slot++)
		for (int state = 0; state < CARD_STATES; state++)
			assert_int_equal(left[slot][state], 0);
	/* Each square is rounded. */
	assert_true(fabs((double)unsure_ms2 - m->unsure_ms2) < 100);
}

static void compare_holders(const struct model *m, const struct fixture *f)
{
	size_t n = 0;
	int64_t own[HOLDERS][HOLDER_STATES] = { 0 }, presence[HOLDERS][HOLDER_STATES] = { 0 };
	int64_t active[HOLDERS] = { 0 }, idle[HOLDERS] = { 0 }, shares = 0;
	const struct holding_sum *rows = ledger_holding_rows(&f->ledger, &n);
	for (size_t i = 0; i < n; i++) {
		uint32_t p = rows[i].process;
		for (int state = 0; state < HOLDER_STATES; state++) {
			own[p][state] += rows[i].ms[state];
			presence[p][state] += rows[i].presence_ms[state];
		}
		active[p] += rows[i].active_share_ms;
		idle[p] += rows[i].idle_share_ms;
		shares += rows[i].active_share_ms + rows[i].idle_share_ms;
	}
	assert_int_equal(shares, m->shared_ms);
	for (uint32_t p = 0; p < HOLDERS; p++) {
		uint32_t also = p == 4 ? 5 : p; /* the second stretch of the fifth process */
		double more_active = p == 4 ? m->active_share_ms[5] : 0;
		double more_idle = p == 4 ? m->idle_share_ms[5] : 0;
		if (p == 5)
			continue;
		for (int state = 0; state < HOLDER_STATES; state++) {
			assert_int_equal(own[p][state],
				m->own_ms[p][state] + (also != p ? m->own_ms[5][state] : 0));
			assert_int_equal(presence[p][state],
				m->presence_ms[p][state] +
					(also != p ? m->presence_ms[5][state] : 0));
		}
		double pieces = 3 * (double)m->n + 6 * HOLDERS + SLOTS;
		assert_true(
			fabs((double)active[p] - m->active_share_ms[p] - more_active) < pieces);
		assert_true(fabs((double)idle[p] - m->idle_share_ms[p] - more_idle) < pieces);
	}
}

/* A user's presence is the time in which at least one of the user's processes was there. */
static void compare_users(const struct model *m)
{
	for (uint32_t user = 0; user < USERS; user++) {
		int64_t presence_ms = 0;
		for (int i = 0; i < HOLDERS; i++)
			for (int state = 0; state < HOLDER_STATES; state++)
				if (m->holders[0][i].user == user)
					presence_ms += m->presence_ms[i][state];
		assert_int_equal(presence_ms, m->user_ms[user]);
	}
}

static void test_as_if_each_millisecond_were_asked(void **state)
{
	double unsure_ms2 = 0;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		struct model *m = calloc(1, sizeof(*m));
		*state = NULL;
		account_setup(state);
		m->seed = seed;
		play(m, *state);
		run_model(m);
		compare_usage(m, *state);
		compare_holders(m, *state);
		compare_users(m);
		unsure_ms2 += m->unsure_ms2;
		account_teardown(state);
		free(m);
	}
	assert_true(unsure_ms2 > 1e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
		test_as_if_each_millisecond_were_asked) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
