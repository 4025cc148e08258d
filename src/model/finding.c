/* Adds findings to a list of fixed size. */
#include "model/finding.h"

struct finding *finding_add(struct findings *f, enum finding_result result, const char *check,
	const char *format, ...)
{
	/* When the list is full, the last row is overwritten, but each result is counted:
	 * the exit status depends on all of them. */
	struct finding *row = &f->rows[f->n < FINDINGS_MAX ? f->n++ : FINDINGS_MAX - 1];
	char raw[sizeof(row->text)];
	va_list args;
	va_start(args, format);
	vsnprintf(raw, sizeof(raw), format, args);
	va_end(args);
	*row = (struct finding){ .result = result };
	str_copy(row->check, sizeof(row->check), check);
	str_escape(row->text, sizeof(row->text), raw, strlen(raw));
	f->count[result]++;
	return row;
}

void finding_advise(struct finding *row, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(row->advice, sizeof(row->advice), format, args);
	va_end(args);
}
