/* `gua top`: reads the cards again and again, shows them, and does what the keys say. */
#ifndef GUA_TOP_H
#define GUA_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "live/filter.h"
#include "live/live.h"
#include "top/top_screen.h"

struct top_options {
	struct live *live;	     /* open; everything here is borrowed */
	struct clock *clock;	     /* its clock */
	const char *root;	     /* where /proc is: "" for the real one; NULL: nowhere */
	const struct filter *filter; /* which cards and processes */
	int64_t delay_ms;	     /* between two readings */
	const char *no_signals;	     /* why no signal may be sent; NULL: they may */
	bool ascii;
	const char *sort; /* a name of --sort; NULL: by card */
	bool tree;
};

struct top;

/* Reads once. */
int top_open(struct top **t, const struct top_options *o, struct err *e);
void top_close(struct top *t);
/* One frame as plain text, as many lines as it takes. */
int top_once(struct top *t, size_t columns, struct str *out, struct err *e);
/* Until the user quits. */
void top_run(struct top *t, struct top_screen *screen);

#endif
