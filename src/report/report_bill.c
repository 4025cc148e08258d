/* The bill of a report: money in cents that add up, its lines, tables and sentences. */
#include "audit/audit.h"
#include "model/card.h"
#include "report/report_parts.h"

/* The amounts of a line other than money and hours. */
enum amount { AMOUNT_KWH, AMOUNT_FLOOR, AMOUNT_ENERGY_COST, AMOUNT_CO2, AMOUNTS };

struct bill_line {
	enum bill_kind kind;
	const char *identity; /* NULL: the line has no identity */
	char label[WHERE_CAP];
	struct audit_cost cost;
	struct bill_cents cents;
	double exact[AMOUNTS], shown[AMOUNTS]; /* shown: hundredths; NAN: unknown */
};

static int64_t line_ms(const struct bill_line *line)
{
	return line->cost.priced_ms + line->cost.unpriced_ms;
}

static void round_parts(const double *money, size_t n, int64_t whole, int64_t *cents)
{
	double exact[COST_PARTS] = { 0 };
	for (size_t i = 0; i < n; i++)
		exact[i] = 100 * money[i];
	/* If there is no memory for this small array, each part is rounded by itself. */
	if (!shares_fit(exact, n, whole, cents))
		for (size_t i = 0; i < n; i++)
			cents[i] = llround(exact[i]);
}

void report_bill_total(struct bill_totals *t, const struct audit *a)
{
	double sum = 0;
	*t = (struct bill_totals){ 0 };
	for (int part = 0; part < COST_PARTS; part++)
		sum += a->cost.money[part];
	round_parts(a->cost.money, COST_PARTS, llround(100 * sum), t->all.parts);
	for (int part = 0; part < COST_HELD_PARTS; part++) {
		double held = a->held_cost.money[part];
		const double two[] = { held, a->cost.money[part] - held };
		int64_t cents[2];
		round_parts(two, 2, t->all.parts[part], cents);
		t->held.parts[part] = cents[0];
	}
	t->held.parts[COST_SQUATTING] = llround(100 * a->held_cost.money[COST_SQUATTING]);
}

/* Divides the cents of one part of the cost. */
static bool divide(
	const struct bill_share *shares, size_t n, enum cost_part part, const int64_t *whole)
{
	double *exact = calloc(n + 1, sizeof(*exact)), sum = 0;
	int64_t *fitted = calloc(n + 1, sizeof(*fitted));
	for (size_t i = 0; i < n && exact; i++) {
		exact[i] = 100 * shares[i].cost->money[part];
		sum += exact[i];
	}
	int64_t own = llround(sum);
	bool is_sum = whole && fabs((double)*whole - sum) < 2;
	bool fits = exact && fitted && shares_fit(exact, n, is_sum ? *whole : own, fitted);
	for (size_t i = 0; i < n && fits; i++)
		shares[i].cents->parts[part] = fitted[i];
	free(exact);
	free(fitted);
	return fits;
}

bool report_bill_divide(
	const struct bill_share *shares, size_t n, const struct bill_cents *whole)
{
	bool fits = true;
	for (int part = 0; part < COSTS && fits; part++)
		fits = divide(shares, n, part, whole ? &whole->parts[part] : NULL);
	return fits;
}

/* Rounds the money of lines to cents that add up to `whole`. */
static bool fit_lines(struct bill_line *lines, size_t n, const struct bill_cents *whole)
{
	struct bill_share *shares = calloc(n + 1, sizeof(*shares));
	for (size_t i = 0; i < n && shares; i++)
		shares[i] = (struct bill_share){ &lines[i].cost, &lines[i].cents };
	bool fits = shares && report_bill_divide(shares, n, whole);
	free(shares);
	return fits;
}

void report_bill_add_cents(struct bill_cents *to, const struct bill_cents *more)
{
	for (int part = 0; part < COSTS; part++)
		to->parts[part] += more->parts[part];
}

