/* gua who: lists the processes that hold the cards now, how much they hold, and how long they
 * have been idle. */
#include "cmd/share/cmd_live.h"
#include "cmd/share/terminal.h"
#include "view/who.h"

struct values {
	struct live_values live;
	struct filter_values filter;
	int64_t idle_ms; /* -1: any */
	const char *color;
	bool json, csv, message;
};

#define AT(member) .offset = offsetof(struct values, member)
static const struct option_row rows[] = {
	{ OPTION_DURATION, 0, "idle", "D",
		"only holders that have been idle for at least this long: 30m", AT(idle_ms) },
	FILTER_ROWS(struct values, filter, 'u', 'p', 'i'),
	{ OPTION_FLAG, 0, "json", NULL, "one JSON document", AT(json) },
	{ OPTION_FLAG, 0, "csv", NULL,
		"lines for a spreadsheet, with the names of the JSON keys", AT(csv) },
	{ OPTION_FLAG, 0, "message", NULL, "the note to send to each holder, with --idle",
		AT(message) },
	COLOR_ROW(struct values, color),
	LIVE_ROWS(struct values, live),
	{ 0 },
};

/* Prints what was found; returns the exit status. */
static int print_holders(const struct call *call, const struct who *w,
	const struct who_question *q, const struct text_style *style)
{
	const struct values *v = call->values;
	struct str out = { 0 }, notes = { 0 };
	/* Each line of the notes goes to standard error, with the name of the command. */
	who_notes(&notes, w, q, !v->json && !v->csv);
	for (const char *at = str_text(&notes); *at;) {
		size_t len = strcspn(at, "\n") + 1;
		fprintf(stderr, "gua who: %.*s", (int)len, at);
		at += len;
	}
	str_finish(&notes);
	if (v->json)
		who_json(&out, w);
	else if (v->csv)
		who_csv(&out, w);
	else if (v->message)
		who_message(&out, w, style);
	else if (w->n + w->n_reserved)
		who_text(&out, w, style);
	bool found = w->n || (w->n_reserved && !v->json && !v->csv && !v->message);
	int status = cmd_print(call->self, &out);
	return status ? status : !found;
}

static int run(const struct call *call, struct err *e)
{
	/* Only processes are needed: no metrics are read. */
	static const unsigned char no_metrics[METRIC_COUNT] = { 0 };
	struct values *v = call->values;
	static struct live_session session; /* a stuck thread may still use its clock */
	struct filter filter;
	struct who who = { 0 };
	struct text_style style = terminal_style(false, false);
	v->live.o.once = v->live.o.leases = true;
	if (v->message + v->json + v->csv > 1)
		return err_set(e, ERR_USAGE, "--message, --json and --csv exclude each other");
	if (terminal_choose_color(v->color, &style.color, &style.color256, e))
		return e->code;
	if (v->message && v->idle_ms < 0)
		return err_set(e, ERR_USAGE,
			"--message needs --idle D: how long a holder must have been idle to "
			"get one");
	if (filter_init(&filter, &v->filter, e) ||
		cmd_live_open(&session, &v->live, no_metrics, e))
		return e->code;
	struct who_question q = { .filter = &filter, .idle_ms = v->idle_ms };
	bool failed = cmd_live_refresh(&session, e) ||
		      who_find(&who, live_present(session.live), &q, e);
	int rc = failed ? e->code : print_holders(call, &who, &q, &style);
	who_finish(&who);
	cmd_live_close(&session);
	return rc;
}

const struct command cmd_who = {
	.name = "who",
	.summary = "show which processes hold the cards, and how long they are idle",
	.usage = "[--idle D] [-u USER] [-p N] [-i CARD] [--min-mem SIZE] [--state STATE] "
		 "[--json | --csv | --message]",
	.details = "The exit status is 1 if no process matches.",
	.options = rows,
	.values_size = sizeof(struct values),
	.initial = &(const struct values){ .idle_ms = -1 },
	.run = run,
};
