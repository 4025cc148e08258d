/* Turns the samples of a Python gpu-usage-audit file into the sums of a store. */
#include "import/import.h"

#include "classify/classify.h"
#include "classify/ledger.h"
#include "classify/idle_spells.h"
#include "import/pylives.h"
#include "store/recorded.h"
#include "store/sql.h"

enum {
	MAX_CARDS = 4096,
	FLUSH_ROWS = 16384,	/* half of what a ledger holds */
	COMPACT_SLOTS = 64,	/* slots per compaction step */
	COMPACT_SLACK_S = 7200, /* data this near to an edge of retention stays fine */
	PROGRESS_SAMPLES = 512, /* between two calls */
};

struct importer {
	struct store *store;
	struct pyfile *file;
	const struct import_question *question;
	struct import_summary *summary;
	struct rules rules;
	struct recorded recorded;
	struct card_entry *cards;
	size_t n_cards, card; /* card: that of the previous sample, where the search starts */
	struct pylives lives;
	struct ledger ledger;
	struct card_spells {
		struct spells spells;
		int64_t until_ms; /* of its last sample */
	} * idle;		  /* by card */
	struct spell *ended;	  /* those of a flush */
	size_t n_ended;
	int64_t at_ms;	  /* time of the previous sample */
	int64_t until_ms; /* accounted up to here */
};

static int begin_run(struct importer *im, struct err *e)
{
	const struct pyfile_facts *facts = &im->summary->facts;
	struct run_info info = {
		.source = "import",
		.started_ms = facts->first_ms,
		.interval_ms =
			facts->interval_ms > 0 ? facts->interval_ms : im->question->interval_ms,
		.rules = im->rules,
	};
	info.drain_ms = info.interval_ms;
	str_copy(info.hostname, sizeof(info.hostname), facts->hostname);
	str_copy(info.environment, sizeof(info.environment), facts->environment);
	str_copy(info.driver, sizeof(info.driver), facts->driver);
	return store_begin_run(im->store, &info, e);
}

static int keep_spell(struct importer *im, const struct spell *s, struct err *e)
{
	if (spell_idle_ms(s) < im->rules.spell_ms)
		return 0;
	if (!array_one_more(&im->ended, im->n_ended))
		return err_memory(e);
	struct spell *ended = &im->ended[im->n_ended++];
	*ended = *s;
	/* A process that was not on the card in a later sample has ended, unless it was seen
	 * elsewhere: then it released the memory. */
	bool seen = im->lives.entries[s->process].last_seen_ms > s->end_ms;
	if (s->how == SPELL_GONE)
		ended->how = seen ? SPELL_RELEASED : SPELL_EXITED;
	return 0;
}

/* Collects the spells that have ended; those of a process that has ended are among them. */
static int collect_spells(struct importer *im, struct err *e)
{
	int rc = 0;
	im->n_ended = 0;
	for (size_t c = 0; c < im->n_cards; c++) {
		struct spells *s = &im->idle[c].spells;
		for (size_t i = 0; i < s->ended.n && rc == 0; i++)
			rc = keep_spell(im, &s->ended.items[i].spell, e);
		s->ended.n = 0;
		for (size_t i = s->open.n; i-- > 0 && rc == 0;) {
			struct spell *open = &s->open.items[i].spell;
			if (im->lives.entries[open->process].ended_ms < 0)
				continue;
			open->how = SPELL_EXITED;
			rc = keep_spell(im, open, e);
			s->open.items[i] = s->open.items[--s->open.n];
		}
	}
	return rc;
}

/* Gives the processes of open stretches the numbers that they have after pylives_forget(),
 * which keeps those that live in order. */
