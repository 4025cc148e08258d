/* How much one process used a card since the last drain. */
#ifndef GUA_DRIVER_USE_H
#define GUA_DRIVER_USE_H

#include <stdint.h>

#include "model/reading.h"

/* The driver's record of a process; NULL: the driver has none. */
const struct process_util *use_record(const struct card_reading *r, uint32_t pid);
/* Its SM use in percent. A process without a record used nothing; NAN when the driver keeps no
 * records for this card. */
double use_of(const struct card_reading *r, uint32_t pid);
/* The most use of an encoder, a decoder, or the engines for JPEG and optical flow, in percent.
 * One that the driver does not report counts as unused: old drivers do not know all of them. */
double use_most_engine(const double engine_pct[ENGINE_COUNT]);
double use_of_engines(const struct card_reading *r, uint32_t pid);

#endif
