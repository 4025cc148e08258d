/* Turns samples into sums: cuts time into pieces, finds the state of each, and adds it to the
 * ledger. */
#include "classify/account.h"

#include "classify/account_holders.h"

/* A card that was idle-held before and after a pause up to this length counts as idle-held
 * without a pause. */
#define PAUSE_MS 10000

/* Uncertainty of an edge of use, as a part of a sample's period. */
#define EDGE_PART 0.1

void account_start(struct account *a, uint32_t card, int64_t from_ms)
{
	*a = (struct account){
		.card = card,
		.started = from_ms >= 0,
		.covered_ms = from_ms,
		.sm_active_pct = NAN,
		.pct = NAN,
		.stamp_ms = -1,
		.before = { NAN, NAN },
		.unlisted_ms = INT64_MAX,
		.idle_held_since_ms = -1,
		.free_state = CARD_TRULY_IDLE,
	};
	energy_reset(&a->energy);
}

void account_begin(struct account *a, int64_t at_ms)
{
	a->started = true;
	a->covered_ms = at_ms;
}

void account_not_before(struct account *a, int64_t seen_ms)
{
	a->covered_ms = seen_ms;
}

/* Whether nobody uses or holds a card in this state. */
static bool is_free(enum card_state state)
{
	return state == CARD_TRULY_IDLE || state == CARD_RESERVED;
}

static void add_usage(struct account *a, const struct account_part *p, struct ledger *ledger)
{
	/* Since when the card has been idle-held. */
	bool observed = p->state != CARD_UNOBSERVED;
	a->pause_ms = observed ? 0 : a->pause_ms + p->ms;
	if ((observed && p->state != CARD_IDLE_HELD) || a->pause_ms > PAUSE_MS)
		a->idle_held_since_ms = -1;
	else if (observed && a->idle_held_since_ms < 0)
		a->idle_held_since_ms = p->from_ms;
	struct usage_sum *sum = ledger_usage(ledger, p->slot, a->card, p->state);
	bool seen = p->state != CARD_UNOBSERVED && !isnan(a->pct);
	if (!sum) {
		ledger->dropped_ms += p->ms;
		return;
	}
	sum->ms += p->ms;
	if (seen)
		sum->util_pct_ms += account_whole(a->pct * (double)p->ms);
	if (p->state != CARD_UNOBSERVED && !isnan(a->sm_active_pct)) {
		sum->sm_active_pct_ms += llround(a->sm_active_pct * (double)p->ms);
		sum->sm_active_ms += p->ms;
	}
	energy_piece(&a->energy, &(struct energy_piece){ .slot = p->slot,
					 .from_ms = p->from_ms,
					 .to_ms = p->to_ms,
					 .state = p->state,
					 .util_pct = seen ? a->pct : 0 });
}

static enum card_state state_at(
	double util_pct, int64_t at_ms, enum sureness sure, const struct account_scene *on)
{
	return classify_card(
		util_pct, classify_held_at(on->holders, on->n, at_ms, sure), on->rules);
}

static bool is_unsure(double util_pct, int64_t at_ms, const struct account_scene *on)
{
	return state_at(util_pct, at_ms, HELD_SURELY, on) !=
	       state_at(util_pct, at_ms, HELD_MAYBE, on);
}

/* Adds an error that is independent of others, as a square. */
static void add_square(
	struct account *a, struct ledger *ledger, enum card_state state, double square_ms2)
{
	int64_t slot = ledger_slot(ledger, a->covered_ms > 0 ? a->covered_ms - 1 : 0);
	struct usage_sum *sum = ledger_usage(ledger, slot, a->card, state);
	if (sum)
		sum->unsure_ms2 += llround(square_ms2);
}

/* Adds an error that has the same sign as others of its kind. */
static void add_unsure(struct account *a, struct ledger *ledger, int64_t ms)
{
	int64_t slot = ledger_slot(ledger, a->covered_ms > 0 ? a->covered_ms - 1 : 0);
	struct usage_sum *sum = ledger_usage(ledger, slot, a->card, CARD_ACTIVE);
	if (sum)
		sum->unsure_ms += ms;
}

/* The true time in a state within a stretch of `ms` is uniformly distributed, and `counted_ms`
 * of it were counted. Returns the square of the error that is exceeded in one of twenty cases:
 * twice the root mean square error. The variance is ms squared / 12 around the middle. */
