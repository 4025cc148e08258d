/* gua-top: the interactive view. It is a separate program because it links curses. */
#include "cmd/share/terminal.h"
#include "cmd/cmd_top.h"
#include "top/top.h"

enum { PLAIN_COLUMNS = 120, LEAST_COLUMNS = 40, MOST_COLUMNS = 400, MOST_DELAY_MS = 3600000 };

static int show(const struct call *call, const struct live_session *s,
	const struct top_options *o, struct err *e)
{
	const struct top_values *v = call->values;
	struct top *t = NULL;
	struct top_screen *screen = NULL;
	bool color = !v->no_color && terminal_may_color();
	if (top_open(&t, o, e) != 0)
		return e->code;
	int rc = cmd_live_check(s, e);
	if (rc) {
		top_close(t);
		return rc;
	}
	if (v->once || terminal_is_dumb() || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
		struct str out = { 0 };
		/* The width is that of the terminal, else COLUMNS, else a default. */
		const char *variable = getenv("COLUMNS");
		long columns = variable ? strtol(variable, NULL, 10) : 0;
		if (terminal_size(STDOUT_FILENO).columns)
			columns = (long)terminal_size(STDOUT_FILENO).columns;
		columns = columns <= 0		    ? PLAIN_COLUMNS
			  : columns < LEAST_COLUMNS ? LEAST_COLUMNS
			  : columns > MOST_COLUMNS  ? MOST_COLUMNS
						    : columns;
		rc = top_once(t, (size_t)columns, &out, e);
		rc = rc ? rc : cmd_print(call->self, &out);
		str_finish(&out);
	} else if ((rc = top_screen_open(&screen, stdin, stdout, color, e)) == 0) {
		/* Log lines would appear in the middle of the screen. */
		log_setup(LOG_LEVEL_NONE, LOG_STYLE_PLAIN);
		top_run(t, screen);
		top_screen_close(screen);
	}
	top_close(t);
	return rc;
}

/* The reason why signals may not be sent; NULL: they may. */
static const char *no_signals(const struct top_values *v)
{
	if (source_is_captured(v->live.o.source.name))
		return "captured, not this host";
	if (source_is_invented(v->live.o.source.name))
		return "simulated";
	if (*v->live.o.source.root)
		return "not this host";
	return v->readonly ? "read only" : NULL;
}

/* What every frame shows; memory comes with the process lists, and utilisation with samples. */
#define FRAME_METRICS [METRIC_POWER_DRAW] = 1, [METRIC_TEMPERATURE_GPU] = 1
/* What it shows, too, but changes seldom. */
#define SELDOM_METRICS [METRIC_POWER_ENFORCED] = 1
/* What only the page of a card shows. */
#define CARD_METRICS                                                                           \
	[METRIC_FAN_SPEED] = 1, [METRIC_CLOCK_SM] = 1, [METRIC_CLOCK_MAX_SM] = 1,              \
	[METRIC_CLOCK_MEMORY] = 1, [METRIC_CLOCK_MAX_MEMORY] = 1,                              \
	[METRIC_PCIE_GEN_CURRENT] = 1, [METRIC_PCIE_GEN_MAX] = 1,                              \
	[METRIC_PCIE_WIDTH_CURRENT] = 1, [METRIC_PCIE_WIDTH_MAX] = 1,                          \
	[METRIC_PCIE_REPLAYS] = 1, [METRIC_ECC_CORRECTED_VOLATILE] = 1,                        \
	[METRIC_ECC_UNCORRECTED_VOLATILE] = 1

static int run(const struct call *call, struct err *e)
{
	static const unsigned char wanted[METRIC_COUNT] = { FRAME_METRICS, SELDOM_METRICS,
		CARD_METRICS };
	static const unsigned char of_page[METRIC_COUNT] = { CARD_METRICS };
	static const unsigned char resting[METRIC_COUNT] = { CARD_METRICS, SELDOM_METRICS };
	struct top_values *v = call->values;
	struct filter filter;
	static struct live_session session; /* a stuck thread may still use its clock */
	int64_t delay_ms = 0;
	v->live.o.leases = true;
	if (cmd_live_seconds(v->delay ? v->delay : "1", &delay_ms, e))
		return err_prefix(e, "--delay");
	if (delay_ms > MOST_DELAY_MS)
		return err_set(
			e, ERR_USAGE, "--delay must be at most an hour, not '%s'", v->delay);
	if (filter_init(&filter, &v->filter, e) || cmd_live_open(&session, &v->live, wanted, e))
		return e->code;
	bool sim = source_is_invented(v->live.o.source.name);
	struct top_options o = { .live = session.live,
		.clock = &session.clock,
		.root = sim ? NULL : v->live.o.source.root,
		.filter = &filter,
		.delay_ms = delay_ms,
		.card_metrics = of_page,
		.resting_metrics = resting,
		.no_signals = no_signals(v),
		.ascii = v->ascii || !terminal_is_utf8(),
		.sort = v->sort,
		.tree = v->tree,
		.no_mouse = v->no_mouse };
	int rc = show(call, &session, &o, e);
	cmd_live_close(&session);
	return rc;
}

int main(int argc, char **argv)
{
	struct command own = cmd_top;
	own.run = run;
	file_hold_standard();
	/* Three files are kept open for each process: 1024 are too few on a large host. */
	file_allow_many();
	return cmd_run(&own, argc, argv);
}
