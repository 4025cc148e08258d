/* An audit in the making, whoever fills it. */
#include "query/audit.h"

#include <stdlib.h>

void *grow_array(void *array, size_t n, size_t size, struct err *e)
{
	if (n & (n - 1))
		return array;
	void *bigger = reallocarray(array, n ? 2 * n : 1, size);
	if (!bigger)
		err_memory(e);
	return bigger;
}

void audit_init(struct audit *a)
{
	*a = (struct audit){ .rules = RULES_DEFAULT, .oldest_ms = -1, .newest_ms = -1 };
}

struct audit_host *audit_add_host(struct audit *a, struct err *e)
{
	struct audit_host *hosts = grow_array(a->hosts, a->n_hosts, sizeof(*hosts), e);
	if (!hosts)
		return NULL;
	a->hosts = hosts;
	hosts[a->n_hosts] = (struct audit_host){ .last_tick_ms = -1 };
	return &hosts[a->n_hosts++];
}

struct audit_card *audit_add_card(struct audit *a, struct err *e)
{
	struct audit_card *cards = grow_array(a->cards, a->n_cards, sizeof(*cards), e);
	if (!cards)
		return NULL;
	a->cards = cards;
	cards[a->n_cards] = (struct audit_card){ .id = { .mig_index = -1,
							 .gpu_instance = -1,
							 .compute_instance = -1,
							 .mem_total_bytes = -1 } };
	return &cards[a->n_cards++];
}

struct audit_identity *audit_add_identity(struct audit *a, struct err *e)
{
	struct audit_identity *identities =
		grow_array(a->identities, a->n_identities, sizeof(*identities), e);
	if (!identities)
		return NULL;
	a->identities = identities;
	identities[a->n_identities] =
		(struct audit_identity){ .peak_mem_kib = -1, .last_active_ms = -1 };
	return &identities[a->n_identities++];
}

struct audit_process *audit_add_process(struct audit *a, struct err *e)
{
	struct audit_process *processes =
		grow_array(a->processes, a->n_processes, sizeof(*processes), e);
	if (!processes)
		return NULL;
	a->processes = processes;
	processes[a->n_processes] = (struct audit_process){
		.started_ms = -1, .peak_mem_kib = -1, .last_active_ms = -1
	};
	return &processes[a->n_processes++];
}

int64_t audit_holder_ms(const int64_t ms[HOLDER_STATES])
{
	int64_t sum = 0;
	for (int state = 0; state < HOLDER_STATES; state++)
		sum += ms[state];
	return sum;
}

void audit_add_up(struct audit *a)
{
	for (size_t i = 0; i < a->n_cards; i++) {
		const struct audit_card *card = &a->cards[i];
		for (int state = 0; state < CARD_STATES; state++) {
			a->ms[state] += card->ms[state];
			a->energy_mj[state] += card->energy_mj[state];
			a->energy_known_ms[state] += card->energy_known_ms[state];
		}
		a->unsure_ms += card->unsure_ms;
	}
	int64_t shared_ms = 0, used_ms = a->ms[CARD_ACTIVE] + a->ms[CARD_IDLE_HELD];
	for (size_t i = 0; i < a->n_identities; i++)
		shared_ms += a->identities[i].active_share_ms + a->identities[i].idle_share_ms;
	a->unattributed_ms = used_ms > shared_ms ? used_ms - shared_ms : 0;
}

void audit_finish(struct audit *a)
{
	for (size_t i = 0; i < a->n_processes; i++) {
		struct audit_process *p = &a->processes[i];
		free(p->command);
		free(p->notebook);
		free(p->job);
		free(p->container);
		free(p->pod);
		free(p->unit);
	}
	free(a->processes);
	free(a->identities);
	free(a->cards);
	free(a->hosts);
	*a = (struct audit){ 0 };
}
