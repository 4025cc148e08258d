/* What gua track is asked to do: its options, checked before anything is started. */
#pragma once

#include "cmd/cmd.h"
#include "render/track.h"
#include "track/tracker.h"

enum { TRACK_MAX_UUIDS = 64 };

struct track_values {
	const char *execute, *output, *format, *ram_unit, *gpu_ram_unit, *time_unit, *interval;
	const char *uuids, *gpus, *config, *brand, *tracking_file;
	struct tracker_options o; /* what options say of it; cmd_track_run() adds the rest */
	int64_t pid;
	bool until_exit, progress, legacy_spelling, processes, overwrite, quiet;
	bool verbose;  /* text: all values */
	bool announce; /* say that the command has ended, as gpu-tracker does */
	bool version;  /* gpu-tracker's option */
	const char *default_size, *default_time; /* units when no unit is given; NULL: auto */
	/* Computed from the values above. */
	enum track_format style;
	const char *uuid_list[TRACK_MAX_UUIDS];
	char *uuid_text;   /* storage of uuid_list; heap */
	void *config_text; /* storage of what --tconfig gave; a JSON object */
};

extern const struct option_row track_options[];

/* Fills in --tconfig's values where the command line gave none (`given` says which rows it
 * gave), then the defaults, and checks all of them: units, interval, format, brand, files. */
int track_options_check(struct track_values *v, const bool *given, struct err *e);
void track_options_free(struct track_values *v);

/* Runs gua track, and gpu-tracker with its own options: checks them, runs the command (the
 * operands, if there are any) and writes the report; returns the exit status. */
int cmd_track_run(const struct call *call, struct err *e);
