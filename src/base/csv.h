/* Reading CSV (RFC 4180): one record after the other, quotes, commas and newlines inside
 * quotes. */
#ifndef GUA_BASE_CSV_H
#define GUA_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>

#define CSV_MAX_FIELDS 64

/* A reader over bytes that it changes: fields are cut and unquoted in place. */
struct csv {
	char *at, *end;		      /* what is left; one byte behind `end` must be writable */
	char *fields[CSV_MAX_FIELDS]; /* of the last record, each NUL-terminated */
	size_t n;		      /* how many */
	size_t line;		      /* where the last record began, from 1 */
	size_t next_line;
};

/* `bytes` must have room for one more byte behind `len`. */
void csv_start(struct csv *c, char *bytes, size_t len);
/* The next record that is not empty; false at the end. More than CSV_MAX_FIELDS fields are cut
 * off. */
bool csv_next(struct csv *c);

#endif
