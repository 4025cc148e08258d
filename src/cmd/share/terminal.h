/* What standard output can show: colour, characters, size. */
#ifndef GUA_CMD_SHARE_TERMINAL_H
#define GUA_CMD_SHARE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Whether standard output is a terminal, and TERM and NO_COLOR allow colour. */
bool terminal_has_color(void);
/* Whether it has 256 colours besides: TERM or COLORTERM says so. */
bool terminal_has_256_colors(void);
/* Whether NO_COLOR allows colour. */
bool terminal_may_color(void);
/* Whether the terminal has no control codes: TERM says so, or is not set. */
bool terminal_is_dumb(void);
/* Whether the locale uses UTF-8. Sets the program's LC_CTYPE. */
bool terminal_is_utf8(void);

struct terminal_size {
	size_t rows, columns;
};
/* The size of the terminal; 0 if standard output is not a terminal or the size is unknown. */
struct terminal_size terminal_size(void);
/* The same of another open file. */
struct terminal_size terminal_size_of(int fd);

#endif
