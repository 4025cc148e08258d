/* The part of a report about one person: hours, rank, and what they hold now. */
#include "report/report_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "audit/audit.h"
#include "report/report_bill.h"

static const struct audit_identity *find_user(const struct audit *a, const char *name)
{
	for (size_t i = 0; i < a->n_identities; i++)
		if (strcmp(a->identities[i].identity, name) == 0)
			return &a->identities[i];
	return NULL;
}

static size_t rank_of(const struct audit *a, const struct audit_identity *who)
{
	size_t rank = 1;
	for (size_t i = 0; i < a->n_identities; i++)
		rank += audit_waste(&a->identities[i].sums) > audit_waste(&who->sums);
	return rank;
}

static void add_releases(struct report *r, const struct audit *a)
{
	struct report_person *p = &r->person;
	for (size_t i = 0; i < a->n_present; i++) {
		const struct audit_present *held = &a->present[i];
		char card[CARD_LABEL_CAP];
		if (p->n_releases == RELEASES_MAX) {
			p->n_more++;
			continue;
		}
		struct report_release *release = &p->releases[p->n_releases++];
		*release = (struct report_release){ .mem_bytes = held->mem_bytes,
			.idle_ms = held->idle_ms,
			.what = held->what,
			.notebook = held->notebook };
		card_label(card, sizeof(card), &a->cards[held->card].id);
		snprintf(release->where, sizeof(release->where), "GPU %s%s%s", card,
			a->n_hosts > 1 ? " of " : "",
			a->n_hosts > 1 ? a->hosts[held->host].hostname : "");
		release_command(release->command, held->pid, held->job, held->container);
	}
}

void report_about(struct report *r, const char *name, const struct report_other *other)
{
	struct report_person *p = &r->person;
	const struct audit_identity *now = find_user(other->audit, name);
	const struct audit_identity *before = find_user(other->before, name);
	*p = (struct report_person){ .cost = NAN, .cost_before = NAN };
	text_copy(p->name, sizeof(p->name), name);
	p->n_users = other->audit->n_identities;
	if (now) {
		p->held_ms = audit_holder_ms(now->sums.ms);
		p->used_ms = now->sums.ms[HOLDER_ACTIVE];
		p->unused_ms = audit_waste(&now->sums);
		p->cost = cost_money(&now->sums.cost, COST_IDLE_HELD);
		p->rank = rank_of(other->audit, now);
	}
	if (before) {
		p->held_before_ms = audit_holder_ms(before->sums.ms);
		p->used_before_ms = before->sums.ms[HOLDER_ACTIVE];
		p->unused_before_ms = audit_waste(&before->sums);
		p->cost_before = cost_money(&before->sums.cost, COST_IDLE_HELD);
	}
	add_releases(r, other->audit);
}
