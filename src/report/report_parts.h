/* The parts of a report. Only for report/report*.c. */
#ifndef GUA_REPORT_REPORT_PARTS_H
#define GUA_REPORT_REPORT_PARTS_H

#include "base/shares.h"
#include "report/report.h"

/* Numbers computed from sums. A share is NAN if the whole is 0. */
double part_of(int64_t part_ms, int64_t whole_ms);
int64_t observed_ms(const int64_t ms[CARD_STATES]);
/* The shares of observed time, and at [CARD_UNOBSERVED] and in *observed those of the window,
 * as people read them: each group adds up to 100.0 % as printed. */
void shown_shares(const int64_t ms[CARD_STATES], double shown[CARD_STATES], double *observed);
/* The same for the states of holders. */
void shown_held_shares(const int64_t ms[HOLDER_STATES], double shown[SHARES_MAX]);
/* Energy of a state in kWh; NAN if there was no reading. */
double energy_kwh(const int64_t energy_mj[CARD_STATES], const int64_t known_ms[CARD_STATES],
	const int64_t ms[CARD_STATES], size_t state);

/* "0.80", or four decimals for less than about 0.1 hours. */
enum { HOURS_TEXT_CAP = 32, LEAST_SHOWN_MS = 18000 /* what a table shows as 0.01 h */ };
void hours_text(char dst[HOURS_TEXT_CAP], int64_t ms);
const char *plural(size_t n);

/* "2.50", or more decimals where a price has them. */
void price_text(char *dst, size_t cap, double price);

/* A column of a table: names, then TEXT or VALUE, then how text shows it. */
#define TEXT(getter, member) .kind = COLUMN_TEXT, .get = getter, .of = member
#define VALUE(unit, getter, which) .kind = COLUMN_##unit, .get = getter, .of = which
#define TABLE_OF(array)                                                                        \
	{                                                                                      \
		.columns = array, .n_columns = sizeof(array) / sizeof(array[0])                \
	}

/* What a process is, as gua who shows it: notebook, job, container or pod, and its command. */
enum { REPORT_WHAT_CAP = LABEL_CAP + COMMAND_CAP + 2, REPORT_WHERE_CAP = 192 };
void report_show_what(char dst[REPORT_WHAT_CAP], const char *const texts[PROCESS_TEXTS]);
/* A card, with its host if there are several. */
void report_show_where(char dst[REPORT_WHERE_CAP], const struct audit *a, size_t card);

/* The tables; the report owns them. */
void report_add_hosts(struct table *t, const struct audit *a);
void report_add_cards(struct table *t, const struct audit *a);
void report_add_events(struct table *t, const struct audit *a);
void report_add_spells(struct table *t, const struct audit *a);
/* Orphan memory: its table, and a sentence for each card that has some. */
void report_add_orphans(struct report *r, const struct audit *a);
void report_add_identities(
	struct report *r, const struct audit *a, const struct report_request *q);
void report_add_breakdown(
	struct report *r, const struct audit *a, const struct report_request *q);
void report_add_processes(
	struct report *r, const struct audit *a, const struct report_request *q);
/* Window, headline and waste. */
void report_add_figures(
	struct report *r, const struct audit *a, const struct report_request *q);
/* Frees the comparison. */
void report_finish_compare(struct report *r);
/* The trend; and frees it. */
void report_add_trend(struct report *r, const struct audit *a);
void report_finish_trend(struct report *r);
/* The time line, and what is named below it; and frees it. */
void report_add_timeline(struct report *r, const struct audit *a);
void report_add_ticks(struct report *r);
void report_finish_timeline(struct report *r);
void report_add_bill(struct report *r, const struct audit *a, const struct report_request *q);
/* Adds all sentences, from the figures and tables that are already there; those about the
 * holders are among them. */
void report_add_sentences(
	struct report *r, const struct audit *a, const struct report_request *q);
void report_add_notes(struct report *r, const struct audit *a, const struct report_request *q);
/* The foot of a report over a fleet or over stores. */
void report_add_fleet(struct report *r, const struct audit *a);
void report_add_event_sentences(struct report *r, const struct audit *a);
void report_add_spell_sentences(struct report *r, const struct audit *a);
/* The verdict, and the sentences about it. */
void report_judge(struct report *r, const struct audit *a);
void report_add_verdict(
	struct report *r, const struct audit *a, const struct report_request *q);
/* Those of a report that is restricted: to what; and of users, their time. */
void report_add_restriction(
	struct report *r, const struct audit *a, const struct report_request *q);
/* What the time cost; `of` says which. */
void report_add_cost(struct report *r, const struct audit *a, const char *of);
void report_add_bill_sentences(struct report *r, const struct audit *a);
/* Adds one; label as in struct sentence. */
void report_say(struct report *r, enum sentence_kind kind, const char *label,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
