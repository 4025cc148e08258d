/* What the process that asks the driver sends: the state of a source, several times in a row.
 */
#include "fuzz.h"

#include "driver/host/wire.h"

static void check(const struct mirror *m)
{
	for (size_t i = 0; i < m->source.n_cards; i++) {
		const struct card_reading *r = &m->source.cards[i];
		unsigned sum = 0;
		CHECK((unsigned)r->status < CARD_STATUS_COUNT);
		CHECK((unsigned)r->util_kind <= UTIL_UNKNOWN);
		CHECK(r->n_engines <= ENGINE_COUNT);
		check_safe(r->id.uuid);
		check_safe(r->id.name);
		for (size_t k = 0; k < r->n_samples; k++)
			sum += (unsigned)r->samples[k].wall_us;
		for (size_t k = 0; k < r->n_process_utils; k++)
			sum += r->process_utils[k].pid;
		for (size_t k = 0; k < r->n_ended; k++)
			sum += r->ended[k].pid;
		for (size_t k = 0; k < r->n_processes; k++)
			sum += r->processes[k].pid;
		CHECK(sum <= UINT32_MAX);
	}
	for (size_t i = 0; i < m->source.n_xids; i++)
		CHECK(m->source.xids[i].card < m->source.n_cards);
	check_safe(m->source.driver_version);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mirror m = { 0 };
	char *copy = fuzz_text(data, size);
	struct wire in = { .bytes = copy, .left = size };
	while (!in.bad && in.left && wire_mirror_read(&m, &in))
		check(&m);
	check(&m);
	char text[32];
	struct card_id id = { 0 };
	in = (struct wire){ .bytes = copy, .left = size };
	wire_read_text(&in, text, sizeof(text));
	check_safe(text);
	wire_read_form(&in, &id, &wire_id);
	wire_mirror_finish(&m);
	free(copy);
	return 0;
}
