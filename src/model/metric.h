/* The metrics of a card: one table, metrics.def, for all views, for /metrics and for the
 * documentation. To add one, add a row there, and the driver call to the tables in driver/. */
#pragma once

#include "base/base.h"

enum metric {
#define METRIC(id, ...) METRIC_##id,
#include "model/metrics.def"
#undef METRIC
	METRIC_COUNT
};

/* Texts from the driver come first in the table. */
enum { METRIC_DRIVER_TEXTS = METRIC_TIMESTAMP, METRIC_TEXT_CAP = 64 };

enum metric_form {
	METRIC_FORM_DRIVER_TEXT,  /* a text from the driver: see metric_texts */
	METRIC_FORM_CARD_TEXT,	  /* from the card's identity, or computed by the view */
	METRIC_FORM_NUMBER,	  /* detail: decimals */
	METRIC_FORM_HEX,	  /* detail: digits */
	METRIC_FORM_REASON_BIT,	  /* bit `detail` of METRIC_REASONS: Active, Not Active */
	METRIC_FORM_ON_OFF,	  /* Enabled, Disabled */
	METRIC_FORM_YES_NO,	  /* Yes, No */
	METRIC_FORM_COMPUTE_MODE, /* Default, Exclusive_Thread, Prohibited, Exclusive_Process */
	METRIC_FORM_PSTATE,	  /* P0 .. P15 */
	METRIC_FORM_GOM,	  /* All On, Compute, Low Double Precision */
	METRIC_FORM_ADDRESSING,	  /* None, HMM, ATS */
	METRIC_FORM_VALIDITY,	  /* invalid, valid */
	METRIC_FORM_RECOVERY,	  /* None, Reset, Reboot, Drain P2P, Drain and Reset */
	METRIC_FORM_FABRIC,	  /* "", Not Started, In Progress, Completed */
	METRIC_FORM_PEER,	  /* Direct Connected; no other value is known */
	METRIC_FORM_CUDA,	  /* 12020 is 12.2 */
	METRIC_FORM_BRAND,	  /* GeForce, NVIDIA RTX ... */
	METRIC_FORM_ARCHITECTURE, /* Ampere, Hopper ... */
	METRIC_FORM_VIRTUALIZATION, /* None, Pass-Through, VGPU, Host VGPU, Host VSGA */
	METRIC_FORM_HEALTH,	    /* "", Healthy, Unhealthy, Limited Capacity */
	METRIC_FORM_BANDWIDTH,	    /* "", Degraded, Full */
	METRIC_FORM_TRUE_FALSE,	    /* "", True, False */
	METRIC_FORM_MOMENT,	    /* unix milliseconds */
};

struct metric_info {
	const char *name;     /* as in headers, CSV and JSON */
	const char *synonyms; /* other names, separated by blanks; "" */
	const char *unit;     /* as printed; "": none */
	double scale;	      /* the value is divided by this before it is printed */
	const char *help;     /* one sentence */
	enum metric_form form;
	int detail; /* meaning depends on the form */
};
extern const struct metric_info metrics[METRIC_COUNT];

/* The metric with this name or synonym, ignoring case; -1: none. */
int metric_find(const char *name, size_t len);
/* Finds at most `max` metrics with the nearest names, best first; returns how many are near. */
size_t metric_nearest(const char *name, size_t len, int *found, size_t max);

/* Values are bytes, watts, MHz, percent, degrees Celsius, unix milliseconds: METRIC_COUNT
 * numbers, NAN when unknown; texts of the driver are "" then. */
typedef char metric_texts[METRIC_DRIVER_TEXTS][METRIC_TEXT_CAP];

/* The driver's codes of calls that failed, by metric; 0: the call succeeded, was not made, or
 * the card does not have the metric. */
typedef short metric_codes[METRIC_COUNT];

/* A source reports such a call, also for a text, as a NAN that carries the code. */
double metric_failed(int code);
/* Takes the codes out of the values, which stay as they are. */
void metric_take_codes(const double *values, metric_codes codes);

/* Which metrics of which card to read. */
struct metric_request {
	size_t card;		     /* index into the cards of the source */
	bool board;		     /* for the physical card that the card is a part of */
	const unsigned char *wanted; /* METRIC_COUNT flags */
};

void metric_clear(double *values, metric_texts texts);
/* For each of the METRIC_COUNT flags that is set, also sets the metrics that it is computed
 * from. */
void metric_complete(unsigned char *wanted);
/* Fills in the metrics that are computed from others: the bits of the reasons. */
void metric_derive(double *values);

/* The value as nvidia-smi prints it, without the unit; "" when it is unknown, and for texts. */
void metric_show(char *dst, size_t cap, enum metric m, double value);
