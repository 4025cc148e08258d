/* What a bare CUDA context takes on each model of card, learned from what was recorded. Every
 * CUDA process has a context and most have data besides, so that those who have nothing else
 * meet at the bottom: the floor of a model is the least memory that several lives had in
 * common. */
#ifndef GUA_QUERY_CONTEXT_H
#define GUA_QUERY_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/reading.h"

/* What has less is no whole context (an MPS client, a process that is still starting); what has
 * more is not taken for one, however many have it. */
#define CONTEXT_LEAST_BYTES (64LL << 20)
#define CONTEXT_LARGEST_BYTES (768LL << 20)

struct context_floor {
	char name[CARD_NAME_CAP]; /* the model */
	int64_t bytes;
};

/* Zero-initialise before the first use. */
struct context_floors {
	struct context_floor *items;
	size_t n;
	bool learned;
};

struct sqlite3;

/* Learns from the newest records; what was learned before is forgotten. When it fails nothing
 * is learned. */
int context_learn(struct context_floors *f, struct sqlite3 *db, struct err *e);
void context_finish(struct context_floors *f);
/* The floor of a model, or -1: too few lives tell. */
int64_t context_floor(const struct context_floors *f, const char *name);

#endif
