/* What gua track is asked to do: its options, checked before anything is started. */
#ifndef GUA_CMD_TRACK_OPTIONS_H
#define GUA_CMD_TRACK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"

enum { TRACK_MAX_UUIDS = 64 };

struct track_values {
	const char *execute, *output, *format, *ram_unit, *gpu_ram_unit, *time_unit, *interval;
	const char *uuids, *gpus, *config, *brand, *tracking_file;
	const char *source, *nvml, *scenario, *root;
	int64_t pid, cores;
	bool until_exit, progress, legacy_spelling, processes, overwrite, quiet;
	bool verbose;  /* text: all values */
	bool announce; /* say that the command has ended, as gpu-tracker does */
	bool version;  /* gpu-tracker's option */
	const char *default_size, *default_time; /* units when none is given; NULL: auto */
	/* Computed from the values above. */
	int64_t interval_ms;
	const char *uuid_list[TRACK_MAX_UUIDS];
	size_t n_uuids;
	char *uuid_text;   /* storage of uuid_list; heap */
	void *config_text; /* storage of what --tconfig gave; a JSON object */
};

extern const struct option_row track_options[];

/* Fills in --tconfig's values where the command line gave none, then the defaults, and checks
 * all of them: units, interval, format, brand, files. */
int track_finish_options(struct track_values *v, struct err *e);
void track_free_options(struct track_values *v);

/* Whether only the cards of the command are in the report: --gpus. */
bool track_own_gpus(const struct track_values *v);

#endif
