/* Opens the sources in a list of names; calls go through the source's table of functions. */
#include "source/source.h"

#include "base/log.h"
#include "source/kind.h"
#include "source/set.h"

int source_open(struct source **s, const struct source_options *options, struct err *e)
{
	struct source_list list;
	int rc = source_list_read(&list, options->name, false, e);
	if (rc)
		return rc;
	if (list.n == 1)
		return list.kinds[0]->open(s, options, e);
	return source_set_open(s, &list, options, e);
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

void source_log_no_room(void)
{
	log_error("not enough memory for another card");
}
