/* Every call of the driver that gua makes, as data: its signature, what it answers, and what
 * of that must not leave the host. Captures are made and played by this table. */
#ifndef GUA_DRIVER_NVML_NVML_CALLS_H
#define GUA_DRIVER_NVML_NVML_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a call is made. OUT stands for the pointers to what it fills in. */
enum nvml_signature {
	NVML_SIG_PLAIN,	   /* (void) */
	NVML_SIG_SYSTEM,   /* (OUT) */
	NVML_SIG_VERSION,  /* (char *, unsigned length) */
	NVML_SIG_ERROR,	   /* (int code), returns a text */
	NVML_SIG_INDEX,	   /* (unsigned index, void **device) */
	NVML_SIG_CHECK,	   /* (device) */
	NVML_SIG_OUT,	   /* (device, OUT) */
	NVML_SIG_OF,	   /* (device, int, OUT), with one to three numbers */
	NVML_SIG_TEXT,	   /* (device, char *, unsigned length) */
	NVML_SIG_TEXT_OF,  /* (device, int, char *, unsigned length) */
	NVML_SIG_FIELD,	   /* (device, int count, struct nvml_field *): id, scope */
	NVML_SIG_LIST,	   /* (device, unsigned *count, void *entries) */
	NVML_SIG_SAMPLES,  /* (device, int type, u64 since, int *type, unsigned *count, ...) */
	NVML_SIG_USE,	   /* (device, entries, unsigned *count, u64 since) */
	NVML_SIG_USE_V1,   /* (device, struct nvml_process_samples_v1 *) */
	NVML_SIG_INSTANCE, /* (device, unsigned index, void **instance) */
	NVML_SIG_GPM,	   /* samples and metrics: see capture_call.c */
	NVML_SIG_EVENTS,   /* of an event set */
};

/* What must not be in a capture as it is. */
enum nvml_secret {
	NVML_SECRET_NONE,
	NVML_SECRET_UUID,   /* becomes GPU-...1, GPU-...2 */
	NVML_SECRET_SERIAL, /* becomes serial-1 */
	NVML_SECRET_HOST,   /* becomes host-1 */
	NVML_SECRET_ID,	    /* bytes; become a number */
};

/* The subject of a call. */
enum nvml_subject { NVML_OF_DRIVER, NVML_OF_CARD, NVML_OF_ANY /* a card or an instance */ };

struct nvml_form {
	const char *symbol;
	enum nvml_signature signature;
	enum nvml_subject subject;
	const char *layout; /* of each part; "": it answers with its code alone */
	unsigned parts;	    /* that it fills in; 0: 1 */
	const char *row;    /* layout of an entry of a list; NULL: it has none */
	uint32_t version;   /* the word that each part must begin with; 0: none */
	unsigned n_args;    /* numbers that the caller chooses */
	bool spare;	    /* an older name: only asked if the row before it is missing */
	bool rounds;	    /* it is asked in each round, since its answer changes */
	enum nvml_secret secret;
};

enum { NVML_ARGS = 3, NVML_PARTS = 4 };
/* Cards that a capture may have, and instances of each. */
enum { CAPTURE_CARDS = 64, CAPTURE_INSTANCES = 16 };
unsigned nvml_calls_parts(const struct nvml_form *f);
/* Makes a call that has one of the first simple signatures (to NVML_SIG_FIELD, but for those of
 * the driver's start): fills in the parts of its form one after the other, each as large as its
 * layout says, after the version words were set; of NVML_SIG_FIELD, a struct nvml_field.
 * Returns the driver's code. */
int nvml_calls_make(
	const struct nvml_form *form, void *function, void *handle, const int *args, void *out);

/* The calls of struct nvml_api, in the order in which a capture makes them. */
extern const struct nvml_form nvml_forms[];
extern const size_t nvml_n_forms;
/* The call of a row of nvml_metrics.def, and its numbers; false: it makes none of its own. */
bool nvml_calls_of_metric(size_t row, struct nvml_form *form, int args[NVML_ARGS]);
/* The call with this symbol; false: it is unknown. */
bool nvml_calls_find(const char *symbol, struct nvml_form *form);

#endif
