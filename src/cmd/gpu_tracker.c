/* gpu-tracker: accepts that tool's command line (--execute, sub-track) with its defaults, and
 * runs gua track. */
#include "cmd/gpu_tracker.h"

#include <stdio.h>
#include <string.h>

#include "cmd/subtrack.h"
#include "cmd/track.h"
#include "version.h"

static const struct command gpu_tracker = {
	.name = "track",
	.called = "gpu-tracker",
	.summary = "run a command and report what it used: time, CPU, memory, GPU",
	.usage = "--execute=COMMAND [OPTIONS] | sub-track combine|analyze|compare [OPTIONS]",
	.details = "This is gua with gpu-tracker's command line. The report goes to standard "
		   "output\n"
		   "unless -o names a file; the exit status is that of the command.",
	.options = track_options,
	.stop_at_operand = true,
};

static int track(int argc, char **argv)
{
	/* The defaults of gpu-tracker. */
	struct track_values v = { .output = "-",
		.announce = true,
		.verbose = true,
		.gpus = "all",
		.default_size = "gigabytes",
		.default_time = "hours" };
	struct err e = { 0 };
	int status = 0;
	int first = cmd_options(&gpu_tracker, argc, argv, &v, &status);
	if (!first)
		return status;
	if (!v.execute && !v.pid && first == argc) {
		err_set(&e, ERR_USAGE, "--execute=COMMAND is missing");
		return cmd_fail(&gpu_tracker, &e);
	}
	return track_with_options(&gpu_tracker, &v, argv + first);
}

int gpu_tracker_main(int argc, char **argv)
{
	const char *first = argc > 1 ? argv[1] : "";
	if (strcmp(first, "-v") == 0 || strcmp(first, "--version") == 0) {
		puts("gpu-tracker (gua " GUA_VERSION ")");
		return 0;
	}
	if (strcmp(first, "sub-track") == 0) {
		struct command subtrack = cmd_subtrack;
		subtrack.called = "gpu-tracker sub-track";
		return subtrack.run(&subtrack, argc - 1, argv + 1);
	}
	return track(argc, argv);
}