double report_bill_sum(const struct bill_cents *cents)
{
	int64_t sum = 0;
	for (int part = 0; part < COST_PARTS; part++)
		sum += cents->parts[part];
	return (double)sum / 100;
}

struct brief report_bill_price(double price)
{
	bool whole = fabs(price * 100 - round(price * 100)) < 1e-6;
	return str_brief(whole ? "%.2f" : "%.10g", price);
}

/* Explains why a user without use pays for active time, if one does. */
static void add_unsaid(struct report *r, const struct audit *a)
{
	for (size_t i = 0; i < a->n_identities; i++) {
		const struct audit_sums *s = &a->identities[i].sums;
		if (s->ms[HOLDER_ACTIVE] >= LEAST_SHOWN_MS || s->cost.money[COST_ACTIVE] < 0.01)
			continue;
		report_say(r, SENTENCE_BILL, NULL,
			"active of %s, who used nothing: a GPU was active for moments in which "
			"the driver named no process; its holders share them equally.",
			process_shown_user(a->identities[i].identity));
		return;
	}
}

/* Counters do not say on which card of a host a user was. */
static bool pays_mean(const struct audit *a)
{
	for (size_t i = 1; i < a->n_cards && a->fleet.n_counted; i++) {
		const struct audit_card *one = &a->cards[i - 1], *two = &a->cards[i];
		bool priced = isfinite(one->price) || isfinite(two->price);
		if (one->host == two->host && priced && one->price != two->price)
			return true;
	}
	return false;
}

/* Names the models with (or without) a price: "2.50 EUR for A100-SXM4-80GB (2 GPUs)". */
static size_t name_models(
	struct str *out, const struct audit *a, bool priced, const char *currency)
{
	size_t n = 0;
	for (size_t i = 0; i < a->n_cards; i++) {
		const struct audit_card *card = &a->cards[i];
		size_t first = 0, gpus = 0;
		while (strcmp(a->cards[first].id.name, card->id.name) != 0)
			first++;
		if (first < i || isfinite(card->price) != priced)
			continue;
		for (size_t k = i; k < a->n_cards; k++)
			gpus += strcmp(a->cards[k].id.name, card->id.name) == 0;
		const char *name = card_short_name(card->id.name);
		str_add(out, n++ ? ", " : "");
		if (priced)
			str_addf(out, "%s %s for ", report_bill_price(card->price).text,
				currency);
		str_addf(out, "%s (%zu GPU%s)", *name ? name : "(unknown model)", gpus,
			report_plural(gpus));
	}
	return n;
}

static void add_energy(struct report *r, const struct audit *a)
{
	const struct audit_cost *cost = a->of_users ? &a->held_cost : &a->cost;
	int64_t ms = cost->priced_ms + cost->unpriced_ms;
	if (!r->bill.has_energy) {
		report_say(r, SENTENCE_ENERGY, NULL, "The driver reported no energy.");
		return;
	}
	report_say(r, SENTENCE_ENERGY, NULL,
		"Estimates: the energy of a GPU (known for %.1f%% of %s) is divided like "
		"its time. idle floor is what the GPU takes without any work%s.",
		100 * report_share(cost->energy_ms, ms),
		a->of_users ? "the time held" : "the window",
		isnan(cost->floor_mj) ? "; it is known only for GPUs that were idle in the "
					"window, and for others of their model"
				      : "");
}

