/* gua query: prints selected fields of cards or processes, as lines for scripts. */
#include "cmd/cmd.h"
#include "cmd/share/query_rows.h"
#include "view/smi.h"

#define AT(field) .offset = offsetof(struct query_command, field)

static const struct option_row options[] = {
	QUERY_ROWS,
	{ OPTION_TEXT, 0, "format", "FORMAT,...",
		"csv[,noheader][,nounits] (default csv) or json", AT(query.format),
		.words = query_formats },
	QUERY_LOOP_ROWS,
	{ OPTION_FLAG, 't', "timestamp",
		.help = "accepted for compatibility and ignored; use the field timestamp",
		AT(t) },
	QUERY_HELP_ROWS,
	{ OPTION_FLAG, 0, "mig", .help = "one line per MIG instance instead of per card",
		AT(mig) },
	FILTER_ROWS(struct query_command, filter, 'u', 'p', 'i'),
	LIVE_ROWS(struct query_command, live),
	{ 0 },
};

/* A single JSON document is written over several lines; see struct json. */
enum { DOCUMENT_LINES = 3 };

/* A query, and the processes and cards that it is about. */
struct asked {
	struct query query;
	struct filter filter;
	bool headed; /* the header has been printed */
	bool strict; /* a card that is lost at the first look is an error, as in nvidia-smi */
};

static int look(struct live_session *s, void *context, struct str *out, struct err *e)
{
	struct asked *a = context;
	int rc = a->strict && !a->headed ? smi_check_live(s->live, &a->filter, e) : 0;
	if (rc)
		return rc;
	if (!a->headed && !a->query.json && !a->query.no_header)
		query_header(&a->query, out);
	a->headed = true;
	return query_look(&a->query, s->live, &a->filter, out, e);
}

static int run(const struct call *call, struct err *e)
{
	const struct query_command *v = call->values;
	struct asked a = { .strict = call->self->fail != NULL };
	struct str help = { 0 };
	struct query *q = &a.query;
	unsigned char wanted[METRIC_COUNT] = { 0 };
	struct live_lines lines = {
		.path = v->query.file, .note = true, .look = look, .context = &a
	};
	const char *list = NULL;
	for (size_t i = 0; i < QUERY_LISTS; i++)
		if (v->query.helps[i])
			query_help((enum query_list)i, &help);
	if (help.len)
		return cmd_print(call->self, &help);
	for (size_t i = 0; i < QUERY_LISTS; i++) {
		if (list && v->query.lists[i])
			return err_set(e, ERR_USAGE, "only one --query-... can be given");
		if (!v->query.lists[i])
			continue;
		list = v->query.lists[i];
		q->list = (enum query_list)i;
	}
	if (!list)
		return err_set(e, ERR_USAGE,
			"give --query-gpu=FIELD,... or --query-compute-apps=FIELD,...");
	q->instances = v->mig;
	if ((v->query.format && query_format(q, v->query.format, e)) ||
		query_fields(q, list, e) ||
		cmd_live_loop(v->query.loop, v->query.loop_ms, &lines.every_ms, e) ||
		filter_init(&a.filter, &v->filter, e))
		return e->code;
	a.filter.by_index = true;
	q->lines = lines.every_ms ? 0 : DOCUMENT_LINES;
	query_wanted(q, wanted);
	struct live_values live = v->live;
	live.o.accounts = q->list == QUERY_ACCOUNTED;
	live.o.once = !lines.every_ms;
	live.o.cards_only =
		q->list != QUERY_APPS && !live.o.accounts && !filter_has_process(&a.filter);
	return cmd_live_print(&cmd_query, &live, wanted, &lines, e);
}

static int start(const struct command *self, int argc, char **argv)
{
	static char loop_ms[] = "--loop-ms";
	/* nvidia-smi's -lms is one option with a single dash; getopt would see three. */
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "-lms") == 0)
			argv[i] = loop_ms;
	return cmd_call(self, argc, argv);
}

const struct command cmd_query = {
	.name = "query",
	.summary = "print selected fields of cards or processes as CSV",
	.usage = "--query-gpu=FIELD,... [--format=csv[,noheader][,nounits]] [-l SECONDS] [-i "
		 "CARD]",
	.details =
		"Fields and output are those of nvidia-smi; additional fields begin with gua.",
	.options = options,
	.values_size = sizeof(struct query_command),
	.start = start,
	.run = run,
};
