/* Metrics of live views from the real driver: a table of calls (nvml_metrics.def). */
#pragma once

#include "driver/nvml/nvml_calls.h"
#include "model/metric.h"

/* The form of a call, and what is done with the answer: see nvml_shapes.def. */
enum nvml_shape {
#define SHAPE(name, ...) SHAPE_##name,
#include "driver/nvml/nvml_shapes.def"
};

struct nvml_call {
	enum metric metric;
	enum nvml_shape shape;
	const char *symbol, *older; /* the first one that exists is used; NULL: none */
	int args[NVML_ARGS];	    /* the numbers of the call */
	int out;		    /* which one, if the call answers with several */
	double scale;		    /* the answer times this is the value; 0: 1 */
	bool instance;		    /* MIG instances have their own value */
};

extern const struct nvml_call nvml_metric_rows[];
extern const size_t nvml_n_metric_rows;

enum { NVML_METRIC_ROWS = 256 };

struct nvml_source;
struct source;

/* Rows that a card does not support. */
struct nvml_dead {
	bool row[NVML_METRIC_ROWS];
};

/* source_ops.metrics */
void nvml_metric_read(struct source *base, const struct metric_request *request, double *values,
	metric_texts texts);
