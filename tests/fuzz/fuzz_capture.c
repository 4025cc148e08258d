/* Captures (gua-capture(5)): a file that can be read is played as a source for some seconds;
 * whatever it says, what is handed on is in its range and may be shown. */
#include "fuzz_file.h"

#include "base/log.h"
#include "driver/source.h"

enum { STEP_US = 3000000, STEPS = 4 };

static void check_card(struct source *s, size_t card)
{
	const struct card_reading *r = &s->cards[card];
	struct process_id id;
	check_safe(r->id.name);
	check_safe(r->id.uuid);
	check_safe(r->id.parent_uuid);
	check_safe(r->id.pci);
	CHECK(r->own_processes);
	CHECK(r->mem_used_bytes >= -1);
	for (size_t i = 0; i < r->n_samples; i++)
		CHECK(!(r->samples[i].util_pct < 0) && !(r->samples[i].util_pct > 100));
	for (size_t i = 0; i < r->n_process_utils; i++)
		CHECK(r->process_utils[i].sm_pct >= 0 && r->process_utils[i].sm_pct <= 100);
	for (size_t i = 0; i < r->n_processes; i++) {
		if (!s->ops->describe(s, r->processes[i].pid, &id))
			continue;
		check_safe(id.user);
		for (int k = 0; k < PROCESS_TEXTS; k++)
			check_safe(process_text(&id, (enum process_text)k));
	}
}

static void ask_metrics(struct source *s, size_t card)
{
	unsigned char wanted[METRIC_COUNT];
	double values[METRIC_COUNT] = { 0 };
	static metric_texts texts;
	memset(wanted, 1, sizeof(wanted));
	memset(texts, 0, sizeof(texts));
	for (int board = 0; board <= 1 && s->cards[card].status == CARD_STATUS_OK; board++) {
		const struct metric_request request = {
			.card = card, .board = board != 0, .wanted = wanted
		};
		s->ops->metrics(s, &request, values, texts);
	}
	for (size_t i = 0; i < METRIC_DRIVER_TEXTS; i++)
		check_safe(texts[i]);
}

static void ask(struct source *s)
{
	struct process_account accounts[8];
	struct facility facilities[64];
	struct err e = { 0 };
	s->drains = DRAIN_POWER;
	if (source_drain(s, NULL, &e) != 0 || source_look(s, NULL, &e) != 0 ||
		source_glance(s, GLANCE_MEMORY | GLANCE_ENERGY, &e) != 0) {
		check_safe(e.text);
		return;
	}
	for (size_t i = 0; i < s->n_cards; i++) {
		check_card(s, i);
		ask_metrics(s, i);
		s->ops->accounts(s, i, accounts, 8);
	}
	size_t n = s->ops->facilities(s, facilities, 64);
	for (size_t i = 0; i < n; i++)
		check_safe(facilities[i].how);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct clock clock;
	struct source *s = NULL;
	struct err e = { 0 };
	char path[FUZZ_PATH], name[FUZZ_PATH + 16];
	log_setup(LOG_LEVEL_NONE, LOG_STYLE_PLAIN);
	fuzz_file_at(path, "capture", data, size);
	snprintf(name, sizeof(name), "capture:%s", path);
	clock_init_virtual(&clock, INT64_C(1793952000000));
	const struct source_options options = { .name = name, .root = "", .clock = &clock };
	if (source_open(&s, &options, &e) == 0) {
		check_safe(s->driver_version);
		for (int step = 0; step < STEPS; step++, clock_advance(&clock, STEP_US)) {
			ask(s);
			source_scan(s, &e);
		}
		source_close(s);
	}
	check_safe(e.text);
	clock_finish(&clock);
	fuzz_file_remove(path);
	return 0;
}
