/* Scenario files: read; what could be read is played for half a minute, and asked through the
 * simulated source, which must not hand on what a terminal would obey. */
#include "fuzz_file.h"

#include "driver/sim/play.h"
#include "driver/source.h"

enum { STEP_US = 5000000, STEPS = 6, MAX_ASKED = 8 };

static const char *lookup(const char *name)
{
	return strcmp(name, "UNSET") == 0 ? NULL : "4242";
}

/* Some files are missing, some pids repeat. */
static uint32_t read_pid(const char *file)
{
	return file[0] == 'x' ? 0 : 4242 + (unsigned char)file[0] % 2;
}

/* What the tests' library asks besides. */
static void ask_library(struct play *p, size_t card)
{
	static struct play_power powers[POWER_RING_MAX];
	struct play_account accounts[MAX_ASKED];
	size_t n = play_power_ring(p, card, powers);
	CHECK(n <= POWER_RING_MAX);
	for (size_t i = 1; i < n; i++)
		CHECK(powers[i].t_us > powers[i - 1].t_us && powers[i].mw >= 0);
	n = play_account_list(p, card, accounts, MAX_ASKED);
	for (size_t i = 0; i < n && i < MAX_ASKED; i++)
		CHECK(accounts[i].pid != 0 && accounts[i].length_us >= 0 &&
			accounts[i].sm_pct >= 0 && accounts[i].sm_pct <= 100);
	int64_t most = play_time(p) < 0 ? 0 : 100 * play_time(p);
	CHECK(play_util_sum(p, card) >= 0 && play_util_sum(p, card) <= most);
}

static void ask(struct play *p, size_t card)
{
	struct play_use uses[MAX_ASKED];
	struct play_holder holders[MAX_ASKED];
	int code = 0;
	play_status(p, card, &code);
	size_t n = play_ring_size(p, card);
	for (size_t i = 0; i < n; i++) {
		const struct play_sample *sample = play_ring_at(p, card, i);
		CHECK(sample->util_pct >= 0 && sample->util_pct <= 100);
		CHECK(i == 0 || sample->t_us > play_ring_at(p, card, i - 1)->t_us);
	}
	const struct play_since since = { .us = play_time(p) - STEP_US };
	n = play_uses(p, card, since, uses, MAX_ASKED);
	for (size_t i = 0; i < n && i < MAX_ASKED; i++)
		CHECK(uses[i].sm_pct >= 0 && uses[i].sm_pct <= 100);
	n = play_holders(p, card, holders, MAX_ASKED);
	for (size_t i = 0; i < n && i < MAX_ASKED; i++)
		CHECK(holders[i].mem_bytes >= -1);
	CHECK(play_memory_used(p, card) >= 0);
	CHECK(play_power_mw(p, card) >= 0);
	CHECK(play_energy_mj(p, card) >= 0);
}

static void play(const struct scenario *s)
{
	struct play *p = NULL;
	struct err e = { 0 };
	if (play_open(&p, s, true, &e) != 0) {
		check_safe(e.text);
		return;
	}
	for (int step = 0; step <= STEPS; step++) {
		play_advance(p, (int64_t)step * STEP_US, 0);
		play_read_pids(p, read_pid);
		for (size_t card = 0; card < s->n_cards; card++) {
			ask(p, card);
			ask_library(p, card);
		}
	}
	play_close(p);
}

static void check_card(struct source *source, const struct card_reading *card)
{
	struct process_id id;
	check_safe(card->id.name);
	check_safe(card->id.uuid);
	check_safe(card->id.parent_uuid);
	check_safe(card->id.pci);
	for (size_t i = 0; i < card->n_processes; i++) {
		if (!source->ops->describe(source, card->processes[i].pid, &id))
			continue;
		check_safe(id.user);
		check_safe(id.command);
	}
}

/* A call that hangs does hang. */
static bool takes_time(const struct scenario *s)
{
	for (size_t i = 0; i < s->n_faults; i++)
		if (s->faults[i].kind != FAULT_FAIL)
			return true;
	return false;
}

static void simulate(const uint8_t *data, size_t size)
{
	struct clock clock;
	struct source *source = NULL;
	struct err e = { 0 };
	char path[FUZZ_PATH];
	fuzz_file_at(path, "scenario", data, size);
	clock_init_virtual(&clock, INT64_C(1793952000000));
	const struct source_options options = {
		.name = "sim", .scenario = path, .root = "", .clock = &clock
	};
	if (source_open(&source, &options, &e) == 0) {
		check_safe(source->hostname);
		check_safe(source->driver_version);
		for (int step = 0; step < STEPS / 2; step++, clock_advance(&clock, STEP_US)) {
			if (source_drain(source, NULL, &e) == 0 &&
				source_look(source, NULL, &e) == 0)
				for (size_t i = 0; i < source->n_cards; i++)
					check_card(source, &source->cards[i]);
		}
		source_close(source);
	}
	check_safe(e.text);
	clock_finish(&clock);
	fuzz_file_remove(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scenario *s = NULL;
	struct err e = { 0 };
	if (scenario_parse(&s, "file", (const char *)data, size, &e) != 0) {
		CHECK(strncmp(e.text, "file", 4) == 0);
		check_safe(e.text);
		return 0;
	}
	if (!takes_time(s))
		simulate(data, size);
	if (scenario_resolve(s, lookup, &e) == 0)
		play(s);
	else
		check_safe(e.text);
	scenario_free(s);
	return 0;
}
