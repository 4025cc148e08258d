/* Strings: a growing buffer, bounded copies, and the function that makes bytes from outside
 * safe to show. Nothing here prints. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits for a text that a remote user asks for: its length, and the time to make it. */
struct str_limit {
	size_t bytes;			 /* largest length */
	bool (*must_end)(void *context); /* called every few KiB; true: stop */
	void *context;
};

/* A growing buffer, always NUL-terminated once anything was added. When memory runs out, or a
 * limit is reached, `failed` is set and later additions do nothing, so a caller checks once, at
 * the end. */
struct str {
	char *data;		       /* heap; NULL until the first addition */
	size_t len;		       /* bytes without the NUL */
	size_t cap;		       /* bytes allocated */
	bool failed;		       /* the content is incomplete */
	const struct str_limit *limit; /* NULL: none */
};

void str_add(struct str *s, const char *text);
void str_add_bytes(struct str *s, const char *bytes, size_t len);
void str_addf(struct str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void str_add_repeat(struct str *s, const char *text, size_t times);
/* The text, "" when empty; valid until the next addition. */
const char *str_text(const struct str *s);
void str_clear(struct str *s);
void str_finish(struct str *s);

/* A short text as a value, for the statement that shows it: size_text(bytes).text. */
struct brief {
	char text[40];
};
struct brief str_brief(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A number and its unit (may be ""), without the cost of printf(3). */
struct brief str_whole(int64_t number, const char *unit);

/* Returns a checksum (FNV-1a). */
uint64_t str_sum(const char *text);

/* The place of a text in a table of n; n: it is not there, or it is NULL. */
int str_place(const char *const *table, int n, const char *text);

/* Copies at most cap-1 bytes of `text` and terminates; returns false when the text was cut. */
bool str_copy(char *dst, size_t cap, const char *text);

/* Whether a text has this end, and something before it: the name of a kind of file. */
bool str_ends_with(const char *text, const char *end);

/* Writes a decimal text that is read back as the same number, with 15 digits if they are
 * enough, else with 16 or 17; "" if the number is not finite. */
void str_exact_number(char *dst, size_t cap, double number);

/* Copies bytes from outside into `dst` so that they can be shown: valid printable UTF-8 stays,
 * control characters, C1 controls, bidirectional overrides, line and paragraph separators, and
 * invalid bytes become \xNN (one for each byte). Escaping twice changes nothing. Cuts at a
 * whole character when `cap` is small. Always terminates; returns the length written. */
size_t str_escape(char *dst, size_t cap, const char *bytes, size_t len);

/* Returns how many bytes of printable ASCII the text begins with; each takes one column. */
size_t str_plain(const char *text);

/* Columns that `text` (valid UTF-8) takes on a terminal. */
size_t str_columns(const char *text);

/* Length of the valid UTF-8 character at `bytes` (1 to 4), 0 when it is not valid. */
size_t str_utf8_char(const char *bytes, size_t len, unsigned *code_point);
