/* gua import: imports a database of the Python tool gpu-usage-audit. */
#include "cmd/share/choose_db.h"
#include "cmd/share/terminal.h"
#include "import/import.h"
#include "store/store.h"

struct values {
	const char *db;
	int64_t interval_ms;
};

#define AT(member) .offset = offsetof(struct values, member)
static const struct option_row options[] = {
	{ OPTION_TEXT, 0, "db", "PATH", "the store to import into", AT(db) },
	{ OPTION_DURATION, 0, "interval", "D",
		"interval of samples for which the file has none (default 30s)",
		AT(interval_ms), .min = 1, .max = 86400000 },
	{ 0 },
};

static int import_file(
	const char *path, const struct values *v, struct progress *bar, struct err *e)
{
	struct pyfile *file = NULL;
	struct store *store = NULL;
	struct import_summary s;
	char safe[PATH_MAX];
	struct import_question question = {
		.path = path,
		.interval_ms = v->interval_ms,
		.progress = terminal_progress_step,
		.context = bar,
	};
	cmd_now(NULL, &question.now_ms, e);
	/* Until the file is open there is nothing to undo, and a signal may end the program. */
	if (pyfile_open(&file, path, question.now_ms, e) == 0 &&
		terminal_progress_hold_signals(bar) == 0 && store_open(&store, v->db, e) == 0)
		import_run(store, file, &question, &s, e);
	terminal_progress_erase(bar);
	pyfile_close(file);
	store_close(store);
	if (e->code)
		return e->code;
	bool any = s.first_ms >= 0;
	str_escape(safe, sizeof(safe), path, strlen(path));
	printf("imported %s: host %s, %" PRId64 " cards, %" PRId64 " ticks, %" PRId64
	       " samples from %s to %s; skipped: %" PRId64 " samples already recorded, %" PRId64
	       " malformed rows",
		safe, s.facts.hostname, s.cards, s.ticks, s.samples,
		any ? moment_iso(s.first_ms / 1000 * 1000).text : "-",
		any ? moment_iso(s.last_ms / 1000 * 1000).text : "-", s.recorded, s.bad_rows);
	if (s.misdated)
		printf(", %" PRId64 " samples dated before 2007 or in the future", s.misdated);
	putchar('\n');
	return 0;
}

static int run(const struct call *call, struct err *e)
{
	struct values *v = call->values;
	char db[PATH_MAX];
	struct progress bar;
	if (!call->operands[0] || call->operands[1])
		return err_set(e, ERR_USAGE, "give one FILE to import");
	if (!v->db && choose_db_own(db, sizeof(db), e))
		return e->code;
	v->db = v->db ? v->db : db;
	terminal_progress_init(&bar, "rows");
	return import_file(call->operands[0], v, &bar, e);
}

const struct command cmd_import = {
	.name = "import",
	.summary = "import a database of the Python tool gpu-usage-audit",
	.usage = "FILE [--db PATH] [--interval D]",
	.details =
		"FILE is only read. After a failure or Ctrl-C nothing is imported. The same\n"
		"file is not imported twice. A damaged file is refused, and so is one that "
		"takes\n"
		"more work than its size explains. Samples dated before 2007 or in the future "
		"are\n"
		"left out and counted.",
	.options = options,
	.values_size = sizeof(struct values),
	.initial = &(const struct values){ .interval_ms = IMPORT_INTERVAL_MS },
	.operands = "FILE",
	.run = run,
};
