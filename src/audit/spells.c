/* Reads the idle spells that overlap the window, and keeps the longest. */
#include <math.h>

#include "base/array.h"
#include "base/clock.h"
#include "audit/gather.h"
#include "store/sql.h"

/* What the rows of one file are read into. */
struct spell_fold {
	struct fold fold;
	const struct gather *g;
	struct gather_file *file;
	struct audit_spells *to;
};

/* The columns of a spell. Those after squatting_ms are read only of spells that are kept. */
enum { AT_END, AT_GPU, AT_PROCESS, AT_BEGIN, AT_IDLE, AT_SQUATTING };
#define COLUMNS "end_ms, gpu, process, begin_ms, idle_held_ms, squatting_ms"

/* Whether `a` is longer: by its time within the window, then by its total time, then by age. */
static bool is_longer(const struct audit_spell *a, const struct audit_spell *b)
{
	int64_t idle_a = spell_idle_ms(&a->spell), idle_b = spell_idle_ms(&b->spell);
	if (a->window_ms != b->window_ms)
		return a->window_ms > b->window_ms;
	if (idle_a != idle_b)
		return idle_a > idle_b;
	if (a->spell.begin_ms != b->spell.begin_ms)
		return a->spell.begin_ms < b->spell.begin_ms;
	return a->card != b->card ? a->card < b->card : a->id < b->id;
}

static void swap(struct audit_spell *a, struct audit_spell *b)
{
	struct audit_spell other = *a;
	*a = *b;
	*b = other;
}

/* Restores the heap: the shortest is first, and each item is not longer than its children at
 * 2i + 1 and 2i + 2. */
static void sift_down(struct audit_spell *items, size_t n)
{
	for (size_t i = 0, next; (next = 2 * i + 1) < n; i = next) {
		if (next + 1 < n && is_longer(&items[next], &items[next + 1]))
			next++;
		if (!is_longer(&items[i], &items[next]))
			return;
		swap(&items[i], &items[next]);
	}
}

static void sift_up(struct audit_spell *items, size_t i)
{
	for (; i > 0 && is_longer(&items[(i - 1) / 2], &items[i]); i = (i - 1) / 2)
		swap(&items[(i - 1) / 2], &items[i]);
}

/* Adds a spell if it is one of the longest. False: out of memory. */
static bool keep(struct audit_spells *all, const struct audit_spell *spell, size_t most)
{
	if (all->n < most) {
		if (!array_one_more(&all->items, all->n))
			return false;
		all->items[all->n] = *spell;
		sift_up(all->items, all->n++);
		return true;
	}
	all->n_left_out++;
	if (all->n && is_longer(spell, &all->items[0])) {
		all->items[0] = *spell;
		sift_down(all->items, all->n);
	}
	return true;
}

/* Returns how much of the spell's idle time is between the two moments. The store does not have
 * where in a spell the time without readings was, so it is spread evenly. */
static int64_t idle_between(const struct spell *s, int64_t since_ms, int64_t until_ms)
{
	int64_t from_ms = clock_later(s->begin_ms, since_ms);
	int64_t to_ms = clock_earlier(s->end_ms, until_ms);
	int64_t length_ms = s->end_ms - s->begin_ms;
	if (to_ms <= from_ms)
		return 0;
	return llround(
		(double)spell_idle_ms(s) * (double)(to_ms - from_ms) / (double)length_ms);
}

static struct spell read_spell(sqlite3_value **values)
{
	return (struct spell){ .begin_ms = sql_value_known(values[AT_BEGIN]),
		.end_ms = sql_value_known(values[AT_END]),
		.idle_held_ms = sql_value_sum(values[AT_IDLE]),
		.squatting_ms = sql_value_sum(values[AT_SQUATTING]),
		.mem_peak_kib = -1,
		.energy_mj = -1,
		.how = SPELL_OPEN };
}

/* Whether a spell is within the window, and shorter than all that are kept: most are. */
static bool is_too_short(
	const struct spell_fold *s, const struct spell *spell, const struct audit_host *host)
{
	int64_t idle_ms = spell_idle_ms(spell);
	return s->to->n == s->g->q->max_spells && idle_ms > 0 &&
	       idle_ms < s->to->items[0].window_ms && spell->begin_ms >= s->g->a->since_ms &&
	       spell->end_ms <= host->until_ms && spell_unobserved_ms(spell) >= 0;
}

