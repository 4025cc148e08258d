/* Groups pairs of process and card, and cards, into the rows of a breakdown. */
#include "audit/gather.h"

#include <ctype.h>

void breakdown_start(struct breakdown *b, struct gather *g, const struct users *users,
	struct audit_breakdown *to, const struct by *by)
{
	*b = (struct breakdown){ .g = g, .to = to, .users = users, .process = -1 };
	to->by = *by;
	for (size_t i = 0; i < by->n; i++)
		to->measures[i] = identity_by_measure(by, i, g->a->of_users);
}

const char *breakdown_column(const struct by *by, size_t level)
{
	bool needed = level < by->n && by->kinds[level] != IDENTITY_USER;
	const char *column = needed ? identity_kinds[by->kinds[level]].column : NULL;
	if (needed && by->kinds[level] == IDENTITY_JOB)
		return "iif(job IS NULL, NULL, " BREAKDOWN_JOB(
			"job", "coalesce(job_task, job)") ")";
	return column ? column : "NULL";
}

int breakdown_label(
	struct breakdown *b, struct pair *pair, size_t level, const char *text, struct err *e)
{
	enum identity_scope scope = identity_kinds[b->to->by.kinds[level]].scope;
	uint32_t within = scope == SCOPE_USER	? pair->user
			  : scope == SCOPE_HOST ? (uint32_t)b->g->a->cards[pair->card].host
						: 0;
	enum identity kind = b->to->by.kinds[level];
	char own[COMMAND_CAP];
	const char *shown = NULL;
	size_t before = b->names[level].n;
	/* The name of a job of a fleet, such as "slurm:77", is the text itself. */
	if (kind == IDENTITY_JOB && isdigit((unsigned char)*text)) {
		int len = atoi(text) % (1 << 8);
		text += BREAKDOWN_DIGITS + 1;
		shown = text + strnlen(text, (size_t)len);
		snprintf(own, sizeof(own), "%.*s", len, text);
		text = own;
	} else if (kind == IDENTITY_WORKLOAD && *text) {
		process_workload(own, text);
		text = own;
	}
	uint32_t label = pair->labels[level] = names_find(&b->names[level], within, text, e);
	if (label == IDMAP_NONE)
		return ERR_WORLD;
	if (kind != IDENTITY_JOB)
		return 0;
	if (label == before && !array_one_more(&b->shown, label))
		return err_memory(e);
	/* The first process that knows more than the number names the job. */
	if (label == before)
		b->shown[label] = NULL;
	if (shown && !b->shown[label] && strcmp(shown, text) != 0)
		b->shown[label] = arena_text(&b->g->a->texts, shown);
	return 0;
}

/* What distinguishes a row from the other rows of its level. */
struct row_key {
	uint32_t outer;
	uint32_t number;   /* KEY_WITHOUT: items without a name; IDMAP_NONE: out of memory */
	const char *text;  /* NULL: none; a name, or the audit's */
	const char *shown; /* NULL: as `text` */
};
#define KEY_WITHOUT (IDMAP_NONE - 1)

/* The key for the number that a name has at this level. */
static struct row_key key_of_name(const struct breakdown *b, size_t level, uint32_t number)
{
	const struct names *names = &b->names[level];
	if (number == IDMAP_NONE)
		return (struct row_key){ .number = KEY_WITHOUT };
	return (struct row_key){ .number = number,
		.text = names->items[number].text,
		.shown = b->to->by.kinds[level] == IDENTITY_JOB ? b->shown[number] : NULL };
}

/* The key for a name that may be new; "": none. */
static struct row_key key_of_text(
	struct breakdown *b, size_t level, const char *text, struct err *e)
{
	if (!*text)
		return (struct row_key){ .number = KEY_WITHOUT };
	uint32_t number = names_find(&b->names[level], 0, text, e);
	if (number == IDMAP_NONE)
		return (struct row_key){ .number = IDMAP_NONE };
	return key_of_name(b, level, number);
}

static struct row_key key_of_card(
	struct breakdown *b, size_t level, uint32_t card, struct err *e)
{
	const struct audit_card *c = &b->g->a->cards[card];
	enum identity kind = b->to->by.kinds[level];
	if (kind == IDENTITY_MODEL)
		return key_of_text(b, level, c->id.name, e);
	if (kind == IDENTITY_HOST)
		return (struct row_key){ .number = (uint32_t)c->host,
			.text = b->g->a->hosts[c->host].hostname };
	return (struct row_key){ .number = card, .text = c->id.uuid };
}

static struct row_key key_of_pair(
	struct breakdown *b, size_t level, const struct pair *pair, struct err *e)
{
	const struct audit_question *q = b->g->q;
	enum identity kind = b->to->by.kinds[level];
	const char *user = b->users->names.items[pair->user].text;
	if (identity_is_of_card(kind))
		return key_of_card(b, level, pair->card, e);
	if (kind == IDENTITY_USER)
		return (struct row_key){ .number = pair->user, .text = user };
	if (kind == IDENTITY_GROUP) {
		const char *group = q->group_of ? q->group_of(q->group_context, user) : NULL;
		char safe[LABEL_CAP] = "";
		if (group)
			str_escape(safe, sizeof(safe), group, strlen(group));
		return key_of_text(b, level, safe, e);
	}
	struct row_key key = key_of_name(b, level, pair->labels[level]);
	if (kind == IDENTITY_PROCESS)
		key.number = b->n_processes;
	return key;
}