static int renumber_spells(struct importer *im, struct err *e)
{
	uint32_t *to = calloc(im->lives.n + 1, sizeof(*to)), n = 0;
	if (!to)
		return err_memory(e);
	for (size_t i = 0; i < im->lives.n; i++)
		to[i] = im->lives.entries[i].ended_ms < 0 ? n++ : 0;
	for (size_t c = 0; c < im->n_cards; c++)
		for (size_t i = 0; i < im->idle[c].spells.open.n; i++) {
			struct spell *open = &im->idle[c].spells.open.items[i].spell;
			open->process = to[open->process];
		}
	free(to);
	return 0;
}

/* Writes the sums to the store. */
static int flush(struct importer *im, struct err *e)
{
	struct tick tick = {
		.at_ms = im->until_ms,
		.cards = im->cards,
		.n_cards = im->n_cards,
		.processes = im->lives.entries,
	};
	pylives_end(&im->lives, im->at_ms);
	tick.n_processes = im->lives.n;
	tick.usage = ledger_usage_rows(&im->ledger, &tick.n_usage);
	tick.holding = ledger_holding_rows(&im->ledger, &tick.n_holding);
	if (collect_spells(im, e) != 0)
		return e->code;
	tick.spells = im->ended;
	tick.n_spells = im->n_ended;
	if (write_tick(im->store, &tick, e) != 0 || renumber_spells(im, e) != 0)
		return e->code;
	ledger_clear(&im->ledger);
	pylives_forget(&im->lives);
	return 0;
}

static int add_card(struct importer *im, const struct pyfile_sample *sample, struct err *e)
{
	if (!array_one_more(&im->cards, im->n_cards) || !array_one_more(&im->idle, im->n_cards))
		return err_memory(e);
	if (im->n_cards == MAX_CARDS)
		return err_set(e, ERR_WORLD, "%s has more than %d cards: it cannot be right",
			im->question->path, MAX_CARDS);
	struct card_entry *card = &im->cards[im->n_cards];
	*card = (struct card_entry){
		.source = "nvml", /* the Python tool asks NVML */
		.id = { .index = (int)im->n_cards,
			.mig_index = -1,
			.gpu_instance = -1,
			.compute_instance = -1,
			.mem_total_bytes = -1 },
		.status = CARD_STATUS_OK,
		.first_seen_ms = sample->at_ms,
	};
	str_copy(card->id.uuid, sizeof(card->id.uuid), sample->uuid);
	pyfile_device(im->file, sample->uuid, &card->id);
	im->idle[im->n_cards] = (struct card_spells){ .until_ms = INT64_MIN };
	idle_spells_init(
		&im->idle[im->n_cards].spells, (uint32_t)im->n_cards, im->rules.spell_ms);
	im->card = im->n_cards++;
	return 0;
}

/* Makes im->card the sample's card and brings it up to date. */
static int see_card(
	struct importer *im, const struct pyfile_sample *sample, int64_t ms, struct err *e)
{
	size_t i = 0;
	for (; i < im->n_cards; i++) {
		size_t at = (im->card + 1 + i) % im->n_cards;
		if (strcmp(im->cards[at].id.uuid, sample->uuid) == 0) {
			im->card = at;
			break;
		}
	}
	if (i == im->n_cards && add_card(im, sample, e) != 0)
		return e->code;
	struct card_entry *card = &im->cards[im->card];
	if (sample->index >= 0)
		card->id.index = sample->index;
	card->last_seen_ms = clock_later(card->last_seen_ms, sample->at_ms + ms);
	card->dirty = true;
	return 0;
}

/* Returns what these processes hold together. */
static struct held held_by(const struct pyfile_process *p, size_t n)
{
	struct held held = { 0 };
	for (size_t i = 0; i < n; i++)
		classify_held_add(&held, p[i].mem_bytes);
	return held;
}

/* A stretch of one card's time, and the shares that its holders have got. */
struct stretch {
	int64_t slot, at_ms, ms;
	enum card_state state;
	double util_pct;
	enum holder_state own; /* of the user whose processes are being added */
	bool leads;	       /* the first of them: the user's presence is counted there */
	struct held all;
	int64_t idle_from_ms; /* where its part that no other sample covers begins */
	size_t n;	      /* processes */
	size_t done;	      /* how many processes have got their share ... */
	int64_t bytes_done;   /* ... what they hold ... */
	int64_t share_given;  /* ... and what they got */
};