static double square_of(int64_t ms, int64_t counted_ms)
{
	double length = (double)ms, off = 2 * (double)counted_ms - length;
	return length * length / 3 + off * off;
}

/* An uncertain stretch has ended; the errors within it depend on each other. If the next one
 * follows at once (`goes_on`), the errors of both are added up, because a list between them
 * saw a process that would usually be too short to be listed. Other errors are independent. */
static void settle(struct account *a, struct ledger *ledger, bool goes_on)
{
	double root_ms = a->paired_ms;
	if (a->unsure_ms == 0 && root_ms == 0)
		return;
	root_ms += sqrt(square_of(a->unsure_ms, a->unsure_held_ms));
	bool pairs = goes_on && a->paired_ms == 0;
	if (!pairs)
		add_square(a, ledger, a->free_state, root_ms * root_ms);
	a->paired_ms = pairs ? root_ms : 0;
	a->unsure_ms = a->unsure_held_ms = 0;
}

/* Whether the processes were listed at that moment. */
static bool is_listed_at(const struct account_scene *on, int64_t at_ms)
{
	for (size_t i = 0; i < on->n; i++)
		if (on->holders[i].from.hi == at_ms || on->holders[i].to.hi == at_ms)
			return true;
	return false;
}

/* Finds the state of a stretch, and whether it is certain. Here truly-idle time becomes
 * reserved; for live views present_add_lease() decides that, for samples of other exporters
 * sampled.c and sampled_hours.c. */
static void judge_stretch(
	const struct account *a, struct account_part *p, const struct account_scene *on)
{
	int64_t at_ms = p->from_ms;
	bool stalled = at_ms >= a->stall_from_ms && at_ms < a->stall_to_ms;
	bool unsure = classify_card(a->pct, a->calm[HELD_SURELY], on->rules) !=
		      classify_card(a->pct, a->calm[HELD_MAYBE], on->rules);
	bool steady = unsure && at_ms >= a->steady_from_ms && at_ms < a->steady_to_ms;
	p->unsure = unsure && !steady;
	p->state = classify_card(a->pct, steady ? a->steady : a->calm[HELD_COUNTED], on->rules);
	if (stalled)
		p->state = classify_card(a->pct, a->calm[HELD_SURELY], on->rules);
	bool unknown = (stalled && p->state == CARD_TRULY_IDLE) ||
		       (at_ms >= a->unlisted_ms && p->state != CARD_ACTIVE);
	if (a->suspect || unknown)
		p->state = CARD_UNOBSERVED;
	if (p->state == CARD_TRULY_IDLE && on->n_leases && a->leased.leased == LEASED_SURELY)
		p->state = CARD_RESERVED;
}

void account_leased(struct account *a, struct account_scene *on)
{
	leased_settle(on->leases, on->n_leases, a->card, on->ledger);
}

/* Accounts one stretch within one slot, with one utilisation and the same holders. */
static void account_piece(
	struct account *a, int64_t from_ms, int64_t to_ms, struct account_scene *on)
{
	struct account_part p = { .slot = ledger_slot(on->ledger, from_ms),
		.from_ms = from_ms,
		.to_ms = to_ms,
		.ms = to_ms - from_ms };
	judge_stretch(a, &p, on);
	p.free = is_free(p.state);
	if (p.free)
		a->free_state = p.state;
	bool unsure = p.unsure && p.state != CARD_UNOBSERVED, used = p.state == CARD_ACTIVE;
	/* Use on one side of the middle limits the error to the other side, so the rest has
	 * one sign. */
	if (used && a->unsure_ms > 0)
		add_unsure(a, on->ledger, a->unsure_ms / 8);
	if (unsure && a->used)
		add_unsure(a, on->ledger, p.ms / 8);
	a->used = used;
	if (!unsure || is_listed_at(on, p.from_ms))
		settle(a, on->ledger, unsure);
	if (unsure) {
		a->unsure_ms += p.ms;
		a->unsure_held_ms += is_free(p.state) ? 0 : p.ms;
	}
	add_usage(a, &p, on->ledger);
	if (p.state == CARD_UNOBSERVED) {
		a->unobserved_ms += p.ms;
		return;
	}
	a->observed_ms += p.ms;
	p.metered = p.state == CARD_IDLE_HELD && energy_is_metered(&a->energy, from_ms);
	if (a->turns && p.state == CARD_ACTIVE) {
		/* Whose turn it is may have changed. */
		double least = on->rules->active_util_pct;
		bool unexplained = a->turn_pct > 0 && a->pct - a->turn_pct >= least;
		if (!a->turn_found || unexplained != a->unexplained) {
			account_holders_add(a, on);
			a->turn_pct = classify_now(on->holders, on->n, from_ms);
			a->unexplained = a->turn_pct > 0 && a->pct - a->turn_pct >= least;
			classify_moment(on->holders, on->n, a->unexplained, on->rules);
			a->turn_found = true;
		}
	}
	account_holders_put_off(a, &p, on);
}

