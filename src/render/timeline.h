/* Draws the time line of a report: shapes of the page and the picture. Only for render/. */
#pragma once

#include "model/report.h"

/* Where and how large something is drawn, in units of the picture. */
struct box {
	int x, y, width, height;
};

/* How many lanes are drawn: more would not be readable. */
size_t timeline_shown(const struct report_timeline *t);
/* The text that replaces the remaining lanes. */
#define TIMELINE_MORE "%zu more: --host, --card or --model choose some"

/* Appends the shape of the first `n` states of state_order from the bottom up, as the value of
 * an attribute d. Draw all CARD_STATES first, then one fewer, and so on: each shape covers a
 * part of the one before. The rest of a column is time without the card or, in a report about
 * users, time in which they did not hold it. */
void timeline_shape(struct str *out, const struct report_timeline *t,
	const struct report_lane *lane, size_t n, struct box box);
/* Whether the n-th state from the bottom up (from 0) occurs in the lane. */
bool timeline_has(const struct report_timeline *t, const struct report_lane *lane, size_t n);

/* The kinds of marks, each with a shape of its own. */
enum mark_shape { MARK_LOST, MARK_XID, MARK_DRIVER, MARK_GAP, MARK_OTHER, MARK_SHAPES };
extern const char *const mark_shape_names[MARK_SHAPES], *const mark_shape_words[MARK_SHAPES];
enum mark_shape timeline_shape_of(enum event_kind kind);
/* Appends a <path> for each, 8 high and 8 wide around x = 0, with the id "mark-NAME". */
void timeline_shapes(struct str *out);
/* How many marks from the i-th on are so close that they are drawn side by side. */
size_t timeline_cluster(const struct report_timeline *t, size_t i);
