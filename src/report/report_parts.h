/* The parts of a report, and functions that they share. Only for report/. */
#pragma once

#include "base/shares.h"
#include "model/columns.h"
#include "report/report.h"

/* Numbers computed from sums. A share is NAN if the whole is 0. */
double report_share(int64_t part_ms, int64_t whole_ms);
/* The shares of observed time, and at [CARD_UNOBSERVED] and in *observed the shares of the
 * window, rounded for people: each group adds up to 100.0 % as printed. */
void report_shown_shares(
	const int64_t ms[CARD_STATES], double shown[CARD_STATES], double *observed);
/* The same for the states of holders; at [HOLDER_STATES]: reserved. */
void report_shown_held(
	const int64_t ms[HOLDER_STATES], int64_t reserved_ms, double shown[SHARES_MAX]);
/* Energy of a state in kWh; NAN if there was no reading. */
double report_energy_kwh(const int64_t energy_mj[CARD_STATES],
	const int64_t known_ms[CARD_STATES], const int64_t ms[CARD_STATES], size_t state);

enum { LEAST_SHOWN_MS = 18000 }; /* a table shows this as 0.01 h */
/* "0.80", or four decimals for less than about 0.1 hours; minutes if the report has them. r may
 * be NULL. Use it in the statement that calls: "%s", report_hours(r, ms).text. */
struct brief report_hours(const struct report *r, int64_t ms);
/* The unit of report_hours(): "GPU-hours" or "GPU-minutes". */
const char *report_unit(const struct report *r);
const char *report_plural(size_t n);
/* Where a card is, for the columns of its rows. */
enum { WHERE_CAP = 192 };
struct report_place {
	const char *host, *uuid;
	int64_t index;
	char where[WHERE_CAP]; /* for people, with the host if there are more: "2", "lab 2" */
};
struct report_place report_place(const struct audit *a, size_t card);
/* "GPU 2", with the host after `between` if there are several: "GPU 2 of lab". */
const char *report_gpu(struct report *r, size_t card, const char *between);
/* What a process is, as gua who shows it: notebook, job, container or pod, and its command. */
enum { REPORT_WHAT_CAP = LABEL_CAP + COMMAND_CAP + 2 };
void report_show_what(char dst[REPORT_WHAT_CAP], const char *const texts[PROCESS_TEXTS]);
/* Adds a sentence; label as in struct sentence. */
void report_say(struct report *r, enum sentence_kind kind, const char *label,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The columns of a row with a struct report_place `place`. */
#define PLACE_COLUMNS                                                                          \
	COLUMN("host", STRING(place.host)), COLUMN("gpu", STRING(place.uuid)),                 \
		COLUMN("gpu_index", KNOWN(COUNT, place.index))
#define PLACE_SHOWN COLUMN(.title = "gpu", CHARS(place.where), .width = -14)
/* The columns of a cost: double money[COSTS + 1] of the row, with the sum at [COSTS]. */
#define COST(part, which)                                                                      \
	COLUMN(part "_cost", .json = "cost." part, NUMBER(MONEY, money[which]))
#define COST_TOTAL COLUMN("cost", .json = "cost.total", NUMBER(MONEY, money[COSTS]))
#define HELD_COSTS                                                                             \
	COST("active", COST_ACTIVE), COST("idle_held", COST_IDLE_HELD),                        \
		COST("use_unknown", COST_USE_UNKNOWN),                                         \
		COLUMN(.json = "cost.reserved", NUMBER(MONEY, money[COST_RESERVED]))
#define CARD_COSTS                                                                             \
	HELD_COSTS, COST("truly_idle", COST_TRULY_IDLE), COST("unobserved", COST_UNOBSERVED)

/* Money for people: cents that add up, across and down, to one total. The parts of all cards'
 * cost are rounded first, by largest remainder; each table then divides these cents among its
 * rows, part by part, and what is printed of a row is the sum of its cents. */
struct bill_cents {
	int64_t parts[COSTS]; /* [COST_SQUATTING]: not part of any sum */
};
struct bill_totals {
	struct bill_cents all;	/* the time of all cards */
	struct bill_cents held; /* the shares of identities */
};
void report_bill_total(struct bill_totals *t, const struct audit *a);
/* A cost among which cents are divided, and its cents. */
struct bill_share {
	const struct audit_cost *cost;
	struct bill_cents *cents;
};
/* Divides `whole` among n costs. If `whole` is NULL or not their sum, divides the rounded
 * sum of the costs. False: out of memory. */
bool report_bill_divide(
	const struct bill_share *shares, size_t n, const struct bill_cents *whole);
/* The sum of the parts, in money. */
double report_bill_sum(const struct bill_cents *cents);
/* The exact money of a cost: one part, or with COSTS all parts together; NAN if none of its
 * time has a price. */
double report_bill_money(const struct audit_cost *cost, size_t part);
void report_bill_add_cents(struct bill_cents *to, const struct bill_cents *more);
/* "2.50", with more decimals if the price has them. */
struct brief report_bill_price(double price);

/* Adds window, headline and waste. */
void report_add_figures(
	struct report *r, const struct audit *a, const struct report_request *q);
/* Add the tables; the report owns them. */
void report_cards_add_hosts(struct table *t, const struct audit *a);
void report_cards_add(struct table *t, const struct audit *a);
void report_events_add(struct table *t, const struct audit *a);
/* The leases that were not used, and what there is to say about them. */
void report_processes_add_leases(struct report *r, const struct audit *a);
void report_processes_add_spells(struct table *t, const struct audit *a);
void report_processes_add(
	struct report *r, const struct audit *a, const struct report_request *q);
void report_holders_add_users(
	struct report *r, const struct audit *a, const struct report_request *q);
void report_holders_add_breakdown(
	struct report *r, const struct audit *a, const struct report_request *q);
void report_bill_make(struct report *r, const struct audit *a, const struct report_request *q);
/* Add the trend, and the time line with its labels. */
void report_time_add_trend(struct report *r, const struct audit *a);
void report_time_add_line(struct report *r, const struct audit *a);
/* Adds what gua enforce did, if a policy.db beside a store has steps in the window. */
void report_policy_add(struct report *r, const char *const *paths, size_t n);

/* Adds all sentences, from the figures and tables that are already there. */
void report_sentences_add(
	struct report *r, const struct audit *a, const struct report_request *q);
/* Add the sentences of one part; the part about orphan memory also adds a table. */
void report_add_verdict(
	struct report *r, const struct audit *a, const struct report_request *q);
void report_processes_add_orphans(struct report *r, const struct audit *a);
void report_processes_say_spells(struct report *r, const struct audit *a);
void report_bill_say(struct report *r, const struct audit *a);
void report_events_say(struct report *r, const struct audit *a);

/* Frees the comparison, the trend and the time line. */
void report_compare_finish(struct report *r);
void report_time_finish(struct report *r);
