/* Every call of the driver that gua makes, as data: its signature, what it answers, and which
 * parts of the answer must not leave the host. This table is used to make and to play captures.
 */
#pragma once

#include "base/base.h"

/* How a call is made. Most begin with the device, then come the numbers that the caller
 * chooses. OUT stands for the pointers to what it fills in. */
enum nvml_signature {
	NVML_SIG_PLAIN,	   /* (void) */
	NVML_SIG_ERROR,	   /* (int code), returns a text */
	NVML_SIG_INDEX,	   /* (unsigned index, void **device) */
	NVML_SIG_VALUES,   /* ([device,] numbers, OUT) */
	NVML_SIG_TEXT,	   /* ([device,] numbers, char *, unsigned length) */
	NVML_SIG_LAYOUT,   /* (device, OUT); the number is the struct's layout, which is in its
			      version word */
	NVML_SIG_FIELD,	   /* (device, int count, struct nvml_field *); the numbers are id and
			      scope */
	NVML_SIG_LIST,	   /* (device, unsigned *count, void *entries) */
	NVML_SIG_SAMPLES,  /* (device, int type, u64 since, int *type, unsigned *count, ...) */
	NVML_SIG_USE,	   /* (device, entries, unsigned *count, u64 since) */
	NVML_SIG_USE_V1,   /* (device, struct nvml_process_samples_v1 *) */
	NVML_SIG_INSTANCE, /* (device, unsigned index, void **instance) */
	NVML_SIG_GPM,	   /* (device, [GPU instance,] sample) */
	NVML_SIG_GPM_METRIC, /* (struct nvml_gpm_metrics *); the numbers are the GPU instance or
				-1, and the id of the metric */
	NVML_SIG_EVENTS,     /* (device, u64 kinds, set) */
};

/* Parts of an answer that a capture must not contain as they are. */
enum nvml_secret {
	NVML_SECRET_NONE,
	NVML_SECRET_UUID,   /* becomes GPU-...1, GPU-...2 */
	NVML_SECRET_SERIAL, /* becomes serial-1 */
	NVML_SECRET_HOST,   /* becomes host-1 */
	NVML_SECRET_ID,	    /* bytes, which become a number */
	NVML_SECRETS
};

/* The subject of a call. */
enum nvml_subject { NVML_OF_DRIVER, NVML_OF_CARD, NVML_OF_ANY /* a card or an instance */ };

struct nvml_form {
	const char *symbol;
	const char *older; /* its name in older libraries; NULL: it has none */
	enum nvml_signature signature;
	enum nvml_subject subject;
	const char *layout; /* of each part; "": the call returns only a code */
	unsigned parts;	    /* how many parts it fills in; 0 means 1 */
	const char *row;    /* layout of an entry of a list; NULL: no list */
	uint32_t version;   /* number of the layout, which each part begins with; 0: none */
	unsigned n_args;    /* numbers that the caller chooses */
	bool spare;	    /* an older name: asked only if the row before it is missing */
	bool rounds;	    /* asked in each round, because its answer changes */
	enum nvml_secret secret;
};

enum { NVML_ARGS = 3, NVML_PARTS = 4 };
/* The most cards that a capture may have, and the most instances of each. */
enum { CAPTURE_CARDS = 64, CAPTURE_INSTANCES = 16 };
/* How many parts it fills in. */
unsigned nvml_calls_parts(const struct nvml_form *f);
/* How many of its numbers are parameters; the others are in a struct. */
unsigned nvml_calls_passed(const struct nvml_form *f);

/* The type by which any function of the driver is called and played: on 64-bit Linux, pointers
 * and whole numbers are passed alike, in registers, and those that a function does not have are
 * ignored. */
enum { NVML_WORDS = 6 };
typedef int (*nvml_function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

/* Makes a call with the signature VALUES, TEXT, LAYOUT or FIELD. Fills in the parts of its form
 * one after the other, each as large as its layout says; the version words, and of a field its
 * id and scope, are set first. Returns the driver's code. */
int nvml_calls_make(
	const struct nvml_form *form, void *function, void *handle, const int *args, void *out);

/* The calls of struct nvml_api, in the order in which a capture makes them. */
extern const struct nvml_form nvml_forms[];
extern const size_t nvml_n_forms;
/* All calls: those of nvml_forms, then those of the rows of nvml_metrics.def. */
size_t nvml_calls_count(void);
/* Finds a call by its place among all, and its numbers; false: the row of a metric makes no
 * call of its own. */
bool nvml_calls_at(size_t place, struct nvml_form *form, int args[NVML_ARGS]);
/* Finds the call with this symbol; false: it is unknown. */
bool nvml_calls_find(const char *symbol, struct nvml_form *form);
