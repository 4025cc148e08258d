/* Learns the size of a bare context, and compares memory with it. */
#include "classify/context.h"

/* Lives agree if the largest is at most this percentage of the smallest. */
#define AGREE_PCT 110
/* A context and a few small buffers, as a percentage of the model's floor. */
#define SLACK_PCT 125

void context_finish(struct context_floors *f)
{
	free(f->items);
	*f = (struct context_floors){ 0 };
}

static struct context_floor *find(const struct context_floors *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->items[i].name, name) == 0)
			return &f->items[i];
	return NULL;
}

int64_t context_floor(const struct context_floors *f, const char *name)
{
	const struct context_floor *floor = find(f, name);
	return floor ? floor->bytes : -1;
}

static int add(struct context_floors *f, const char *name, int64_t bytes, struct err *e)
{
	if (!array_one_more(&f->items, f->n))
		return err_memory(e);
	f->items[f->n].bytes = bytes;
	str_copy(f->items[f->n++].name, CARD_NAME_CAP, name);
	return 0;
}

int context_learn_idle(struct context_floors *f, const char *name, int64_t bytes, struct err *e)
{
	struct context_floor *floor = find(f, name);
	if (!context_may_be(bytes))
		return 0;
	if (!floor)
		return add(f, name, bytes, e);
	if (bytes < floor->bytes)
		floor->bytes = bytes;
	return 0;
}

int context_learn_life(struct context_floors *f, struct context_lives *l, const char *name,
	int64_t bytes, struct err *e)
{
	if (!context_may_be(bytes))
		return 0;
	if (strcmp(name, l->name) != 0) {
		*l = (struct context_lives){ .n = 0 };
		str_copy(l->name, sizeof(l->name), name);
	}
	memmove(l->bytes, l->bytes + 1, (CONTEXT_LIVES - 1) * sizeof(l->bytes[0]));
	l->bytes[CONTEXT_LIVES - 1] = bytes;
	l->n++;
	bool agree = l->n >= CONTEXT_LIVES && bytes * 100 <= l->bytes[0] * AGREE_PCT;
	return agree && !find(f, name) ? add(f, name, l->bytes[0], e) : 0;
}

bool context_may_be(int64_t bytes)
{
	return bytes >= CONTEXT_LEAST_BYTES && bytes <= CONTEXT_MOST_BYTES;
}

enum context context_judge(unsigned kind, int64_t bytes, int64_t floor)
{
	if ((kind & PROCESS_MPS) || !context_may_be(bytes))
		return CONTEXT_MORE;
	return floor >= 0 && bytes <= floor * SLACK_PCT / 100 ? CONTEXT_ONLY : CONTEXT_ABOUT;
}