/* Returns the row with that key, added when it is new. NULL: out of memory. */
static struct audit_row *find_row(
	struct breakdown *b, size_t level, struct row_key key, struct err *e)
{
	struct audit_breakdown *to = b->to;
	int64_t place = (int64_t)key.outer << 32 | key.number;
	if (key.number == IDMAP_NONE)
		return NULL;
	/* The cards of a process follow each other, so its row is the last one or a new one. */
	bool mapped = to->by.kinds[level] != IDENTITY_PROCESS;
	struct audit_row *last = to->n[level] ? &to->rows[level][to->n[level] - 1] : NULL;
	if (!mapped && last && last->last_process == key.number && last->outer == key.outer)
		return last;
	uint32_t found = mapped ? idmap_get(&b->places[level], place) : IDMAP_NONE;
	if (found != IDMAP_NONE)
		return &to->rows[level][found];
	if (!array_one_more(&to->rows[level], to->n[level]) ||
		(mapped && !idmap_put(&b->places[level], place, (uint32_t)to->n[level]))) {
		err_memory(e);
		return NULL;
	}
	struct audit_row *row = &to->rows[level][to->n[level]++];
	*row = (struct audit_row){ .outer = key.outer,
		.key = key.text,
		.shown = key.shown,
		.sums = AUDIT_SUMS_NONE,
		.user = AUDIT_NONE,
		.host = AUDIT_NONE,
		.card = AUDIT_NONE,
		.started_ms = -1 };
	return row;
}

/* Counts one more item that the row stands for. */
static void note(uint32_t *known, size_t item)
{
	*known = *known == AUDIT_NONE || *known == item ? (uint32_t)item : AUDIT_SEVERAL;
}

static void note_card(const struct audit *a, struct audit_row *row, size_t card)
{
	note(&row->card, card);
	note(&row->host, a->cards[card].host);
}

static void add_pair(
	const struct breakdown *b, size_t level, struct audit_row *row, const struct pair *pair)
{
	enum measure measure = b->to->measures[level];
	struct audit_sums time = holdings_sums(pair);
	for (int state = 0; state < HOLDER_STATES; state++)
		if (measure == MEASURE_CARDS)
			time.ms[state] = 0;
		else if (measure != MEASURE_PROCESSES)
			time.ms[state] = pair->presence_ms[state];
	if (measure == MEASURE_CARDS) /* breakdown_end() adds the cards' own time */
		time.active_share_ms = time.idle_share_ms = time.unknown_share_ms =
			time.reserved_ms = 0;
	audit_cost_holder(&time, &b->g->a->cards[pair->card]);
	audit_sums_add(&row->sums, &time);
	note(&row->user, pair->user);
	note_card(b->g->a, row, pair->card);
	if (row->last_process != b->n_processes && !pair->lease) {
		row->last_process = b->n_processes;
		row->n_processes++;
	}
	row->pid = pair->pid;
	row->started_ms = pair->started_ms;
}

int breakdown_add(struct breakdown *b, size_t path, const struct pair *pair, struct err *e)
{
	uint32_t outer = 0;
	if (b->path != path || b->process != pair->process)
		b->n_processes++;
	b->path = path;
	b->process = pair->process;
	for (size_t level = 0; level < b->to->by.n; level++) {
		struct row_key key = key_of_pair(b, level, pair, e);
		key.outer = outer;
		struct audit_row *row = find_row(b, level, key, e);
		if (!row)
			return ERR_WORLD;
		add_pair(b, level, row, pair);
		outer = (uint32_t)(row - b->to->rows[level]);
	}
	return 0;
}

static void add_card(struct audit_row *row, const struct audit_card *card)
{
	struct audit_sums time = { .ms = { [HOLDER_ACTIVE] = card->ms[CARD_ACTIVE],
					   [HOLDER_IDLE_HELD] = card->ms[CARD_IDLE_HELD],
					   [HOLDER_TRULY_IDLE] = card->ms[CARD_TRULY_IDLE],
					   [HOLDER_USE_UNKNOWN] = card->ms[CARD_USE_UNKNOWN] },
		.active_share_ms = card->ms[CARD_ACTIVE],
		.idle_share_ms = card->ms[CARD_IDLE_HELD],
		.unknown_share_ms = card->ms[CARD_USE_UNKNOWN],
		.reserved_ms = card->ms[CARD_RESERVED],
		.peak_mem_kib = -1,
		.last_active_ms = -1 };
	audit_cost_card(&time.cost, card, 0, COST_PARTS);
	audit_sums_add(&row->sums, &time);
	row->unobserved_ms += card->ms[CARD_UNOBSERVED];
	if (row->n_cards++ == 0 || card->first_seen_ms < row->known_ms)
		row->known_ms = card->first_seen_ms;
}

int breakdown_end(struct breakdown *b, struct err *e)
{
	struct audit *a = b->g->a;
	for (uint32_t card = 0; card < a->n_cards; card++) {
		uint32_t outer = 0;
		for (size_t level = 0; level < b->to->by.n; level++) {
			if (b->to->measures[level] != MEASURE_CARDS)
				break;
			struct row_key key = key_of_card(b, level, card, e);
			key.outer = outer;
			struct audit_row *row = find_row(b, level, key, e);
			if (!row)
				return ERR_WORLD;
			add_card(row, &a->cards[card]);
			note_card(a, row, card);
			outer = (uint32_t)(row - b->to->rows[level]);
		}
	}
	for (size_t level = 0; level < BY_MAX; level++)
		arena_move(&a->texts, &b->names[level].texts);
	return 0;
}

void breakdown_finish(struct breakdown *b)
{
	for (size_t level = 0; level < BY_MAX; level++) {
		names_finish(&b->names[level]);
		idmap_finish(&b->places[level]);
	}
	free(b->shown);
	*b = (struct breakdown){ 0 };
}