/* Divides the energy up to covered_ms, among states and spells. */
static void divide_energy(struct account *a, struct account_scene *on)
{
	account_holders_add(a, on);
	struct energy_idle idle = energy_divide(&a->energy, a->card, a->covered_ms, on->ledger);
	if (on->spells && idle.any)
		idle_spells_energy(on->spells, idle.mj, idle.ms);
}

/* Returns the next moment after `at_ms` at which a holder comes or goes, or may do so. */
static int64_t next_change(const struct account_scene *on, int64_t at_ms, int64_t next_ms)
{
	for (size_t i = 0; i < on->n; i++) {
		const struct holder *h = &on->holders[i];
		const int64_t moments[] = { h->from.lo, h->from.at, h->from.hi, h->to.lo,
			h->to.at, h->to.hi };
		for (size_t k = 0; k < sizeof(moments) / sizeof(moments[0]); k++)
			if (moments[k] > at_ms && moments[k] < next_ms)
				next_ms = moments[k];
	}
	return next_ms;
}

/* Prepares the spells for time from covered_ms on. Returns the next reading of the energy
 * counter: time is cut there, so that a spell's part of each interval is known. */
static int64_t next_energy(struct account *a, struct account_scene *on)
{
	if (!on->spells)
		return INT64_MAX;
	if (energy_was_broken(&a->energy)) {
		account_holders_add(a, on);
		idle_spells_energy_lost(on->spells);
	}
	if (energy_is_due(&a->energy, a->covered_ms))
		divide_energy(a, on);
	return energy_next_ms(&a->energy, a->covered_ms);
}

/* The same for time that is being accounted. The holders stay as they are until the call of the
 * account returns, so the moment stays the same until it has come, and what is held, too. */
static int64_t next_edge(struct account *a, struct account_scene *on, int64_t most_ms)
{
	if (a->covered_ms >= a->calm_ms || !a->led)
		account_holders_add(a, on);
	if (a->covered_ms >= a->calm_ms) {
		a->calm_ms = next_change(on, a->covered_ms, INT64_MAX);
		for (enum sureness sure = HELD_COUNTED; sure <= HELD_MAYBE; sure++)
			a->calm[sure] =
				classify_held_at(on->holders, on->n, a->covered_ms, sure);
		a->led = false;
	}
	if (!a->led)
		classify_leads(on->holders, on->n, a->covered_ms);
	a->led = true;
	return clock_earlier(a->calm_ms, most_ms);
}

/* Finds which leases count from covered_ms on. Returns until when. */
static int64_t find_leased(struct account *a, struct account_scene *on)
{
	if (a->leases_version != on->leases_version || a->covered_ms < a->leased.from_ms ||
		a->covered_ms >= a->leased.to_ms) {
		account_holders_add(a, on);
		leased_find(on->leases, on->n_leases, a->covered_ms, &a->leased);
	}
	a->leases_version = on->leases_version;
	return a->leased.to_ms;
}

/* Returns the next moment at which a turn begins or ends. */
static int64_t next_turn(struct account *a, const struct account_scene *on)
{
	if (a->covered_ms >= a->turn_ms) {
		a->turn_ms = classify_next_turn_ms(on->holders, on->n, a->covered_ms);
		a->turn_found = false;
	}
	return a->turn_ms;
}

