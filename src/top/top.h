/* `gua top`: reads the cards repeatedly, shows them, and handles keys. */
#pragma once

#include "present/filter.h"
#include "present/live.h"
#include "top/top_screen.h"

struct top_options {
	struct live *live;   /* open; all pointers here are borrowed */
	struct clock *clock; /* the clock of `live` */
	const char *root;    /* prefix of /proc: "" for the real one; NULL: there is none */
	const struct filter *filter; /* which cards and processes */
	int64_t delay_ms;	     /* between two readings */
	/* METRIC_COUNT flags: what only the page of a card shows; and that with what is shown
	 * always, but changes seldom. */
	const unsigned char *card_metrics, *resting_metrics;
	const char *no_signals; /* why no signal may be sent; NULL: they may */
	bool ascii;
	const char *sort; /* a name of --sort; NULL: idle holders first */
	bool tree;
	bool no_mouse; /* do not use the mouse: the terminal uses it to select text */
};

struct top;

/* Opens the view and reads the cards once. */
int top_open(struct top **t, const struct top_options *o, struct err *e);
void top_close(struct top *t);
/* Appends one frame as plain text, with as many lines as needed. */
int top_once(struct top *t, size_t columns, struct str *out, struct err *e);
/* Runs until the user quits. */
void top_run(struct top *t, struct top_screen *screen);
