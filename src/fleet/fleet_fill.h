/* The audit of a fleet while it is filled: from gua's counters (survey.h), from the samples of
 * other exporters (sampled.h), or from both. Each way adds its hosts and cards in any order;
 * they are sorted once; then each adds its users. */
#pragma once

#include "audit/audit.h"
#include "audit/gather.h"
#include "base/names.h"
#include "fleet/fleet.h"

struct roster;

struct fleet_fill {
	struct fleet *f;
	const struct audit_question *q;
	struct audit *a;
	const struct roster *expected;
	int64_t others_ms; /* where the data of later ways may begin; -1: there are none */
	bool has_window;
	int64_t slot_seconds;	   /* how exactly the time line can be known */
	struct names hosts, cards; /* names and UUIDs in the order in which they were added */
	uint32_t *places;	   /* where a card is after fleet_fill_sort() */
	struct heat_clock clock;
	struct gather gather;
	struct users users;
	struct breakdown breakdown;
};

/* Begins an empty audit with the window that was asked for. ERR_USAGE: that is empty. */
int fleet_fill_begin(struct fleet_fill *fill, struct err *e);
/* Sets the window, which begins with the oldest data, unless it is set. */
int fleet_fill_window(struct fleet_fill *fill, int64_t oldest_ms, struct err *e);
/* Adds time to the hours of the week and the days, evenly between two moments. */
struct fleet_stretch {
	int64_t from_ms, to_ms;
};
void fleet_fill_time(struct fleet_fill *fill, struct fleet_stretch t, int state, int64_t ms);
/* The host with that name, added if it is new; NULL: out of memory. */
struct audit_host *fleet_fill_host(struct fleet_fill *fill, const char *name, struct err *e);
/* Adds a card of a host, with the time that was observed, and its window; NULL: no memory. */
struct audit_card *fleet_fill_card(struct fleet_fill *fill, const struct audit_host *host,
	const struct audit_card *from, struct err *e);
/* Sorts the hosts, the one with the most idle-held time first, and their cards; then users can
 * be added. */
int fleet_fill_sort(struct fleet_fill *fill, struct err *e);
/* Adds the time of a user on a card: own_ms, reserved_ms, card, user and labels are set. Pairs
 * with the same `process` come one after the other. */
int fleet_fill_user(struct fleet_fill *fill, size_t way, struct pair *pair, struct err *e);
int fleet_fill_end(struct fleet_fill *fill, struct err *e);
void fleet_fill_finish(struct fleet_fill *fill);