/* Cuts a stretch at slot boundaries and where holders change. */
static void account_observed(struct account *a, int64_t to_ms, struct account_scene *on)
{
	while (a->covered_ms < to_ms) {
		int64_t slot_end =
			(ledger_slot(on->ledger, a->covered_ms) + on->ledger->slot_seconds) *
			1000;
		int64_t end = next_edge(a, on, clock_earlier(to_ms, slot_end));
		end = clock_earlier(end, next_energy(a, on));
		if (on->n_leases)
			end = clock_earlier(end, find_leased(a, on));
		if (a->turns)
			end = clock_earlier(end, next_turn(a, on));
		if (a->covered_ms < a->stall_from_ms)
			end = clock_earlier(end, a->stall_from_ms);
		else if (a->covered_ms < a->stall_to_ms)
			end = clock_earlier(end, a->stall_to_ms);
		if (a->covered_ms < a->unlisted_ms)
			end = clock_earlier(end, a->unlisted_ms);
		if (a->covered_ms < a->steady_from_ms)
			end = clock_earlier(end, a->steady_from_ms);
		else if (a->covered_ms < a->steady_to_ms)
			end = clock_earlier(end, a->steady_to_ms);
		account_piece(a, a->covered_ms, end, on);
		a->covered_ms = end;
	}
}

static void account_unobserved(struct account *a, int64_t to_ms, struct ledger *ledger)
{
	if (a->covered_ms < to_ms)
		settle(a, ledger, false);
	while (a->covered_ms < to_ms) {
		int64_t slot = ledger_slot(ledger, a->covered_ms);
		int64_t end = clock_earlier(to_ms, (slot + ledger->slot_seconds) * 1000);
		int64_t ms = end - a->covered_ms;
		add_usage(a,
			&(struct account_part){ .slot = slot,
				.from_ms = a->covered_ms,
				.to_ms = end,
				.ms = ms,
				.state = CARD_UNOBSERVED },
			ledger);
		a->unobserved_ms += ms;
		a->covered_ms = end;
	}
}

static bool differs(double a_pct, double b_pct, const struct rules *rules)
{
	return (a_pct >= rules->active_util_pct) != (b_pct >= rules->active_util_pct);
}

/* Whether nothing is missing between the newest sample accounted and this one. Some drivers
 * take no samples while a card is idle, so more time between two samples of 0 is no gap. */
static bool is_joined(
	const struct account *a, const struct account_sample *s, const struct account_drain *d)
{
	int64_t gap_ms = s->at_ms - a->stamp_ms;
	bool dry = a->before[COVER_BESIDE - 1] == 0 && s->pct == 0 && !s->suspect &&
		   a->stamp_ms >= a->torn_ms;
	return a->stamp_ms >= 0 &&
	       gap_ms <= (dry && d->hold.dry_ms ? d->hold.dry_ms : d->hold.hold_ms);
}

/* Returns the begin of a sample's period: the stamp of the one before, or the moment up to
 * which time is accounted; after a gap the usual period is assumed. */
static int64_t begin_of(
	const struct account *a, const struct account_sample *s, const struct account_drain *d)
{
	if (is_joined(a, s, d))
		return a->stamp_ms;
	if (a->stamp_ms < 0 && s->at_ms - a->covered_ms <= d->hold.hold_ms)
		return a->covered_ms;
	return s->at_ms - d->hold.period_ms;
}

/* Accounts the even time that was put off. */
static void account_even(struct account *a, struct account_scene *on)
{
	if (a->even_ms > a->covered_ms)
		account_observed(a, a->even_ms, on);
}

/* Accounts with this utilisation up to a moment. */
static void account_pct(struct account *a, double pct, int64_t to_ms, struct account_scene *on)
{
	a->pct = pct;
	account_observed(a, to_ms, on);
}

/* The sample becomes the previous one. */
static void pass(struct account *a, const struct account_sample *s, bool joined)
{
	a->before[0] = joined ? a->before[1] : NAN;
	a->before[1] = s->suspect ? NAN : s->pct;
	a->stamp_ms = s->at_ms;
}

/* Whether the sample has the same utilisation as the two before and after it, and as the time
 * that was accounted last. */
static bool is_even(
	const struct account *a, const struct account_sample *s, const double next[2])
{
	return s->pct == a->pct && a->before[0] == s->pct && a->before[1] == s->pct &&
	       next[0] == s->pct && next[1] == s->pct && s->suspect == a->suspect;
}

/* Accounts a sample's period; `next` are the two samples that follow, NAN: unknown. Of a row of
 * even samples, all periods are accounted at once, when the row or the drain ends. */
