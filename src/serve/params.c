/* Reads parameters by the option tables of the commands. */
#include "serve/params.h"

#include <math.h>
#include <string.h>

#include "render/report_formats.h"
#include "serve/world.h"

static const struct option_row *find_row(const struct option_row *rows, const char *name)
{
	for (; rows->name; rows++)
		if (strcmp(rows->name, name) == 0)
			return rows;
	return NULL;
}

int params_read(
	const struct request *q, const struct option_row *rows, void *values, struct err *e)
{
	for (size_t i = 0; i < q->n_params; i++) {
		const struct written as = { q->params[i].name, q->params[i].value };
		const struct option_row *row = find_row(rows, as.name);
		int rc = row ? options_set_one(row, &as, values, e) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

#define AT(member) .offset = offsetof(struct report_params, member)
#define ONLY(name_, kind_)                                                                     \
	{                                                                                      \
		.kind = OPTION_LIST, .name = name_, AT(words.only.lists[kind_])                \
	}
static const struct option_row report_rows[] = {
	{ .kind = OPTION_TEXT, .name = "since", .arg = "TIME", AT(words.window.since) },
	{ .kind = OPTION_TEXT, .name = "until", .arg = "TIME", AT(words.window.until) },
	{ .kind = OPTION_TEXT, .name = "last", .arg = "TIME", AT(words.window.last) },
	{ .kind = OPTION_CHOICE, .name = "utc", .choices = "1|0", AT(utc) },
	{ .kind = OPTION_TEXT, .name = "by", .arg = "WHAT", AT(words.by) },
	ONLY("user", ONLY_USER),
	ONLY("group", ONLY_GROUP),
	ONLY("notebook", ONLY_NOTEBOOK),
	ONLY("card", ONLY_CARD),
	ONLY("host", ONLY_HOST),
	ONLY("model", ONLY_MODEL),
	{ .kind = OPTION_CHOICE, .name = "sort", .choices = ORDER_CHOICES, AT(words.sort) },
	{ .kind = OPTION_MAYBE, .name = "compare", AT(words.compare) },
	{ .kind = OPTION_COUNT, .name = "top", AT(words.top), .max = 1e9 },
	{ .kind = OPTION_COUNT, .name = "longest", AT(words.longest), .max = 1e9 },
	{ .kind = OPTION_CHOICE, .name = "table", .choices = REPORT_TABLE_CHOICES, AT(table) },
	{ 0 },
};

/* A form sends all of its fields: an empty one counts as not given. */
static void drop_empty(struct report_words *w)
{
	const char **texts[] = { &w->window.since, &w->window.until, &w->window.last, &w->by };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (*texts[i] && !**texts[i])
			*texts[i] = NULL;
	for (size_t i = 0; i < RESTRICTIONS; i++) {
		struct text_list *list = &w->only.lists[i];
		size_t n = 0;
		for (size_t k = 0; k < list->n; k++)
			if (*list->items[k])
				list->items[n++] = list->items[k];
		list->n = n;
	}
}

int params_read_report(
	struct report_params *p, const struct request *q, bool people, struct err *e)
{
	const struct serve_world *world = q->world;
	const struct config *c = world->config;
	*p = (struct report_params){ .words = REPORT_WORDS_NONE };
	int rc = params_read(q, report_rows, p, e);
	if (rc)
		return rc;
	drop_empty(&p->words);
	/* Limits the rows: a larger number would only keep the server busy. */
	if (p->words.longest > REPORT_ROWS)
		p->words.longest = REPORT_ROWS;
	if (p->words.top > REPORT_ROWS || p->words.top == 0 || (p->words.top < 0 && !people))
		p->words.top = REPORT_ROWS;
	p->words.people = people;
	p->words.utc = p->utc ? *p->utc == '1' : world->utc;
	rc = report_ask_check_groups(&p->words, c, e);
	if (rc == 0)
		rc = report_ask(&p->asked, &p->words, q->now_ms, e);
	if (rc)
		return rc;
	str_escape(p->currency, sizeof(p->currency), c->currency, strlen(c->currency));
	p->asked.request.currency = p->currency;
	p->asked.request.most = REPORT_ROWS;
	p->asked.question.paths = (const char *const *)world->stores->paths;
	p->asked.question.n_paths = world->stores->n;
	p->asked.question.stop = q->stop;
	p->prices = (struct report_prices){ NAN, &c->prices };
	report_ask_configure(&p->asked.question, &p->asked.request, c, &p->prices);
	return 0;
}
