/* Compares one statistic of several sessions. */
#include "query/subtrack_compare.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { MAX_FILE = 64 << 20, MAX_SESSIONS = 64, NAME_CAP = 2100 };

/* A session's parsed file, its blocks by name. */
struct loaded {
	const char *name;
	json_t *file;
	json_t **blocks;
	size_t n_blocks;
};

static int parse(json_t **file, const char *path, struct err *e)
{
	char *bytes = NULL;
	size_t len = 0;
	json_error_t problem;
	int rc = file_check_regular(path, e);
	if (!rc)
		rc = file_read_all(path, MAX_FILE, &bytes, &len, e);
	if (rc)
		return rc;
	bool pickle = len && (unsigned char)bytes[0] == 0x80;
	*file = pickle ? NULL : json_loadb(bytes, len, 0, &problem);
	free(bytes);
	if (pickle)
		return err_set(e, ERR_WORLD,
			"%s is a pickle, and loading one runs the code in it: make it again "
			"with "
			"'sub-track analyze -f json'",
			path);
	if (!json_is_array(json_object_get(*file, "code_block_results")) ||
		!json_is_object(json_object_get(*file, "overall")))
		return err_set(e, ERR_WORLD,
			"%s is not a result of 'sub-track analyze -f json'", path);
	return 0;
}

static const char *block_name(const json_t *block)
{
	const char *name = json_string_value(json_object_get(block, "name"));
	return name ? name : "";
}

/* Splits "path:12" into "path" and 12; -1 for a name without a number. */
static long line_of(const char *name, size_t *base)
{
	const char *colon = strrchr(name, ':');
	*base = strlen(name);
	if (!colon || !colon[1] || colon[1 + strspn(colon + 1, "0123456789")])
		return -1;
	*base = (size_t)(colon - name);
	return strtol(colon + 1, NULL, 10);
}

static bool same_base(const char *a, const char *b)
{
	size_t x = 0, y = 0;
	long la = line_of(a, &x), lb = line_of(b, &y);
	return x == y && memcmp(a, b, x) == 0 && (la < 0) == (lb < 0);
}

static int by_name(const void *a, const void *b)
{
	const char *x = block_name(*(json_t *const *)a), *y = block_name(*(json_t *const *)b);
	size_t bx = 0, by = 0;
	long lx = line_of(x, &bx), ly = line_of(y, &by);
	if (!same_base(x, y))
		return strcmp(x, y);
	return (lx > ly) - (lx < ly);
}

static int load(struct loaded *l, const struct subtrack_session *session, struct err *e)
{
	*l = (struct loaded){ .name = session->name };
	int rc = parse(&l->file, session->path, e);
	if (rc)
		return rc;
	json_t *list = json_object_get(l->file, "code_block_results");
	l->blocks = calloc(json_array_size(list) + 1, sizeof(*l->blocks));
	if (!l->blocks)
		return err_memory(e);
	for (; l->n_blocks < json_array_size(list); l->n_blocks++)
		l->blocks[l->n_blocks] = json_array_get(list, l->n_blocks);
	qsort(l->blocks, l->n_blocks, sizeof(*l->blocks), by_name);
	return 0;
}

/* A value of one session in a group that is being sorted. */
struct entry {
	const char *name;
	json_t *value;
};

static int by_value(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	double p = json_number_value(x->value), q = json_number_value(y->value);
	if (json_is_null(x->value) || json_is_null(y->value))
		return json_is_null(x->value) - json_is_null(y->value);
	return (p > q) - (p < q);
}

/* { session: value } in ascending order; unknown last. */
static json_t *group(struct entry *entries, size_t n)
{
	json_t *result = json_object();
	qsort(entries, n, sizeof(*entries), by_value);
	for (size_t i = 0; i < n; i++)
		json_object_set_new(result, entries[i].name, json_copy(entries[i].value));
	return result;
}

/* The statistic of `of` (an object of statistics), or null. */
static json_t *statistic_of(const json_t *of, const char *statistic)
{
	json_t *value = json_object_get(of, statistic);
	return json_is_number(value) ? value : json_null();
}

static json_t *compare_overall(const struct loaded *l, size_t n, const char *statistic)
{
	json_t *result = json_object(), *first = json_object_get(l[0].file, "overall"), *unused;
	const char *measurement;
	json_object_foreach(first, measurement, unused)
	{
		struct entry entries[MAX_SESSIONS] = { 0 };
		for (size_t i = 0; i < n; i++) {
			json_t *overall = json_object_get(l[i].file, "overall");
			entries[i] = (struct entry){ l[i].name,
				statistic_of(
					json_object_get(overall, measurement), statistic) };
		}
		json_object_set_new(result, measurement, group(entries, n));
	}
	return result;
}

