/* Finds the use of a process among what the driver reported of the card. */
#include "driver/use.h"

#include <math.h>

const struct process_util *use_record(const struct card_reading *r, uint32_t pid)
{
	/* Of two lives of one pid, the newer one comes later. */
	for (size_t i = r->process_util_known ? r->n_process_utils : 0; i-- > 0;)
		if (r->process_utils[i].pid == pid)
			return &r->process_utils[i];
	return NULL;
}

double use_of(const struct card_reading *r, uint32_t pid)
{
	const struct process_util *record = use_record(r, pid);
	if (!r->process_util_known)
		return NAN;
	return record ? record->sm_pct : 0;
}

double use_most_engine(const double engine_pct[ENGINE_COUNT])
{
	double most = 0;
	/* Reading and writing memory is a part of computing, not an engine of its own. */
	for (size_t i = ENGINE_MEMORY + 1; i < ENGINE_COUNT; i++)
		most = engine_pct[i] > most ? engine_pct[i] : most;
	return most;
}

double use_of_engines(const struct card_reading *r, uint32_t pid)
{
	const struct process_util *record = use_record(r, pid);
	return record ? use_most_engine(record->engine_pct) : 0;
}
