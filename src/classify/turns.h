/* Finds which process used the card, and when. The driver reports the use of a process as
 * one mean over a drain, and that of the card six times a second: this module finds the part
 * of the drain in which each process used the card, so that together they explain the card's
 * use. */
#ifndef GUA_CLASSIFY_TURNS_H
#define GUA_CLASSIFY_TURNS_H

#include <stddef.h>
#include <stdint.h>

enum { TURNS_PIECES = 24, TURNS_MOST = 8 };

/* What the card did during a drain: pieces of one utilisation that follow each other. Moments
 * are in milliseconds, from any origin. */
struct turn_card {
	double to_ms[TURNS_PIECES + 1]; /* where each ends; the first is where the drain begins
					 */
	double pct[TURNS_PIECES];
	size_t n;
	double least_ms; /* a piece shorter than this is continued if use stays the same */
};

/* Adds a piece that ends at `to_ms`. */
void turns_add(struct turn_card *card, double to_ms, double pct);

/* The turn of one process. */
struct turn {
	double from_ms, to_ms; /* it used the card between them ... */
	double pct;	       /* ... at this level */
	/* For the drain after: its use at the end of this one, and its mean; NAN: not known. */
	double last_pct, mean_pct;
};

/* A process with use in the drain. */
struct turn_use {
	double mean_pct;		/* over the whole drain */
	double last_pct, last_mean_pct; /* struct turn's of the drain before */
	struct turn turn;
};

/* Sets the turn of each process; the card has one piece or more. A turn that begins with the
 * drain, or ends with it, reaches beyond: -INFINITY, INFINITY. */
void turns_find(const struct turn_card *card, struct turn_use *uses, size_t n);

#endif
