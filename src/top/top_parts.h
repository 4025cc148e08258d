/* The parts of the screen of `gua top`, for top_draw(). Each appends whole lines. */
#ifndef GUA_TOP_PARTS_H
#define GUA_TOP_PARTS_H

#include "top/top_state.h"

/* The number of shown cards. */
size_t top_shown_cards(const struct top_now *now);
/* Divides the screen; messages take `extra` lines. rows 0: as many as needed. */
struct top_layout top_plan(
	const struct top_state *s, size_t rows, size_t columns, size_t extra);

void top_draw_cards(struct top_state *s);
void top_draw_table(struct top_state *s);
/* What a click on this column of the titles sorts by; NULL: nothing. */
const struct holder_column *top_title_at(const struct top_state *s, size_t column);
/* Draws help, a menu, a question or details instead of the table, with as many lines as
 * needed. */
void top_draw_page(struct top_state *s);

/* The columns that the menu of orders lists; returns how many. */
size_t top_orders(const struct holder_column *orders[HOLDER_COLUMNS_MAX]);
/* The first line of a menu that is on the screen. */
size_t top_menu_first(const struct top_state *s);
/* Fills the menu of users with those that have processes, sorted. The list does not change
 * while the menu is open, so that a key chooses the user that was shown. */
void top_list_users(struct top_state *s);

#endif
