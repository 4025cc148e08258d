/* Lists the cards of this host and who is on them, with libgua.
 *
 * Build: cc cards.c -o cards $(pkg-config --cflags --libs libgua)
 * Usage: cards [nvml|sim [DRIVER-LIBRARY-OR-SCENARIO]] */
#include <gua.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_number(const char *name, double value, const char *unit)
{
	if (isnan(value) || value < 0)
		printf("  %s -", name);
	else
		printf("  %s %.0f %s", name, value, unit);
}

static void print_processes(struct gua *gua, size_t card, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct gua_process process = GUA_INIT(struct gua_process);
		if (gua_card_process(gua, card, i, &process) != GUA_OK)
			return;
		printf("    pid %" PRIu32, process.pid);
		print_number("memory", (double)process.mem_bytes / 1048576, "MiB");
		print_number("use", process.sm_pct, "%");
		printf("%s\n", process.kind & GUA_PROCESS_GRAPHICS ? "  (graphics)" : "");
	}
}

static int print_card(struct gua *gua, size_t i)
{
	static const char *const statuses[] = { "ok", "lost", "asleep", "denied" };
	struct gua_card card = GUA_INIT(struct gua_card);
	if (gua_card(gua, i, &card) != GUA_OK)
		return 1;
	printf("%d %s %s %s\n ", card.index, card.uuid, card.name,
		card.status >= 0 && card.status < 4 ? statuses[card.status] : "?");
	print_number("use", card.util_pct, "%");
	print_number("memory", (double)card.mem_used_bytes / 1048576, "MiB");
	print_number("of", (double)card.mem_total_bytes / 1048576, "MiB");
	print_number("power", card.power_w, "W");
	printf("\n");
	print_processes(gua, i, card.processes);
	return 0;
}

int main(int argc, char **argv)
{
	struct gua_options options = GUA_INIT(struct gua_options);
	if (argc > 1)
		options.source = argv[1];
	if (argc > 2 && strcmp(argv[1], "sim") == 0)
		options.scenario = argv[2];
	else if (argc > 2)
		options.nvml_path = argv[2];

	struct gua *gua;
	int failed = gua_open(&gua, &options) != GUA_OK;
	if (failed)
		fprintf(stderr, "cards: %s\n", gua_error(gua));
	for (size_t i = 0; !failed && i < gua_card_count(gua); i++)
		failed = print_card(gua, i);
	gua_close(gua);
	return failed;
}
