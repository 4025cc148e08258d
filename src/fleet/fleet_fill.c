/* Fills the audit of a fleet: its window, hosts and cards in order, users, breakdown. */
#include "fleet/fleet_fill.h"

#include "fleet/roster.h"

int fleet_fill_begin(struct fleet_fill *fill, struct err *e)
{
	struct audit *a = fill->a;
	audit_init(a);
	tzset();
	audit_clip(a, fill->q, false);
	a->of_users = restriction_of_users(&fill->q->only);
	fill->clock.utc = fill->q->utc;
	fill->gather = (struct gather){ .a = a, .q = fill->q };
	fill->others_ms = -1;
	fill->slot_seconds = 60;
	if (a->until_ms - a->since_ms < 1000)
		return err_set(e, ERR_USAGE, "the window is empty");
	return fleet_probe(fill->f, e);
}

int fleet_fill_window(struct fleet_fill *fill, int64_t oldest_ms, struct err *e)
{
	struct audit *a = fill->a;
	if (fill->has_window)
		return 0;
	fill->has_window = true;
	a->oldest_ms = oldest_ms;
	if (fill->others_ms >= 0)
		a->oldest_ms = clock_earlier(oldest_ms, fill->others_ms);
	audit_clip(a, fill->q, false);
	fill->gather.from_slot = a->since_ms / 1000;
	fill->gather.to_slot = (a->until_ms + 999) / 1000;
	hours_plan_columns(&fill->gather, fill->slot_seconds);
	return hours_make_days(&fill->gather, e);
}

void fleet_fill_time(struct fleet_fill *fill, struct fleet_stretch t, int state, int64_t ms)
{
	enum { HOUR_MS = 3600000 };
	int64_t left = ms;
	for (int64_t at = t.from_ms; at < t.to_ms && left;) {
		int64_t end = clock_earlier((at / HOUR_MS + 1) * HOUR_MS, t.to_ms);
		int64_t part = left;
		if (end < t.to_ms)
			part = llround((double)ms * (double)(end - at) /
				       (double)(t.to_ms - t.from_ms));
		part = llabs(part) < llabs(left) ? part : left;
		const struct heat_slot slot = { at / 1000, (end - at + 999) / 1000 };
		hours_add(fill->a, &fill->clock, slot, state, part);
		left -= part;
		at = end;
	}
}

struct audit_host *fleet_fill_host(struct fleet_fill *fill, const char *name, struct err *e)
{
	uint32_t index = names_find(&fill->hosts, 0, name, e);
	if (index == IDMAP_NONE)
		return NULL;
	if (index < fill->a->n_hosts)
		return &fill->a->hosts[index];
	struct audit_host *host = audit_add_host(fill->a, e);
	if (!host)
		return NULL;
	str_copy(host->hostname, sizeof(host->hostname), name);
	host->ran = true;
	host->expected = roster_expects(fill->expected, name);
	return host;
}

/* Sets the time of a card's window without a reading. The window of an expected host begins
 * with that of the audit. */
static void set_unobserved(struct fleet_fill *fill, struct audit_card *card)
{
	bool expected = fill->a->hosts[card->host].expected;
	int64_t due_ms = expected ? fill->a->since_ms : card->first_seen_ms;
	int64_t rest_ms = card->last_seen_ms - due_ms - state_observed_ms(card->ms);
	card->from_ms = due_ms;
	card->to_ms = card->last_seen_ms;
	card->ms[CARD_UNOBSERVED] = clock_later(rest_ms, 0);
	hours_add_window(&fill->a->days, due_ms, card->last_seen_ms);
}

struct audit_card *fleet_fill_card(struct fleet_fill *fill, const struct audit_host *host,
	const struct audit_card *from, struct err *e)
{
	size_t index = (size_t)(host - fill->a->hosts);
	struct audit_card *card = audit_add_card(fill->a, e);
	if (!card || names_find(&fill->cards, 0, from->id.uuid, e) == IDMAP_NONE)
		return NULL;
	int64_t mem_total_bytes = card->id.mem_total_bytes;
	*card = *from;
	card->id.mem_total_bytes = mem_total_bytes;
	card->host = index;
	card->has_rows = true;
	card->price = card->floor_w = NAN;
	str_copy(card->status, sizeof(card->status), "ok");
	set_unobserved(fill, card);
	fill->a->hosts[index].n_cards++;
	return card;
}

static int compare_hosts(const void *x, const void *y, void *context)
{
	const struct audit_host *p = x, *q = y;
	const int64_t *idle_ms = context;
	int order = array_compare(idle_ms[q->number], idle_ms[p->number]);
	return order ? order : strcmp(p->hostname, q->hostname);
}

static int compare_cards(const void *x, const void *y)
{
	const struct audit_card *p = x, *q = y;
	int order = array_compare((int64_t)p->host, (int64_t)q->host);
	if (order == 0)
		order = array_compare(p->id.index, q->id.index);
	if (order == 0)
		order = array_compare(p->id.mig_index, q->id.mig_index);
	return order ? order : strcmp(p->id.uuid, q->id.uuid);
}

/* Begins the users, too. */
static void begin_users(struct fleet_fill *fill)
{
	struct audit_breakdown *to = &fill->a->breakdown;
	breakdown_start(&fill->breakdown, &fill->gather, &fill->users, to, &fill->q->by);
	for (size_t i = 0; i < to->by.n; i++)
		if (to->measures[i] != MEASURE_CARDS)
			to->measures[i] = MEASURE_SHARES;
}