/* Returns the next process' part of the card's time: by memory, or in equal parts when the
 * memory of one of them is unknown. The end of each part is rounded, not the part, so the parts
 * add up to the whole. */
static int64_t next_share(struct stretch *s, int64_t mem_bytes)
{
	s->bytes_done += mem_bytes < 0 ? 0 : mem_bytes;
	double part = (double)++s->done / (double)s->n;
	if (!s->all.unknown && s->all.bytes > 0)
		part = (double)s->bytes_done / (double)s->all.bytes;
	int64_t upto = s->done == s->n ? s->ms : llround(part * (double)s->ms);
	int64_t share = upto - s->share_given;
	s->share_given = upto;
	return share;
}

static int account_process(struct importer *im, const struct pyfile_process *p,
	struct stretch *stretch, struct err *e)
{
	const enum holder_state state = stretch->own;
	const struct sighting sighting = { p->pid, p->user, p->command, stretch->at_ms,
		stretch->ms };
	int64_t life = pylives_sight(&im->lives, &sighting);
	struct holding_sum *sum = life < 0 ? NULL
					   : ledger_holding(&im->ledger, stretch->slot,
						     (uint32_t)im->card, (uint32_t)life);
	if (!sum)
		return err_memory(e);
	/* Its own use is not known: it shares that of its card, and its memory is its own. */
	struct spells *s = &im->idle[im->card].spells;
	bool has_piece = false; /* a file may name a process twice */
	for (size_t i = 0; i < s->open.n; i++)
		if (s->open.items[i].spell.process == (uint32_t)life)
			has_piece = s->open.items[i].seen;
	const struct held own = held_by(p, 1);
	struct spell_piece piece = { .process = (uint32_t)life,
		.from_ms = stretch->idle_from_ms,
		.to_ms = stretch->at_ms + stretch->ms,
		.state = (enum holder_state)classify_card(stretch->util_pct, own, &im->rules),
		.mem_bytes = p->mem_bytes };
	if (piece.from_ms < piece.to_ms && !has_piece)
		idle_spells_take(s, &piece);
	if (state == HOLDER_ACTIVE)
		im->lives.entries[life].last_active_ms = stretch->at_ms;
	sum->ms[state] += stretch->ms;
	sum->presence_ms[state] += stretch->leads ? stretch->ms : 0;
	if (stretch->state == CARD_ACTIVE)
		sum->active_share_ms += next_share(stretch, p->mem_bytes);
	else if (stretch->state == CARD_IDLE_HELD)
		sum->idle_share_ms += next_share(stretch, p->mem_bytes);
	if (p->mem_bytes >= 0 && sum->mem_peak_kib < (p->mem_bytes + 1023) / 1024)
		sum->mem_peak_kib = (p->mem_bytes + 1023) / 1024;
	return 0;
}

/* Adds each user once, whatever the number of their processes. */
static int account_users(struct importer *im, const struct pyfile_sample *sample,
	struct stretch *stretch, struct err *e)
{
	const struct pyfile_process *p = sample->processes;
	for (size_t first = 0, end; first < sample->n_processes; first = end) {
		for (end = first + 1; end < sample->n_processes; end++)
			if (strcmp(p[end].user, p[first].user) != 0)
				break;
		enum card_state own = classify_card(
			sample->util_pct, held_by(&p[first], end - first), &im->rules);
		stretch->own = (enum holder_state)own;
		for (size_t i = first; i < end; i++) {
			stretch->leads = i == first;
			if (account_process(im, &p[i], stretch, e) != 0)
				return e->code;
		}
	}
	return 0;
}

