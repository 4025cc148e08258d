/* The audit report in its formats. */
#ifndef GUA_RENDER_REPORT_H
#define GUA_RENDER_REPORT_H

#include "base/str.h"
#include "model/table.h"
#include "query/audit.h"
#include "render/text.h"

enum report_by { REPORT_BY_USER, REPORT_BY_PROCESS, REPORT_BY_CARD };

struct report_style {
	struct text_style text; /* of the text report */
	size_t bar_cells;	/* width of the bar */
	enum report_by by;	/* whose time: section 4, and which table CSV gives */
	size_t top;		/* rows of identities or processes; 0: all */
	double cost;		/* of one GPU-hour; NAN: not asked for */
	const char *currency;	/* as given */
};

void report_text(struct str *out, const struct audit *a, const struct report_style *style);
void report_json(struct str *out, const struct audit *a, const struct report_style *style);
void report_csv(struct str *out, const struct audit *a, const struct report_style *style);

/* What the formats share: numbers that follow from the audit. NAN when nothing was observed. */
int64_t report_observed_ms(const int64_t ms[CARD_STATES]);
double report_share(int64_t part_ms, int64_t whole_ms);
/* Cards that were observed for any time: what a share of observed time is a share of. */
size_t report_observed_cards(const struct audit *a);
/* By how much idle-held's share of observed time can be off; NAN when nothing was observed. */
double report_uncertainty(int64_t unsure_ms, const int64_t ms[CARD_STATES]);
/* Mean utilisation over the time for which it is known, and mean SM activity; NAN: not known.
 */
double report_util_pct(const struct audit_card *card);
double report_sm_active_pct(const struct audit_card *card);
/* Energy of a state in kWh; NAN when no reading told it. */
double report_energy_kwh(const int64_t energy_mj[CARD_STATES],
	const int64_t known_ms[CARD_STATES], const int64_t ms[CARD_STATES], int state);
/* Idle-held above 20 % of observed time. */
bool report_breaks_rule(const struct audit *a);

/* The tables; the caller finishes them. `host` limits the cards to one, SIZE_MAX: all. */
void report_cards_table(struct table *t, const struct audit *a, size_t host);
void report_identities_table(struct table *t, const struct audit *a, size_t top);
void report_processes_table(struct table *t, const struct audit *a, size_t top);

#endif
