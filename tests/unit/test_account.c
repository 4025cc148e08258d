/* Samples to sums: nothing lost, nothing twice, nothing invented. */
#include "account_fixture.h"

/* The newest sample waits for the next one. */
static void test_each_sample_is_of_the_time_before_it(void **state)
{
	struct fixture *f = *state;
	struct util_sample s[] = { at(0, 0), at(167, 50), at(333, 50), at(500, 50), at(667, 0),
		at(833, 0) };
	drain(f, s, 6, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 500);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 167);
	flush(f, 900, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 400);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 0);
}

static int64_t sum_util(const struct fixture *f)
{
	size_t n = 0;
	int64_t pct_ms = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	for (size_t i = 0; i < n; i++)
		pct_ms += rows[i].util_pct_ms;
	return pct_ms;
}

/* 80 % from 150 ms to 850 ms. Utilisation adds up to what the driver said. */
static void test_use_that_begins_and_ends_within_a_sample(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 60) };
	struct util_sample one[] = { at(200, 20), at(400, 80), at(600, 80) },
			   two[] = { at(800, 80), at(1000, 20), at(1200, 0) };
	struct util_sample before[] = { at(0, 0) };
	h[0].to = edge_exactly(T0 + 850);
	drain(f, before, 1, h, 1);
	drain(f, one, 3, h, 1);
	drain(f, two, 3, h, 1);
	flush(f, 1200, h, 1);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 700);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 150);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 350);
	assert_int_equal(sum_holding(f, 0).share_ms, 850);
	assert_int_equal(sum_util(f), 200 * (20 + 80 + 80 + 80 + 20));
}

/* A driver that takes no samples while the card is idle. */
static void test_a_ring_that_runs_dry(void **state)
{
	struct fixture *f = *state;
	struct util_sample s[] = { at(0, 0), at(200, 0), at(5000, 0), at(5200, 50), at(5400, 0),
		at(13000, 0), at(30000, 0) };
	struct account_drain d = ring(s, 7);
	d.hold.dry_ms = 8500;
	drain_as(f, d, NULL, 0);
	flush(f, 30000, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 100);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 17000 - 200);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 13200 - 100);
}

/* What was lost is before the samples that follow: a later pause of the ring is idle time. */
static void test_a_ring_that_runs_dry_after_a_loss(void **state)
{
	struct fixture *f = *state;
	struct util_sample before[] = { at(200, 0) },
			   after[] = { at(5000, 0), at(5200, 0), at(5400, 0) },
			   later[] = { at(10000, 0), at(10200, 0) };
	struct account_drain drains[] = { ring(before, 1), ring(after, 3), ring(later, 2) };
	for (int i = 0; i < 3; i++) {
		drains[i].hold.dry_ms = 8500;
		if (i == 1)
			account_torn(&f->account, T0 + 5400);
		drain_as(f, drains[i], NULL, 0);
	}
	flush(f, 10200, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 4800 - 200);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 200 + 200 + 5200);
}

/* After a gap a sample accounts for its period, and not for all that it could have held. */
static void test_a_late_sample_leaves_a_gap(void **state)
{
	struct fixture *f = *state;
	struct util_sample first[] = { at(0, 50), at(2000, 50) }, second[] = { at(12000, 50) };
	drain(f, first, 2, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 0);
	drain(f, second, 1, NULL, 0);
	flush(f, 12000, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 2000 + 200);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 9800);
	assert_int_equal(f->account.observed_ms, 2200);
	assert_int_equal(f->account.unobserved_ms, 9800);
}

static void test_blind_time_is_unobserved(void **state)
{
	struct fixture *f = *state;
	struct util_sample first[] = { at(100, 50) }, later[] = { at(6000, 50), at(6500, 50) };
	drain(f, first, 1, NULL, 0);
	/* The sample that waits accounts for its own period. */
	blind(f, 1500, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 100);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 1400);
	blind(f, 1000, NULL, 0);
	blind(f, 5000, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 100);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 4900);
	drain(f, later, 2, NULL, 0);
	flush(f, 6500, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 5700);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 800);
}

static void test_blind_from_the_beginning(void **state)
{
	struct fixture *f = *state;
	account_start(&f->account, 0, -1);
	blind(f, 1000, NULL, 0);
	blind(f, 4000, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 3000);
}

/* At the end the newest sample counts as far as it holds; without one nothing is said. */
static void test_flush(void **state)
{
	struct fixture *f = *state;
	struct util_sample s[] = { at(0, 50) };
	flush(f, 1000, NULL, 0);
	account_start(&f->account, 0, T0);
	flush(f, 1000, NULL, 0);
	assert_true(ledger_empty(&f->ledger));
	drain(f, s, 1, NULL, 0);
	flush(f, 1500, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 1500);
	flush(f, 9000, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 1500);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 7500);
}

