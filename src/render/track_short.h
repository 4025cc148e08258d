/* A tracker's result for a person: time, CPU, RAM, GPU memory, GPU time, and Slurm's options.
 */
#ifndef GUA_RENDER_TRACK_SHORT_H
#define GUA_RENDER_TRACK_SHORT_H

#include "base/str.h"
#include "render/track.h"

void track_short_text(
	struct str *out, const struct track_result *r, const struct track_style *style);

#endif