/* The block's name, or "a -> b -> c" where line numbers moved. */
static void shown_name(char *dst, const struct loaded *l, size_t n, size_t block)
{
	int at = snprintf(dst, NAME_CAP, "%s", block_name(l[0].blocks[block]));
	for (size_t i = 1; i < n && at > 0 && at < NAME_CAP; i++) {
		const char *name = block_name(l[i].blocks[block]);
		if (strcmp(name, block_name(l[i - 1].blocks[block])) != 0)
			at += snprintf(dst + at, (size_t)(NAME_CAP - at), " -> %s", name);
	}
}

static json_t *compare_usage(const struct loaded *l, size_t n, const char *statistic)
{
	json_t *result = json_object(), *first = json_object_get(l[0].file, "overall"), *unused;
	const char *measurement;
	json_object_foreach(first, measurement, unused)
	{
		json_t *blocks = json_object();
		for (size_t b = 0; b < l[0].n_blocks; b++) {
			struct entry entries[MAX_SESSIONS] = { 0 };
			char name[NAME_CAP];
			shown_name(name, l, n, b);
			for (size_t i = 0; i < n; i++) {
				json_t *usage =
					json_object_get(l[i].blocks[b], "resource_usage");
				entries[i] = (struct entry){ l[i].name,
					statistic_of(json_object_get(usage, measurement),
						statistic) };
			}
			json_object_set_new(blocks, name, group(entries, n));
		}
		json_object_set_new(result, measurement, blocks);
	}
	return result;
}

static json_t *compare_time(const struct loaded *l, size_t n, const char *statistic)
{
	json_t *result = json_object();
	for (size_t b = 0; b < l[0].n_blocks; b++) {
		struct entry entries[MAX_SESSIONS] = { 0 };
		char name[NAME_CAP];
		shown_name(name, l, n, b);
		for (size_t i = 0; i < n; i++)
			entries[i] = (struct entry){ l[i].name,
				statistic_of(json_object_get(l[i].blocks[b], "compute_time"),
					statistic) };
		json_object_set_new(result, name, group(entries, n));
	}
	return result;
}

static int check_blocks(const struct loaded *l, size_t n, struct str *warnings, struct err *e)
{
	for (size_t i = 1; i < n; i++) {
		if (l[i].n_blocks != l[0].n_blocks)
			return err_set(e, ERR_WORLD,
				"%s has %zu code blocks and %s has %zu: they cannot be "
				"compared",
				l[0].name, l[0].n_blocks, l[i].name, l[i].n_blocks);
		for (size_t b = 0; b < l[0].n_blocks; b++) {
			const char *x = block_name(l[0].blocks[b]),
				   *y = block_name(l[i].blocks[b]);
			if (!same_base(x, y))
				return err_set(e, ERR_WORLD,
					"code block %s of %s has no match in %s: there it is "
					"%s",
					x, l[0].name, l[i].name, y);
			if (strcmp(x, y) != 0)
				str_addf(warnings, "%s of %s is taken for %s of %s\n", y,
					l[i].name, x, l[0].name);
		}
	}
	return 0;
}

static int by_session(const void *a, const void *b)
{
	const struct subtrack_session *x = a, *y = b;
	return strcmp(x->name, y->name);
}

int subtrack_compare(struct subtrack_comparison *c, struct err *e)
{
	size_t n = c->n;
	struct loaded loaded[MAX_SESSIONS] = { 0 };
	if (n == 0 || n > MAX_SESSIONS)
		return err_set(e, ERR_USAGE, "give 1 to %d results to compare", MAX_SESSIONS);
	qsort(c->sessions, n, sizeof(*c->sessions), by_session);
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++)
		rc = load(&loaded[i], &c->sessions[i], e);
	if (!rc)
		rc = check_blocks(loaded, n, &c->warnings, e);
	if (!rc) {
		c->result = json_object();
		json_object_set_new(c->result, "overall_resource_usage",
			compare_overall(loaded, n, c->statistic));
		json_object_set_new(c->result, "code_block_resource_usage",
			compare_usage(loaded, n, c->statistic));
		json_object_set_new(c->result, "code_block_compute_time",
			compare_time(loaded, n, c->statistic));
	}
	for (size_t i = 0; i < n; i++) {
		json_decref(loaded[i].file);
		free(loaded[i].blocks);
	}
	return rc;
}