static void take_mean(struct account *a, const struct account_sample *s, const double next[2],
	const struct account_drain *d, struct account_scene *on)
{
	bool joined = is_joined(a, s, d);
	int64_t begin_ms = begin_of(a, s, d);
	if (joined && is_even(a, s, next)) {
		pass(a, s, joined);
		a->even_ms = s->at_ms;
		return;
	}
	account_even(a, on);
	double length_ms = (double)(s->at_ms - begin_ms);
	const double around[] = { joined ? a->before[0] : NAN, joined ? a->before[1] : NAN,
		s->pct, next[0], next[1] };
	struct cover cover = cover_of(around, on->rules->active_util_pct);
	if (begin_ms > a->covered_ms)
		account_unobserved(a, begin_ms, on->ledger);
	a->suspect = s->suspect;
	int64_t from_ms = begin_ms + account_whole(cover.from * length_ms);
	int64_t to_ms = begin_ms + account_whole((cover.from + cover.part) * length_ms);
	if (cover.part > 0) {
		account_pct(a, cover.unused_pct, from_ms, on);
		account_pct(a, cover.used_pct, to_ms, on);
	}
	account_pct(a, cover.part < 1 ? cover.unused_pct : s->pct, s->at_ms, on);
	if (cover.part > 0 && cover.part < 1) {
		/* How far the edge of a stretch of use can be off. The level of use is
		 * never quite steady; where it is not known at all, the use may well have been
		 * three times as long. Such errors have one sign, so they are added up. */
		double guess = fmin(1.5 * cover.part, 1 - cover.part);
		double part = cover.guessed && guess > EDGE_PART ? guess : EDGE_PART;
		add_unsure(a, on->ledger, llround(part * length_ms));
	}
	pass(a, s, joined);
}

/* The state changed between two single readings. The moment is not known: the middle counts.
 * The stretch that ends there is lone if it has one reading only: most such stretches are
 * shorter than the time between two readings, so others like it were missed. */
static void take_change(struct account *a, const struct account_sample *s,
	const struct account_drain *d, struct account_scene *on)
{
	double last = a->before[1], active_pct = on->rules->active_util_pct;
	bool lone = differs(a->before[0], last, on->rules);
	int64_t length_ms = s->at_ms - a->stamp_ms;
	double level = lone ? (last + 100) / 2 : fmax(a->before[0], last);
	double excess_ms = cover_excess(level, active_pct) * (double)d->hold.reading_ms;
	/* A reading is the driver's newest sample. On the average the middle of its period is
	 * one period ago. */
	double back_ms = (double)d->hold.reading_ms;
	/* A lone stretch stands also for the excess of those that were missed. */
	if (last >= active_pct)
		back_ms += lone ? 1.5 * excess_ms : excess_ms;
	back_ms = fmin(back_ms, (double)length_ms / 2);
	account_pct(a, last, s->at_ms - length_ms / 2 - llround(back_ms), on);
	/* If half of the lone stretches are seen and count as the time between two readings,
	 * the variance of each is a quarter of its square, of the missed ones, too. Each has
	 * two edges, and the first of them was added as usual. */
	double square = square_of(length_ms, length_ms / 2);
	add_square(a, on->ledger, CARD_ACTIVE, lone ? 5 * square : square);
	if (lone)
		add_unsure(a, on->ledger, llround(2 * excess_ms / 3));
}

/* Accounts the time since the reading before. */
static void take_reading(struct account *a, const struct account_sample *s,
	const struct account_drain *d, struct account_scene *on)
{
	bool joined = is_joined(a, s, d);
	int64_t begin_ms = begin_of(a, s, d);
	bool changed = joined && differs(a->before[1], s->pct, on->rules);
	/* Two readings at a time may be of the same sample: they count as one. */
	bool same = joined && !changed && s->at_ms - begin_ms < d->hold.reading_ms;
	double before = a->before[0];
	if (begin_ms > a->covered_ms)
		account_unobserved(a, begin_ms, on->ledger);
	a->suspect = s->suspect;
	if (d->polled && changed)
		take_change(a, s, d, on);
	account_pct(a, s->pct, s->at_ms, on);
	pass(a, s, joined);
	if (same)
		a->before[0] = before;
}

static struct account_sample sample_at(const struct account_drain *d, size_t i)
{
	return (struct account_sample){ .at_ms = d->samples[i].wall_us / 1000,
		.pct = d->samples[i].util_pct,
		.suspect = d->suspect && d->suspect[i] };
}