void report_bill_say(struct report *r, const struct audit *a)
{
	const struct report_bill *bill = &r->bill;
	if (!bill->shown)
		return;
	add_energy(r, a);
	if (!bill->currency)
		return;
	report_say(r, SENTENCE_BILL, NULL, "%s",
		a->of_users ? "active and idle divide each GPU's time among its holders."
			    : "active and idle divide each GPU's time among its holders, so "
			      "that the lines add up to the total: GPUs x window x price. "
			      "Cents are rounded so that they do, too; CSV and JSON have "
			      "all digits.");
	if (a->held_cost.money[COST_SQUATTING] > 0)
		report_say(r, SENTENCE_BILL, NULL,
			"(idle on busy GPU) is in no sum: the user who kept the GPU busy pays "
			"for that time.");
	if (pays_mean(a))
		report_say(r, SENTENCE_BILL, NULL,
			"Metrics do not say on which GPU of a host a user was: where these "
			"have different prices, users pay the mean. The host's own store has "
			"their true cost.");
	add_unsaid(r, a);
	struct str with = { 0 }, without = { 0 };
	char hours[32];
	size_t n_with = name_models(&with, a, true, r->bill.currency);
	size_t n_without = name_models(&without, a, false, r->bill.currency);
	if (n_with)
		report_say(r, SENTENCE_BILL, NULL, "Price of a GPU-hour: %s.", str_text(&with));
	const struct audit_cost *cost = a->of_users ? &a->held_cost : &a->cost;
	snprintf(hours, sizeof(hours), "%.2f", (double)cost->unpriced_ms / 3600e3);
	if (n_without)
		report_say(r, SENTENCE_BILL, NULL,
			"No price is known for %s: %s GPU-hours are in no sum of money. "
			"[price] in gua.conf(5) sets it.",
			str_text(&without), hours);
	r->failed |= with.failed || without.failed;
	str_finish(&with);
	str_finish(&without);
}

double report_bill_money(const struct audit_cost *cost, size_t part)
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

/* One part of the money or, with COSTS, all parts together. */
static double shown_money(const struct bill_cents *cents, size_t part)
{
	return part == COSTS ? report_bill_sum(cents) : (double)cents->parts[part] / 100;
}

/* Makes 0 unknown: text omits a column when all its rows are unknown. */
static double unless_zero(double number)
{
	return number == 0 ? NAN : number;
}

/* A line as its tables show it; of a card, also its model and price. */
struct bill_row {
	struct bill_line line;
	const char *kind, *name;
	char price[40];
	double ms, unpriced_ms;			   /* of a rest, also a little less than 0 */
	double money[COSTS + 1], shown[COSTS + 1]; /* [COSTS]: all parts together */
	double shown_unknown, shown_reserved, shown_squatting;
};

#define OF(member) offsetof(struct bill_row, member)
static const struct column line_columns[] = {
	{ "line", STRING(kind) },
	{ "identity", STRING(line.identity) },
	{ .title = "", CHARS(line.label), .width = 10, .flexible = true },
	{ "gpu_seconds", "GPU-\nhours", NUMBER(GPU_MS, ms), .width = 6 },
	CARD_COSTS,
	COST_TOTAL,
	{ "squatting_cost", NUMBER(MONEY, money[COST_SQUATTING]) },
	{ "unpriced_gpu_seconds", NUMBER(GPU_MS, unpriced_ms) },
	{ .title = "active", NUMBER(MONEY, shown[COST_ACTIVE]), .width = 6, .optional = true },
	{ .title = "idle", NUMBER(MONEY, shown[COST_IDLE_HELD]), .width = 6, .optional = true },
	{ .title = "use\nunknown", NUMBER(MONEY, shown_unknown), .optional = true },
	{ .title = "reserved", NUMBER(MONEY, shown_reserved), .optional = true },
	{ .title = "cost", NUMBER(MONEY, shown[COSTS]), .width = 6, .optional = true },
	{ .title = "(idle on\nbusy GPU)", NUMBER(MONEY, shown_squatting), .optional = true },
	{ "energy_kwh", NUMBER(KWH, line.exact[AMOUNT_KWH]) },
	{ "energy_floor_kwh", NUMBER(KWH, line.exact[AMOUNT_FLOOR]) },
	{ "energy_cost", NUMBER(MONEY, line.exact[AMOUNT_ENERGY_COST]) },
	{ "co2_kg", NUMBER(KWH, line.exact[AMOUNT_CO2]) },
};

