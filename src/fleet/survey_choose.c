/* Keeps the cards and users that an audit is restricted to. Metrics say who used a host, not on
 * which of its cards: users are known only of hosts with all their cards. */
#include <stdlib.h>
#include <string.h>

#include "fleet/survey_fill.h"
#include "audit/restriction.h"

static bool takes_card(const struct survey *s, const struct meter_row *row)
{
	struct audit_card card = { .id = { .mig_index = -1 } };
	char *end;
	text_copy(card.id.uuid, sizeof(card.id.uuid), row->name);
	card.id.index = (int)strtol(row->gpu, &end, 10);
	if (*end == ':')
		card.id.mig_index = (int)strtol(end + 1, NULL, 10);
	if (row->info)
		text_copy(card.id.name, sizeof(card.id.name), s->infos[row->info - 1].model);
	return restriction_takes_card(&s->q->only, &card);
}

bool survey_takes_user(const struct survey *s, const struct meter_row *row)
{
	const struct audit_question *q = s->q;
	const char *group = q->group_of ? q->group_of(q->group_context, row->name) : NULL;
	return !s->no_users && strcmp(row->name, NOBODY) != 0 &&
	       restriction_takes_user(&q->only, row->name, group);
}

static int by_host(const void *x, const void *y, void *rows)
{
	const struct meter_row *p = (const struct meter_row *)rows + *(const uint32_t *)x;
	const struct meter_row *q = (const struct meter_row *)rows + *(const uint32_t *)y;
	return p->host != q->host ? (p->host < q->host ? -1 : 1) : strcmp(p->name, q->name);
}

/* Keeps the rows that are wanted, those of a host together. */
static int keep(struct survey *s, struct meters *m,
	bool (*takes)(const struct survey *s, const struct meter_row *row), struct err *e)
{
	struct meters kept = { 0 };
	uint32_t *order = calloc(m->n + 1, sizeof(*order));
	int rc = order ? 0 : err_memory(e);
	for (uint32_t i = 0; i < m->n && order; i++)
		order[i] = i;
	if (m->n && order)
		qsort_r(order, m->n, sizeof(*order), by_host, m->rows);
	for (size_t i = 0; i < m->n && rc == 0; i++) {
		const struct meter_row *from = &m->rows[order[i]];
		if (!takes(s, from)) {
			s->hosts[from->host].is_partial |= m == &s->cards;
			continue;
		}
		struct meter_row *to = meters_find(&kept, from->host, from->name, e);
		const char *name = to ? to->name : NULL;
		rc = to ? 0 : ERR_WORLD;
		if (to) {
			*to = *from;
			to->name = name;
		}
	}
	free(order);
	meters_finish(m);
	*m = kept;
	return rc;
}

/* Users of hosts that are there with some of their cards: not known. */
static int drop_users(struct survey *s, struct err *e)
{
	bool partial = false;
	for (size_t i = 0; i < s->cards.n; i++)
		partial |= s->hosts[s->cards.rows[i].host].is_partial;
	if (!partial)
		return 0;
	if (s->a->of_users || by_has(&s->q->by, IDENTITY_USER) ||
		by_has(&s->q->by, IDENTITY_GROUP))
		return err_set(e, ERR_USAGE,
			"the metrics of a fleet say who used a host, not on which card, and "
			"some of these hosts have other cards too: with --from, --card and "
			"--model do not combine with --user, --group and their --by");
	meters_finish(&s->users);
	s->no_users = true;
	return 0;
}

int survey_choose(struct survey *s, struct err *e)
{
	const struct restriction *only = &s->q->only;
	bool cards = only->lists[ONLY_CARD].n || only->lists[ONLY_MODEL].n;
	size_t n_cards = s->cards.n;
	int rc = 0;
	s->a->of_users = restriction_of_users(only);
	if (cards)
		rc = keep(s, &s->cards, takes_card, e);
	if (rc == 0 && cards && n_cards && s->cards.n == 0)
		rc = err_set(e, ERR_NOTHING, "no GPU of this window matches --%s",
			restriction_names[only->lists[ONLY_CARD].n ? ONLY_CARD : ONLY_MODEL]);
	if (rc == 0 && cards)
		rc = drop_users(s, e);
	if (rc == 0 && s->a->of_users)
		rc = keep(s, &s->users, survey_takes_user, e);
	return rc;
}
