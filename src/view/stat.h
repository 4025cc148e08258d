/* The compact view: one line for each card, like gpustat, with states and idle times; or JSON
 * with gpustat's keys. */
#pragma once

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
	const struct present_board **boards; /* of these cards, each once */
	size_t n_boards;
};
int stat_pick(struct stat_pick *p, struct live *l, const struct filter *f, struct err *e);
void stat_pick_finish(struct stat_pick *p);
/* Steps through the picked cards of a board; `*at` is 0 at first. NULL: there are no more. */
const struct present_card *stat_next_card(
	const struct stat_pick *p, const struct present_board *b, size_t *at);

void stat_text(struct str *out, const struct stat_pick *picked, const struct stat_options *o);
/* Appends one JSON document; `lines` as in struct json. */
void stat_json(struct str *out, const struct stat_pick *picked, int lines);

/* The state of a card, or its status when it cannot be asked. */
const char *stat_state(const struct present_card *c);
/* The first word of a command. */
void stat_command(char *dst, size_t cap, const struct present_process *p);
