/* The tables of hosts and of cards. To add a column, add a row to an array of columns. */
#include "report/report_parts.h"

#include "model/card.h"
#include "audit/audit.h"

#define OF(member) offsetof(struct audit_host, member)
static const struct column host_columns[] = {
	{ "host", "host", CHARS(hostname) },
	{ "environment", "environment", SOME_CHARS(environment) },
	{ "driver", "driver", SOME_CHARS(driver) },
	{ "gpus", "GPUs", SIZE(n_cards) },
	{ "simulated", FLAG(simulated) },
	{ "imported", FLAG(imported) },
	{ "recording", "recording", FLAG(recording) },
	{ "known_since", "known since", KNOWN(MOMENT, known_ms) },
	{ "last_tick", "last tick", KNOWN(MOMENT, last_tick_ms) },
	{ "leases", FLAG(has_leases) },
};
#undef OF

void report_cards_add_hosts(struct table *t, const struct audit *a)
{
	*t = (struct table)TABLE_OF(host_columns);
	for (size_t i = 0; i < a->n_hosts; i++)
		table_add(t, &a->hosts[i]);
}

/* Eight characters of "GPU-3f2a91c4-...": the first ones, or the last ones if the first do not
 * distinguish the cards. */
enum { SHORT_UUID = 8 };

static void short_uuid(char *dst, size_t cap, const char *uuid, bool tail)
{
	const char *dash = strchr(uuid, '-');
	const char *from = dash && dash - uuid <= 4 && dash[1] ? dash + 1 : uuid;
	size_t len = strlen(from);
	snprintf(dst, cap, "%.*s", SHORT_UUID,
		from + (tail && len > SHORT_UUID ? len - SHORT_UUID : 0));
}

/* Whether the UUIDs of a host's cards, beginning with the card `first`, have the same
 * beginning. */
static bool heads_are_alike(const struct audit *a, size_t first)
{
	size_t host = a->cards[first].host;
	char one[UUID_CAP], other[UUID_CAP];
	for (size_t i = first; i < a->n_cards && a->cards[i].host == host; i++) {
		short_uuid(one, sizeof(one), a->cards[i].id.uuid, false);
		for (size_t k = i; k-- > first;) {
			short_uuid(other, sizeof(other), a->cards[k].id.uuid, false);
			if (strcmp(one, other) == 0)
				return true;
		}
	}
	return false;
}

/* The data of a row of cards. Times are in milliseconds. */
struct card_row {
	struct audit_card card;
	const char *host, *short_name;
	int64_t mig_index;		/* -1: none */
	char label[CARD_LABEL_CAP + 1]; /* followed by a star if the card cannot be read now */
	char uuid[UUID_CAP];		/* the short one */
	double index, share[CARD_STATES], observed;
	double shown[CARD_STATES], shown_observed; /* as rounded by report_shown_shares() */
	double some_unknown, some_reserved; /* shown, but 0 is NAN: text omits a column without
					       values */
	double util, sm_active, uncertainty, kwh[CARD_STATES];
	double money[COSTS + 1]; /* as report_bill_money() */
};

#define OF(member) offsetof(struct card_row, member)
#define SECONDS(state, which)                                                                  \
	COLUMN(state "_gpu_seconds", .json = "gpu_seconds." state,                             \
		KNOWN(GPU_MS, card.ms[which]))
