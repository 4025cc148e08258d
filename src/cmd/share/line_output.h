/* The output of the commands that print lines look by look: a file, or standard output. */
#ifndef GUA_CMD_SHARE_LINE_OUTPUT_H
#define GUA_CMD_SHARE_LINE_OUTPUT_H

#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/str.h"

struct line_output {
	const char *path; /* the file; NULL: standard output */
	int64_t every_ms; /* time between two looks; 0: only one look */
	int64_t count;	  /* how many looks; 0: until the user ends the program */
	FILE *to;	  /* while it is open */
};

/* Opens the file that `path` names. */
int line_output_open(struct line_output *o, struct err *e);
/* Writes all of `text` at once, and clears it. */
int line_output_write(struct line_output *o, struct str *text, struct err *e);
/* Closes the file. Returns `rc`, or a failure to write the rest. */
int line_output_close(struct line_output *o, int rc, struct err *e);

#endif
