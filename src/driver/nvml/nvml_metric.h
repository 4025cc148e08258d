/* Metrics of live views from the real driver: a table of calls (nvml_metrics.def), looked up
 * when the library is loaded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "model/metric.h"

/* The signature of a call, and what is done with the answer. */
enum nvml_shape {
	SHAPE_ONE,	 /* (device, unsigned *) */
	SHAPE_TWO,	 /* (device, unsigned *, unsigned *) */
	SHAPE_POINT,	 /* the same: the parts of one number before and after the point */
	SHAPE_THREE,	 /* the same with three */
	SHAPE_FOUR,	 /* and with four */
	SHAPE_FIVE,	 /* (device, {unsigned [5]} *) */
	SHAPE_LONG,	 /* (device, unsigned long long *) */
	SHAPE_OF,	 /* (device, int which, unsigned *) */
	SHAPE_ERRORS,	 /* (device, int type, int counter, unsigned long long *) */
	SHAPE_PLACE,	 /* (device, int type, int counter, int place, unsigned long long *) */
	SHAPE_TEXT,	 /* (device, char *, unsigned length) */
	SHAPE_TEXT_OF,	 /* (device, int which, char *, unsigned length) */
	SHAPE_NAME,	 /* (device, {char [64]} *) */
	SHAPE_VERSION,	 /* the same */
	SHAPE_ENGINES,	 /* (device, {unsigned [8], unsigned long long} *) */
	SHAPE_SYSTEM,	 /* (int *) */
	SHAPE_CHECK,	 /* (device): whether the call succeeds */
	SHAPE_VERSIONED, /* (device, {version, int} *) */
	SHAPE_VERSIONED_TWO,  /* the same with two of them */
	SHAPE_CLASSES,	      /* (device, struct nvml_pci_ext *) */
	SHAPE_SRAM,	      /* (device, struct nvml_sram_errors *) */
	SHAPE_FABRIC,	      /* (device, struct nvml_fabric *): state and clique */
	SHAPE_FABRIC_RESULT,  /* the same: the status as a text */
	SHAPE_FABRIC_CLUSTER, /* the same: the cluster's UUID */
	SHAPE_HEALTH,	      /* (device, struct nvml_fabric_health *): summary and flags */
	SHAPE_PLATFORM,	      /* (device, struct nvml_platform *): numbers and chassis */
	SHAPE_PLATFORM_GUID,  /* the same: the identity */
	SHAPE_BYTES,	      /* (device, {u64 total, free, used} *) */
	SHAPE_FIELD,	      /* nvmlDeviceGetFieldValues with one field */
	SHAPE_PCI,	      /* the calls of the source itself */
	SHAPE_MEMORY,
	SHAPE_RATES,
	SHAPE_LIBRARY,	 /* the version of the library */
	SHAPE_ROOT_PORT, /* the kernel's file about the port above the card */
};

struct nvml_call {
	enum metric metric;
	enum nvml_shape shape;
	const char *symbol, *older; /* the first one that exists is used; NULL: none */
	int which;     /* OF, TEXT_OF, FIELD: the number; ERRORS, PLACE: the type */
	int other;     /* ERRORS, PLACE: the counter; FIELD: the scope */
	int place;     /* PLACE */
	int out;       /* which one, if the call answers with several */
	double scale;  /* the answer times this is the value; 0: 1 */
	bool instance; /* MIG instances have their own value */
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

/* The calls by row; NULL: the library does not have it. */
struct nvml_metric_calls {
	void *call[NVML_METRIC_ROWS];
};

/* Looks the calls up in a library that was loaded just now. */
void nvml_metric_find_calls(struct nvml_source *s);
/* source_ops.metrics */
void nvml_metric_read(struct source *base, const struct metric_request *request, double *values,
	metric_texts texts);
