/* Reads the idle spells that overlap the window, and keeps the longest. */
#include "audit/gather.h"

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

/* The longest first: by time within the window, then by total time, then by age. */
static int compare(const void *x, const void *y)
{
	const struct audit_spell *a = x, *b = y;
	int order = array_compare(b->window_ms, a->window_ms);
	if (order == 0)
		order = array_compare(spell_idle_ms(&b->spell), spell_idle_ms(&a->spell));
	if (order == 0)
		order = array_compare(a->spell.begin_ms, b->spell.begin_ms);
	if (order == 0)
		order = array_compare((int64_t)a->card, (int64_t)b->card);
	return order ? order : array_compare(a->id, b->id);
}

void spells_sort(struct audit_spells *all, size_t most)
{
	array_sort(all->items, all->n, compare);
	if (all->n <= most)
		return;
	all->n_left_out += all->n - most;
	all->n = most;
}

/* Adds a spell. Twice as many as are wanted are sorted, and the shorter half is left out.
 * False: out of memory. */
static bool add(struct audit_spells *all, const struct audit_spell *spell, size_t most)
{
	if (!array_one_more(&all->items, all->n))
		return false;
	all->items[all->n++] = *spell;
	if (all->n == 2 * most)
		spells_sort(all, most);
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

/* Whether a spell is within the window, and shorter than as many as are wanted: most are. */
static bool is_too_short(
	const struct spell_fold *s, const struct spell *spell, const struct audit_host *host)
{
	int64_t idle_ms = spell_idle_ms(spell);
	/* Once some were left out, the first ones are sorted. */
	return s->to->n_left_out && idle_ms > 0 &&
	       idle_ms < s->to->items[s->g->q->max_spells - 1].window_ms &&
	       spell->begin_ms >= s->g->a->since_ms && spell->end_ms <= host->until_ms &&
	       spell_unobserved_ms(spell) >= 0;
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
	if (item.window_ms == 0 || add(s->to, &item, s->g->q->max_spells))
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
		if ((rc = sql_step(row, e)) == 1) {
			rc = 0;
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
	spells_sort(s.to, g->q->max_spells);
	return rc ? rc : read_rest(&s, e);
}

int spells_add(struct gather *g, struct gather_file *file, struct err *e)
{
	const struct audit_spells *part = &file->part->a.spells;
	for (size_t i = 0; i < part->n; i++)
		if (!add(&g->a->spells, &part->items[i], g->q->max_spells))
			return err_memory(e);
	g->a->spells.n_left_out += part->n_left_out;
	return 0;
}