static int account(struct importer *im, const struct pyfile_sample *sample, struct err *e)
{
	/* The slot is that which compaction would put this moment in, so that thirty days are a
	 * few thousand quarters of hours at once, not a million minutes; the hours of the week
	 * need no finer ones. Near an edge it is left to compaction. */
	const struct retention keep = RETENTION_DEFAULT;
	int64_t at = sample->at_ms / 1000;
	int64_t age = im->question->now_ms / 1000 - at - COMPACT_SLACK_S;
	int64_t seconds = age > keep.five_s ? 900 : age > keep.minute_s ? 300 : SLOT_SECONDS;
	struct stretch stretch = {
		.slot = at - at % seconds,
		.at_ms = sample->at_ms,
		.ms = sample->interval_ms > 0 ? sample->interval_ms : im->question->interval_ms,
		.util_pct = sample->util_pct,
		.all = held_by(sample->processes, sample->n_processes),
		.n = sample->n_processes,
	};
	stretch.state = classify_card(sample->util_pct, stretch.all, &im->rules);
	if (sample->at_ms + stretch.ms > im->until_ms)
		im->until_ms = sample->at_ms + stretch.ms;
	if (see_card(im, sample, stretch.ms, e) != 0)
		return e->code;
	struct usage_sum *sum =
		ledger_usage(&im->ledger, stretch.slot, (uint32_t)im->card, stretch.state);
	if (!sum)
		return err_memory(e);
	sum->ms += stretch.ms;
	sum->util_pct_ms += llround(sample->util_pct * (double)stretch.ms);
	struct card_spells *idle = &im->idle[im->card];
	stretch.idle_from_ms = idle->until_ms > stretch.at_ms ? idle->until_ms : stretch.at_ms;
	if (account_users(im, sample, &stretch, e) != 0)
		return e->code;
	if (stretch.idle_from_ms < stretch.at_ms + stretch.ms) {
		idle_spells_piece_end(&idle->spells, 0);
		idle->until_ms = stretch.at_ms + stretch.ms;
	}
	return 0;
}

static int stopped(void *context)
{
	struct importer *im = context;
	const struct import_question *q = im->question;
	return q->progress ? q->progress(q->context, pyfile_rows(im->file)->done,
				     im->summary->facts.rows)
			   : 0;
}

static int import_samples(struct importer *im, struct err *e)
{
	struct pyfile_sample sample;
	struct import_summary *summary = im->summary;
	int rc;
	for (int64_t n = 1; (rc = pyfile_next(im->file, &sample, e)) == 1; n++) {
		if (n % PROGRESS_SAMPLES == 0 && stopped(im))
			return err_set(e, ERR_WORLD, "interrupted: nothing was imported");
		if (recorded_has(&im->recorded, sample.uuid, sample.at_ms)) {
			summary->recorded++;
			continue;
		}
		size_t usage, holding;
		ledger_usage_rows(&im->ledger, &usage);
		ledger_holding_rows(&im->ledger, &holding);
		if (usage + holding >= FLUSH_ROWS && flush(im, e) != 0)
			return e->code;
		if (summary->samples == 0)
			summary->first_ms = sample.at_ms;
		summary->ticks += summary->samples == 0 || sample.at_ms != im->at_ms;
		summary->last_ms = clock_later(summary->last_ms, sample.at_ms);
		summary->samples++;
		im->at_ms = sample.at_ms;
		if (account(im, &sample, e) != 0)
			return e->code;
	}
	for (size_t i = 0; i < im->n_cards; i++)
		idle_spells_end_all(&im->idle[i].spells, SPELL_STOPPED);
	if (rc == 0 && summary->samples)
		rc = flush(im, e);
	return rc;
}

