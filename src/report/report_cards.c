/* The tables of hosts and of cards. To add a column, add a row to an array of columns. */
#include "report/report_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/card.h"
#include "audit/audit.h"

/* Rows of hosts are struct audit_host; "" is unknown. */
static struct cell host_text(const void *row, size_t of)
{
	struct cell text = table_get_chars(row, of);
	return table_text(*text.text ? text.text : NULL);
}

static struct cell host_flag(const void *row, size_t of)
{
	bool flag;
	memcpy(&flag, (const char *)row + of, sizeof(flag));
	return table_number(flag);
}

static struct cell host_n_cards(const void *row, size_t of)
{
	(void)of;
	return table_number((double)((const struct audit_host *)row)->n_cards);
}

#define OF(member) offsetof(struct audit_host, member)
static const struct column host_columns[] = {
	{ .key = "host", .title = "host", TEXT(table_get_chars, OF(hostname)) },
	{ .key = "environment", .title = "environment", TEXT(host_text, OF(environment)) },
	{ .key = "driver", .title = "driver", TEXT(host_text, OF(driver)) },
	{ .key = "gpus", .title = "GPUs", VALUE(COUNT, host_n_cards, 0) },
	{ .key = "simulated", VALUE(BOOL, host_flag, OF(simulated)) },
	{ .key = "imported", VALUE(BOOL, host_flag, OF(imported)) },
	{ .key = "recording", .title = "recording", VALUE(BOOL, host_flag, OF(recording)) },
	{ .key = "known_since",
		.title = "known since",
		VALUE(MOMENT, table_get_known, OF(known_ms)) },
	{ .key = "last_tick",
		.title = "last tick",
		VALUE(MOMENT, table_get_known, OF(last_tick_ms)) },
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

/* The data of a row of cards. */
struct card_row {
	struct audit_card card;
	const char *host;
	char label[CARD_LABEL_CAP + 1]; /* followed by a star if the card cannot be read now */
	char uuid[UUID_CAP];		/* the short one */
	double shown[CARD_STATES],
		shown_observed; /* shares as rounded by report_shown_shares() */
};

static struct cell card_index(const void *row, size_t of)
{
	(void)of;
	return table_number(((const struct card_row *)row)->card.id.index);
}

static struct cell card_instance(const void *row, size_t of)
{
	(void)of;
	return table_known(((const struct card_row *)row)->card.id.mig_index);
}

static struct cell card_parent(const void *row, size_t of)
{
	const char *uuid = ((const struct card_row *)row)->card.id.parent_uuid;
	(void)of;
	return table_text(*uuid ? uuid : NULL);
}

static struct cell card_source(const void *row, size_t of)
{
	const char *source = ((const struct card_row *)row)->card.source;
	(void)of;
	return table_text(*source ? source : NULL);
}

static struct cell card_name_shown(const void *row, size_t of)
{
	(void)of;
	return table_text(card_short_name(((const struct card_row *)row)->card.id.name));
}

static struct cell card_ms(const void *row, size_t state)
{
	return table_number((double)((const struct card_row *)row)->card.ms[state]);
}

/* The share of observed time. */
static struct cell card_share(const void *row, size_t state)
{
	const int64_t *ms = ((const struct card_row *)row)->card.ms;
	return table_number(report_share(ms[state], report_observed_ms(ms)));
}

/* The same, rounded for people. */
static struct cell card_shown(const void *row, size_t state)
{
	return table_number(((const struct card_row *)row)->shown[state]);
}

/* The same, but 0 is returned as unknown, so that text omits the column when all rows are 0. */
static struct cell card_some_shown(const void *row, size_t state)
{
	const int64_t *ms = ((const struct card_row *)row)->card.ms;
	return ms[state] ? card_shown(row, state) : table_number(NAN);
}

static struct cell card_shown_observed(const void *row, size_t of)
{
	(void)of;
	return table_number(((const struct card_row *)row)->shown_observed);
}

static struct cell card_observed(const void *row, size_t of)
{
	const int64_t *ms = ((const struct card_row *)row)->card.ms;
	int64_t seen_ms = report_observed_ms(ms);
	(void)of;
	return table_number(report_share(seen_ms, seen_ms + ms[CARD_UNOBSERVED]));
}

static struct cell card_uncertainty(const void *row, size_t of)
{
	const struct audit_card *card = &((const struct card_row *)row)->card;
	(void)of;
	if (card->unsure_ms < 0)
		return table_number(NAN);
	return table_number(report_share(card->unsure_ms, report_observed_ms(card->ms)));
}

/* The mean over the time for which it is known. */
static struct cell card_util(const void *row, size_t of)
{
	const struct audit_card *card = &((const struct card_row *)row)->card;
	int64_t known_ms = report_observed_ms(card->ms) - card->ms[CARD_USE_UNKNOWN];
	(void)of;
	return table_number(card->util_pct_ms < 0 ? (double)NAN
						  : report_share(card->util_pct_ms, known_ms));
}

static struct cell card_sm_active(const void *row, size_t of)
{
	const struct audit_card *card = &((const struct card_row *)row)->card;
	(void)of;
	return table_number(report_share(card->sm_active_pct_ms, card->sm_active_ms));
}

static struct cell card_energy(const void *row, size_t state)
{
	const struct audit_card *card = &((const struct card_row *)row)->card;
	return table_number(
		report_energy_kwh(card->energy_mj, card->energy_known_ms, card->ms, state));
}

/* The cost of the card's time: one part, or with COSTS the sum. */
static struct cell card_money(const void *row, size_t part)
{
	struct audit_cost cost = { 0 };
	audit_cost_card(&cost, &((const struct card_row *)row)->card, 0, COST_PARTS);
	return table_number(report_bill_money(&cost, part));
}

#define OF(member) offsetof(struct card_row, member)
static const struct column card_columns[] = {
	{ .key = "host", TEXT(table_get_string, OF(host)) },
	{ .title = "gpu", TEXT(table_get_chars, OF(label)) },
	{ .title = "uuid", TEXT(table_get_chars, OF(uuid)), .width = -8 },
	{ .key = "uuid", TEXT(table_get_chars, OF(card.id.uuid)) },
	{ .key = "index", VALUE(COUNT, card_index, 0) },
	{ .json = "name", TEXT(table_get_chars, OF(card.id.name)) },
	{ .key = "mig_index", VALUE(COUNT, card_instance, 0) },
	{ .key = "name", .json = "", TEXT(table_get_chars, OF(card.id.name)) },
	{ .title = "name", TEXT(card_name_shown, 0), .flexible = true, .optional = true },
	{ .json = "parent_uuid", TEXT(card_parent, 0) },
	{ .json = "source", TEXT(card_source, 0) },
	{ .key = "status", TEXT(table_get_chars, OF(card.status)) },
	{ .json = "mean_util_pct", VALUE(PCT, card_util, 0) },
	{ .json = "sm_active_pct", VALUE(PCT, card_sm_active, 0) },
	{ .key = "active_gpu_seconds",
		.json = "gpu_seconds.active",
		VALUE(GPU_MS, card_ms, CARD_ACTIVE) },
	{ .key = "idle_held_gpu_seconds",
		.json = "gpu_seconds.idle_held",
		VALUE(GPU_MS, card_ms, CARD_IDLE_HELD) },
	{ .key = "truly_idle_gpu_seconds",
		.json = "gpu_seconds.truly_idle",
		VALUE(GPU_MS, card_ms, CARD_TRULY_IDLE) },
	{ .key = "unobserved_gpu_seconds",
		.json = "gpu_seconds.unobserved",
		VALUE(GPU_MS, card_ms, CARD_UNOBSERVED) },
	{ .json = "gpu_seconds.use_unknown", VALUE(GPU_MS, card_ms, CARD_USE_UNKNOWN) },
	{ .key = "active", .json = "", VALUE(SHARE, card_share, CARD_ACTIVE) },
	{ .key = "idle_held", .json = "", VALUE(SHARE, card_share, CARD_IDLE_HELD) },
	{ .key = "truly_idle", .json = "", VALUE(SHARE, card_share, CARD_TRULY_IDLE) },
	{ .title = "active", .width = 6, VALUE(SHARE, card_shown, CARD_ACTIVE) },
	{ .title = "idle-held", .width = 6, VALUE(SHARE, card_shown, CARD_IDLE_HELD) },
	{ .title = "truly-idle", .width = 6, VALUE(SHARE, card_shown, CARD_TRULY_IDLE) },
	{ .title = "use?",
		.width = 6,
		.optional = true,
		VALUE(SHARE, card_some_shown, CARD_USE_UNKNOWN) },
	{ .key = "mean_util_pct",
		.json = "",
		.title = "util",
		.width = 6,
		VALUE(PCT, card_util, 0) },
	{ .title = "SM", .width = 6, .optional = true, VALUE(PCT, card_sm_active, 0) },
	{ .key = "observed", .json = "", VALUE(SHARE, card_observed, 0) },
	{ .title = "observed", .width = 6, VALUE(SHARE, card_shown_observed, 0) },
	{ .key = "use_unknown_gpu_seconds",
		.json = "",
		VALUE(GPU_MS, card_ms, CARD_USE_UNKNOWN) },
	{ .key = "use_unknown", .json = "", VALUE(SHARE, card_share, CARD_USE_UNKNOWN) },
	{ .key = "idle_held_uncertainty", VALUE(SHARE, card_uncertainty, 0) },
	{ .key = "sm_active_pct", .json = "", VALUE(PCT, card_sm_active, 0) },
	{ .json = "energy_kwh.active", VALUE(KWH, card_energy, CARD_ACTIVE) },
	{ .json = "energy_kwh.idle_held", VALUE(KWH, card_energy, CARD_IDLE_HELD) },
	{ .json = "energy_kwh.truly_idle", VALUE(KWH, card_energy, CARD_TRULY_IDLE) },
	{ .json = "energy_kwh.use_unknown", VALUE(KWH, card_energy, CARD_USE_UNKNOWN) },
	{ .key = "price_per_gpu_hour", VALUE(MONEY, table_get_double, OF(card.price)) },
	{ .key = "active_cost", .json = "cost.active", VALUE(MONEY, card_money, COST_ACTIVE) },
	{ .key = "idle_held_cost",
		.json = "cost.idle_held",
		VALUE(MONEY, card_money, COST_IDLE_HELD) },
	{ .key = "use_unknown_cost",
		.json = "cost.use_unknown",
		VALUE(MONEY, card_money, COST_USE_UNKNOWN) },
	{ .key = "truly_idle_cost",
		.json = "cost.truly_idle",
		VALUE(MONEY, card_money, COST_TRULY_IDLE) },
	{ .key = "unobserved_cost",
		.json = "cost.unobserved",
		VALUE(MONEY, card_money, COST_UNOBSERVED) },
	{ .key = "cost", .json = "cost.total", VALUE(MONEY, card_money, COSTS) },
};
#undef OF

void report_cards_add(struct table *t, const struct audit *a)
{
	*t = (struct table)TABLE_OF(card_columns);
	bool tail = false;
	for (size_t i = 0; i < a->n_cards; i++) {
		const struct audit_card *card = &a->cards[i];
		struct card_row row = { .card = *card, .host = a->hosts[card->host].hostname };
		if (i == 0 || card->host != a->cards[i - 1].host)
			tail = heads_are_alike(a, i);
		card_label(row.label, sizeof(row.label) - 1, &card->id);
		if (strcmp(card->status, "ok") != 0)
			strcat(row.label, "*");
		short_uuid(row.uuid, sizeof(row.uuid), card->id.uuid, tail);
		report_shown_shares(card->ms, row.shown, &row.shown_observed);
		table_add(t, &row);
	}
}