static void test_slots_are_cut(void **state)
{
	struct fixture *f = *state;
	struct util_sample s[] = { at(59900, 50), at(60100, 50) };
	account_start(&f->account, 0, -1);
	drain(f, s, 2, NULL, 0);
	flush(f, 60100, NULL, 0);
	size_t n = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0].slot, T0 / 1000);
	assert_int_equal(rows[0].ms, 300);
	assert_int_equal(rows[1].slot, T0 / 1000 + 60);
	assert_int_equal(rows[1].ms, 100);
	assert_int_equal(rows[1].util_pct_ms, 5000);
}

static void test_shares_add_up_and_presence_counts_once(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 3000 * MB, 0), holder(1, 0, 3000 * MB, 0),
		holder(2, 1, 1000 * MB, 0) };
	struct util_sample s[] = { at(0, 0), at(333, 0), at(1000, 0) };
	drain(f, s, 3, h, 3);
	flush(f, 1000, h, 3);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 1000);
	struct holder_time a = sum_holding(f, 0), b = sum_holding(f, 1), c = sum_holding(f, 2);
	assert_int_equal(a.share_ms + b.share_ms + c.share_ms, 1000);
	assert_in_range(c.share_ms, 142, 144); /* a seventh of the memory */
	assert_int_equal(a.presence_ms + b.presence_ms, 1000);
	assert_int_equal(c.presence_ms, 1000);
	assert_int_equal(b.ms, 1000);
}

static void test_active_seconds_are_split_by_use(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 75), holder(1, 1, 9000 * MB, 25),
		holder(2, 2, 9000 * MB, 0) };
	struct util_sample s[] = { at(0, 100), at(1000, 100) };
	drain(f, s, 2, h, 3);
	flush(f, 1000, h, 3);
	assert_int_equal(sum_holding(f, 0).share_ms, 750);
	assert_int_equal(sum_holding(f, 1).share_ms, 250);
	assert_int_equal(sum_holding(f, 2).share_ms, 0);
	assert_int_equal(h[0].last_active_ms, T0 + 1000);
	assert_int_equal(h[2].last_active_ms, -1);
}

static void test_energy_is_conserved(void **state)
{
	struct fixture *f = *state;
	struct util_sample one[] = { at(0, 0), at(500, 90) },
			   two[] = { at(1300, 0), at(2000, 0) };
	account_energy(&f->account, T0, 1000.5);
	drain(f, one, 2, NULL, 0);
	account_energy(&f->account, T0 + 2000, 1778.9);
	drain(f, two, 2, NULL, 0);
	flush(f, 2000, NULL, 0);
	assert_int_equal(sum_energy(f), 778);
	/* A counter that is not there adds nothing, and the growth over the hole is not
	 * guessed. */
	struct util_sample three[] = { at(2500, 0) }, four[] = { at(3000, 0) };
	account_energy(&f->account, T0 + 2500, NAN);
	drain(f, three, 1, NULL, 0);
	account_energy(&f->account, T0 + 3000, 9000);
	drain(f, four, 1, NULL, 0);
	flush(f, 3000, NULL, 0);
	assert_int_equal(sum_energy(f), 778);
	/* Nor over time without readings. */
	blind(f, 4000, NULL, 0);
	account_energy(&f->account, T0 + 5000, 19000);
	flush(f, 5000, NULL, 0);
	assert_int_equal(sum_energy(f), 778);
}

static void test_samples_that_are_not_believed(void **state)
{
	struct fixture *f = *state;
	struct util_sample s[] = { at(0, 100), at(1000, 100) }, good[] = { at(2000, 0) };
	struct account_drain d = ring(s, 2);
	d.suspect = (const bool[]){ true, true };
	drain_as(f, d, NULL, 0);
	drain(f, good, 1, NULL, 0);
	flush(f, 2100, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 0);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 1000);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 1100);
}

