/* Computes what all readers of the present need: idle times, and the sentence about a
 * suspect card. */
#include "model/present.h"

bool present_was_idle(const struct present_process *p)
{
	return p->was_idle_since_ms >= 0 && !p->active;
}

/* Whether it is known that the holder does not compute now. */
static bool is_idle(const struct present *all, const struct present_process *p)
{
	return present_idle_ms(all, p) >= 0 && !all->hosts[all->cards[p->card].host].stale;
}

/* Whether what ends the one may end the other. */
static bool ends_with(const struct process_id *a, const struct process_id *b)
{
	return a->pid == b->pid || (*a->job && strcmp(a->job, b->job) == 0) ||
	       (*a->pod && strcmp(a->pod, b->pod) == 0) ||
	       (*a->container && strcmp(a->container, b->container) == 0);
}

bool present_release(
	const struct present *all, const struct present_process *p, char command[RELEASE_CAP])
{
	size_t host = all->cards[p->card].host;
	if (strcmp(p->id.user, USER_DEAD) == 0)
		return false;
	for (size_t i = 0; i < all->n_processes; i++) {
		const struct present_process *q = &all->processes[i];
		if (q->holder && all->cards[q->card].host == host &&
			ends_with(&p->id, &q->id) && !is_idle(all, q))
			return false;
	}
	release_command(command, p->id.pid, p->id.job, p->id.container, p->id.pod);
	return p->holder;
}

int64_t present_idle_ms(const struct present *all, const struct present_process *p)
{
	const struct present_host *host = &all->hosts[all->cards[p->card].host];
	int64_t until_ms = host->stale ? host->last_tick_ms : all->now_ms;
	if (!p->holder || p->active || p->idle_since_ms < 0)
		return -1;
	return until_ms > p->idle_since_ms ? until_ms - p->idle_since_ms : 0;
}

void present_suspect_text(char *dst, size_t cap, const struct present_card *card)
{
	snprintf(dst, cap,
		"card %s reports %.0f %% use with no process and no memory: not believed; "
		"opening and closing a CUDA context clears it",
		card_label(&card->id).text, card->values[METRIC_UTILIZATION_GPU]);
}

void present_add_lease(struct present_card *card, const struct lease *lease)
{
	bool oldest = card->n_leases == 0 || lease->since_ms < card->leased_since_ms;
	card->n_leases++;
	if (oldest) {
		snprintf(card->leased_to, sizeof(card->leased_to), "%.40s (%s %.40s)",
			lease->owner, lease_kind_names[lease->kind],
			*lease->task ? lease->task : lease->id);
		str_copy(card->lease_owner, sizeof(card->lease_owner), lease->owner);
		snprintf(card->lease_job, sizeof(card->lease_job), "%s:%.*s",
			lease_kind_names[lease->kind], LABEL_CAP - 8, lease->id);
		snprintf(card->lease_task, sizeof(card->lease_task), "%s%.*s",
			*lease->task ? "slurm:" : "", TASK_CAP - 8, lease->task);
		card->leased_since_ms = lease->since_ms;
	}
	if (card->state == CARD_TRULY_IDLE && lease->unknown_since_ms < 0) {
		card->state = CARD_RESERVED;
		card->free_since_ms = -1;
	}
	if (card->state == CARD_RESERVED && card->state_since_ms < lease->since_ms && oldest)
		card->state_since_ms = lease->since_ms;
}
