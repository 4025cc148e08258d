/* Which processes used a card when within a drain: a drain is read in parts if several did. */
#pragma once

#include "base/base.h"
#include "model/reading.h"

/* What processes used at the end of the drain before. Zero-initialise it. */
struct use_past {
	struct use_past_one {
		uint32_t pid;
		double sm_pct;
	} * items;
	size_t n, cap;
};

void use_finish(struct use_past *past);
/* Returns in how many parts to read the drain: one, unless several processes used the card and
 * their use has changed. */
size_t use_parts(const struct card_reading *r, const struct use_past *past);
/* Where part `i` of `n` begins, from 1 on: at the stamp of a sample. */
int64_t use_part_us(const struct card_reading *r, size_t i, size_t n);
/* Keeps what processes used in the drain or, if it was read in parts, in the last of them. */
void use_keep(struct use_past *past, const struct card_reading *r);
