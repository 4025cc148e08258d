/* Reads an answer of the HTTP API of a Prometheus-compatible engine as it arrives, in pieces of
 * any size, and passes on each sample: an answer can be larger than memory. Only the labels of
 * a series are kept. Its JSON is read strictly (RFC 8259), with limits for nesting and the
 * length of a token. */
#pragma once

#include "base/base.h"

enum { ANSWER_LABELS = 64, ANSWER_WARNINGS = 8, ANSWER_DEPTH = 32, ANSWER_TOKEN_MAX = 65536 };

/* The labels of a series. */
struct labels {
	struct str text;
	size_t names[ANSWER_LABELS], values[ANSWER_LABELS]; /* offsets in the text */
	size_t n;
};
/* The value of a label; "": it has none. */
const char *engine_answer_label(const struct labels *l, const char *name);

/* A sample of a series. */
struct sample {
	const struct labels *labels;
	double time_s, value; /* finite */
	uint64_t *note;	      /* the taker's: 0 at the first sample of a series, then kept */
};
typedef int engine_answer_take(void *context, const struct sample *sample, struct err *e);

struct engine_answer {
	engine_answer_take *take; /* NULL: samples are ignored */
	void *context;
	/* Set when the answer ends. */
	bool success;	 /* the answer's status is "success" */
	bool has_result; /* it has a vector or a matrix */
	char error[300]; /* the engine's error message; "": none */
	char error_type[32];
	char version[64], application[64]; /* data.version and so on, of buildinfo */
	char warnings[ANSWER_WARNINGS][300];
	size_t n_warnings;
	size_t n_samples, n_not_finite; /* NaN and infinite values are left out */
	/* Private: the JSON. */
	int state;			  /* what is expected next, or the token that is read */
	unsigned depth;			  /* open objects and arrays */
	uint32_t objects;		  /* bit d: the one at depth d is an object */
	unsigned char keys[ANSWER_DEPTH]; /* the key at each depth of objects */
	bool is_key;			  /* the string that is being read is a key */
	unsigned digits; /* number of digits of a \u escape that are still missing */
	unsigned code, high;
	struct str text; /* of the token, without escapes */
	uint64_t n_bytes;
	/* Private: the series. */
	bool saw_labels;
	uint64_t note;
	struct labels labels;
	unsigned place; /* position in a pair of time and value */
	double time_s;
};

/* Starts reading an answer, or reads it again. Keeps `take` and `context`. */
void engine_answer_start(struct engine_answer *a);
/* Both return ERR_WORLD with a text that continues "the answer is wrong: ...". */
int engine_answer_feed(struct engine_answer *a, const char *bytes, size_t len, struct err *e);
int engine_answer_end(struct engine_answer *a, struct err *e);
void engine_answer_finish(struct engine_answer *a);