static const struct column card_columns[] = {
	{ "host", STRING(host) },
	{ .title = "gpu", CHARS(label) },
	{ .title = "uuid", CHARS(uuid), .width = -8 },
	{ "uuid", CHARS(card.id.uuid) },
	{ "index", NUMBER(COUNT, index) },
	{ .json = "name", CHARS(card.id.name) },
	{ "mig_index", KNOWN(COUNT, mig_index) },
	{ "name", .json = "", CHARS(card.id.name) },
	{ .title = "name", STRING(short_name), .flexible = true, .optional = true },
	{ .json = "parent_uuid", SOME_CHARS(card.id.parent_uuid) },
	{ .json = "source", SOME_CHARS(card.source) },
	{ "status", CHARS(card.status) },
	{ .json = "mean_util_pct", NUMBER(PCT, util) },
	{ .json = "sm_active_pct", NUMBER(PCT, sm_active) },
	SECONDS("active", CARD_ACTIVE),
	SECONDS("idle_held", CARD_IDLE_HELD),
	SECONDS("truly_idle", CARD_TRULY_IDLE),
	SECONDS("unobserved", CARD_UNOBSERVED),
	{ .json = "gpu_seconds.use_unknown", KNOWN(GPU_MS, card.ms[CARD_USE_UNKNOWN]) },
	{ .json = "gpu_seconds.reserved", KNOWN(GPU_MS, card.ms[CARD_RESERVED]) },
	{ "active", .json = "", NUMBER(SHARE, share[CARD_ACTIVE]) },
	{ "idle_held", .json = "", NUMBER(SHARE, share[CARD_IDLE_HELD]) },
	{ "truly_idle", .json = "", NUMBER(SHARE, share[CARD_TRULY_IDLE]) },
	{ .title = "active", NUMBER(SHARE, shown[CARD_ACTIVE]), .width = 6 },
	{ .title = "idle-held", NUMBER(SHARE, shown[CARD_IDLE_HELD]), .width = 6 },
	{ .title = "reserved",
		NUMBER(SHARE, some_reserved),
		.width = 6,
		.optional = true,
		.needed = true },
	{ .title = "truly-idle", NUMBER(SHARE, shown[CARD_TRULY_IDLE]), .width = 6 },
	{ .title = "use?", NUMBER(SHARE, some_unknown), .width = 6, .optional = true },
	{ "mean_util_pct", "util", .json = "", NUMBER(PCT, util), .width = 6,
		.optional = true },
	{ .title = "SM", NUMBER(PCT, sm_active), .width = 6, .optional = true },
	{ "observed", .json = "", NUMBER(SHARE, observed) },
	{ .title = "observed", NUMBER(SHARE, shown_observed), .width = 6 },
	{ "use_unknown_gpu_seconds", .json = "", KNOWN(GPU_MS, card.ms[CARD_USE_UNKNOWN]) },
	{ "use_unknown", .json = "", NUMBER(SHARE, share[CARD_USE_UNKNOWN]) },
	{ "idle_held_uncertainty", NUMBER(SHARE, uncertainty) },
	{ "sm_active_pct", .json = "", NUMBER(PCT, sm_active) },
	{ .json = "energy_kwh.active", NUMBER(KWH, kwh[CARD_ACTIVE]) },
	{ .json = "energy_kwh.idle_held", NUMBER(KWH, kwh[CARD_IDLE_HELD]) },
	{ .json = "energy_kwh.truly_idle", NUMBER(KWH, kwh[CARD_TRULY_IDLE]) },
	{ .json = "energy_kwh.use_unknown", NUMBER(KWH, kwh[CARD_USE_UNKNOWN]) },
	{ .json = "energy_kwh.reserved", NUMBER(KWH, kwh[CARD_RESERVED]) },
	{ "price_per_gpu_hour", NUMBER(MONEY, card.price) },
	CARD_COSTS,
	COST_TOTAL,
	{ "reserved_gpu_seconds", .json = "", KNOWN(GPU_MS, card.ms[CARD_RESERVED]) },
	{ "reserved", .json = "", NUMBER(SHARE, share[CARD_RESERVED]) },
};
#undef OF

static void set_numbers(struct card_row *row, bool has_leases)
{
	struct audit_card *card = &row->card;
	int64_t observed_ms = state_observed_ms(card->ms);
	int64_t known_ms = observed_ms - card->ms[CARD_USE_UNKNOWN];
	struct audit_cost cost = { 0 };
	for (size_t state = 0; state < CARD_STATES; state++) {
		row->share[state] = report_share(card->ms[state], observed_ms);
		row->kwh[state] = report_energy_kwh(
			card->energy_mj, card->energy_known_ms, card->ms, state);
	}
	row->observed = report_share(observed_ms, observed_ms + card->ms[CARD_UNOBSERVED]);
	report_shown_shares(card->ms, row->shown, &row->shown_observed);
	row->some_reserved = card->ms[CARD_RESERVED] ? row->shown[CARD_RESERVED] : NAN;
	row->some_unknown = card->ms[CARD_USE_UNKNOWN] ? row->shown[CARD_USE_UNKNOWN] : NAN;
	/* The means are over the time for which the value is known. */
	row->util = card->util_pct_ms < 0 ? NAN : report_share(card->util_pct_ms, known_ms);
	row->sm_active = report_share(card->sm_active_pct_ms, card->sm_active_ms);
	row->uncertainty =
		card->unsure_ms < 0 ? NAN : report_share(card->unsure_ms, observed_ms);
	audit_cost_card(&cost, card, 0, COST_PARTS);
	for (size_t part = 0; part <= COSTS; part++)
		row->money[part] = report_bill_money(&cost, part);
	if (has_leases)
		return;
	card->ms[CARD_RESERVED] = -1;
	row->share[CARD_RESERVED] = row->kwh[CARD_RESERVED] = row->money[COST_RESERVED] = NAN;
}

void report_cards_add(struct table *t, const struct audit *a)
{
	*t = (struct table)TABLE_OF(card_columns);
	bool tail = false;
	for (size_t i = 0; i < a->n_cards; i++) {
		const struct audit_card *card = &a->cards[i];
		struct card_row row = { .card = *card,
			.host = a->hosts[card->host].hostname,
			.short_name = card_short_name(card->id.name),
			.index = card->id.index,
			.mig_index = card->id.mig_index };
		if (i == 0 || card->host != a->cards[i - 1].host)
			tail = heads_are_alike(a, i);
		str_copy(row.label, sizeof(row.label) - 1, card_label(&card->id).text);
		if (strcmp(card->status, "ok") != 0)
			strcat(row.label, "*");
		short_uuid(row.uuid, sizeof(row.uuid), card->id.uuid, tail);
		set_numbers(&row, a->hosts[card->host].has_leases);
		table_add(t, &row);
	}
}
