/* Reads the cards and their use, and decides which of them belong in the report. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "query/gather.h"
#include "query/heat.h"
#include "query/sql.h"

static const char CARDS_SQL[] =
	"SELECT id, host, uuid, name, parent_uuid, pci, idx, mig_index, gpu_instance, "
	"compute_instance, mem_total_bytes, status, first_seen_ms, last_seen_ms, source FROM "
	"gpu "
	"ORDER BY id";

static void read_card(struct audit_card *card, uint32_t host, sqlite3_stmt *row)
{
	*card = (struct audit_card){ .host = host };
	sql_text(row, 2, card->id.uuid, sizeof(card->id.uuid));
	sql_text(row, 3, card->id.name, sizeof(card->id.name));
	sql_text(row, 4, card->id.parent_uuid, sizeof(card->id.parent_uuid));
	sql_text(row, 5, card->id.pci, sizeof(card->id.pci));
	card->id.index = sqlite3_column_int(row, 6);
	card->id.mig_index = (int)sql_int(row, 7, -1);
	card->id.gpu_instance = (int)sql_int(row, 8, -1);
	card->id.compute_instance = (int)sql_int(row, 9, -1);
	card->id.mem_total_bytes = sql_int(row, 10, -1);
	sql_text(row, 11, card->status, sizeof(card->status));
	card->first_seen_ms = sql_int(row, 12, 0);
	card->last_seen_ms = sql_int(row, 13, 0);
	sql_text(row, 14, card->source, sizeof(card->source));
}

/* Merges the rows of a card that is in several files of the same host: the newer row has the
 * names. */
static void merge_card(struct audit_card *known, const struct audit_card *again)
{
	int64_t first_ms = known->first_seen_ms < again->first_seen_ms ? known->first_seen_ms
								       : again->first_seen_ms;
	if (again->last_seen_ms > known->last_seen_ms)
		*known = *again;
	known->first_seen_ms = first_ms;
}

static int take_card(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	struct audit *a = g->a;
	struct audit_card card;
	uint32_t host = idmap_get(&file->hosts, sqlite3_column_int64(row, 1));
	if (host == IDMAP_NONE)
		return 0;
	read_card(&card, host, row);
	card.left_out = a->hosts[host].left_out || !restriction_takes_card(&g->q->only, &card);
	size_t i = 0;
	while (i < a->n_cards &&
		(a->cards[i].host != host || strcmp(a->cards[i].id.uuid, card.id.uuid) != 0))
		i++;
	if (i < a->n_cards) {
		int rc =
			file->checked == host + 1u ? 0 : gather_check_overlap(g, file, host, e);
		if (rc)
			return rc;
		file->checked = host + 1u;
		merge_card(&a->cards[i], &card);
	} else {
		struct audit_card *new = audit_add_card(a, e);
		if (!new)
			return ERR_WORLD;
		*new = card;
	}
	if (!idmap_put(&file->cards, sqlite3_column_int64(row, 0), (uint32_t)i))
		return err_memory(e);
	return 0;
}

int gather_cards(struct gather *g, struct err *e)
{
	int rc = 0;
	for (size_t i = 0; i < g->n_files && rc == 0; i++) {
		sqlite3_stmt *stmt;
		rc = sql_prepare(g->files[i].db, &stmt, e, "%s", CARDS_SQL);
		while (rc == 0) {
			rc = sql_step(stmt, e);
			if (rc <= 0)
				break;
			rc = take_card(g, &g->files[i], stmt, e);
		}
		sqlite3_finalize(stmt);
	}
	return rc;
}

static bool is_parent(const struct audit *a, const struct audit_card *card)
{
	for (size_t i = 0; i < a->n_cards; i++)
		if (a->cards[i].host == card->host &&
			strcmp(a->cards[i].id.parent_uuid, card->id.uuid) == 0)
			return true;
	return false;
}

/* Whether a card without a slot in the window belongs in the report: its host was recorded, and
 * the card was known to be unreachable. A card with status ok that was not seen was removed, or
 * was a MIG instance. */
static bool belongs(const struct audit *a, const struct audit_card *card)
{
	if (card->has_rows || card->left_out)
		return !card->left_out;
	return a->hosts[card->host].ran && strcmp(card->status, "ok") != 0 &&
	       card->first_seen_ms < a->until_ms && !is_parent(a, card);
}

/* Whether the unobserved time is only waiting for the next tick, which accounts the driver's
 * newest samples: a running recorder may be a moment late. */
static bool is_pending(const struct audit_host *host, const struct audit_card *card)
{
	return host->recording && strcmp(card->status, "ok") == 0 &&
	       host->until_ms - card->last_seen_ms <= 2 * host->interval_ms + 10000;
}

/* Sets the card's window: it begins when the card was first seen. */
static void set_window(const struct audit *a, struct audit_card *card)
{
	const struct audit_host *host = &a->hosts[card->host];
	card->from_ms = card->first_seen_ms > a->since_ms ? card->first_seen_ms : a->since_ms;
	card->to_ms = host->until_ms;
	if (card->last_seen_ms < card->to_ms && (is_pending(host, card) || is_parent(a, card)))
		card->to_ms = card->last_seen_ms;
}

