/* Makes the audit of a fleet: gua's counters where a host has them, else the samples of the
 * exporter that watches it. */
#pragma once

#include "fleet/fleet_fill.h"

struct fleet_question {
	const struct audit_question *audit;
	const struct roster *expected;
	const char *metrics; /* "gua", the name of an exporter, "auto": what is there, or
				"others": what is there without gua's */
	/* Refuses what counters, or samples, cannot answer. */
	int (*check_counters)(const struct audit_question *q, struct err *e);
	int (*check_samples)(const struct audit_question *q, struct err *e);
};
/* Without data in the window, n_cards is 0. */
int fleet_audit_run(
	struct audit *a, struct fleet *f, const struct fleet_question *q, struct err *e);
