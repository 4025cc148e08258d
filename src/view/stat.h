/* The compact view: one line for each card, like gpustat, with states and idle times; or JSON
 * with gpustat's keys. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "render/text.h"
#include "present/filter.h"
#include "present/live.h"

struct stat_options {
	bool command, full_command, user, pid, fan, no_header, no_processes;
	bool encoder, decoder;
	bool draw, limit;
	int64_t name_width; /* -1: as wide as the longest */
	struct text_style style;
};

/* The cards and instances of a look that match the filter, in the order in which they are
 * shown. */
struct stat_pick {
	struct live *live;
	const struct present *now; /* of the live view */
	const struct filter *filter;
	size_t *cards; /* indexes into now->cards */
	size_t n;
};
int stat_pick(struct stat_pick *p, struct live *l, const struct filter *f, struct err *e);
void stat_pick_finish(struct stat_pick *p);
/* Whether no earlier picked card is on the same board. */
bool stat_pick_is_first(const struct stat_pick *p, size_t at);

/* The boards of these cards, each once. */
struct stat_boards {
	const struct present_board **all;
	size_t n;
};
int stat_boards(struct stat_boards *b, struct live *l, const struct filter *f, struct err *e);
void stat_boards_finish(struct stat_boards *b);

void stat_text(struct str *out, const struct stat_pick *picked, const struct stat_options *o);
/* Appends one JSON document; `lines` as in struct json. */
void stat_json(struct str *out, const struct stat_pick *picked, int lines);

/* The state of a card, or its status when it cannot be asked. */
const char *stat_state(const struct present_card *c);
/* The first word of a command. */
void stat_command(char *dst, size_t cap, const struct present_process *p);