/* The last sample of a drain waits for the next drain, and is judged by its own drain's use. */
static void test_the_last_sample_is_of_its_own_drain(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 90), holder(1, 1, 1000 * MB, 0) };
	struct util_sample one[] = { at(0, 90), at(1000, 90) };
	struct util_sample two[] = { at(2000, 90), at(3000, 90) };
	drain(f, one, 2, h, 2);
	struct account_scene on = scene(f, h, 2);
	struct account_drain d = ring(two, 2);
	d.use_known = true;
	d.sm_pct = (const double[]){ 0, 90 };
	account_drain(&f->account, &d, &on);
	flush(f, 3000, h, 2);
	assert_int_equal(sum_state(f, 0, HOLDER_ACTIVE), 1000);
	assert_int_equal(sum_state(f, 0, HOLDER_SQUATTING), 2000);
	assert_int_equal(sum_state(f, 1, HOLDER_SQUATTING), 1000);
	assert_int_equal(sum_state(f, 1, HOLDER_ACTIVE), 2000);
	assert_int_equal(sum_holding(f, 0).share_ms, 1000);
	assert_int_equal(sum_holding(f, 1).share_ms, 2000);
}

/* A full card shows nothing of who stops or begins; its processes' use in parts of the drain
 * does: one stops after 1.5 s, the other begins after 2.25 s. What is nobody's belongs to the
 * one that used the card in that part. */
static void test_use_in_parts_of_a_drain(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 0), holder(1, 1, 1000 * MB, 0) };
	struct util_sample one[] = { at(1000, 100), at(2000, 100), at(3000, 100),
		at(4000, 100) };
	static const double pct[][PROCESS_PARTS] = { { 80, 40, 0, 0 }, { 0, 0, 45, 60 } };
	struct turn_parts parts = { .from_us = one[0].wall_us - 1000000, .n = 4, .pct = pct };
	for (int i = 0; i < 4; i++)
		parts.to_us[i] = one[i].wall_us;
	h[0].before_pct[0] = h[0].before_pct[1] = 80;
	struct account_scene on = scene(f, h, 2);
	struct account_drain d = ring(one, 4);
	d.use_known = true;
	d.sm_pct = (const double[]){ 30, 26 };
	d.parts = &parts;
	f->account.started = true;
	f->account.covered_ms = T0;
	account_drain(&f->account, &d, &on);
	flush(f, 4000, h, 2);
	assert_int_equal(sum_state(f, 0, HOLDER_ACTIVE), 2000);
	assert_int_equal(sum_state(f, 0, HOLDER_SQUATTING), 2000);
	assert_int_equal(sum_state(f, 1, HOLDER_SQUATTING), 2000);
	/* Policy is told of the mean of the whole drain. */
	size_t n = 0;
	const struct holding_sum *rows = ledger_holding_rows(&f->ledger, &n);
	assert_int_equal(rows[0].sm_max_pct, 30);
	assert_float_equal(h[1].before_pct[0], 45, 0);
	assert_float_equal(h[1].before_pct[1], 60, 0);
}

/* The driver's clock went back within the drain, so samples are later than the last one: the
 * last part counts for them, and nothing behind it is read. */
static void test_samples_after_the_last_part(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 50) };
	struct util_sample one[] = { at(1000, 50), at(2000, 50), at(8000, 50), at(9000, 50),
		at(3000, 50) };
	static const double pct[][PROCESS_PARTS] = { { 50, 40, 99, 99, 99, 99 } };
	struct turn_parts parts = { .from_us = one[0].wall_us - 1000000,
		.to_us = { one[1].wall_us, one[4].wall_us },
		.n = 2,
		.pct = pct };
	struct account_scene on = scene(f, h, 1);
	struct account_drain d = ring(one, 5);
	d.use_known = true;
	d.sm_pct = (const double[]){ 50 };
	d.parts = &parts;
	account_drain(&f->account, &d, &on);
	assert_float_equal(h[0].sm_pct, 40, 0);
}

/* A process that only encodes: its state stays idle-held, and the time with use is known. */
static void test_use_of_engines_does_not_change_the_state(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 0), holder(1, 1, 1000 * MB, 0) };
	struct util_sample one[] = { at(0, 0), at(1000, 0) }, two[] = { at(2000, 0) };
	struct account_scene on = scene(f, h, 2);
	struct account_drain d = ring(one, 2);
	d.use_known = true;
	d.sm_pct = (const double[]){ 0, 0 };
	d.uses_engine = (const bool[]){ false, true };
	account_drain(&f->account, &d, &on);
	d.samples = two;
	d.n_samples = 1;
	d.uses_engine = NULL;
	account_drain(&f->account, &d, &on);
	flush(f, 2000, h, 2);
	size_t n = 0;
	const struct holding_sum *rows = ledger_holding_rows(&f->ledger, &n);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(rows[i].engine_ms, rows[i].process == 1 ? 1000 : 0);
		assert_int_equal(rows[i].ms[HOLDER_IDLE_HELD], 2000);
	}
	assert_false(h[1].uses_engine);
}

/* What policy judges by: the most use of any drain; where the driver has no use by process,
 * that of the card, if only one session can have used it, and else nothing is known. */
