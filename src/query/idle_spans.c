/* Reads the idle stretches of the sessions. */
#include <stdlib.h>

#include "base/array.h"
#include "model/process_reading.h"
#include "query/idle_private.h"
#include "query/spell_sql.h"
#include "query/sql.h"

enum { AT_PROCESS, AT_GPU, AT_BEGIN, AT_END, AT_IDLE, AT_MEM, AT_HOW, AT_KIND };

static int take_span(struct idle_history *h, sqlite3_stmt *row, struct err *e)
{
	uint32_t process = idmap_get(&h->process_ids, sql_int(row, AT_PROCESS, 0));
	uint32_t card = idmap_get(&h->card_ids, sql_int(row, AT_GPU, 0));
	int64_t how = sql_int(row, AT_HOW, SPELL_OPEN);
	if (process == IDMAP_NONE || card == IDMAP_NONE)
		return 0;
	int64_t kind = sql_int(row, AT_KIND, 0) & (PROCESS_COMPUTE | PROCESS_GRAPHICS);
	h->sessions[h->processes[process].session].draws |= kind == PROCESS_GRAPHICS;
	bool open = how < 0 || how >= SPELL_ENDS;
	struct idle_span span = { .session = h->processes[process].session,
		.process = process,
		.card = card,
		.begin_ms = sql_int(row, AT_BEGIN, -1),
		.end_ms = sql_int(row, AT_END, -1),
		.mem_kib = sql_int(row, AT_MEM, -1),
		.how = open ? SPELL_OPEN : (enum spell_end)how };
	span.until_ms = span.end_ms;
	span.unobserved_ms = span.end_ms - span.begin_ms - sql_int(row, AT_IDLE, 0);
	/* No recorder writes that. */
	if (span.begin_ms < 0 || span.end_ms < span.begin_ms || span.unobserved_ms < 0)
		return 0;
	if (!array_one_more(&h->spans, h->n_spans))
		return err_memory(e);
	h->spans[h->n_spans++] = span;
	return 0;
}

static int compare_spans(const void *a, const void *b)
{
	const struct idle_span *x = a, *y = b;
	if (x->begin_ms != y->begin_ms)
		return x->begin_ms < y->begin_ms ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->card < y->card ? -1 : x->card > y->card;
}

/* Open stretches, with what is held now; spells, and open stretches that are spells. */
#define PRESENT                                                                                \
	"SELECT o.process, o.gpu, o.begin_ms, o.end_ms, idle_held_ms + squatting_ms, "         \
	"coalesce(at.mem_bytes / 1024, mem_peak_kib), NULL, at.kind FROM open_spell AS o "     \
	"JOIN holder AS at ON at.gpu = o.gpu AND at.process = o.process"
#define PAST                                                                                   \
	"SELECT process, gpu, begin_ms, end_ms, idle_held_ms + squatting_ms, mem_peak_kib, "   \
	"how_ended, 0 FROM spell WHERE end_ms > %lld AND begin_ms < %lld UNION ALL "           \
	"SELECT process, gpu, begin_ms, end_ms, idle_held_ms + squatting_ms, mem_peak_kib, "   \
	"NULL, 0 FROM open_spell AS o WHERE begin_ms < %lld AND " OPEN_IS_SPELL

static int take_all(struct idle_history *h, sqlite3_stmt *rows, struct err *e)
{
	int rc = 0;
	while (rc == 0 && (rc = sql_step(rows, e)) == 1)
		rc = take_span(h, rows, e);
	if (h->n_spans)
		qsort(h->spans, h->n_spans, sizeof(*h->spans), compare_spans);
	return rc;
}

int idle_read_spans(struct idle_history *h, struct err *e)
{
	sqlite3_stmt *rows = NULL;
	long long since_ms = h->since_ms, until_ms = h->until_ms;
	int rc = h->present ? sql_prepare(h->db, &rows, e, PRESENT)
			    : sql_prepare(h->db, &rows, e, PAST, since_ms, until_ms, until_ms);
	if (rc == 0)
		rc = take_all(h, rows, e);
	sqlite3_finalize(rows);
	return rc;
}

int idle_read_closed(struct idle_history *h, struct err *e)
{
	sqlite3_stmt *rows = NULL;
	int rc = sql_prepare(h->db, &rows, e,
		"SELECT process, gpu, begin_ms, end_ms, idle_held_ms + squatting_ms, "
		"mem_peak_kib, how_ended, 0 FROM spell AS s WHERE end_ms > %lld AND NOT EXISTS "
		"(SELECT 1 FROM open_spell AS o WHERE o.end_ms = s.end_ms AND o.gpu = s.gpu "
		"AND o.process = s.process)",
		(long long)idle_first_ms(h));
	if (rc == 0)
		rc = take_all(h, rows, e);
	sqlite3_finalize(rows);
	return rc;
}
