/* gua query: prints selected fields of cards or processes, as lines for scripts. */
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/share/line_output.h"
#include "cmd/share/cmd_live.h"
#include "cmd/share/query_rows.h"
#include "view/query.h"

struct values {
	struct live_values live;
	struct filter_values filter;
	const char *gpu, *apps, *accounted, *retired, *remapped;
	const char *format, *loop, *loop_ms, *file;
	bool help_gpu, help_apps, help_accounted, help_retired, help_remapped, mig, t;
};

#define AT(field) .offset = offsetof(struct values, field)

static const struct option_row options[] = {
	QUERY_ROWS,
	{ OPTION_TEXT, 0, "format", "FORMAT,...",
		"csv[,noheader][,nounits] (default csv) or json", AT(format),
		.words = query_formats },
	{ OPTION_MAYBE_NEXT, 'l', "loop", "SECONDS",
		"repeat at this interval (without a value: 5 s)", AT(loop) },
	{ OPTION_TEXT, 0, "loop-ms", "MS", "the same in milliseconds; also -lms MS",
		AT(loop_ms) },
	{ OPTION_TEXT, 'f', "filename", "FILE", "write to FILE instead of standard output",
		AT(file) },
	{ OPTION_FLAG, 't', "timestamp",
		.help = "accepted for compatibility and ignored; use the field timestamp",
		AT(t) },
	QUERY_HELP_ROWS,
	{ OPTION_FLAG, 0, "mig", .help = "one line per MIG instance instead of per card",
		AT(mig) },
	FILTER_ROWS(struct values, filter, 'u', 'p', 'i'),
	LIVE_ROWS(struct values, live),
	{ 0 },
};

/* A single JSON document is written over several lines; see struct json. */
enum { DOCUMENT_LINES = 3 };

/* nvidia-smi's -lms is one option with a single dash; getopt would see three. */
static void respell(int argc, char **argv)
{
	static char loop_ms[] = "--loop-ms";
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "-lms") == 0)
			argv[i] = loop_ms;
}

static int read_query(const struct values *v, struct query *q, struct err *e)
{
	const char *const lists[] = { v->gpu, v->apps, v->accounted, v->retired, v->remapped };
	const char *list = NULL;
	for (size_t i = QUERY_GPU; i <= QUERY_REMAPPED; i++) {
		if (list && lists[i])
			return err_set(e, ERR_USAGE, "only one --query-... can be given");
		if (!lists[i])
			continue;
		list = lists[i];
		q->list = (enum query_list)i;
	}
	if (!list)
		return err_set(e, ERR_USAGE,
			"give --query-gpu=FIELD,... or "
			"--query-compute-apps=FIELD,...");
	q->instances = v->mig;
	int rc = v->format ? query_format(q, v->format, e) : 0;
	return rc ? rc : query_fields(q, list, e);
}

/* Appends the lists of fields that are asked for; false: none is. */
static bool help_fields(const struct values *v, struct str *out)
{
	if (v->help_gpu || v->help_apps)
		query_help(v->help_apps ? QUERY_APPS : QUERY_GPU, out);
	if (v->help_accounted)
		query_help(QUERY_ACCOUNTED, out);
	if (v->help_retired)
		query_help(QUERY_RETIRED, out);
	if (v->help_remapped)
		query_help(QUERY_REMAPPED, out);
	return out->len > 0;
}

/* Prints once, or repeatedly until the user ends it. */
static int look(struct live_session *s, const struct query *q, const struct filter *f,
	struct line_output *o, struct err *e)
{
	struct str out = { 0 };
	int rc = 0;
	if (!q->json && !q->no_header)
		query_header(q, &out);
	do {
		rc = cmd_live_refresh(s, e);
		if (rc == 0)
			rc = query_look(q, s->live, f, &out, e);
		if (rc == 0)
			rc = line_output_write(o, &out, e);
		if (rc == 0)
			cmd_live_note(s, &cmd_query);
	} while (o->every_ms && cmd_live_again(s, &cmd_query, &rc, e, o->every_ms));
	str_finish(&out);
	return rc;
}

static int query_all(const struct values *v, struct err *e)
{
	struct query q = { 0 };
	struct filter f;
	static struct live_session s; /* a thread that hangs may still use its clock */
	unsigned char wanted[METRIC_COUNT] = { 0 };
	struct line_output o = { .path = v->file };
	int rc = read_query(v, &q, e);
	if (rc == 0)
		rc = cmd_live_loop(v->loop, v->loop_ms, &o.every_ms, e);
	q.lines = o.every_ms ? 0 : DOCUMENT_LINES;
	if (rc == 0)
		rc = filter_init(&f, &v->filter, e);
	if (rc)
		return rc;
	query_wanted(&q, wanted);
	struct live_values live = v->live;
	live.accounts = q.list == QUERY_ACCOUNTED;
	live.once = !o.every_ms;
	live.cards_only = q.list != QUERY_APPS && !live.accounts && !filter_has_process(&f);
	rc = cmd_live_open(&s, &live, wanted, e);
	if (rc)
		return rc;
	rc = line_output_open(&o, e);
	if (rc == 0)
		rc = look(&s, &q, &f, &o, e);
	rc = line_output_close(&o, rc, e);
	cmd_live_close(&s);
	return rc;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct values v = { 0 };
	struct err e = { 0 };
	struct str out = { 0 };
	int status = 0;
	respell(argc, argv);
	if (cmd_options_only(self, argc, argv, &v, &status))
		return status;
	if (help_fields(&v, &out))
		return cmd_print(self, &out);
	return query_all(&v, &e) ? cmd_fail(self, &e) : 0;
}

const struct command cmd_query = {
	.name = "query",
	.summary = "print selected fields of cards or processes as CSV",
	.usage = "--query-gpu=FIELD,... [--format=csv[,noheader][,nounits]] [-l SECONDS] [-i "
		 "CARD]",
	.details =
		"Fields and output are those of nvidia-smi; additional fields begin with gua.",
	.options = options,
	.run = run,
};
