/* Chooses a source by name; the calls go through its table. */
#include "source/source.h"

#include <string.h>

static const struct kind {
	const char *name;
	int (*open)(struct source **s, const struct source_options *options, struct err *e);
} kinds[] = {
	{ "nvml", nvml_source_open },
	{ "sim", sim_source_open },
};

int source_open(struct source **s, const struct source_options *options, struct err *e)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(options->name, kinds[i].name) == 0)
			return kinds[i].open(s, options, e);
	return err_set(
		e, ERR_USAGE, "unknown source '%s'; there are nvml and sim", options->name);
}

void source_close(struct source *s)
{
	if (s)
		s->ops->close(s);
}

int source_scan(struct source *s, struct err *e)
{
	return s->ops->scan(s, e);
}

int source_drain(struct source *s, const bool *which, struct err *e)
{
	return s->ops->drain(s, which, e);
}

int source_glance(struct source *s, unsigned what, struct err *e)
{
	return s->ops->glance(s, what, e);
}

int source_look(struct source *s, const bool *which, struct err *e)
{
	return s->ops->look(s, which, e);
}