static void test_the_most_use_of_a_drain(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 0), holder(1, 1, 1000 * MB, 0) };
	struct account_scene on = scene(f, h, 2);
	static const struct {
		double card, own[2];
		bool known, one_session;
	} drains[] = {
		{ 40, { 3.9, 20 }, true, false },
		{ 2, { 1, 0 }, true, false },
		{ 60, { NAN, NAN }, false, false },
		{ 6.5, { NAN, NAN }, false, true },
		{ 0, { 0, 0 }, true, false },
	};
	for (int i = 0; i < 5; i++) {
		struct util_sample one[] = { at(1000 * (i + 1), drains[i].card) };
		struct account_drain d = ring(one, 1);
		d.use_known = drains[i].known;
		d.one_session = drains[i].one_session;
		d.sm_pct = drains[i].own;
		account_drain(&f->account, &d, &on);
	}
	size_t n = 0;
	const struct holding_sum *rows = ledger_holding_rows(&f->ledger, &n);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(rows[i].sm_max_pct, rows[i].process == 1 ? 20 : 6);
		assert_int_equal(rows[i].own_unknown_ms, 1000);
	}
}

static void test_use_unknown_is_time_of_its_own(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 10 * MB, NAN) };
	h[0].to = edge_exactly(T0 + 600);
	struct util_sample s[] = { at(0, NAN), at(1000, NAN) };
	drain(f, s, 2, h, 1);
	flush(f, 1000, h, 1);
	assert_int_equal(sum_ms(f, CARD_USE_UNKNOWN), 600);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 400);
	assert_int_equal(sum_state(f, 0, HOLDER_USE_UNKNOWN), 600);
	assert_int_equal(sum_holding(f, 0).presence_ms, 600);
	assert_int_equal(sum_holding(f, 0).share_ms, 0);
	assert_int_equal(h[0].last_active_ms, -1);
}

static void test_sm_activity_of_its_drain(void **state)
{
	struct fixture *f = *state;
	struct util_sample one[] = { at(0, 90), at(1000, 90) }, two[] = { at(2000, 90) };
	struct account_drain d = ring(one, 2);
	size_t n = 0;
	d.sm_active_pct = 40;
	drain_as(f, d, NULL, 0);
	drain(f, two, 1, NULL, 0);
	flush(f, 3000, NULL, 0);
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].ms, 3000);
	assert_int_equal(rows[0].sm_active_ms, 1000);
	assert_int_equal(rows[0].sm_active_pct_ms, 40000);
}

static void test_a_restart_goes_on_where_it_was(void **state)
{
	struct fixture *f = *state;
	account_start(&f->account, 0, T0 + 400);
	struct util_sample s[] = { at(167, 50), at(333, 0), at(500, 0), at(1000, 50) };
	drain(f, s, 4, NULL, 0);
	flush(f, 1000, NULL, 0);
	assert_int_equal(sum_ms(f, CARD_TRULY_IDLE), 100);
	assert_int_equal(sum_ms(f, CARD_ACTIVE), 500);
	assert_int_equal(sum_ms(f, CARD_UNOBSERVED), 0);
}

/* Months without a store: the ledger stays bounded and keeps every second. */
static void test_ledger_folds_and_keeps_sums(void **state)
{
	struct fixture *f = *state;
	int64_t days = 30, ms = 0;
	for (int64_t minute = 0; minute < days * 1440; minute++) {
		for (uint32_t card = 0; card < 4; card++) {
			struct usage_sum *u = ledger_usage(&f->ledger, T0 / 1000 + minute * 60,
				card, (enum card_state)(minute % 3));
			assert_non_null(u);
			u->ms += 60000;
			u->unsure_ms2 += 7;
			ms += 60000;
		}
	}
	int64_t all = 0, squares = 0;
	for (int i = 0; i < CARD_STATES; i++)
		all += sum_ms(f, (enum card_state)i);
	assert_int_equal(all, ms);
	size_t n = 0;
	const struct usage_sum *rows = ledger_usage_rows(&f->ledger, &n);
	for (size_t i = 0; i < n; i++)
		squares += rows[i].unsure_ms2;
	assert_int_equal(squares, ms / 60000 * 7);
	assert_true(f->ledger.usage.cap <= LEDGER_MAX_ROWS);
	assert_int_equal(f->ledger.dropped_ms, 0);
	ledger_clear(&f->ledger);
	assert_true(ledger_empty(&f->ledger));
}