/* The value of the sample at `i` as a neighbour of one that was taken at `at_ms`. */
static double neighbour(const struct account_drain *d, size_t i, int64_t at_ms)
{
	if (i >= d->n_samples)
		return NAN;
	struct account_sample s = sample_at(d, i);
	return s.suspect || s.at_ms - at_ms > d->hold.hold_ms ? NAN : s.pct;
}

/* Accounts the sample that was held back; sample `i` of the drain is the next. */
static void take_held(
	struct account *a, const struct account_drain *d, size_t i, struct account_scene *on)
{
	struct account_sample s = a->held;
	double next[] = { neighbour(d, i, s.at_ms), NAN };
	if (!isnan(next[0]))
		next[1] = neighbour(d, i + 1, d->samples[i].wall_us / 1000);
	a->holds = false;
	take_mean(a, &s, next, d, on);
}

/* The begin of the sample's period, if its neighbours show how long it is. */
static int64_t period_begin_ms(const struct account_drain *d, size_t i)
{
	int64_t at_ms = d->samples[i].wall_us / 1000;
	size_t other = i > 0 ? i - 1 : 1;
	if (d->polled || d->hold.whole || other >= d->n_samples)
		return at_ms;
	int64_t apart_ms = llabs(d->samples[other].wall_us / 1000 - at_ms);
	return apart_ms <= d->hold.hold_ms ? at_ms - apart_ms : at_ms;
}

int64_t account_begin_ms(
	const struct account *a, const struct account_drain *d, const struct account_scene *on)
{
	int64_t begin_ms = a->stall_to_ms;
	for (size_t i = d->n_samples; i-- > 0;) {
		int64_t from_ms = period_begin_ms(d, i);
		if (from_ms >= a->stall_to_ms || state_at(d->samples[i].util_pct, from_ms,
							 HELD_SURELY, on) != CARD_TRULY_IDLE)
			begin_ms = from_ms;
	}
	return begin_ms > a->covered_ms ? begin_ms : a->covered_ms;
}

/* Takes what the drain says about the use of processes. */
static void take_use(
	struct account *a, const struct account_drain *d, const struct account_scene *on)
{
	struct use_before before = { a->stamp_ms * 1000, { a->before[0], a->before[1] } };
	struct account_sample first = sample_at(d, 0);
	struct use_since use = classify_use_of_samples(d->samples, d->n_samples, d->use_known,
		is_joined(a, &first, d) ? &before : NULL, on->rules);
	size_t one = 0;
	a->use_known = d->use_known;
	a->sm_active_pct = d->sm_active_pct;
	/* Policy adds up the use of a session's processes, so one process gets all of it:
	 * one that is still there. */
	while (one + 1 < on->n && on->holders[one].to.at != EDGE_NEVER.at)
		one++;
	for (size_t i = 0; i < on->n; i++) {
		double alone_pct = i == one ? use.mean_pct : 0;
		on->holders[i].sm_pct = d->sm_pct[i];
		on->holders[i].uses_engine = d->uses_engine && d->uses_engine[i];
		on->holders[i].own_pct = d->use_known	  ? d->sm_pct[i]
					 : d->one_session ? alone_pct
							  : (double)NAN;
	}
	classify_use(on->holders, on->n, &use, on->rules);
	classify_turns(on->holders, on->n, &use, on->rules);
	a->turns = d->parts != NULL;
	for (size_t i = 0; d->parts && i < on->n; i++)
		on->holders[i].turn = turns_in_all(d->parts, d->parts->pct[i],
			on->holders[i].before_pct, on->rules->active_util_pct);
	if (a->steady_to_ms > a->covered_ms && !d->polled && !d->hold.whole)
		classify_swap(on->holders, on->n, a->steady_to_ms);
}

/* Keeps the newest use of each process, for the drain after. */
static void keep_use(const struct account_drain *d, const struct account_scene *on)
{
	size_t n = d->parts ? d->parts->n : 0;
	for (size_t i = 0; i < on->n; i++) {
		double *before = on->holders[i].before_pct;
		for (size_t k = 0; k < COVER_BESIDE; k++)
			before[k] = n >= COVER_BESIDE ? d->parts->pct[i][n - COVER_BESIDE + k]
						      : d->sm_pct[i];
	}
}

