/* Tracks what this program uses for a while, with libgua.
 *
 * Build: cc track.c -o track $(pkg-config --cflags --libs libgua)
 * Usage: track [thread|process [DRIVER-LIBRARY]] */
#include <gua.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Something to see: 50 MB, and half a second of CPU. */
static char *work(void)
{
	size_t size = 50 * 1000 * 1000;
	char *memory = malloc(size);
	if (memory)
		memset(memory, 1, size);
	for (clock_t end = clock() + CLOCKS_PER_SEC / 2; clock() < end;)
		continue;
	return memory;
}

static int fail(struct gua_tracker *tracker)
{
	fprintf(stderr, "track: %s\n", gua_tracker_error(tracker));
	gua_tracker_free(tracker);
	return 1;
}

static void print_gpu(struct gua_tracker *tracker, const struct gua_track_result *result)
{
	if (!result->gpu_known)
		printf("no GPU: %s\n", result->gpu_note);
	for (size_t i = 0; i < result->cards; i++) {
		struct gua_track_card card = GUA_INIT(struct gua_track_card);
		if (gua_tracker_card(tracker, i, &card) == GUA_OK)
			printf("card %d %s: %.0f %% used on average\n", card.index, card.uuid,
				card.util_mean_pct);
	}
}

int main(int argc, char **argv)
{
	struct gua_tracker_options options = GUA_INIT(struct gua_tracker_options);
	struct gua_track_result result = GUA_INIT(struct gua_track_result);
	struct gua_tracker *tracker;
	options.interval_s = 0.1;
	if (argc > 1 && strcmp(argv[1], "process") == 0)
		options.helper = GUA_HELPER_PROCESS;
	if (argc > 2)
		options.nvml_path = argv[2];

	if (gua_tracker_new(&tracker, &options) != GUA_OK ||
		gua_tracker_start(tracker) != GUA_OK)
		return fail(tracker);
	char *memory = work();
	int failed = gua_tracker_stop(tracker) != GUA_OK ||
		     gua_tracker_result(tracker, &result) != GUA_OK;
	free(memory);
	if (failed)
		return fail(tracker);

	printf("%.2f s, %.2f s of CPU, %.0f MiB, %d process(es)\n", result.elapsed_s,
		result.user_s[GUA_COMBINED] + result.system_s[GUA_COMBINED],
		(double)result.ram_total_bytes[GUA_COMBINED] / 1048576,
		(int)result.processes_seen);
	print_gpu(tracker, &result);
	for (size_t i = 0; i < result.warnings; i++)
		printf("note: %s\n", gua_tracker_warning(tracker, i));
	gua_tracker_free(tracker);
	return 0;
}