static const struct column energy_columns[] = {
	{ .title = "", CHARS(line.label), .width = 10, .flexible = true },
	{ .title = "kWh", NUMBER(KWH, line.shown[AMOUNT_KWH]), .width = 8 },
	{ .title = "of it\nidle floor", NUMBER(KWH, line.shown[AMOUNT_FLOOR]) },
	{ .title = "cost",
		NUMBER(MONEY, line.shown[AMOUNT_ENERGY_COST]),
		.width = 8,
		.optional = true },
	{ .title = "CO2 kg",
		NUMBER(KWH, line.shown[AMOUNT_CO2]),
		.width = 8,
		.optional = true },
};

static const struct column card_columns[] = {
	{ .title = "gpu", CHARS(line.label), .width = -14 },
	{ .title = "name", STRING(name), .flexible = true, .optional = true },
	{ .title = "per\nhour", CHARS(price), .width = 5 },
	{ .title = "active", NUMBER(MONEY, shown[COST_ACTIVE]), .width = 6 },
	{ .title = "idle-held", NUMBER(MONEY, shown[COST_IDLE_HELD]) },
	{ .title = "use\nunknown", NUMBER(MONEY, shown_unknown), .optional = true },
	{ .title = "reserved", NUMBER(MONEY, shown_reserved), .optional = true },
	{ .title = "truly-\nidle", NUMBER(MONEY, shown[COST_TRULY_IDLE]), .width = 6 },
	{ .title = "un-\nobserved", NUMBER(MONEY, shown[COST_UNOBSERVED]) },
	{ .title = "cost", NUMBER(MONEY, shown[COSTS]), .width = 6 },
};
#undef OF

static struct bill_row row_of(const struct bill_line *line)
{
	static const char *const names[BILL_KINDS] = { [BILL_IDENTITY] = "identity",
		[BILL_UNATTRIBUTED] = "unattributed",
		[BILL_FREE] = "free",
		[BILL_UNOBSERVED] = "unobserved",
		[BILL_REST] = "rest",
		[BILL_HELD] = "held",
		[BILL_RESERVED] = "reserved",
		[BILL_TOTAL] = "total" };
	const struct audit_cost *cost = &line->cost;
	bool squats = line->kind == BILL_IDENTITY || line->kind == BILL_REST ||
		      line->kind == BILL_HELD; /* only holders can */
	bool has_parts = line->kind != BILL_FREE && line->kind != BILL_UNOBSERVED;
	bool priced = isfinite(report_bill_money(cost, COSTS));
	struct bill_row row = { .line = *line,
		.kind = names[line->kind],
		.name = "",
		.ms = (double)line_ms(line),
		.unpriced_ms = (double)cost->unpriced_ms };
	for (size_t part = 0; part <= COSTS; part++) {
		bool has = part != COST_SQUATTING || squats;
		bool shown = has && priced && (has_parts || part == COSTS);
		row.money[part] = has ? report_bill_money(cost, part) : NAN;
		row.shown[part] = shown ? shown_money(&line->cents, part) : NAN;
	}
	row.money[COST_RESERVED] = unless_zero(row.money[COST_RESERVED]);
	row.shown_reserved = unless_zero(row.shown[COST_RESERVED]);
	row.shown_unknown = unless_zero(row.shown[COST_USE_UNKNOWN]);
	row.shown_squatting = unless_zero(row.shown[COST_SQUATTING]);
	return row;
}

static void bill_list(struct report_bill *bill, const struct bill_line *line)
{
	const struct bill_row row = row_of(line);
	table_add(&bill->lines, &row);
	if (line->kind != BILL_UNOBSERVED || isfinite(line->exact[AMOUNT_KWH]))
		table_add(&bill->energy, &row);
}

