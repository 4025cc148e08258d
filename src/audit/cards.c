/* Reads the cards and their use, and decides which of them belong in the report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "audit/gather_parts.h"
#include "audit/heat.h"
#include "store/sql.h"

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

/* Adds a card, or merges it with that of an earlier file; its index, or IDMAP_NONE: out of
 * memory. */
static uint32_t add_card(struct gather *g, struct gather_file *file,
	const struct audit_card *card, struct err *e)
{
	struct audit *a = g->a;
	const char *parent = card->id.parent_uuid;
	uint32_t host = (uint32_t)card->host;
	uint32_t index = names_find(&g->card_keys, host, card->id.uuid, e);
	if (index == IDMAP_NONE ||
		(*parent && names_find(&g->parents, host, parent, e) == IDMAP_NONE))
		return IDMAP_NONE;
	if (index < a->n_cards) {
		merge_card(&a->cards[index], card);
		return idmap_put(&file->shared, host, 0) ? index : IDMAP_NONE;
	}
	struct audit_card *new = audit_add_card(a, e);
	if (!new)
		return IDMAP_NONE;
	*new = *card;
	return index;
}

static int take_card(
	struct gather *g, struct gather_file *file, sqlite3_stmt *row, struct err *e)
{
	struct audit_card card;
	uint32_t host = idmap_get(&file->hosts, sqlite3_column_int64(row, 1));
	if (host == IDMAP_NONE)
		return 0;
	read_card(&card, host, row);
	card.left_out =
		g->a->hosts[host].left_out || !restriction_takes_card(&g->q->only, &card);
	uint32_t index = add_card(g, file, &card, e);
	if (index == IDMAP_NONE || !array_one_more(&file->cards, file->n_cards) ||
		!idmap_put(
			&file->places, sqlite3_column_int64(row, 0), (uint32_t)file->n_cards))
		return err_memory(e);
	file->cards[file->n_cards++] = index;
	return 0;
}

int cards_add(struct gather *g, struct gather_file *file, struct err *e)
{
	sqlite3_stmt *stmt;
	int rc = sql_prepare(file->db, &stmt, e, "%s", CARDS_SQL);
	while (rc == 0) {
		rc = sql_step(stmt, e);
		if (rc <= 0)
			break;
		rc = take_card(g, file, stmt, e);
	}
	sqlite3_finalize(stmt);
	return rc;
}

static bool is_parent(const struct gather *g, const struct audit_card *card)
{
	return names_has(&g->parents, (uint32_t)card->host, card->id.uuid);
}

/* Whether the recorder of a card's host stopped before the window, and not long before; the
 * card was there until then. */
static bool is_silent(const struct gather *g, const struct audit_card *card)
{
	const struct audit_host *host = &g->a->hosts[card->host];
	return host->measured && !host->ran && !is_parent(g, card) &&
	       host->last_tick_ms < g->a->since_ms &&
	       host->last_tick_ms > g->a->since_ms - AUDIT_SILENT_MS &&
	       host->last_tick_ms - card->last_seen_ms <= 2 * host->interval_ms + 10000;
}

/* Whether a card without a slot in the window belongs in the report: its host was recorded, and
 * the card was known to be unreachable. A card with status ok that was not seen was removed, or
 * was a MIG instance. */
static bool belongs(const struct gather *g, const struct audit_card *card)
{
	const struct audit *a = g->a;
	if (card->has_rows || card->left_out)
		return !card->left_out;
	if (is_silent(g, card))
		return g->has_rows;
	return a->hosts[card->host].ran && strcmp(card->status, "ok") != 0 &&
	       card->first_seen_ms < a->until_ms && !is_parent(g, card);
}

/* Whether the unobserved time is only waiting for the next tick, which accounts the driver's
 * newest samples: a running recorder may be a moment late. */
static bool is_pending(const struct audit_host *host, const struct audit_card *card)
{
	return host->recording && strcmp(card->status, "ok") == 0 &&
	       host->until_ms - card->last_seen_ms <= 2 * host->interval_ms + 10000;
}

/* Sets the card's window: it begins when the card was first seen. */
static void set_window(const struct gather *g, struct audit_card *card)
{
	const struct audit *a = g->a;
	const struct audit_host *host = &a->hosts[card->host];
	card->from_ms = card->first_seen_ms > a->since_ms ? card->first_seen_ms : a->since_ms;
	card->to_ms = host->until_ms;
	if (card->last_seen_ms < card->to_ms && (is_pending(host, card) || is_parent(g, card)))
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
	if (card->unsure_ms2 < 0)
		card->unsure_ms2 = 0;
	card->unsure_ms += llround(sqrt((double)card->unsure_ms2));
	if (card->unsure_ms > observed_ms)
		card->unsure_ms = observed_ms;
	if (card->unsure_ms < 0)
		card->unsure_ms = 0;
}

/* The place of each host: as in the stores or, if there are many, the most idle-held time
 * first. */
struct ranks {
	const struct audit *a;
	uint32_t *of;	  /* by host; has room for as many more, which ranks_set() uses */
	int64_t *idle_ms; /* by host */
};

static int compare_hosts(const void *x, const void *y, void *idle)
{
	uint32_t p = *(const uint32_t *)x, q = *(const uint32_t *)y;
	const int64_t *idle_ms = idle;
	if (idle_ms[p] != idle_ms[q])
		return idle_ms[p] > idle_ms[q] ? -1 : 1;
	return p < q ? -1 : p > q;
}