/* Sets the unobserved time: the rest of the card's window. */
static void set_unobserved(struct audit_card *card)
{
	int64_t rest_ms = card->to_ms - card->from_ms - card->ms[CARD_ACTIVE] -
			  card->ms[CARD_IDLE_HELD] - card->ms[CARD_TRULY_IDLE] -
			  card->ms[CARD_USE_UNKNOWN];
	card->ms[CARD_UNOBSERVED] = rest_ms > 0 ? rest_ms : 0;
}

/* Limits sums to 0 and to the card's time: energy can lag a tick behind, and rows of a damaged
 * store can hold anything. */
static void set_bounds(struct audit_card *card)
{
	int64_t observed_ms = 0;
	for (int state = 0; state < CARD_STATES; state++) {
		int64_t *known_ms = &card->energy_known_ms[state];
		if (*known_ms < 0 || card->energy_mj[state] < 0)
			*known_ms = card->energy_mj[state] = 0;
		if (*known_ms > card->ms[state])
			*known_ms = card->ms[state];
		observed_ms += state == CARD_UNOBSERVED ? 0 : card->ms[state];
	}
	if (card->unsure_ms > observed_ms)
		card->unsure_ms = observed_ms;
	if (card->unsure_ms < 0)
		card->unsure_ms = 0;
}

/* Order: host, index, instance, UUID. */
static int compare_cards(const void *x, const void *y, void *audit)
{
	const struct audit *a = audit;
	const struct audit_card *p = &a->cards[*(const uint32_t *)x];
	const struct audit_card *q = &a->cards[*(const uint32_t *)y];
	if (p->host != q->host)
		return p->host < q->host ? -1 : 1;
	if (p->id.index != q->id.index)
		return p->id.index < q->id.index ? -1 : 1;
	if (p->id.mig_index != q->id.mig_index)
		return p->id.mig_index < q->id.mig_index ? -1 : 1;
	return strcmp(p->id.uuid, q->id.uuid);
}

/* Removes hosts without a card; the others keep their order. */
static int settle_hosts(struct gather *g, struct err *e)
{
	struct audit *a = g->a;
	size_t kept = 0;
	uint32_t *to = calloc(a->n_hosts + 1, sizeof(*to));
	if (!to)
		return err_memory(e);
	for (size_t i = 0; i < a->n_hosts; i++) {
		to[i] = a->hosts[i].n_cards ? (uint32_t)kept : IDMAP_NONE;
		if (a->hosts[i].n_cards)
			a->hosts[kept++] = a->hosts[i];
	}
	a->n_hosts = kept;
	for (size_t i = 0; i < a->n_cards; i++)
		a->cards[i].host = to[a->cards[i].host];
	for (size_t i = 0; i < g->n_files; i++)
		idmap_renumber(&g->files[i].hosts, to);
	free(to);
	return 0;
}

/* Gives the cards of a file their new numbers: `to` has one for each of the n old ones. */
static int renumber_cards(struct gather_file *file, const uint32_t *to, size_t n, struct err *e)
{
	idmap_renumber(&file->cards, to);
	if (!file->unknown_ms)
		return 0;
	int64_t *unknown_ms = calloc(n, sizeof(*unknown_ms));
	if (!unknown_ms)
		return err_memory(e);
	for (size_t i = 0; i < n; i++)
		if (to[i] != IDMAP_NONE)
			unknown_ms[to[i]] = file->unknown_ms[i];
	free(file->unknown_ms);
	file->unknown_ms = unknown_ms;
	return 0;
}

int gather_settle(struct gather *g, struct err *e)
{
	struct audit *a = g->a;
	size_t n = a->n_cards, kept = 0;
	struct audit_card *cards = calloc(n + 1, sizeof(*cards));
	uint32_t *order = calloc(2 * n + 1, sizeof(*order)), *to = order ? order + n : NULL;
	if (!cards || !order) {
		free(cards);
		free(order);
		return err_memory(e);
	}
	for (uint32_t i = 0; i < n; i++) {
		set_bounds(&a->cards[i]);
		set_window(a, &a->cards[i]);
		set_unobserved(&a->cards[i]);
		order[i] = i;
		to[i] = IDMAP_NONE;
	}
	qsort_r(order, n, sizeof(*order), compare_cards, a);
	for (size_t i = 0; i < n; i++) {
		const struct audit_card *card = &a->cards[order[i]];
		if (!belongs(a, card))
			continue;
		days_add_window(&a->days, card->from_ms, card->to_ms);
		to[order[i]] = (uint32_t)kept;
		a->hosts[card->host].n_cards++;
		cards[kept++] = *card;
	}
	int rc = 0;
	for (size_t i = 0; i < g->n_files && rc == 0; i++)
		rc = renumber_cards(&g->files[i], to, n, e);
	free(order);
	free(a->cards);
	a->cards = cards;
	a->n_cards = kept;
	days_settle(&a->days);
	return rc ? rc : settle_hosts(g, e);
}
