/* Reads the tables `gpu` and `reading`. */
#include "present/cards_now.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "store/sql.h"

enum {
	COLUMN_GPU,
	COLUMN_UUID,
	COLUMN_NAME,
	COLUMN_PARENT,
	COLUMN_PCI,
	COLUMN_INDEX,
	COLUMN_MIG,
	COLUMN_GI,
	COLUMN_CI,
	COLUMN_MEMORY,
	COLUMN_SOURCE,
	COLUMN_STATUS,
	COLUMN_FIRST,
	COLUMN_LAST,
	COLUMN_CURRENT,
	COLUMN_AT,
	COLUMN_UTIL,
	COLUMN_USED,
	COLUMN_POWER,
	COLUMN_LIMIT,
	COLUMN_TEMPERATURE,
	COLUMN_IDLE_SINCE
};
static const char cards_sql[] =
	"WITH newest AS (SELECT host, last_tick_ms FROM run WHERE source <> 'import'"
	" ORDER BY id DESC LIMIT 1)"
	" SELECT id, uuid, name, parent_uuid, pci, idx, mig_index, gpu_instance,"
	" compute_instance, mem_total_bytes, source, status, first_seen_ms, last_seen_ms,"
	" at_ms = last_tick_ms, at_ms, util_pct, mem_used_bytes, power_w, power_limit_w,"
	" temperature_c, idle_held_since_ms FROM newest JOIN gpu ON gpu.host = newest.host"
	" LEFT JOIN reading ON reading.gpu = gpu.id ORDER BY idx, mig_index, id";

static double number(sqlite3_stmt *row, int column)
{
	if (sqlite3_column_type(row, column) == SQLITE_NULL)
		return NAN;
	return sqlite3_column_double(row, column);
}

static enum card_status status_of(sqlite3_stmt *row)
{
	const char *text = (const char *)sqlite3_column_text(row, COLUMN_STATUS);
	for (int i = 0; text && i < CARD_STATUS_COUNT; i++)
		if (strcmp(text, card_status_names[i]) == 0)
			return (enum card_status)i;
	return CARD_STATUS_LOST;
}

static int small(sqlite3_stmt *row, int column)
{
	int64_t value = sql_int(row, column, -1);
	return value < -1 || value > INT32_MAX ? -1 : (int)value;
}

static void take_id(struct card_id *id, sqlite3_stmt *row)
{
	sql_text(row, COLUMN_UUID, id->uuid, sizeof(id->uuid));
	sql_text(row, COLUMN_NAME, id->name, sizeof(id->name));
	sql_text(row, COLUMN_PARENT, id->parent_uuid, sizeof(id->parent_uuid));
	sql_text(row, COLUMN_PCI, id->pci, sizeof(id->pci));
	id->index = small(row, COLUMN_INDEX);
	id->mig_index = small(row, COLUMN_MIG);
	id->gpu_instance = small(row, COLUMN_GI);
	id->compute_instance = small(row, COLUMN_CI);
	id->mem_total_bytes = sql_int(row, COLUMN_MEMORY, UNKNOWN_BYTES);
}

static void take_card(struct card_reported *c, sqlite3_stmt *row)
{
	*c = (struct card_reported){
		.gpu = sql_int(row, COLUMN_GPU, 0),
		.status = status_of(row),
		.first_seen_ms = sql_int(row, COLUMN_FIRST, 0),
		.last_seen_ms = sql_int(row, COLUMN_LAST, 0),
		.current = sql_int(row, COLUMN_CURRENT, 0) != 0,
		.at_ms = sql_int(row, COLUMN_AT, -1),
		.now = { .util_pct = number(row, COLUMN_UTIL),
			.power_w = number(row, COLUMN_POWER),
			.power_limit_w = number(row, COLUMN_LIMIT),
			.temperature_c = number(row, COLUMN_TEMPERATURE),
			.mem_used_bytes = sql_int(row, COLUMN_USED, UNKNOWN_BYTES),
			.idle_held_since_ms = sql_int(row, COLUMN_IDLE_SINCE, -1) },
	};
	take_id(&c->id, row);
	sql_text(row, COLUMN_SOURCE, c->source, sizeof(c->source));
}

int cards_now_read(struct cards_now *c, struct sqlite3 *db, struct err *e)
{
	*c = (struct cards_now){ .last_tick_ms = -1 };
	sqlite3_stmt *row = NULL;
	int rc = sql_number(db, &c->last_tick_ms, e,
		"SELECT last_tick_ms FROM run WHERE source <> 'import' ORDER BY id DESC LIMIT "
		"1");
	if (!rc)
		rc = sql_prepare(db, &row, e, "%s", cards_sql);
	while (rc == 0 && (rc = sql_step(row, e)) == 1) {
		rc = 0;
		if (!array_one_more(&c->cards, c->n)) {
			rc = err_memory(e);
			break;
		}
		take_card(&c->cards[c->n++], row);
	}
	sqlite3_finalize(row);
	return rc;
}

void cards_now_free(struct cards_now *c)
{
	free(c->cards);
	*c = (struct cards_now){ .last_tick_ms = -1 };
}
