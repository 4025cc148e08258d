/* One call of the driver, made by the helper of a capture: any row of the table of calls, for
 * any card. A call may never return, so the helper makes one at a time; when it is stuck, the
 * process that captures starts another helper. */
#pragma once

#include "base/helper.h"
#include "driver/nvml/nvml_calls.h"
#include "driver/nvml/nvml_lib.h"

struct capture_request {
	int64_t place; /* among all calls; -1: open the library */
	int card, instance;
	int args[NVML_ARGS];
	uint64_t since_us; /* for samples: only newer ones; for GPM: 1 for the second sample */
};

struct capture_reply {
	int code;
	bool missing;	 /* the library does not have the symbol */
	bool older;	 /* it was called by its older name */
	uint64_t number; /* the first number of the answer; for samples, the newest stamp */
	/* Then follow the values of the answer, and a line for each entry of a list. After
	 * opening the library: its path. */
};

/* The helper's state; zero at first, but for `choice`. */
struct capture_caller {
	struct nvml_lib_choice choice;
	struct helper_place *where;
	struct nvml_lib lib;
	bool opened, started;
	void *cards[CAPTURE_CARDS], *instances[CAPTURE_CARDS][CAPTURE_INSTANCES];
	void *samples[CAPTURE_CARDS][CAPTURE_INSTANCES + 1][2]; /* of GPM */
	void *events;
};

/* For struct helper_work, with a struct capture_caller. */
void capture_call_begin(void *context, struct helper_place *where);
void capture_call_serve(void *context, const struct str *request, struct str *reply);
void capture_call_end(void *context);
