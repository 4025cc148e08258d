/* gua stat: shows the cards now, one line each. */
#include "cmd/share/cmd_live.h"
#include "cmd/share/terminal.h"
#include "version.h"
#include "view/stat.h"

struct values {
	struct live_values live;
	struct filter_values filter;
	struct stat_options shown;
	bool all, json, no_color, force_color, ascii, debug, version;
	const char *codec, *color, *power, *interval;
};

#define AT(field) .offset = offsetof(struct values, field)

static const struct option_row options[] = {
	{ OPTION_FLAG, 'a', "show-all", .help = "the same as -c -u -p -F -e -P", AT(all) },
	{ OPTION_FLAG, 'c', "show-cmd", .help = "the command of each process",
		AT(shown.command) },
	{ OPTION_FLAG, 'f', "show-full-cmd",
		.help = "one line per process: pid, CPU, host memory, whole command line",
		AT(shown.full_command) },
	{ OPTION_FLAG, 'u', "show-user", .help = "the user of each process", AT(shown.user) },
	{ OPTION_FLAG, 'p', "show-pid", .help = "the pid of each process", AT(shown.pid) },
	{ OPTION_FLAG, 'F', "show-fan-speed", .help = "the speed of the fan", AT(shown.fan) },
	{ OPTION_FLAG, 0, "show-fan", .help = "the same", AT(shown.fan), .hidden = true },
	{ OPTION_MAYBE_NEXT, 'e', "show-codec", "enc,dec", "use of the video engines",
		.choices = "enc|dec", AT(codec) },
	{ OPTION_MAYBE_NEXT, 'P', "show-power", "draw,limit", "the power",
		.choices = "draw|limit", AT(power) },
	{ OPTION_MAYBE_NEXT, 'i', "interval", "SECONDS",
		"repeat at this interval (without a value: every second)", AT(interval) },
	{ OPTION_MAYBE_NEXT, 0, "watch", "SECONDS", "the same", AT(interval), .hidden = true },
	{ OPTION_FLAG, 0, "json", .help = "JSON; with -i one document per line", AT(json) },
	{ OPTION_FLAG, 0, "no-header", .help = "leave out the line with host, time and driver",
		AT(shown.no_header) },
	{ OPTION_FLAG, 0, "no-processes", .help = "leave out the processes",
		AT(shown.no_processes) },
	{ OPTION_COUNT, 0, "gpuname-width", "N", "width of the name; 0 hides it",
		AT(shown.name_width), .min = 0, .max = 200 },
	{ OPTION_FLAG, 0, "no-color", .help = "use no colours", AT(no_color) },
	{ OPTION_FLAG, 0, "force-color", .help = "use colours, also without a terminal",
		AT(force_color) },
	COLOR_ROW(struct values, color),
	{ OPTION_FLAG, 0, "ascii", .help = "use only ASCII characters", AT(ascii) },
	{ OPTION_FLAG, 'v', "version", .help = "print the version", AT(version) },
	{ OPTION_FLAG, 0, "debug", .help = "accepted for compatibility and ignored", AT(debug),
		.hidden = true },
	FILTER_ROWS(struct values, filter, 0, 0, 0),
	LIVE_ROWS(struct values, live),
	{ 0 },
};

/* The time over which a single look measures CPU percentages. */
enum { CPU_WAIT_MS = 100 };

/* An option whose value names one or both of two words, such as "enc,dec". */
struct pair_option {
	const char *name, *words[2];
	bool *given[2]; /* where to write which of them are named */
};

/* Reads the value; NULL: the option was not given; "": both words. */
static int read_pair(const struct pair_option *o, const char *text, struct err *e)
{
	if (!text)
		return 0;
	char word[TEXT_LIST_WORD_CAP];
	bool gap = *text == ',' || strstr(text, ",,"); /* an empty word */
	*o->given[0] = *o->given[1] = *text == '\0';
	for (const char *at = text; gap || options_list_word(&at, word);) {
		size_t i = gap ? 2 : 0;
		while (i < 2 && strcmp(word, o->words[i]) != 0)
			i++;
		if (i == 2)
			return err_set(e, ERR_USAGE, "--%s takes %s,%s, not '%s'", o->name,
				o->words[0], o->words[1], text);
		*o->given[i] = true;
	}
	return 0;
}

static int read_options(const struct values *v, struct stat_options *o, struct err *e)
{
	*o = v->shown;
	if (v->all)
		o->command = o->user = o->pid = o->fan = o->encoder = o->decoder = o->draw =
			o->limit = true;
	o->style = (struct text_style){ .columns = 80,
		.ascii = v->ascii || !terminal_is_utf8(),
		.color = v->force_color || (!v->no_color && terminal_has_color()),
		.watch = v->force_color };
	if (v->no_color && (v->force_color || v->color))
		return err_set(e, ERR_USAGE, "--no-color and --force-color exclude each other");
	if (v->color && terminal_choose_color(v->color, &o->style.color, &o->style.color256, e))
		return e->code;
	o->style.watch |= v->color && o->style.color;
	const struct pair_option codec = { "show-codec", { "enc", "dec" },
		{ &o->encoder, &o->decoder } };
	const struct pair_option power = { "show-power", { "draw", "limit" },
		{ &o->draw, &o->limit } };
	int rc = read_pair(&codec, v->codec, e);
	return rc ? rc : read_pair(&power, v->power, e);
}