/* Makes the table of the cost of each card, with a total. False: out of memory. */
static bool bill_list_cards(
	struct table *t, const struct audit *a, const struct bill_cents *all)
{
	size_t n = a->n_cards;
	struct bill_line *lines = calloc(n + 1, sizeof(*lines)),
			 *total = lines ? lines + n : NULL;
	*t = (struct table)TABLE_OF(card_columns);
	for (size_t i = 0; i <= n && lines; i++)
		lines[i].kind = BILL_TOTAL; /* all parts are shown */
	for (size_t i = 0; i < n && lines; i++)
		audit_cost_card(&lines[i].cost, &a->cards[i], 0, COST_PARTS);
	bool fits = lines && fit_lines(lines, n, all);
	for (size_t i = 0; i < n && fits; i++) {
		const struct audit_card *card = &a->cards[i];
		str_copy(lines[i].label, sizeof(lines[i].label), report_place(a, i).where);
		struct bill_row row = row_of(&lines[i]);
		row.name = card_short_name(card->id.name);
		str_copy(row.price, sizeof(row.price),
			isfinite(card->price) ? report_bill_price(card->price).text : "-");
		table_add(t, &row);
		audit_cost_add(&total->cost, &lines[i].cost);
		report_bill_add_cents(&total->cents, &lines[i].cents);
	}
	if (fits && n > 1) {
		str_copy(total->label, sizeof(total->label), "total");
		const struct bill_row row = row_of(total);
		table_add(t, &row);
	}
	free(lines);
	return fits;
}

#define KWH_MJ 3.6e9

/* The bill while it is made. */
struct bill {
	const struct audit *a;
	const struct report_request *q;
	struct bill_line *lines;
	size_t n; /* number of lines that add up to the total */
	size_t n_identities;
	struct bill_totals totals;
};

static void set_amounts(const struct bill *b, struct bill_line *line)
{
	const struct audit_cost *cost = &line->cost;
	double kwh = cost->energy_ms > 0 ? cost->energy_mj / KWH_MJ : NAN;
	line->exact[AMOUNT_KWH] = kwh;
	line->exact[AMOUNT_FLOOR] = isnan(kwh) ? kwh : cost->floor_mj / KWH_MJ;
	line->exact[AMOUNT_ENERGY_COST] = kwh * b->q->energy_price;
	line->exact[AMOUNT_CO2] = kwh * b->q->co2_g_per_kwh / 1000;
}

static struct bill_line *add_line(
	struct bill *b, enum bill_kind kind, const struct audit_cost *cost)
{
	struct bill_line *line = &b->lines[b->n++];
	*line = (struct bill_line){ .kind = kind, .cost = *cost };
	set_amounts(b, line);
	return line;
}

static void add_others(struct bill *b)
{
	struct audit_cost used = { 0 }, free_time = { 0 }, unobserved = { 0 };
	for (size_t i = 0; i < b->a->n_cards; i++) {
		const struct audit_card *card = &b->a->cards[i];
		audit_cost_card(&used, card, 0, COST_HELD_PARTS);
		audit_cost_card(&free_time, card, COST_TRULY_IDLE, COST_TRULY_IDLE + 1);
		audit_cost_card(&unobserved, card, COST_UNOBSERVED, COST_UNOBSERVED + 1);
	}
	audit_cost_subtract(&used, &b->a->held_cost);
	used.money[COST_SQUATTING] = 0;
	if (used.energy_mj < 1) /* a rest from rounding does not count as known energy */
		used.energy_ms = 0;
	add_line(b, BILL_UNATTRIBUTED, &used);
	add_line(b, BILL_FREE, &free_time);
	add_line(b, BILL_UNOBSERVED, &unobserved);
}

