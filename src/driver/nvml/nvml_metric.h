/* Metrics of live views from the real driver: a table of calls, looked up when the library is
 * loaded. No call is required, and a call that a card does not support is not made again. */
#ifndef GUA_DRIVER_NVML_NVML_METRIC_H
#define GUA_DRIVER_NVML_NVML_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/metric.h"

enum { NVML_METRIC_ROWS = 256 };

struct nvml_source;
struct source;

/* Rows that a card does not support. */
struct nvml_dead {
	bool row[NVML_METRIC_ROWS];
};

/* The calls by row; NULL: the library does not have it. */
struct nvml_metric_calls {
	void *call[NVML_METRIC_ROWS];
};

/* Looks the calls up in a library that was loaded just now. */
void nvml_find_metrics(struct nvml_source *s);
/* source_ops.metrics */
void nvml_metrics(struct source *base, const struct metric_request *request, double *values,
	metric_texts texts);

#endif
