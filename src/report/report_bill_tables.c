/* The columns of the bill's tables. To add a column, add a row to an array of columns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "model/card_name.h"
#include "audit/audit.h"
#include "report/report_bill.h"

double cost_money(const struct audit_cost *cost, size_t part)
{
	double sum = 0;
	if (!cost->priced)
		return NAN;
	if (part < COSTS)
		return cost->money[part];
	for (int i = 0; i < COST_PARTS; i++)
		sum += cost->money[i];
	return sum;
}

static const struct bill_line *line_of(const void *row)
{
	return row;
}

static struct cell line_kind(const void *row, size_t of)
{
	static const char *const names[BILL_KINDS] = { [BILL_IDENTITY] = "identity",
		[BILL_UNATTRIBUTED] = "unattributed",
		[BILL_FREE] = "free",
		[BILL_UNOBSERVED] = "unobserved",
		[BILL_REST] = "rest",
		[BILL_HELD] = "held",
		[BILL_TOTAL] = "total" };
	(void)of;
	return cell_text(names[line_of(row)->kind]);
}

static struct cell line_ms(const void *row, size_t of)
{
	const struct audit_cost *cost = &line_of(row)->cost;
	(void)of;
	return cell_number((double)(cost->priced_ms + cost->unpriced_ms));
}

static struct cell line_unpriced(const void *row, size_t of)
{
	(void)of;
	return cell_number((double)line_of(row)->cost.unpriced_ms);
}

/* Only holders squat. */
static bool may_have(const struct bill_line *line, size_t part)
{
	return part != COST_SQUATTING || line->kind == BILL_IDENTITY ||
	       line->kind == BILL_REST || line->kind == BILL_HELD;
}

static struct cell line_money(const void *row, size_t part)
{
	const struct bill_line *line = line_of(row);
	return cell_number(may_have(line, part) ? cost_money(&line->cost, part) : NAN);
}

/* Free and unobserved time has no parts to show. */
static bool has_part(const struct bill_line *line, size_t part)
{
	bool whole = line->kind == BILL_FREE || line->kind == BILL_UNOBSERVED;
	return may_have(line, part) && (!whole || part == COSTS) &&
	       isfinite(cost_money(&line->cost, COSTS));
}

static struct cell line_shown(const void *row, size_t part)
{
	const struct bill_line *line = line_of(row);
	if (!has_part(line, part))
		return cell_number(NAN);
	if (part == COSTS)
		return cell_number(bill_sum(&line->cents));
	return cell_number((double)(part == COST_SQUATTING ? line->cents.squatting
							   : line->cents.parts[part]) /
			   100);
}

/* 0 becomes unknown, so that text shows the column only if there is some. */
static struct cell line_some_shown(const void *row, size_t part)
{
	struct cell cell = line_shown(row, part);
	return cell.number == 0 ? cell_number(NAN) : cell;
}

static struct cell line_exact(const void *row, size_t amount)
{
	return cell_number(line_of(row)->exact[amount]);
}

static struct cell line_amount(const void *row, size_t amount)
{
	return cell_number(line_of(row)->shown[amount]);
}

#define OF(member) offsetof(struct bill_line, member)
static const struct column line_columns[] = {
	{ .key = "line", TEXT(line_kind, 0) },
	{ .key = "identity", TEXT(get_string, OF(identity)) },
	{ .title = "", .width = 10, .flexible = true, TEXT(get_chars, OF(label)) },
	{ .key = "gpu_seconds", VALUE(GPU_MS, line_ms, 0) },
	{ .title = "GPU-\nhours", .width = 6, VALUE(MONEY, line_amount, AMOUNT_HOURS) },
	{ .key = "active_cost", .json = "cost.active", VALUE(MONEY, line_money, COST_ACTIVE) },
	{ .key = "idle_held_cost",
		.json = "cost.idle_held",
		VALUE(MONEY, line_money, COST_IDLE_HELD) },
	{ .key = "use_unknown_cost",
		.json = "cost.use_unknown",
		VALUE(MONEY, line_money, COST_USE_UNKNOWN) },
	{ .key = "truly_idle_cost",
		.json = "cost.truly_idle",
		VALUE(MONEY, line_money, COST_TRULY_IDLE) },
	{ .key = "unobserved_cost",
		.json = "cost.unobserved",
		VALUE(MONEY, line_money, COST_UNOBSERVED) },
	{ .key = "cost", .json = "cost.total", VALUE(MONEY, line_money, COSTS) },
	{ .key = "squatting_cost", VALUE(MONEY, line_money, COST_SQUATTING) },
	{ .key = "unpriced_gpu_seconds", VALUE(GPU_MS, line_unpriced, 0) },
	{ .title = "active",
		.width = 6,
		.optional = true,
		VALUE(MONEY, line_shown, COST_ACTIVE) },
	{ .title = "idle",
		.width = 6,
		.optional = true,
		VALUE(MONEY, line_shown, COST_IDLE_HELD) },
	{ .title = "use\nunknown",
		.optional = true,
		VALUE(MONEY, line_some_shown, COST_USE_UNKNOWN) },
	{ .title = "cost", .width = 6, .optional = true, VALUE(MONEY, line_shown, COSTS) },
	{ .title = "(idle on\nbusy GPU)",
		.optional = true,
		VALUE(MONEY, line_some_shown, COST_SQUATTING) },
	{ .key = "energy_kwh", VALUE(KWH, line_exact, AMOUNT_KWH) },
	{ .key = "energy_floor_kwh", VALUE(KWH, line_exact, AMOUNT_FLOOR) },
	{ .key = "energy_cost", VALUE(MONEY, line_exact, AMOUNT_ENERGY_COST) },
	{ .key = "co2_kg", VALUE(KWH, line_exact, AMOUNT_CO2) },
};

