/* Decides in how many parts a drain is read. */
#include "driver/use.h"

#include "driver/ring.h"

/* Values that differ by at most this are the same use: the driver reports whole percents. */
#define SAME_PCT 1.5

void use_finish(struct use_past *past)
{
	free(past->items);
	*past = (struct use_past){ 0 };
}

size_t use_parts(const struct card_reading *r, const struct use_past *past)
{
	size_t users = 0, same = 0;
	for (size_t i = 0; i < r->n_process_utils; i++) {
		const struct process_util *u = &r->process_utils[i];
		users += u->sm_pct > 0;
		for (size_t k = 0; u->sm_pct > 0 && k < past->n; k++)
			same += past->items[k].pid == u->pid &&
				fabs(past->items[k].sm_pct - u->sm_pct) <= SAME_PCT;
	}
	if (r->util_kind != UTIL_RING || users < 2 || same == users || r->n_samples == 0)
		return 1;
	/* The parts of a longer drain would be too long to show who used the card when. */
	int64_t us = r->samples[r->n_samples - 1].wall_us - r->samples[0].wall_us;
	if (us > RING_MS * 1000LL)
		return 1;
	return r->n_samples < PROCESS_PARTS ? r->n_samples : PROCESS_PARTS;
}

int64_t use_part_us(const struct card_reading *r, size_t i, size_t n)
{
	return r->samples[(i * r->n_samples + n - 1) / n - 1].wall_us;
}

void use_keep(struct use_past *past, const struct card_reading *r)
{
	int64_t since_us = r->n_parts ? r->parts[r->n_parts - 1].since_us : 0;
	past->n = 0;
	if (!array_reserve(&past->items, &past->cap, r->n_process_utils))
		return;
	for (size_t i = 0; i < r->n_process_utils; i++) {
		struct use_past_one one = { r->process_utils[i].pid,
			r->n_parts ? 0 : r->process_utils[i].sm_pct };
		for (size_t k = 0; k < r->n_parts; k++)
			if (r->parts[k].since_us == since_us && r->parts[k].pid == one.pid)
				one.sm_pct = r->parts[k].sm_pct;
		past->items[past->n++] = one;
	}
}