/* Writes everything, between the start and the end of a batch. */
static int import_batch(struct importer *im, struct err *e)
{
	struct import_summary *summary = im->summary;
	const struct pyfile_facts *facts = &summary->facts;
	const struct pyfile_rows *rows = pyfile_rows(im->file);
	sqlite3 *db = store_handle(im->store);
	int64_t end_ms = im->until_ms;
	if (recorded_read(&im->recorded, db, facts->hostname, e) || begin_run(im, e) ||
		import_samples(im, e))
		return e->code;
	end_ms = im->until_ms > 0 ? im->until_ms : facts->last_ms;
	if (store_end_run(im->store, end_ms, "imported", e))
		return e->code;
	if (!sql_do(db,
		    "INSERT INTO import (host, first_ms, last_ms, samples, imported_ms, path) "
		    "SELECT id, ?2, ?3, ?4, ?5, ?6 FROM host WHERE hostname = ?1",
		    NULL, SQL_RAW(facts->hostname), SQL_INT(facts->first_ms),
		    SQL_INT(facts->last_ms), SQL_INT(facts->samples),
		    SQL_INT(im->question->now_ms), SQL_TEXT(im->question->path)) ||
		sqlite3_changes(db) != 1)
		return err_set(e, ERR_WORLD, "cannot note the import in the store: %s",
			sqlite3_errmsg(db));
	summary->cards = (int64_t)im->n_cards;
	summary->bad_rows = rows->bad;
	summary->misdated = rows->misdated;
	const struct compaction c = { im->question->now_ms, RETENTION_DEFAULT, COMPACT_SLOTS };
	for (bool more = true; more;) {
		if (stopped(im))
			return err_set(e, ERR_WORLD, "interrupted: nothing was imported");
		if (compact_store(im->store, &c, &more, e) != 0)
			return e->code;
	}
	return 0;
}

/* Fails if the file was imported before. */
static int run_batch(struct importer *im, struct err *e)
{
	const struct pyfile_facts *facts = &im->summary->facts;
	sqlite3 *db = store_handle(im->store);
	struct err ignored = { 0 };
	int64_t imported_ms = -1;
	if (ledger_init(&im->ledger, e) != 0 || store_begin_batch(im->store, e) != 0)
		return e->code;
	if (!sql_do(db,
		    "SELECT imported_ms FROM import JOIN host ON host.id = import.host WHERE "
		    "hostname = ? AND first_ms = ? AND last_ms = ? AND samples = ?",
		    &imported_ms, SQL_RAW(facts->hostname), SQL_INT(facts->first_ms),
		    SQL_INT(facts->last_ms), SQL_INT(facts->samples)))
		err_set(e, ERR_WORLD, "cannot read the store: %s", sqlite3_errmsg(db));
	else if (imported_ms >= 0)
		err_set(e, ERR_WORLD,
			"%s is in the store already (imported at %s): nothing was changed",
			im->question->path, moment_iso(imported_ms / 1000 * 1000).text);
	if (e->code || import_batch(im, e) != 0) {
		store_end_batch(im->store, false, &ignored);
		return e->code;
	}
	return store_end_batch(im->store, true, e);
}

int import_run(struct store *s, struct pyfile *f, const struct import_question *q,
	struct import_summary *summary, struct err *e)
{
	struct importer im = {
		.store = s, .file = f, .question = q, .summary = summary, .rules = RULES_DEFAULT
	};
	*summary = (struct import_summary){ .first_ms = -1, .last_ms = -1 };
	if (pyfile_facts(f, &summary->facts, e) != 0)
		return e->code;
	if (summary->facts.first_ms < 0)
		return err_set(e, ERR_WORLD,
			"%s holds no samples between 2007 and now: there is nothing to import",
			q->path);
	pyfile_interrupt(f, stopped, &im);
	int rc = run_batch(&im, e);
	pyfile_interrupt(f, NULL, NULL);
	recorded_finish(&im.recorded);
	pylives_finish(&im.lives);
	ledger_finish(&im.ledger);
	for (size_t i = 0; i < im.n_cards; i++)
		idle_spells_finish(&im.idle[i].spells);
	free(im.idle);
	free(im.ended);
	free(im.cards);
	return rc;
}