void account_drain(struct account *a, const struct account_drain *d, struct account_scene *on)
{
	a->calm_ms = a->turn_ms = INT64_MIN;
	if (d->n_samples && !a->started) {
		a->covered_ms = account_begin_ms(a, d, on);
		a->started = true;
	}
	/* The last sample of the previous drain is judged by the use of that drain. */
	if (d->n_samples && a->holds)
		take_held(a, d, 0, on);
	account_even(a, on);
	account_holders_add(a, on);
	if (d->n_samples)
		take_use(a, d, on);
	a->led = false;
	a->turn_ms = INT64_MIN;
	for (size_t i = 0, part = 0; i < d->n_samples; i++) {
		struct account_sample s = sample_at(d, i);
		if (d->parts && (i == 0 || d->samples[i].wall_us > d->parts->to_us[part])) {
			account_even(a, on);
			account_holders_add(a, on);
			part += i > 0 && part + 1 < d->parts->n;
			/* The use of processes in this part of the drain. */
			for (size_t k = 0; k < on->n; k++) {
				struct holder *h = &on->holders[k];
				h->sm_pct = d->parts->pct[k][part];
				h->turn = turns_in_part(d->parts, d->parts->pct[k],
					h->before_pct, part, on->rules->active_util_pct);
			}
			a->led = false;
			a->turn_ms = INT64_MIN;
		}
		if (d->polled || d->hold.whole) {
			take_reading(a, &s, d, on);
			continue;
		}
		a->held = s;
		a->holds = i + 1 == d->n_samples;
		if (!a->holds)
			take_held(a, d, i + 1, on);
	}
	account_even(a, on);
	if (d->n_samples) {
		keep_use(d, on);
		a->latest = (struct account_drain){ .hold = { .hold_ms = d->hold.hold_ms,
							    .period_ms = d->hold.period_ms,
							    .dry_ms = d->hold.dry_ms } };
	}
	divide_energy(a, on);
}

void account_energy(struct account *a, int64_t at_ms, double energy_mj)
{
	energy_read(&a->energy, at_ms, energy_mj);
}

void account_stall(struct account *a, int64_t from_ms, int64_t to_ms)
{
	a->stall_from_ms = from_ms;
	a->stall_to_ms = to_ms;
}

void account_torn(struct account *a, int64_t at_ms)
{
	a->torn_ms = at_ms;
}

void account_unlisted(struct account *a, int64_t from_ms)
{
	a->unlisted_ms = from_ms;
}

void account_doubt(struct account *a, int64_t from_ms, const struct account_scene *on)
{
	int64_t to_ms = clock_earlier(a->covered_ms, a->unlisted_ms), unsure_ms = 0;
	double idle_pct = isnan(a->pct) ? NAN : 0;
	while (a->started && from_ms < to_ms) {
		int64_t end = next_change(on, from_ms, to_ms);
		unsure_ms += is_unsure(idle_pct, from_ms, on) ? end - from_ms : 0;
		from_ms = end;
	}
	if (unsure_ms > 0)
		add_square(a, on->ledger, a->free_state, square_of(unsure_ms, 0));
}

void account_steady(struct account *a, int64_t from_ms, int64_t to_ms, struct held held)
{
	a->steady_from_ms = from_ms;
	a->steady_to_ms = to_ms;
	a->steady = held;
}

void account_flush(struct account *a, int64_t to_ms, struct account_scene *on)
{
	a->calm_ms = a->turn_ms = INT64_MIN;
	if (a->holds)
		take_held(a, &a->latest, 0, on);
	if (a->stamp_ms >= 0 && to_ms > a->covered_ms) {
		int64_t most_ms = a->stamp_ms + a->latest.hold.hold_ms;
		account_pct(a, a->before[1],
			to_ms <= most_ms ? to_ms : a->stamp_ms + a->latest.hold.period_ms, on);
		account_unobserved(a, to_ms, on->ledger);
	}
	settle(a, on->ledger, false);
	divide_energy(a, on);
}

void account_blind(struct account *a, int64_t to_ms, struct account_scene *on)
{
	a->calm_ms = a->turn_ms = INT64_MIN;
	if (!a->started) {
		a->started = true;
		a->covered_ms = to_ms;
	}
	if (to_ms > a->covered_ms) {
		if (a->holds)
			take_held(a, &a->latest, 0, on);
		account_unobserved(a, to_ms, on->ledger);
	}
	divide_energy(a, on);
	energy_read(&a->energy, to_ms, NAN);
}
