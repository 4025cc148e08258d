/* Finds the route of a request and calls its handler. */
#include "serve/route.h"

#include <stdio.h>
#include <string.h>

/* Whether the parts of the path are those of the pattern. */
static bool matches(const char *pattern, const struct request *q)
{
	size_t i = 0;
	for (const char *at = pattern + 1; *at; i++) {
		size_t len = strcspn(at, "/");
		if (i == q->n_parts)
			return false;
		bool any = len == 1 && *at == '*' && *q->parts[i];
		if (!any && (strlen(q->parts[i]) != len || strncmp(q->parts[i], at, len) != 0))
			return false;
		at += len + (at[len] == '/');
	}
	return i == q->n_parts;
}

const struct route *route_find(const struct route *table, const struct request *q)
{
	for (const struct route *r = table; r->path; r++)
		if (matches(r->path, q))
			return r;
	return NULL;
}

/* Whether a list of names, separated by blanks, contains the name. */
static bool has_name(const char *names, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = names ? names : ""; *at; at += strspn(at, " ")) {
		size_t word = strcspn(at, " ");
		if (word == len && strncmp(at, name, len) == 0)
			return true;
		at += word;
	}
	return false;
}

int route_check(const struct route *r, const struct request *q, struct err *e)
{
	for (size_t i = 0; i < q->n_params; i++) {
		if (has_name(r->params, q->params[i].name))
			continue;
		if (!r->params)
			return err_set(e, ERR_USAGE,
				"there is no parameter '%s': %s takes none", q->params[i].name,
				r->path);
		return err_set(e, ERR_USAGE, "there is no parameter '%s': %s takes %s",
			q->params[i].name, r->path, r->params);
	}
	return 0;
}

void route_answer(const struct route *r, const struct request *q, struct answer *a)
{
	struct err e = { 0 };
	*a = (struct answer){ .status = 200, .type = r->type, .body = { .limit = q->limit } };
	if (route_check(r, q, &e) != 0) {
		answer_err(a, q, &e);
		return;
	}
	r->answer(q, a);
	if (!a->body.failed)
		return;
	/* A body of more than half the limit failed because of the limit, not for lack of
	 * memory. */
	if (q->limit && a->body.len > q->limit->bytes / 2) {
		answer_fail(a, q, 400,
			"The answer is too large; ask for a shorter window, or for fewer rows "
			"(top).");
	} else {
		answer_fail(a, q, 503, ERR_MEMORY_TEXT);
		a->retry_s = 5;
	}
}
