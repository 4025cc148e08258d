/* What gua adds to the outline of a tracker's result: its own figures, advice, cards,
 * processes. */
#ifndef GUA_RENDER_TRACK_PARTS_H
#define GUA_RENDER_TRACK_PARTS_H

#include "base/str.h"
#include "render/json.h"
#include "render/outline.h"
#include "render/track.h"

/* What to ask Slurm for, with a margin and rounded up; it lives as long as the outline. */
struct track_advice {
	int64_t cpus;
	char mem[32];  /* "": unknown */
	char gres[32]; /* "none", "gpu:2" */
	char time[32], command[160], margin[160];
	char basis[64]; /* what it is made from: "from 1 run" */
};

/* Swap, I/O, faults, switches, processes, exit status, GPU time and energy. */
void track_add_more(
	struct outline *o, const struct track_result *r, const struct track_style *style);
void track_advise(struct track_advice *advice, const struct track_result *r,
	const struct track_style *style);
/* The same, as a part of the outline. */
void track_add_advice(struct outline *o, const struct track_result *r,
	const struct track_style *style, struct track_advice *advice);

/* Whether the tree had memory on the card or used it. */
bool track_card_is_used(const struct track_card *c);

void track_cards_text(struct str *out, const struct track_result *r);
void track_cards_json(struct json *j, const struct track_result *r);
/* With user names from `users`; without names if it is NULL. */
void track_processes_text(
	struct str *out, const struct track_result *r, struct user_names *users);
void track_processes_json(
	struct json *j, const struct track_result *r, struct user_names *users);

#endif
