/* The terminal of `gua top`. Only top_screen.c uses curses. */
#pragma once

#include "top/top_frame.h"

struct top_screen;

/* A place on the screen, from 0. */
struct top_spot {
	size_t line, column;
};

/* Takes over the terminal. */
int top_screen_open(struct top_screen **out, FILE *in, FILE *to, bool color, struct err *e);
/* Restores the terminal. */
void top_screen_close(struct top_screen *s);
void top_screen_size(const struct top_screen *s, size_t *rows, size_t *columns);
/* Shows the frame; only what has changed is sent. */
void top_screen_show(struct top_screen *s, const struct top_frame *f);
/* Waits for a key. Returns a character, an enum top_key_code (for the mouse with its place in
 * *at), or -1 if the time is over or `other_fd` is readable (-1: there is none). */
int top_screen_key(struct top_screen *s, int wait_ms, int other_fd, struct top_spot *at);
/* Whether clicks are keys. If not, the terminal uses the mouse for itself: to select text. */
void top_screen_mouse(struct top_screen *s, bool on);
