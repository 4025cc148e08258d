/* What a bare CUDA context is: the memory that every CUDA process takes on a card before it
 * stores anything. The driver does not report it, so it is judged by its size. It depends on
 * the card, the driver and the libraries that a program loads. Processes that have nothing else
 * meet at the bottom, so the floor of a model is the least that was seen there. */
#ifndef GUA_CLASSIFY_CONTEXT_H
#define GUA_CLASSIFY_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/reading.h"

/* Less is not a whole context (an MPS client, a process that is still starting); more is not
 * taken for one, however many processes have it. */
#define CONTEXT_LEAST_BYTES (64LL << 20)
#define CONTEXT_MOST_BYTES (768LL << 20)
/* What a context is taken to be on a model of which nothing was learned. */
#define CONTEXT_USUAL_BYTES 400000000LL

/* How near what a holder has is to a bare context. */
enum context {
	CONTEXT_MORE,  /* it has more, or less than one */
	CONTEXT_ABOUT, /* within the range of contexts */
	CONTEXT_ONLY,  /* no more than the floor of its model, and a quarter */
};
extern const char *const context_texts[]; /* "", "about a context", "context only" */

/* The floors of the models that something was learned of. Zero-initialise. */
struct context_floors {
	struct context_floor {
		char name[CARD_NAME_CAP]; /* the model */
		int64_t bytes;
	} * items;
	size_t n;
};

void context_finish(struct context_floors *f);
/* The floor of a model, or -1: nothing was learned. */
int64_t context_floor(const struct context_floors *f, const char *name);

/* Learns from a process that did nothing: the least of them is the floor. Fails without memory;
 * what is outside the range is no lesson. */
int context_learn_idle(
	struct context_floors *f, const char *name, int64_t bytes, struct err *e);

/* How many lives must agree: one alone may be a small job. */
enum { CONTEXT_LIVES = 3 };
/* The lives on one model, as they come. Zero-initialise. */
struct context_lives {
	char name[CARD_NAME_CAP];
	int64_t bytes[CONTEXT_LIVES]; /* the last ones */
	size_t n;
};
/* Learns from what whole lives had at most, whether they did something or not: the least in
 * which several agree is the floor. Lives come by model, least memory first. */
int context_learn_life(struct context_floors *f, struct context_lives *l, const char *name,
	int64_t bytes, struct err *e);

/* Whether so much may be a context at all. */
bool context_may_be(int64_t bytes);
/* `kind` are process_kind bits of a holder, `floor` is of its model or -1. The floor errs where
 * a small job was run again and again and no process was ever there with a context alone. An
 * MPS client has no context of its own. */
enum context context_judge(unsigned kind, int64_t bytes, int64_t floor);

#endif
