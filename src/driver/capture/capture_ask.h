/* What the files that make a capture share: its state, and one question to the driver. */
#ifndef GUA_DRIVER_CAPTURE_CAPTURE_ASK_H
#define GUA_DRIVER_CAPTURE_CAPTURE_ASK_H

#include "driver/capture/capture.h"
#include "driver/capture/capture_call.h"
#include "driver/capture/capture_secrets.h"

/* A card, or an instance of it. */
struct capture_unit {
	int card, instance;
};

struct capture_card {
	bool there;		 /* it has a handle */
	bool asleep, stuck, mig; /* it must not be asked; its instances are asked too */
	bool gpm;
	unsigned instances; /* bits */
	int gpu_instances[CAPTURE_INSTANCES];
	uint64_t since_us[CAPTURE_INSTANCES +
			  1]; /* the newest sample; of the card itself last */
};

struct capture {
	const struct nvml_capture_options *o;
	struct str *out;
	struct nvml_captured *seen;
	struct capture_caller caller; /* copied into each helper */
	struct helper *helper;
	struct nvml_secrets secrets;
	struct capture_card cards[CAPTURE_CARDS];
	unsigned n_cards, n_left;
	bool *done;   /* by place in the plan: it is missing, or made by an earlier row */
	bool crashed; /* the last call ended its process */
	bool ended;   /* nothing more can be asked */
	struct err why;
};

/* One call: its place in the plan, its subject and its numbers. */
struct capture_question {
	size_t place;
	struct nvml_form form;
	struct capture_unit unit;
	int args[NVML_ARGS];
	uint64_t since_us;
};

/* Opens the library; false: there is none, which is written down. */
bool capture_open(struct capture *c);
/* Makes a call and writes its answer; false: there is none, or its code is not 0. */
bool capture_ask(
	struct capture *c, const struct capture_question *q, struct capture_reply *reply);

#endif
