/* The yardstick for reports: reads every row of a store's slots once, in order, all columns,
 * and does nothing with them. What a report takes is given as a ratio to this as well, so that
 * a slow machine can be told from a slow report. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static const char *const tables[] = { "usage_1m", "usage_5m", "usage_1h", "holding_1m",
	"holding_5m", "holding_1h" };

static int scan(sqlite3 *db, const char *table, long long *rows)
{
	char sql[64];
	sqlite3_stmt *row;
	long long sum = 0;
	snprintf(sql, sizeof(sql), "SELECT * FROM %s", table);
	if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK)
		return -1;
	int rc, columns = sqlite3_column_count(row);
	while ((rc = sqlite3_step(row)) == SQLITE_ROW) {
		for (int i = 0; i < columns; i++)
			sum ^= sqlite3_column_int64(row, i);
		++*rows;
	}
	sqlite3_finalize(row);
	return rc == SQLITE_DONE && sum != 0x7fffffffffffffff ? 0 : -1;
}

int main(int argc, char **argv)
{
	sqlite3 *db;
	long long rows = 0;
	if (argc != 2 || sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		return 2;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (scan(db, tables[i], &rows) != 0)
			return 1;
	printf("%lld\n", rows);
	sqlite3_close(db);
	return 0;
}