int fleet_fill_sort(struct fleet_fill *fill, struct err *e)
{
	struct audit *a = fill->a;
	int64_t *idle_ms = calloc(a->n_hosts + 1, sizeof(*idle_ms));
	uint32_t *host_places = calloc(a->n_hosts + 1, sizeof(*host_places));
	fill->places = calloc(a->n_cards + 1, sizeof(*fill->places));
	bool good = idle_ms && host_places && fill->places;
	for (uint32_t i = 0; i < a->n_cards && good; i++) {
		idle_ms[a->cards[i].host] += a->cards[i].ms[CARD_IDLE_HELD];
		a->cards[i].number = i;
	}
	for (uint32_t i = 0; i < a->n_hosts; i++)
		a->hosts[i].number = i;
	if (a->n_hosts && good)
		qsort_r(a->hosts, a->n_hosts, sizeof(*a->hosts), compare_hosts, idle_ms);
	for (uint32_t i = 0; i < a->n_hosts && good; i++) {
		host_places[a->hosts[i].number] = i;
		a->until_ms = i ? clock_later(a->until_ms, a->hosts[i].until_ms)
				: a->hosts[i].until_ms;
	}
	for (size_t i = 0; i < a->n_cards && good; i++)
		a->cards[i].host = host_places[a->cards[i].host];
	if (a->n_cards && good)
		qsort(a->cards, a->n_cards, sizeof(*a->cards), compare_cards);
	for (uint32_t i = 0; i < a->n_cards && good; i++)
		fill->places[a->cards[i].number] = i;
	free(idle_ms);
	free(host_places);
	names_finish(&fill->hosts); /* nothing more is added */
	names_finish(&fill->cards);
	if (!good)
		return err_memory(e);
	begin_users(fill);
	return audit_cost_cards(&fill->gather, e);
}

int fleet_fill_user(struct fleet_fill *fill, size_t way, struct pair *pair, struct err *e)
{
	pair->started_ms = pair->peak_mem_kib = pair->last_active_ms = -1;
	pair->active_share_ms = pair->own_ms[HOLDER_ACTIVE];
	pair->idle_share_ms = pair->own_ms[HOLDER_IDLE_HELD];
	pair->unknown_share_ms = pair->own_ms[HOLDER_USE_UNKNOWN];
	memcpy(pair->presence_ms, pair->own_ms, sizeof(pair->presence_ms));
	struct audit_sums time = holdings_sums(pair);
	audit_cost_holder(&time, &fill->a->cards[pair->card]);
	audit_sums_add(&fill->users.items[pair->user].sums, &time);
	return fill->q->by.n ? breakdown_add(&fill->breakdown, way, pair, e) : 0;
}

static void set_fleet(struct fleet_fill *fill)
{
	struct audit *a = fill->a;
	struct audit_fleet *f = &a->fleet;
	f->asked = true;
	f->url = client_url(fill->f->client);
	f->engine = fill->f->engine;
	f->n_seen = a->n_hosts;
	f->n_expected = -1;
	f->missing = "";
	f->n_not_finite = client_not_finite(fill->f->client);
	f->n_warnings = client_warnings(fill->f->client, &f->warnings);
	for (size_t i = 0; i < a->n_hosts; i++) {
		a->has_leases |= a->hosts[i].has_leases;
		f->n_silent += !a->hosts[i].recording;
	}
}

/* How far off the sum of all samples can be. The cards of a host are scraped together and work
 * together, so that their errors add up; those of different hosts do not depend on each
 * other. */
static void add_unsure(struct audit *a)
{
	double of_host_ms = 0, squares = 0;
	for (size_t i = 0; i < a->n_cards; i++) {
		of_host_ms += (double)clock_later(a->cards[i].unsure_ms, 0);
		if (i + 1 == a->n_cards || a->cards[i + 1].host != a->cards[i].host) {
			squares += of_host_ms * of_host_ms;
			of_host_ms = 0;
		}
	}
	a->unsure_ms = llround(sqrt(squares));
}

int fleet_fill_end(struct fleet_fill *fill, struct err *e)
{
	struct audit *a = fill->a;
	if (breakdown_end(&fill->breakdown, e) || holdings_hand_over_users(&fill->users, a, e))
		return e->code;
	/* Users without time are the last: they are sorted by it. */
	while (a->n_identities &&
		audit_holder_ms(a->identities[a->n_identities - 1].sums.ms) == 0 &&
		a->identities[a->n_identities - 1].sums.reserved_ms == 0)
		a->n_identities--;
	set_fleet(fill);
	audit_add_up(a);
	add_unsure(a);
	/* The first values of counters say more about gua's hosts. */
	for (size_t i = 0; i < a->n_hosts; i++)
		a->fleet.n_late += a->hosts[i].late && strcmp(a->hosts[i].metrics, "gua") != 0;
	return roster_compare(fill->expected, a, &fill->q->only, e);
}

void fleet_fill_finish(struct fleet_fill *fill)
{
	names_finish(&fill->hosts);
	names_finish(&fill->cards);
	free(fill->places);
	breakdown_finish(&fill->breakdown);
	holdings_finish_users(&fill->users);
}
