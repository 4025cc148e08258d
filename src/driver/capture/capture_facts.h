/* The facts about a host in a capture: what gua reads of the driver without its library. */
#ifndef GUA_DRIVER_CAPTURE_CAPTURE_FACTS_H
#define GUA_DRIVER_CAPTURE_CAPTURE_FACTS_H

#include <stdbool.h>

#include "base/str.h"
#include "driver/capture/capture_secrets.h"

/* Appends a line for each: places, kernel module, device nodes, cards in /proc. */
void nvml_capture_facts(const char *root, struct nvml_secrets *secrets, struct str *out);
/* Which of `n` cards, by the driver's index, sleep and must not be woken. */
void nvml_capture_asleep(const char *root, unsigned n, bool *asleep);

#endif
