/* Writes lines to a file or to standard output, each look at once. */
#include "cmd/share/line_output.h"

#include <errno.h>
#include <string.h>

static int cannot_write(const struct line_output *o, struct err *e)
{
	return err_set(e, ERR_WORLD, "cannot write %s: %s", o->path, strerror(errno));
}

int line_output_open(struct line_output *o, struct err *e)
{
	o->to = o->path ? fopen(o->path, "we") : stdout;
	return o->to ? 0 : cannot_write(o, e);
}

int line_output_write(struct line_output *o, struct str *text, struct err *e)
{
	bool whole = !text->failed &&
		     fwrite(str_text(text), 1, text->len, o->to) == text->len &&
		     fflush(o->to) == 0;
	if (!whole)
		err_set(e, ERR_WORLD, "cannot write the output: %s",
			text->failed ? ERR_MEMORY_TEXT : strerror(errno));
	str_clear(text);
	return whole ? 0 : ERR_WORLD;
}

int line_output_close(struct line_output *o, int rc, struct err *e)
{
	bool closed = !o->path || !o->to || fclose(o->to) == 0;
	o->to = NULL;
	return closed || rc ? rc : cannot_write(o, e);
}