/* Rounds an amount of all lines to hundredths that add up. */
static bool fit_amount(struct bill *b, enum amount amount)
{
	double *exact = calloc(b->n + 1, sizeof(*exact)), sum = 0;
	int64_t *fitted = calloc(b->n + 1, sizeof(*fitted));
	for (size_t i = 0; i < b->n && exact; i++) {
		double x = b->lines[i].exact[amount];
		exact[i] = isnan(x) ? 0 : 100 * x;
		sum += exact[i];
	}
	bool fits = exact && fitted && shares_fit(exact, b->n, llround(sum), fitted);
	for (size_t i = 0; i < b->n && fits; i++)
		b->lines[i].shown[amount] =
			isnan(b->lines[i].exact[amount]) ? NAN : (double)fitted[i] / 100;
	free(exact);
	free(fitted);
	return fits;
}

/* Rounds the money of all lines to cents that add up. */
static bool fit_money(struct bill *b)
{
	size_t n = b->n_identities;
	struct bill_cents others = b->totals.all;
	bool fits = fit_lines(b->lines, n, &b->totals.held);
	for (size_t i = 0; i < n && fits; i++)
		for (int part = 0; part < COST_PARTS; part++)
			others.parts[part] -= b->lines[i].cents.parts[part];
	for (int part = 0; part < COST_PARTS; part++) {
		size_t line = part < COST_HELD_PARTS ? 0 : (size_t)(1 + part - COST_HELD_PARTS);
		b->lines[n + line].cents.parts[part] = others.parts[part];
	}
	return fits;
}

static int compare_lines(const void *x, const void *y)
{
	const struct bill_line *p = x, *q = y;
	double a = 0, b = 0;
	for (int part = 0; part < COST_PARTS; part++) {
		a += p->cost.money[part];
		b += q->cost.money[part];
	}
	if (a != b)
		return a > b ? -1 : 1;
	if (line_ms(p) != line_ms(q))
		return line_ms(p) > line_ms(q) ? -1 : 1;
	return strcmp(p->label, q->label);
}

static void sum_up(const struct bill *b, struct bill_line *sum, const struct bill_line *line)
{
	audit_cost_add(&sum->cost, &line->cost);
	report_bill_add_cents(&sum->cents, &line->cents);
	set_amounts(b, sum);
	for (int i = 0; i < AMOUNTS; i++) {
		double before = isnan(sum->shown[i]) ? 0 : sum->shown[i];
		double more = isnan(line->shown[i]) ? 0 : line->shown[i];
		sum->shown[i] = isnan(sum->exact[i]) ? NAN : before + more;
	}
}

/* Takes the reserved time out of what the identities have together. */
static void part_reserved(
	const struct bill *b, struct bill_line *held, struct bill_line *reserved)
{
	const struct audit *a = b->a;
	size_t n = a->of_users ? a->by_card.n[0] : a->n_cards;
	for (size_t i = 0; i < n; i++) {
		const struct audit_row *row = a->of_users ? &a->by_card.rows[0][i] : NULL;
		const struct audit_card *card = &a->cards[row ? row->card : i];
		struct audit_sums own = { .reserved_ms = row ? row->sums.reserved_ms
							     : card->ms[CARD_RESERVED] };
		audit_cost_holder(&own, card);
		audit_cost_add(&reserved->cost, &own.cost);
	}
	audit_cost_subtract(&held->cost, &reserved->cost);
	reserved->cents.parts[COST_RESERVED] = held->cents.parts[COST_RESERVED];
	held->cents.parts[COST_RESERVED] = 0;
	set_amounts(b, reserved);
	set_amounts(b, held);
	for (int i = 0; i < AMOUNTS; i++) {
		reserved->shown[i] = round(100 * reserved->exact[i]) / 100;
		held->shown[i] -= isnan(reserved->shown[i]) ? 0 : reserved->shown[i];
	}
}