/* More processes than there is room for: those that have a row go on in it. */
static void test_a_full_ledger_goes_on_by_the_hour(void **state)
{
	struct fixture *f = *state;
	int64_t slot = T0 / 1000 - T0 / 1000 % 3600 + 60;
	for (uint32_t process = 0; process < LEDGER_MAX_ROWS; process++)
		assert_non_null(ledger_holding(&f->ledger, slot, 0, process));
	assert_null(ledger_holding(&f->ledger, slot, 0, LEDGER_MAX_ROWS));
	struct holding_sum *old = ledger_holding(&f->ledger, slot, 0, 7);
	assert_ptr_equal(ledger_holding(&f->ledger, slot + 60, 0, 7), old);
	assert_non_null(old);
	assert_int_equal(old->process, 7);
	ledger_clear(&f->ledger);
	struct holding_sum *fresh = ledger_holding(&f->ledger, slot, 0, 7);
	assert_non_null(fresh);
	assert_int_equal(fresh->slot, slot);
}

/* A row is found again by its whole key, also among those that were found lately. */
static void test_rows_that_were_found_lately(void **state)
{
	struct fixture *f = *state;
	ledger_holding(&f->ledger, 60, 0, 1)->engine_ms = 11;
	ledger_holding(&f->ledger, 60, 0, 1 + LEDGER_RECENT)->engine_ms = 12;
	ledger_holding(&f->ledger, 60, 1, 1)->engine_ms = 13;
	ledger_usage(&f->ledger, 60, 0, CARD_ACTIVE)->ms = 14;
	assert_int_equal(ledger_holding(&f->ledger, 60, 0, 1)->engine_ms, 11);
	assert_int_equal(ledger_holding(&f->ledger, 120, 0, 1)->engine_ms, 0);
	assert_int_equal(ledger_holding(&f->ledger, 60, 0, 1 + LEDGER_RECENT)->engine_ms, 12);
	assert_int_equal(ledger_holding(&f->ledger, 60, 1, 1)->engine_ms, 13);
	assert_int_equal(ledger_usage(&f->ledger, 60, 0, CARD_ACTIVE)->ms, 14);
	assert_int_equal(ledger_usage(&f->ledger, 60, 0, CARD_IDLE_HELD)->ms, 0);
	ledger_clear(&f->ledger);
	assert_int_equal(ledger_holding(&f->ledger, 60, 0, 1)->engine_ms, 0);
	assert_int_equal(ledger_usage(&f->ledger, 60, 0, CARD_ACTIVE)->ms, 0);
}

/* What is alike for the holders is divided once: sample by sample, two of three equal holders
 * would have 2 ms of each 7, and the other 3. */
static void test_many_samples_are_divided_at_once(void **state)
{
	struct fixture *f = *state;
	struct holder h[] = { holder(0, 0, 1000 * MB, 0), holder(1, 1, 1000 * MB, 0),
		holder(2, 2, 1000 * MB, 0) };
	struct util_sample s[101];
	for (int i = 0; i < 101; i++)
		s[i] = at(i * 7, i % 5);
	drain(f, s, 101, h, 3);
	flush(f, 700, h, 3);
	assert_int_equal(sum_ms(f, CARD_IDLE_HELD), 700);
	for (uint32_t i = 0; i < 3; i++)
		assert_in_range(sum_holding(f, i).share_ms, 232, 235);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_sample_is_of_the_time_before_it),
		TEST(test_rows_that_were_found_lately),
		TEST(test_use_that_begins_and_ends_within_a_sample),
		TEST(test_a_ring_that_runs_dry),
		TEST(test_a_ring_that_runs_dry_after_a_loss),
		TEST(test_a_late_sample_leaves_a_gap),
		TEST(test_blind_time_is_unobserved),
		TEST(test_blind_from_the_beginning),
		TEST(test_flush),
		TEST(test_slots_are_cut),
		TEST(test_shares_add_up_and_presence_counts_once),
		TEST(test_active_seconds_are_split_by_use),
		TEST(test_many_samples_are_divided_at_once),
		TEST(test_energy_is_conserved),
		TEST(test_samples_that_are_not_believed),
		TEST(test_the_last_sample_is_of_its_own_drain),
		TEST(test_use_in_parts_of_a_drain),
		TEST(test_samples_after_the_last_part),
		TEST(test_use_of_engines_does_not_change_the_state),
		TEST(test_the_most_use_of_a_drain),
		TEST(test_use_unknown_is_time_of_its_own),
		TEST(test_sm_activity_of_its_drain),
		TEST(test_a_restart_goes_on_where_it_was),
		TEST(test_ledger_folds_and_keeps_sums),
		TEST(test_a_full_ledger_goes_on_by_the_hour),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
