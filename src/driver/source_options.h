/* The options with which a source is opened. */
#ifndef GUA_DRIVER_SOURCE_OPTIONS_H
#define GUA_DRIVER_SOURCE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "driver/source_host.h"

/* Strings are borrowed until source_close(). */
struct source_options {
	const char *name;      /* a list of names: see kind.h */
	const char *nvml_path; /* --nvml or GUA_NVML; NULL: libnvidia-ml.so.1 after checking the
				  module */
	const char *nvml_option;  /* what sets it, for messages; NULL: "--nvml PATH" */
	const char *scenario;	  /* sim: path of a scenario file; NULL: the built-in lab */
	bool weeks;		  /* sim: two weeks of that lab; time 0 is a Monday, 0:00 */
	const char *root;	  /* where /proc and /sys are; "" for the real ones */
	struct clock *clock;	  /* outlives the source */
	int64_t sample_period_us; /* sim: sample at this period; 0: as the scenario says */
	struct source_host *host; /* opens kinds that may block; NULL: open them here */
	bool shared; /* it is one of several: a call that takes long goes on without the caller,
			who gets ERR_BUSY and asks source_late() */
	/* Of a source that is opened by a host; else NULL. */
	struct source_place *place;	    /* to be kept up to date */
	const struct source_avoids *avoids; /* heeded by each scan */
};

#endif
