/* Error values with a code and a message. */
#include "base/err.h"

#include "base/base.h"

int err_set(struct err *e, int code, const char *format, ...)
{
	if (!e)
		return code;
	char raw[sizeof(e->text)];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(raw, sizeof(raw), format, args);
	va_end(args);
	e->code = code;
	e->number = 0;
	size_t len = n < 0 ? 0 : (size_t)n < sizeof(raw) ? (size_t)n : sizeof(raw) - 1;
	str_escape(e->text, sizeof(e->text), raw, len);
	return code;
}

int err_memory(struct err *e)
{
	return err_set(e, ERR_WORLD, ERR_MEMORY_TEXT);
}

int err_number(struct err *e, int code, int number)
{
	if (e)
		e->number = number;
	return code;
}

int err_prefix(struct err *e, const char *format, ...)
{
	char prefix[256], both[sizeof(e->text) + sizeof(prefix) + 4];
	va_list args;
	va_start(args, format);
	vsnprintf(prefix, sizeof(prefix), format, args);
	va_end(args);
	snprintf(both, sizeof(both), "%s: %s", prefix, e->text);
	int number = e->number;
	return err_number(e, err_set(e, e->code, "%s", both), number);
}

int err_exit_code(int code)
{
	if (code == 0)
		return 0;
	return code == ERR_USAGE ? 2 : 1;
}