/* Sets the places; hosts that have a card in the report have n_cards set. */
static void ranks_set(struct ranks *r)
{
	const struct audit *a = r->a;
	size_t n = a->n_hosts, with_cards = 0;
	uint32_t *order = r->of + n;
	for (uint32_t i = 0; i < n; i++) {
		with_cards += a->hosts[i].n_cards > 0;
		order[i] = i;
	}
	if (with_cards > AUDIT_HOSTS_LISTED)
		qsort_r(order, n, sizeof(*order), compare_hosts, r->idle_ms);
	for (uint32_t i = 0; i < n; i++)
		r->of[order[i]] = i;
}

static int ranks_init(struct ranks *r, const struct audit *a, struct err *e)
{
	*r = (struct ranks){ .a = a,
		.of = calloc(2 * a->n_hosts + 1, sizeof(*r->of)),
		.idle_ms = calloc(a->n_hosts + 1, sizeof(*r->idle_ms)) };
	return r->of && r->idle_ms ? 0 : err_memory(e);
}

static void ranks_finish(struct ranks *r)
{
	free(r->of);
	free(r->idle_ms);
}

/* Order: host, index, instance, UUID. */
static int compare_cards(const void *x, const void *y, void *ranks)
{
	const struct ranks *r = ranks;
	const struct audit_card *p = &r->a->cards[*(const uint32_t *)x];
	const struct audit_card *q = &r->a->cards[*(const uint32_t *)y];
	if (p->host != q->host)
		return r->of[p->host] < r->of[q->host] ? -1 : 1;
	if (p->id.index != q->id.index)
		return p->id.index < q->id.index ? -1 : 1;
	if (p->id.mig_index != q->id.mig_index)
		return p->id.mig_index < q->id.mig_index ? -1 : 1;
	return strcmp(p->id.uuid, q->id.uuid);
}

/* Puts the hosts in their places, and removes those without a card. */
static int settle_hosts(struct gather *g, const struct ranks *r, struct err *e)
{
	struct audit *a = g->a;
	size_t n = a->n_hosts;
	struct audit_host *hosts = calloc(n + 1, sizeof(*hosts));
	uint32_t *to = calloc(n + 1, sizeof(*to));
	if (!to || !hosts) {
		free(hosts);
		free(to);
		return err_memory(e);
	}
	a->n_hosts = 0;
	for (size_t place = 0; place < n; place++) {
		uint32_t i = r->of[n + place]; /* the order, which ranks_set() has left there */
		to[i] = a->hosts[i].n_cards ? (uint32_t)a->n_hosts : IDMAP_NONE;
		if (a->hosts[i].n_cards)
			hosts[a->n_hosts++] = a->hosts[i];
	}
	free(a->hosts);
	a->hosts = hosts;
	for (size_t i = 0; i < a->n_cards; i++)
		a->cards[i].host = to[a->cards[i].host];
	for (size_t i = 0; i < g->n_files; i++)
		idmap_renumber(&g->files[i].hosts, to);
	free(to);
	return 0;
}

/* Gives the cards of a file their new numbers: `to` has one for each old one. */
static void renumber_cards(struct gather_file *file, const uint32_t *to)
{
	for (size_t i = 0; i < file->n_cards; i++)
		file->cards[i] = to[file->cards[i]];
}

/* Sets what is known of the cards when all files are read. */
static void settle_cards(struct gather *g, struct ranks *r)
{
	struct audit *a = g->a;
	g->has_rows = false;
	for (size_t i = 0; i < a->n_cards; i++)
		g->has_rows |= a->cards[i].has_rows && !a->cards[i].left_out;
	for (size_t i = 0; i < a->n_cards; i++) {
		struct audit_card *card = &a->cards[i];
		set_bounds(card);
		set_window(g, card);
		set_unobserved(card);
		card->left_out = !belongs(g, card);
		a->hosts[card->host].n_cards += !card->left_out;
		r->idle_ms[card->host] += card->left_out ? 0 : card->ms[CARD_IDLE_HELD];
	}
	ranks_set(r);
}

/* Sorts the cards, without those that do not belong in the report. */
static int sort_cards(struct gather *g, struct ranks *r, struct err *e)
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
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), compare_cards, r);
	for (size_t i = 0; i < n; i++) {
		const struct audit_card *card = &a->cards[order[i]];
		to[order[i]] = card->left_out ? IDMAP_NONE : (uint32_t)kept;
		if (card->left_out)
			continue;
		days_add_window(&a->days, card->from_ms, card->to_ms);
		cards[kept++] = *card;
	}
	for (size_t i = 0; i < g->n_files; i++)
		renumber_cards(&g->files[i], to);
	free(order);
	free(a->cards);
	a->cards = cards;
	a->n_cards = kept;
	return 0;
}

int gather_settle(struct gather *g, struct err *e)
{
	struct ranks ranks;
	int rc = ranks_init(&ranks, g->a, e);
	if (rc == 0) {
		settle_cards(g, &ranks);
		rc = sort_cards(g, &ranks, e);
	}
	if (rc == 0) {
		days_settle(&g->a->days);
		rc = settle_hosts(g, &ranks, e);
	}
	ranks_finish(&ranks);
	return rc;
}
