/* The part of accounting that concerns the holders of a card: how a stretch of its time is
 * divided among them. */
#pragma once

#include "classify/account.h"

/* Adds a stretch to the holders, later: most are alike for the holders, because only the
 * utilisation of the card differs. Those in a row are added at once. */
void account_holders_put_off(
	struct account *a, const struct account_part *p, struct account_scene *on);
/* Adds the stretch that was put off to the holders and the leases. Call it before any of them
 * changes. */
void account_holders_add(struct account *a, struct account_scene *on);

/* The nearest whole number of what is not negative: as llround(), but without a call. */
static inline int64_t account_whole(double number)
{
	return (int64_t)(number + 0.5);
}
