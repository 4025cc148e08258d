/* Prints the state of each host of a fleet. */
#ifndef GUA_FLEET_ROSTER_SHOW_H
#define GUA_FLEET_ROSTER_SHOW_H

#include "fleet/roster.h"
#include "render/text.h"

struct roster_style {
	struct text_style text;
	bool all; /* also hosts that are well */
};
void roster_text(struct str *out, const struct roster *r, const struct fleet *f,
	const struct roster_style *style);
void roster_json(struct str *out, const struct roster *r, const struct fleet *f);

#endif
