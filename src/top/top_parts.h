/* The parts of the screen of `gua top`, for top_draw(). Each appends whole lines. */
#ifndef GUA_TOP_PARTS_H
#define GUA_TOP_PARTS_H

#include "top/top_state.h"

/* How many cards are shown. */
size_t top_shown_cards(const struct top_now *now);
/* Divides the screen; `extra` lines are taken by messages. rows 0: as many as it takes. */
struct top_layout top_plan(
	const struct top_state *s, size_t rows, size_t columns, size_t extra);

void top_draw_cards(struct top_state *s);
void top_draw_table(struct top_state *s);
/* Help, a menu, a question or details instead of the table; as many lines as that has. */
void top_draw_page(struct top_state *s);

/* The line of a menu that is the first on the screen. */
size_t top_menu_first(const struct top_state *s);
/* Fills in the menu of users: those that have processes, sorted. It stays like that while it is
 * open, so that a line is the same user when a key takes it. */
void top_list_users(struct top_state *s);

#endif
