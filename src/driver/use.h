/* How much one process used a card since the last drain. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/reading.h"

/* The driver's record of a process; NULL: the driver has none. */
const struct process_util *use_record(const struct card_reading *r, uint32_t pid);
/* Its SM use in percent. A process without a record used nothing; NAN when the driver keeps no
 * records for this card. */
double use_of(const struct card_reading *r, uint32_t pid);
/* The largest use of an encoder, a decoder, or the engines for JPEG and optical flow, in
 * percent. An engine that the driver does not report counts as unused: old drivers do not know
 * all of them. */
double use_most_engine(const double engine_pct[ENGINE_COUNT]);
double use_of_engines(const struct card_reading *r, uint32_t pid);

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
