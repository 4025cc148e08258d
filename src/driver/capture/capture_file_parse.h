/* The lines of a capture: checked, and put into a struct nvml_recorded. */
#ifndef GUA_DRIVER_CAPTURE_CAPTURE_FILE_PARSE_H
#define GUA_DRIVER_CAPTURE_CAPTURE_FILE_PARSE_H

#include "driver/capture/capture_file.h"

/* Reads r->text, of `len` bytes with a NUL behind them, and cuts it into lines. ERR_WORLD: the
 * sentence names the line. */
int nvml_recorded_fill(struct nvml_recorded *r, size_t len, struct err *e);

#endif
