/* Clears readings, and finds the use of a process among the driver's records of a card. */
#include "model/reading.h"

void reading_clear(struct card_reading *r, enum card_status status, int code)
{
	struct card_reading cleared = { .id = r->id,
		.own_processes = r->own_processes,
		.status = status,
		.code = code,
		.mem_used_bytes = UNKNOWN_BYTES };
	memcpy(cleared.source, r->source, sizeof(cleared.source));
	*r = cleared;
	reading_clear_drained(r);
}

void reading_clear_drained(struct card_reading *r)
{
	r->util_kind = UTIL_NONE;
	r->n_samples = r->n_lost = r->n_process_utils = r->n_parts = r->n_ended = 0;
	r->process_util_known = r->stranger = false;
	r->energy_mj = r->power_mw = r->sm_active_pct = NAN;
}

const struct process_util *reading_process_util(const struct card_reading *r, uint32_t pid)
{
	/* Of two lives of one pid, the newer one comes later. */
	for (size_t i = r->process_util_known ? r->n_process_utils : 0; i-- > 0;)
		if (r->process_utils[i].pid == pid)
			return &r->process_utils[i];
	return NULL;
}

double reading_process_pct(const struct card_reading *r, uint32_t pid)
{
	const struct process_util *record = reading_process_util(r, pid);
	if (!r->process_util_known)
		return NAN;
	return record ? record->sm_pct : 0;
}

double reading_most_engine(const double engine_pct[ENGINE_COUNT])
{
	double most = 0;
	/* Reading and writing memory is a part of computing, not an engine of its own. */
	for (size_t i = ENGINE_MEMORY + 1; i < ENGINE_COUNT; i++)
		most = engine_pct[i] > most ? engine_pct[i] : most;
	return most;
}

double reading_engine_pct(const struct card_reading *r, uint32_t pid)
{
	const struct process_util *record = reading_process_util(r, pid);
	return record ? reading_most_engine(record->engine_pct) : 0;
}
