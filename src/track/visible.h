/* Which cards CUDA shows to a process, by its variable CUDA_VISIBLE_DEVICES: numbers, UUIDs or
 * the first characters of a UUID that no other card has, and names of MIG instances, separated
 * by commas. The first word that names no card ends the list: "" and "-1" show none. Numbers
 * are taken in the driver's order, which is CUDA's where all cards are alike or
 * CUDA_DEVICE_ORDER is PCI_BUS_ID. */
#pragma once

#include "model/reading.h"

struct visible {
	const struct card_reading *cards;
	size_t n;
	const char *list; /* the value of the variable; NULL: it is not set, all are shown */
};

/* Whether card `i` is shown. A card that may not be opened never is, and has no number. */
bool visible_has(const struct visible *v, size_t i);
