/* What gua adds to the outline of a tracker's result: its own figures, advice, cards,
 * processes. */
#ifndef GUA_RENDER_TRACK_PARTS_H
#define GUA_RENDER_TRACK_PARTS_H

#include "base/str.h"
#include "render/json.h"
#include "render/outline.h"
#include "render/track.h"

/* Texts of the advice; they live as long as the outline. */
struct track_advice {
	char mem[32], gres[32], time[32], command[160], margin[160];
};

/* Swap, I/O, faults, switches, processes, exit status, GPU time and energy. */
void track_add_more(
	struct outline *o, const struct track_result *r, const struct track_style *style);
/* What to ask Slurm for, with the margin that was added. */
void track_add_advice(
	struct outline *o, const struct track_result *r, struct track_advice *advice);

void track_cards_text(struct str *out, const struct track_result *r);
void track_cards_json(struct json *j, const struct track_result *r);
/* With user names from `users`; without names if it is NULL. */
void track_processes_text(
	struct str *out, const struct track_result *r, struct user_names *users);
void track_processes_json(
	struct json *j, const struct track_result *r, struct user_names *users);

#endif