static void list_lines(struct bill *b, struct report_bill *to)
{
	struct bill_line reserved = { .kind = BILL_RESERVED, .label = "reserved" };
	struct bill_line held = { .kind = BILL_HELD, .label = "held" };
	struct bill_line total = { .kind = BILL_TOTAL, .label = "total" };
	static const char *const labels[BILL_KINDS] = { [BILL_UNATTRIBUTED] = "not attributed",
		[BILL_FREE] = "truly-idle",
		[BILL_UNOBSERVED] = "unobserved" };
	/* Adds the lines of identities to the table; those beyond the limit become one line. */
	size_t top = b->q->top && b->n_identities > b->q->top ? b->q->top : b->n_identities;
	struct bill_line rest = { .kind = BILL_REST };
	for (size_t i = 0; i < b->n_identities; i++) {
		sum_up(b, &held, &b->lines[i]);
		if (i < top)
			bill_list(to, &b->lines[i]);
		else
			sum_up(b, &rest, &b->lines[i]);
	}
	snprintf(rest.label, sizeof(rest.label), "(%zu more)", b->n_identities - top);
	if (top < b->n_identities && b->q->rest)
		bill_list(to, &rest);
	part_reserved(b, &held, &reserved);
	if (b->n_identities)
		bill_list(to, &held);
	if (b->a->has_leases && (!b->q->rest || line_ms(&reserved) >= LEAST_SHOWN_MS))
		bill_list(to, &reserved);
	for (size_t i = 0; i < b->n; i++) {
		struct bill_line *line = &b->lines[i];
		sum_up(b, &total, line);
		bool empty =
			line_ms(line) < LEAST_SHOWN_MS && report_bill_sum(&line->cents) == 0;
		if (i < b->n_identities || b->a->of_users || (b->q->rest && empty))
			continue;
		str_copy(line->label, sizeof(line->label), labels[line->kind]);
		bill_list(to, line);
	}
	if (!b->a->of_users) /* the remaining time does not belong to these users alone */
		bill_list(to, &total);
}

void report_bill_make(struct report *r, const struct audit *a, const struct report_request *q)
{
	struct bill b = { .a = a, .q = q };
	size_t most = a->n_identities > a->breakdown.n[0] ? a->n_identities : a->breakdown.n[0];
	r->bill = (struct report_bill){ .shown = q->has_prices || isfinite(q->energy_price) ||
						 isfinite(q->co2_g_per_kwh),
		.currency = q->has_prices ? q->currency : NULL,
		.energy_currency = q->currency,
		.has_energy = (a->of_users ? &a->held_cost : &a->cost)->energy_ms > 0,
		.energy_price = q->energy_price,
		.co2_g_per_kwh = q->co2_g_per_kwh,
		.lines = TABLE_OF(line_columns),
		.energy = TABLE_OF(energy_columns) };
	b.lines = calloc(most + 3, sizeof(*b.lines));
	bool fits = b.lines != NULL;
	if (fits) {
		report_bill_total(&b.totals, a);
		const struct audit_breakdown *groups = &b.a->breakdown;
		bool by_group = groups->by.n && groups->by.kinds[0] == IDENTITY_GROUP;
		size_t n = by_group ? groups->n[0] : b.a->n_identities;
		for (size_t i = 0; i < n; i++) {
			const struct audit_identity *user =
				by_group ? NULL : &b.a->identities[i];
			const struct audit_row *group = by_group ? &groups->rows[0][i] : NULL;
			struct bill_line *line = add_line(&b, BILL_IDENTITY,
				by_group ? &group->sums.cost : &user->sums.cost);
			line->identity = by_group ? group->key : user->identity;
			const char *none = identity_kinds[IDENTITY_GROUP].none;
			const char *shown = by_group && !group->key ? none : line->identity;
			str_copy(line->label, sizeof(line->label), process_shown_user(shown));
		}
		b.n_identities = n;
		add_others(&b);
		fits = fit_money(&b);
		for (int i = 0; i < AMOUNTS && fits; i++)
			fits = fit_amount(&b, i);
	}
	if (fits) {
		qsort(b.lines, b.n_identities, sizeof(*b.lines), compare_lines);
		list_lines(&b, &r->bill);
		if (!a->of_users)
			fits = bill_list_cards(&r->bill.cards, a, &b.totals.all);
	}
	r->failed |= !fits;
	free(b.lines);
}
