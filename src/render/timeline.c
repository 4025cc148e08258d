/* Draws the shapes and marks of a report's time line as SVG. */
#include "render/timeline.h"

size_t timeline_shown(const struct report_timeline *t)
{
	enum { MOST = 48 };
	return t->n_lanes < MOST ? t->n_lanes : MOST;
}

bool timeline_has(const struct report_timeline *t, const struct report_lane *lane, size_t n)
{
	for (size_t i = 0; i < t->n; i++)
		if (lane->share[i][state_order[n]] > 0)
			return true;
	return false;
}

void timeline_shape(struct str *out, const struct report_timeline *t,
	const struct report_lane *lane, size_t n, struct box box)
{
	long ground = box.y + box.height, level = ground;
	str_addf(out, "M%d %ld", box.x, ground);
	for (size_t i = 0; i < t->n; i++) {
		double share = 0;
		for (size_t k = 0; k < n; k++)
			share += lane->share[i][state_order[k]];
		long x = box.x + lround(box.width * t->columns[i].from);
		long y = ground - lround(box.height * (share > 1 ? 1 : share));
		if (y == level)
			continue;
		str_addf(out, "H%ldV%ld", x, y);
		level = y;
	}
	str_addf(out, "H%dV%ldZ", box.x + box.width, ground);
}

const char *const mark_shape_names[MARK_SHAPES] = { "lost", "xid", "driver", "gap", "other" };
const char *const mark_shape_words[MARK_SHAPES] = { "card lost", "XID", "driver down",
	"gap, suspend or no recorder", "other event" };

enum mark_shape timeline_shape_of(enum event_kind kind)
{
	bool gap = kind == EVENT_GAP || kind == EVENT_SUSPEND || kind == EVENT_RECORDER_OFF;
	return kind == EVENT_CARD_LOST	   ? MARK_LOST
	       : kind == EVENT_XID	   ? MARK_XID
	       : kind == EVENT_DRIVER_DOWN ? MARK_DRIVER
	       : gap			   ? MARK_GAP
					   : MARK_OTHER;
}

void timeline_shapes(struct str *out)
{
	static const char *const shapes[MARK_SHAPES] = {
		[MARK_LOST] = "M-4 1L-3 0L0 3L3 0L4 1L1 4L4 7L3 8L0 5L-3 8L-4 7L-1 4Z",
		[MARK_XID] = "M-4 0H4L0 8Z",
		[MARK_DRIVER] = "M0 0L4 4L0 8L-4 4Z",
		[MARK_GAP] = "M-4 2.5H4V5.5H-4Z",
		[MARK_OTHER] = "M-3.5 4a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z",
	};
	for (int i = 0; i < MARK_SHAPES; i++)
		str_addf(
			out, "<path id=\"mark-%s\" d=\"%s\"/>", mark_shape_names[i], shapes[i]);
}

size_t timeline_cluster(const struct report_timeline *t, size_t i)
{
	size_t n = 1;
	while (i + n < t->n_marks && t->marks[i + n].lane == t->marks[i].lane &&
		t->marks[i + n].at - t->marks[i].at < 0.01 * (double)n)
		n++;
	return n;
}
