/* Reads CSV (RFC 4180) record by record. Quoted fields may contain commas and newlines. */
#pragma once

#include "base/base.h"

#define CSV_MAX_FIELDS 64

/* A reader that changes its bytes: fields are terminated and unquoted in place. */
struct csv {
	char *at, *end; /* the bytes not read yet; one byte after `end` must be writable */
	char *fields[CSV_MAX_FIELDS]; /* of the last record, each NUL-terminated */
	size_t n;		      /* number of fields */
	size_t line;		      /* where the last record began, from 1 */
	size_t next_line;
};

/* `bytes` must have room for one more byte after `len`. */
void csv_start(struct csv *c, char *bytes, size_t len);
/* Reads the next record that is not empty; false at the end. Fields after the first
 * CSV_MAX_FIELDS are dropped. */
bool csv_next(struct csv *c);
