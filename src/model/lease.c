/* Names of the kinds of leases, and which cards a lease covers. */
#include "model/lease.h"

#include <string.h>

const char *const lease_kind_names[LEASE_KINDS] = {
	[LEASE_SLURM] = "slurm",
	[LEASE_POD] = "pod",
	[LEASE_PICK] = "pick",
};

int lease_kind_parse(const char *name)
{
	for (int k = 0; k < LEASE_KINDS; k++)
		if (strcmp(name, lease_kind_names[k]) == 0)
			return k;
	return -1;
}

bool lease_covers(
	const struct leases *all, const struct lease *lease, const struct card_id *card)
{
	for (size_t i = 0; i < lease->n_cards; i++) {
		const char *uuid = all->cards[lease->first_card + i].uuid;
		if (*uuid &&
			(strcmp(uuid, card->uuid) == 0 || strcmp(uuid, card->parent_uuid) == 0))
			return true;
	}
	return false;
}
