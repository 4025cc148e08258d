/* The members of the driver's structs as words of text, and back: for captures. A layout is a
 * text with a letter for each member, at its natural alignment: u and i (32 bits, without and
 * with a sign), Q (64 bits), d (a double), b (a byte), V and v (32 bits that are not written:
 * the version word, which is the size and the number of the layout, or the number alone), tN
 * (text of N bytes), xN (N bytes in hexadecimal digits). */
#pragma once

#include "base/base.h"

enum { CAPTURE_LAYOUT_MAX = 128 }; /* bytes of the largest struct */

/* The size of the struct. */
size_t capture_layout_size(const char *layout);
/* Writes the numbers among the members, in order, to `numbers`; returns how many. */
size_t capture_layout_numbers(const char *layout, const void *bytes, double *numbers);
/* Appends each member after a blank. Text is in quotation marks, and safe to show. */
void capture_layout_print(const char *layout, const void *bytes, struct str *out);
/* Reads what was printed; the version word does not change. *text then points after the last
 * word. False: a word is missing or of the wrong kind. `bytes` may be NULL, to check only. */
bool capture_layout_read(const char *layout, const char **text, void *bytes);
/* Takes the word after blanks: up to the next blank, or a text in quotation marks, without
 * them. *text then points after it. NULL: there is none, or a misplaced quotation mark. */
const char *capture_layout_word(const char **text, size_t *len, bool *quoted);
/* Returns the layout of a list's entry that was printed: that of the list or, since the entries
 * of process lists may have fewer members, the one that fits. */
const char *capture_layout_of_row(const char *layout, const char *row);