static bool take_spell(struct fold *f, sqlite3_value **values)
{
	struct spell_fold *s = f->context;
	const struct audit *a = s->g->a;
	uint32_t card = gather_card(s->file, sqlite3_value_int64(values[AT_GPU]));
	int64_t process = sqlite3_value_int64(values[AT_PROCESS]);
	if (s->g->q->present_of && idmap_get(&s->file->person, process) == IDMAP_NONE)
		return true;
	if (card == IDMAP_NONE || !restriction_has(s->g, s->file, process))
		return true;
	const struct audit_host *host = &a->hosts[a->cards[card].host];
	const struct spell spell = read_spell(values);
	if (is_too_short(s, &spell, host)) {
		s->to->n_left_out++;
		return true;
	}
	/* Recorders do not write such rows: the store is damaged. */
	if (spell.begin_ms < 0 || spell_unobserved_ms(&spell) < 0)
		return true;
	struct audit_spell item = { .host = a->cards[card].host,
		.card = card,
		.path = (size_t)(s->file - s->g->files),
		.id = process,
		.gpu = sqlite3_value_int64(values[AT_GPU]),
		.started_ms = -1,
		.user = "",
		.spell = spell };
	item.window_ms = idle_between(&item.spell, a->since_ms, host->until_ms);
	if (item.window_ms == 0 || keep(s->to, &item, s->g->q->max_spells))
		return true;
	err_memory(f->e);
	return false;
}

/* Reads the rest of what the store has about the spells that were kept. */
static int read_rest(struct spell_fold *s, struct err *e)
{
	sqlite3_stmt *row;
	int rc = sql_prepare(s->file->db, &row, e,
		"SELECT mem_peak_kib, energy_mj, how_ended FROM spell WHERE end_ms = ?1 AND "
		"gpu = ?2 AND process = ?3 UNION ALL SELECT mem_peak_kib, energy_mj, NULL FROM "
		"open_spell WHERE end_ms = ?1 AND gpu = ?2 AND process = ?3");
	for (size_t i = 0; i < s->to->n && rc == 0; i++) {
		struct audit_spell *item = &s->to->items[i];
		sql_bind(row, SQL_INT(item->spell.end_ms), SQL_INT(item->gpu),
			SQL_INT(item->id));
		if (sql_next(row, &rc, e)) {
			int64_t how = sql_int(row, 2, -1);
			item->spell.mem_peak_kib = sql_int(row, 0, -1);
			item->spell.energy_mj = sql_int(row, 1, -1);
			if (how >= 0 && how < SPELL_ENDS)
				item->spell.how = (enum spell_end)how;
		}
		/* The recorder was killed, and no other has been started since. */
		if (item->spell.how == SPELL_OPEN && !s->g->a->hosts[item->host].recording)
			item->spell.how = SPELL_STOPPED;
		sqlite3_reset(row);
	}
	sqlite3_finalize(row);
	return rc;
}

int spells_read(struct gather *g, struct gather_file *file, struct err *e)
{
	struct spell_fold s = { .g = g, .file = file, .to = &file->part->a.spells };
	long long since_ms = g->a->since_ms, until_ms = g->a->until_ms;
	if (!g->q->max_spells)
		return 0;
	s.fold = (struct fold){ .row = take_spell, .context = &s };
	int rc = sql_fold(file->db, &s.fold, e,
		"SELECT fold(" COLUMNS ") FROM spell WHERE end_ms > %lld AND "
		"begin_ms < %lld",
		since_ms, until_ms);
	if (rc == 0)
		rc = sql_fold(file->db, &s.fold, e,
			"SELECT fold(" COLUMNS ") FROM open_spell AS o WHERE end_ms > %lld "
			"AND begin_ms < %lld AND " OPEN_IS_SPELL,
			since_ms, until_ms);
	return rc ? rc : read_rest(&s, e);
}

int spells_add(struct gather *g, struct gather_file *file, struct err *e)
{
	const struct audit_spells *part = &file->part->a.spells;
	for (size_t i = 0; i < part->n; i++)
		if (!keep(&g->a->spells, &part->items[i], g->q->max_spells))
			return err_memory(e);
	g->a->spells.n_left_out += part->n_left_out;
	return 0;
}

/* Reads what the row of its process says. */
int spells_describe(struct gather *g, size_t index, struct err *e)
{
	struct audit_spell *s = &g->a->spells.items[index];
	sqlite3_stmt *stmt;
	int rc = sql_prepare(g->files[s->path].db, &stmt, e,
		"SELECT pid, started_ms, user, " PROCESS_TEXT_COLUMNS " FROM process "
		"WHERE id = %lld",
		(long long)s->id);
	if (sql_next(stmt, &rc, e)) {
		struct arena *texts = &g->a->texts;
		s->pid = (uint32_t)sql_int(stmt, 0, 0);
		s->started_ms = sql_int(stmt, 1, -1);
		const char *user = sql_text_copy(stmt, 2, texts);
		s->user = user ? user : "";
		for (int i = 0; i < PROCESS_TEXTS; i++)
			s->texts[i] = sql_text_copy(stmt, 3 + i, texts);
		rc = texts->failed ? err_memory(e) : 0;
	}
	sqlite3_finalize(stmt);
	return rc;
}

/* Moves the shortest spells to the end, one after the other. */
void spells_sort(struct audit_spells *all)
{
	for (size_t n = all->n; n > 1; n--) {
		swap(&all->items[0], &all->items[n - 1]);
		sift_down(all->items, n - 1);
	}
}
