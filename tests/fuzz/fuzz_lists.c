/* The lists of the live views: filters, fields and formats of query, groups and formats of
 * dmon. Each line of the input is one of them. */
#include "fuzz.h"

#include "view/dmon.h"
#include "view/query.h"

enum { LINES = 9 };

static void check_refusal(int rc, const struct err *e)
{
	CHECK(rc == ERR_USAGE && e->text[0]);
	check_safe(e->text);
}

static void check_filter(char *const *line)
{
	struct filter_values v = { .min_mem = *line[4] ? line[4] : NULL };
	struct text_list *lists[] = { &v.users, &v.pids, &v.ids, &v.states };
	struct filter f;
	struct err e = { 0 };
	for (size_t i = 0; i < 4; i++) {
		lists[i]->items[0] = line[i];
		lists[i]->n = *line[i] != '\0';
	}
	int rc = filter_init(&f, &v, &e);
	if (rc) {
		check_refusal(rc, &e);
		return;
	}
	struct present_card card = { .id = { .uuid = "GPU-00000000-1111",
					     .pci = "0000:17:00.0" } };
	struct present_process process = { .id = { .user = "ann" } };
	size_t picked[1];
	rc = filter_cards(&f, &(struct present){ .cards = &card, .n_cards = 1 }, picked, &e);
	CHECK(rc <= 1);
	filter_card(&f, &card);
	filter_process(&f, &process);
}

static void check_query(const char *fields, const char *format, bool apps)
{
	struct query q = { .list = apps ? QUERY_APPS : QUERY_GPU };
	struct err e = { 0 };
	struct str out = { 0 };
	int rc = query_fields(&q, fields, &e);
	if (rc == 0)
		rc = query_format(&q, format, &e);
	if (rc)
		check_refusal(rc, &e);
	CHECK(q.n <= QUERY_FIELDS_MAX);
	query_header(&q, &out);
	CHECK(!out.failed && str_text(&out)[out.len - 1] == '\n');
	str_finish(&out);
}

static void check_dmon(const char *groups, const char *format, bool processes)
{
	struct dmon d = { .processes = processes };
	unsigned char wanted[METRIC_COUNT] = { 0 };
	struct err e = { 0 };
	int rc = dmon_select(&d, groups, &e);
	if (rc == 0)
		rc = dmon_format(&d, format, &e);
	if (rc)
		check_refusal(rc, &e);
	CHECK(d.n_columns <= DMON_COLUMNS_MAX);
	dmon_wanted(&d, wanted);
	dmon_finish(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), none[] = "", *line[LINES];
	char *next = text;
	for (size_t i = 0; i < LINES; i++) {
		line[i] = next ? next : none;
		next = next ? strchr(next, '\n') : NULL;
		if (next)
			*next++ = '\0';
	}
	check_filter(line);
	check_query(line[5], line[6], false);
	check_query(line[5], line[6], true);
	check_dmon(line[7], line[8], false);
	check_dmon(line[7], line[8], true);
	free(text);
	return 0;
}
