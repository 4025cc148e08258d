/* Sums: how they are added to an existing row (the right sides of ON CONFLICT DO UPDATE SET,
 * for ticks, for compaction and for crowds), how rows become one, and the sums of complete
 * hours, which reports read instead of the slots. */
#pragma once

#include <sqlite3.h>

#include "base/base.h"

struct store;

/* Where the sums of complete hours end: every slot before is in them, no later one is. 0: there
 * are none. */
#define SUMS_END_SQL                                                                           \
	"SELECT ifnull(max(slot) + 3600, 0) FROM heat_1h WHERE slot BETWEEN 0 AND "            \
	"1099511627776"
#define SUMS_LAST_SLOT (INT64_C(1) << 40) /* a later one is a fault of the file */

/* Whole hours: from <= slot < to. */
struct sums_span {
	int64_t from, to;
};

/* Makes the sums of these hours, also if there are some, and of the days that they are in. With
 * hours beyond the end, the sums end where they end. */
bool sums_make(sqlite3 *db, struct sums_span hours);
/* The hours of all slots, without the last hour unless it is complete. */
bool sums_find(sqlite3 *db, struct sums_span *hours);
int64_t sums_end(sqlite3 *db, int *rc);

/* While the store is written: begins a transaction; notes that a slot is changed; makes the
 * sums of the hours again that were noted. In a batch, they are made when it ends. */
bool sums_begin(struct store *s);
void sums_note(struct store *s, int64_t slot);
bool sums_settle(struct store *s);

/* One column a line. */
/* clang-format off */
#define ADD(column) column " = " column " + excluded." column
/* Unknown plus known is known: NULL only when every value was unknown. */
#define ADD_KNOWN(column) \
	column " = iif(excluded." column " IS NULL, " column ", " \
	"coalesce(" column ", 0) + excluded." column ")"
#define MAX_KNOWN(column) \
	column " = max(coalesce(" column ", excluded." column "), " \
	"coalesce(excluded." column ", " column "))"

/* The sums of a usage table. */
#define USAGE_COLUMNS(X) \
	X("ms") ", " \
	X("util_pct_ms") ", " \
	X("energy_mj") ", " \
	X("energy_unknown_ms") ", " \
	X("unsure_ms") ", " \
	X("unsure_ms2")
#define USAGE_ADD USAGE_COLUMNS(ADD)
#define SUM(column) "sum(" column ")"
#define USAGE_SUMS USAGE_COLUMNS(SUM)

/* The states of heat_1h and their numbers: first the columns of the whole hour, then those of
 * three quarters of each. */
#define HEAT_STATES(X) \
	X("active", "0") ", " \
	X("idle_held", "1") ", " \
	X("truly_idle", "2") ", " \
	X("use_unknown", "4") ", " \
	X("reserved", "5")
#define HEAT_ADD_STATE(name, state) ADD(name "_ms")
#define HEAT_ADD_QUARTERS(name, state) \
	ADD(name "_q1_ms") ", " ADD(name "_q2_ms") ", " ADD(name "_q3_ms")
#define HEAT_ADD HEAT_STATES(HEAT_ADD_STATE) ", " HEAT_STATES(HEAT_ADD_QUARTERS)

#define SM_ACTIVE_ADD \
	ADD("ms") ", " \
	ADD("pct_ms")

/* The sums of a holding table that are always known. */
#define HOLDING_COLUMNS(X) \
	X("active_ms") ", " \
	X("idle_held_ms") ", " \
	X("truly_idle_ms") ", " \
	X("squatting_ms") ", " \
	X("active_double_ms") ", " \
	X("idle_held_double_ms") ", " \
	X("truly_idle_double_ms") ", " \
	X("squatting_double_ms") ", " \
	X("active_share_ms") ", " \
	X("idle_share_ms") ", " \
	X("use_unknown_ms") ", " \
	X("use_unknown_double_ms") ", " \
	X("engine_ms")
#define SELF(column) column
#define HOLDING_ALL HOLDING_COLUMNS(SELF) ", sm_pct_ms, mem_peak_kib, own_use"
/* For own_use (see schema.sql): the largest of the percents and the sum of the time. If one of
 * the rows does not know its own use, such as one from before version 4, the sum does not know
 * it either. */
#define HOLDING_ADD \
	HOLDING_COLUMNS(ADD) ", " \
	ADD_KNOWN("sm_pct_ms") ", " \
	MAX_KNOWN("mem_peak_kib") ", " \
	"own_use = max(own_use & 255, excluded.own_use & 255) + " \
	"((own_use >> 8) + (excluded.own_use >> 8) << 8)"

/* The columns of a holding table after its key, summed over several rows. */
#define HOLDING_SUMS \
	"sum(active_ms), sum(idle_held_ms), sum(truly_idle_ms), sum(squatting_ms), " \
	"sum(active_double_ms), sum(idle_held_double_ms), sum(truly_idle_double_ms), " \
	"sum(squatting_double_ms), sum(active_share_ms), sum(idle_share_ms), " \
	"sum(sm_pct_ms), max(mem_peak_kib), sum(use_unknown_ms), " \
	"sum(use_unknown_double_ms), sum(engine_ms), " \
	"iif(count(own_use) = count(*), max(own_use & 255) + (sum(own_use >> 8) << 8), NULL)"

/* Reduces the sums of a slot from ?4 ms to ?3 ms: when the clock passed the slot twice, both
 * passes count in part. */
#define CUT(column) column " = " column " * ?3 / ?4"
#define USAGE_CUT USAGE_COLUMNS(CUT)
#define HOLDING_CUT \
	HOLDING_COLUMNS(CUT) ", " \
	CUT("sm_pct_ms") ", " \
	"own_use = (own_use & 255) + ((own_use >> 8) * ?3 / ?4 << 8)"

#define RESERVED_COLUMNS(X) \
	X("reserved_ms") ", " \
	X("unknown_ms")
#define RESERVED_ADD RESERVED_COLUMNS(ADD)
#define RESERVED_CUT RESERVED_COLUMNS(CUT)
#define LEASED_ADD \
	ADD("active_ms") ", " \
	ADD("idle_held_ms") ", " \
	ADD("use_unknown_ms") ", " \
	ADD("untouched_ms")

#define TOTAL_GPU_ADD \
	ADD("ms") ", " \
	ADD("energy_mj") ", " \
	ADD("energy_unknown_ms") ", " \
	ADD("unsure_ms") ", " \
	ADD("unsure_ms2")

#define TOTAL_USER_ADD \
	ADD("presence_ms") ", " \
	ADD("share_ms") ", moved_ms = excluded.moved_ms"
/* clang-format on */
