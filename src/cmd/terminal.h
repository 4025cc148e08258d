/* What standard output can show: colour, characters, size. */
#ifndef GUA_CMD_TERMINAL_H
#define GUA_CMD_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Standard output is a terminal, and neither TERM nor NO_COLOR speaks against colour. */
bool terminal_has_color(void);
/* Whether NO_COLOR lets a program colour at all. */
bool terminal_may_color(void);
/* TERM says that the terminal understands no control codes, or nothing. */
bool terminal_is_dumb(void);
/* The locale's characters are UTF-8. Sets the locale of characters for the program. */
bool terminal_is_utf8(void);

struct terminal_size {
	size_t rows, columns;
};
/* The size of the terminal; each is 0 where standard output is none, or does not know. */
struct terminal_size terminal_size(void);

#endif
