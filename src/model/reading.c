/* Finds the use of a process among the driver's records of a card. */
#include "model/reading.h"

#include <math.h>

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