static const struct column energy_columns[] = {
	{ .title = "", .width = 10, .flexible = true, TEXT(get_chars, OF(label)) },
	{ .title = "kWh", .width = 8, VALUE(KWH, line_amount, AMOUNT_KWH) },
	{ .title = "of it\nidle floor", VALUE(KWH, line_amount, AMOUNT_FLOOR) },
	{ .title = "cost",
		.width = 8,
		.optional = true,
		VALUE(MONEY, line_amount, AMOUNT_ENERGY_COST) },
	{ .title = "CO2 kg",
		.width = 8,
		.optional = true,
		VALUE(KWH, line_amount, AMOUNT_CO2) },
};
#undef OF

void bill_start(struct report_bill *bill)
{
	bill->lines = (struct table)TABLE_OF(line_columns);
	bill->energy = (struct table)TABLE_OF(energy_columns);
}

void bill_list(struct report_bill *bill, const struct bill_line *line)
{
	table_add(&bill->lines, line);
	if (line->kind != BILL_UNOBSERVED || isfinite(line->exact[AMOUNT_KWH]))
		table_add(&bill->energy, line);
}

/* The data of a row of cards. */
struct card_line {
	char label[192], price[40];
	const char *name;
	struct audit_cost cost;
	struct bill_cents cents;
};

static struct cell card_shown(const void *row, size_t part)
{
	const struct card_line *line = row;
	if (isnan(cost_money(&line->cost, COSTS)))
		return cell_number(NAN);
	return cell_number(
		part == COSTS ? bill_sum(&line->cents) : (double)line->cents.parts[part] / 100);
}

static struct cell card_some_shown(const void *row, size_t part)
{
	struct cell cell = card_shown(row, part);
	return cell.number == 0 ? cell_number(NAN) : cell;
}

#define OF(member) offsetof(struct card_line, member)
static const struct column card_columns[] = {
	{ .title = "gpu", .width = -14, TEXT(get_chars, OF(label)) },
	{ .title = "name", .flexible = true, .optional = true, TEXT(get_string, OF(name)) },
	{ .title = "per\nhour", .width = 5, TEXT(get_chars, OF(price)) },
	{ .title = "active", .width = 6, VALUE(MONEY, card_shown, COST_ACTIVE) },
	{ .title = "idle-held", VALUE(MONEY, card_shown, COST_IDLE_HELD) },
	{ .title = "use\nunknown",
		.optional = true,
		VALUE(MONEY, card_some_shown, COST_USE_UNKNOWN) },
	{ .title = "truly-\nidle", .width = 6, VALUE(MONEY, card_shown, COST_TRULY_IDLE) },
	{ .title = "un-\nobserved", VALUE(MONEY, card_shown, COST_UNOBSERVED) },
	{ .title = "cost", .width = 6, VALUE(MONEY, card_shown, COSTS) },
};
#undef OF

static void show_card(
	struct card_line *line, const struct audit *a, const struct audit_card *card)
{
	char label[CARD_LABEL_CAP];
	card_label(label, sizeof(label), &card->id);
	snprintf(line->label, sizeof(line->label), "%s%s%s",
		a->n_hosts > 1 ? a->hosts[card->host].hostname : "", a->n_hosts > 1 ? " " : "",
		label);
	line->name = card_short_name(card->id.name);
	if (isfinite(card->price))
		price_text(line->price, sizeof(line->price), card->price);
	else
		text_copy(line->price, sizeof(line->price), "-");
}

bool bill_list_cards(struct table *t, const struct audit *a, const struct bill_cents *all)
{
	size_t n = a->n_cards;
	struct audit_cost *costs = calloc(n + 1, sizeof(*costs));
	const struct audit_cost **each = calloc(n + 1, sizeof(*each));
	struct bill_cents *cents = calloc(n + 1, sizeof(*cents));
	struct card_line total = { .label = "total", .name = "" };
	*t = (struct table)TABLE_OF(card_columns);
	for (size_t i = 0; i < n && costs && each; i++) {
		audit_cost_card(&costs[i], &a->cards[i], 0, COST_PARTS);
		each[i] = &costs[i];
	}
	bool fits = costs && each && cents && bill_divide(each, n, all, cents);
	for (size_t i = 0; i < n && fits; i++) {
		struct card_line line = { .cost = costs[i], .cents = cents[i] };
		show_card(&line, a, &a->cards[i]);
		table_add(t, &line);
		audit_cost_add(&total.cost, &costs[i]);
		bill_add(&total.cents, &cents[i]);
	}
	if (fits && n > 1)
		table_add(t, &total);
	free(costs);
	free(each);
	free(cents);
	return fits;
}
