/* Parses and prints memory sizes. */
#include "base/size.h"

#include "base/base.h"

static const struct size_unit {
	const char *name;
	double bytes;
} units[] = {
	{ "B", 1 },
	{ "K", 1e3 },
	{ "M", 1e6 },
	{ "G", 1e9 },
	{ "T", 1e12 },
	{ "KiB", 1024.0 },
	{ "MiB", 1048576.0 },
	{ "GiB", 1073741824.0 },
	{ "TiB", 1099511627776.0 },
	{ "KB", 1e3 },
	{ "MB", 1e6 },
	{ "GB", 1e9 },
	{ "TB", 1e12 },
};

int size_parse(const char *text, int64_t *bytes, struct err *e)
{
	char *end = NULL;
	double number = strtod(text, &end);
	/* strtod() also accepts 0x10, 1e3 and inf; these are refused. */
	bool plain = (size_t)(end - text) == strspn(text, "0123456789.");
	double factor = number == 0 && *end == '\0' ? 1 : 0;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcasecmp(end, units[i].name) == 0)
			factor = units[i].bytes;
	if (!plain || end == text || factor == 0 || !(number * factor <= 0x1p50))
		return err_set(
			e, ERR_USAGE, "'%s' is not a size: write 500M, 20G or 1.5GB", text);
	*bytes = llround(number * factor);
	return 0;
}

struct brief size_text(double bytes)
{
	double mib = bytes / 1048576;
	if (!(bytes >= 0))
		return str_brief("-");
	if (mib < 1023.5)
		return str_brief("%.*f MiB", mib > 0 && mib < 9.95, mib);
	return str_brief("%.1f GiB", mib / 1024);
}
