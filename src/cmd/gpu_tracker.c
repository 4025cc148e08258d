/* gpu-tracker: takes that tool's command line and defaults, and runs gua track. */
#include "cmd/cmd_track.h"
#include "version.h"

/* The rows of gua track that have another meaning or another default here. */
static const struct option_row own_rows[] = {
	{ OPTION_TEXT, 'o', "output", "FILE",
		"write the report to FILE (default: standard output)",
		.offset = offsetof(struct track_values, output) },
	{ OPTION_CHOICE, 0, "gpus", "WHICH",
		"cards in the report: all (default), or own (those that the command may use or "
		"used)",
		.choices = "own|all", .offset = offsetof(struct track_values, gpus) },
	{ OPTION_FLAG, 'v', "version", .help = "print the version",
		.offset = offsetof(struct track_values, version) },
};
enum { MOST_ROWS = 48 };

/* Fills `rows` with the options of gua track, as they are here. */
static void make_rows(struct option_row rows[MOST_ROWS])
{
	size_t n = 0;
	for (const struct option_row *row = track_options; row->name && n < MOST_ROWS - 2;
		row++, n++) {
		rows[n] = *row;
		for (size_t k = 0; k < sizeof(own_rows) / sizeof(own_rows[0]); k++) {
			const struct option_row *own = &own_rows[k];
			if (row->letter ? row->letter == own->letter
					: strcmp(row->name, own->name) == 0)
				rows[n] = *own;
		}
	}
	/* Some versions of gpu-tracker print it like this in their help. */
	rows[n++] = (struct option_row){ OPTION_FLAG, 'V', "Version", .help = "the same as -v",
		.hidden = true, .offset = offsetof(struct track_values, version) };
	rows[n] = (struct option_row){ 0 };
}

static int run(const struct call *call, struct err *e)
{
	const struct track_values *v = call->values;
	if (v->version) {
		struct str out = { 0 };
		str_add(&out, "gpu-tracker (gua " GUA_VERSION ")\n");
		return cmd_print(call->self, &out);
	}
	if (!v->execute && !v->pid && !*call->operands)
		return err_set(e, ERR_USAGE, "--execute=COMMAND is missing");
	return cmd_track_run(call, e);
}

static int track(int argc, char **argv)
{
	/* The defaults of gpu-tracker. */
	static const struct track_values initial = { .output = "-",
		.announce = true,
		.verbose = true,
		.gpus = "all",
		.default_size = "gigabytes",
		.default_time = "hours" };
	struct option_row rows[MOST_ROWS];
	make_rows(rows);
	const struct command gpu_tracker = {
		.name = "track",
		.called = "gpu-tracker",
		.summary = "run a command and report what it used: time, CPU, memory, GPU",
		.usage = "--execute=COMMAND [OPTIONS] | sub-track combine|analyze|compare "
			 "[OPTIONS]",
		.details =
			"This is gua with gpu-tracker's command line and defaults: gigabytes, "
			"hours, the\n"
			"whole report. The exit status is that of the command.",
		.options = rows,
		.values_size = sizeof(initial),
		.initial = &initial,
		.stop_at_operand = true,
		.run = run,
	};
	return cmd_run(&gpu_tracker, argc, argv);
}

int gpu_tracker_main(int argc, char **argv)
{
	const char *first = argc > 1 ? argv[1] : "";
	if (strcmp(first, "sub-track") == 0) {
		struct command subtrack = cmd_subtrack;
		subtrack.called = "gpu-tracker sub-track";
		return cmd_run(&subtrack, argc - 1, argv + 1);
	}
	return track(argc, argv);
}
