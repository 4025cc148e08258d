/* Reads CSV records; fields are unquoted in place. */
#include "base/csv.h"

void csv_start(struct csv *c, char *bytes, size_t len)
{
	*c = (struct csv){ .at = bytes, .end = bytes + len, .next_line = 1 };
	*c->end = '\0';
}

/* Reads the quoted part at c->at (after the quote) to *out; returns the end of it. */
static char *read_quoted(struct csv *c, char *out)
{
	while (c->at < c->end) {
		if (*c->at == '"' && c->at + 1 < c->end && c->at[1] == '"') {
			c->at++;
		} else if (*c->at == '"') {
			c->at++;
			break;
		}
		c->next_line += *c->at == '\n';
		*out++ = *c->at++;
	}
	return out;
}

/* Reads one field; returns true when another one follows in the record. */
static bool read_field(struct csv *c)
{
	char *start = c->at, *out = c->at;
	while (c->at < c->end && *c->at != ',' && *c->at != '\n') {
		if (*c->at == '"') {
			c->at++;
			out = read_quoted(c, out);
		} else if (*c->at == '\r' && (c->at + 1 == c->end || c->at[1] == '\n')) {
			c->at++;
		} else {
			*out++ = *c->at++;
		}
	}
	bool more = c->at < c->end && *c->at == ',';
	c->next_line += c->at < c->end && *c->at == '\n';
	if (c->at < c->end)
		c->at++;
	*out = '\0';
	if (c->n < CSV_MAX_FIELDS)
		c->fields[c->n++] = start;
	return more;
}

bool csv_next(struct csv *c)
{
	while (c->at < c->end) {
		c->n = 0;
		c->line = c->next_line;
		while (read_field(c))
			;
		if (c->n > 1 || *c->fields[0])
			return true;
	}
	return false;
}
