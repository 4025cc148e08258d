/* The audit, step by step. */
#include "query/audit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "query/gather.h"

void *grow_array(void *array, size_t n, size_t size, struct err *e)
{
	if (n & (n - 1))
		return array;
	void *bigger = reallocarray(array, n ? 2 * n : 1, size);
	if (!bigger)
		err_set(e, ERR_WORLD, "out of memory");
	return bigger;
}

static void add_up(struct audit *a)
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

int audit_run(struct audit *a, const struct audit_question *q, struct err *e)
{
	static int (*const steps[])(struct gather *, struct err *) = { gather_open,
		gather_hosts, gather_window, gather_cards, gather_usage, gather_settle,
		gather_holders };
	struct gather g = { .a = a, .q = q };
	int rc = 0;
	*a = (struct audit){ .rules = RULES_DEFAULT, .oldest_ms = -1, .newest_ms = -1 };
	tzset();
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && rc == 0; i++)
		rc = steps[i](&g, e);
	gather_close(&g);
	if (rc == 0)
		add_up(a);
	return rc;
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
