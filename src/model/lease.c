/* Names of the kinds of leases, which cards a lease covers, and which processes use it. */
#include "model/lease.h"

const char *const lease_kind_names[LEASE_KINDS] = {
	[LEASE_SLURM] = "slurm",
	[LEASE_POD] = "pod",
	[LEASE_PICK] = "pick",
};

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

bool lease_is_used_by(const struct lease *lease, const struct process_id *process)
{
	static const char slurm[] = "slurm:";
	size_t n = sizeof(slurm) - 1;
	bool has_job = strncmp(process->job, slurm, n) == 0;
	/* Whose SLUID that is, is not known without that of the lease. */
	bool open = has_job && process->job[n] == 's' && !*lease->sluid;
	if (lease->kind == LEASE_SLURM && has_job && !open)
		return strcmp(process->job + n, lease->id) == 0 ||
		       (*lease->sluid && strcmp(process->job + n, lease->sluid) == 0);
	/* Where only its pod's uid is known: a card that a pod has is not given to another. */
	if (lease->kind == LEASE_POD && *process->pod)
		return !strchr(process->pod, '/') || strcmp(process->pod, lease->id) == 0;
	return strcmp(process->user, lease->owner) == 0;
}

bool lease_knows_cards(const struct leases *all, const struct lease *lease)
{
	for (size_t i = 0; i < lease->n_cards; i++)
		if (!all->cards[lease->first_card + i].uuid[0])
			return false;
	return true;
}