/* What the frames show, and how. */
struct frames {
	struct filter filter;
	struct stat_options options;
	bool json;
	bool screen;	  /* each frame replaces the last one on the terminal */
	int64_t every_ms; /* 0: only one frame */
};

/* How many columns a line takes, without the codes of its colours. */
static size_t line_columns(const char *line, size_t len)
{
	struct str plain = { 0 };
	for (size_t at = 0; at < len;) {
		size_t text = strcspn(line + at, "\033\n");
		str_add_bytes(&plain, line + at, text < len - at ? text : len - at);
		at += text + strcspn(line + at + text, "m") + 1;
	}
	size_t columns = str_columns(str_text(&plain));
	str_finish(&plain);
	return columns;
}

/* Prints the frame from the top of the screen. Lines that do not fit are counted and left out:
 * scrolling would mix them with the previous frame. */
static void show_screen(const char *text)
{
	struct terminal_size size = terminal_size(STDOUT_FILENO);
	size_t left = 0, used = 0;
	bool sized = size.rows && size.columns;
	for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
		left++;
	fputs("\033[H", stdout);
	for (const char *at = text; left; left--) {
		size_t len = strcspn(at, "\n"), columns = line_columns(at, len);
		size_t rows = sized && columns ? (columns - 1) / size.columns + 1 : 1;
		bool fits = !sized || used + rows + (left > 1) <= size.rows;
		if (used)
			fputs("\n", stdout);
		if (!fits) {
			printf("(%zu more)\033[K", left);
			used++;
			break;
		}
		/* After a full line, clearing would erase its last column. */
		bool whole = sized && columns && columns % size.columns == 0;
		printf("%.*s%s", (int)len, at, whole ? "" : "\033[K");
		used += rows;
		at += len + 1;
	}
	/* Messages begin below the frame. On the last row there is nothing to clear. */
	if (!sized || used < size.rows)
		fputs("\n\033[J", stdout);
}

/* Reads the cards and shows one frame. */
static int look(
	struct live_session *s, const struct frames *frames, struct str *out, struct err *e)
{
	const struct stat_options *o = &frames->options;
	struct stat_pick picked = { 0 };
	if (cmd_live_look(s, e))
		return e->code;
	if (o->full_command || frames->json)
		live_process_measure_all(s->live, 0);
	if (o->full_command && !frames->every_ms) {
		cmd_live_wait(s, CPU_WAIT_MS);
		live_process_measure_all(s->live, 0);
	}
	int rc = stat_pick(&picked, s->live, &frames->filter, e);
	if (rc == 0 && frames->json)
		stat_json(out, &picked, frames->every_ms ? 0 : 5);
	else if (rc == 0)
		stat_text(out, &picked, o);
	stat_pick_finish(&picked);
	if (rc)
		return rc;
	/* Print the frame even if there is no card, as gpustat does. */
	if (frames->screen) {
		show_screen(str_text(out));
		out->len = 0;
	}
	rc = cmd_write(stdout, out, e);
	return rc ? rc : cmd_live_check(s, e);
}

static int watch(struct live_session *s, const struct frames *frames, struct err *e)
{
	struct str out = { 0 };
	char text[256];
	int rc;
	if (frames->every_ms)
		cmd_live_catch(s);
	if (frames->screen) /* the terminal's other screen */
		fputs("\033[?1049h", stdout);
	do {
		rc = look(s, frames, &out, e);
	} while (frames->every_ms && cmd_live_again(s, &cmd_stat, &rc, e, frames->every_ms));
	if (frames->screen)
		fputs("\033[?1049l", stdout);
	fflush(stdout);
	str_finish(&out);
	if (rc || frames->json)
		return rc;
	cmd_live_note(s, &cmd_stat);
	/* Why the utilisation of suspect cards is not believed. */
	const struct present *now = live_present(s->live);
	for (size_t i = 0; i < now->n_cards; i++) {
		const struct present_card *card = &now->cards[i];
		if (card->state != CARD_SUSPECT || !filter_card(&frames->filter, card))
			continue;
		present_suspect_text(text, sizeof(text), card);
		fprintf(stderr, "gua stat: %s\n", text);
	}
	return 0;
}

static int run(const struct call *call, struct err *e)
{
	struct values *v = call->values;
	struct frames frames = { .json = v->json };
	static struct live_session s; /* a stuck thread may still use its clock */
	if (v->version) {
		struct str out = { 0 };
		str_add(&out, "gua " GUA_VERSION "\n");
		return cmd_print(call->self, &out);
	}
	if (read_options(v, &frames.options, e))
		return e->code;
	/* 0 means once, as in gpustat. */
	if (v->interval && strcmp(v->interval, "0") != 0 &&
		cmd_live_seconds(*v->interval ? v->interval : "1", &frames.every_ms, e))
		return err_prefix(e, "--interval");
	frames.screen = frames.every_ms && !v->json && isatty(STDOUT_FILENO);
	v->live.o.once = !frames.every_ms;
	v->live.o.leases = true;
	if (filter_init(&frames.filter, &v->filter, e) || cmd_live_open(&s, &v->live, NULL, e))
		return e->code;
	int rc = watch(&s, &frames, e);
	cmd_live_close(&s);
	return rc;
}

const struct command cmd_stat = {
	.name = "stat",
	.summary = "show the cards now, one line each: use, memory, users, idle times",
	.usage = "[-acfupFeP] [-i [SECONDS]] [--json] [OPTIONS]",
	.options = options,
	.values_size = sizeof(struct values),
	.initial = &(const struct values){ .shown.name_width = -1 },
	.run = run,
};
