/* Raises and clears faults. */
#include "base/fault.h"

bool fault_raise(struct fault *f, int64_t now_ms, const char *format, ...)
{
	f->count++;
	if (f->on)
		return false;
	va_list args;
	va_start(args, format);
	vsnprintf(f->text, sizeof(f->text), format, args);
	va_end(args);
	f->on = true;
	f->since_ms = now_ms;
	f->count = 1;
	log_warning("%s", f->text);
	return true;
}

bool fault_clear(struct fault *f, int64_t now_ms)
{
	if (!f->on)
		return false;
	f->on = false;
	log_notice("over after %.1f s (seen %lld times): %s",
		(double)(now_ms - f->since_ms) / 1000.0, (long long)f->count, f->text);
	return true;
}
