/* A bare CUDA context is the memory that every CUDA process takes on a card before it stores
 * anything. The driver does not report it, so it is judged by its size, which depends on the
 * card, the driver and the libraries that a program loads. Processes with nothing else have
 * about the same, smallest size, so the floor of a model is the smallest size that was seen on
 * it. */
#pragma once

#include "base/base.h"
#include "model/reading.h"
#include "model/state.h"

/* Less is not a whole context (an MPS client, a process that is still starting); more is never
 * taken for one, even if many processes have it. */
#define CONTEXT_LEAST_BYTES (64LL << 20)
#define CONTEXT_MOST_BYTES (768LL << 20)
/* The assumed size of a context on a model from which nothing was learned. */
#define CONTEXT_USUAL_BYTES 400000000LL

/* The floors of the models from which something was learned. Zero-initialise. */
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

/* Learns from a process that did nothing: the smallest of them is the floor. Fails when out of
 * memory; ignores sizes outside the range. */
int context_learn_idle(
	struct context_floors *f, const char *name, int64_t bytes, struct err *e);

/* How many lives must agree: one alone may be a small job. */
enum { CONTEXT_LIVES = 3 };
/* The lives on one model, in order. Zero-initialise. */
struct context_lives {
	char name[CARD_NAME_CAP];
	int64_t bytes[CONTEXT_LIVES]; /* the last ones */
	size_t n;
};
/* Learns from the peak of whole lives, whether they were active or not: the smallest size on
 * which several agree is the floor. Lives must come by model, the smallest memory first. */
int context_learn_life(struct context_floors *f, struct context_lives *l, const char *name,
	int64_t bytes, struct err *e);

/* Whether this size can be a context. */
bool context_may_be(int64_t bytes);
/* `kind` has the process_kind bits of a holder, `floor` is that of its model or -1. The floor
 * is wrong if a small job was run again and again and no process ever had only a context. An
 * MPS client has no context of its own. */
enum context context_judge(unsigned kind, int64_t bytes, int64_t floor);
