/* Writes and reads notices as JSON, by a table of their members. */
#include "policy/notice.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

const char *const notice_kind_names[NOTICE_KINDS] = { "warning", "again", "final", "ended",
	"not-ended", "digest", "alarm", "test" };

enum member_kind { MEMBER_TEXT, MEMBER_INTEGER, MEMBER_REAL, MEMBER_LINES };

#define TEXT(name)                                                                             \
	{                                                                                      \
#name, MEMBER_TEXT, offsetof(struct notice, name),                             \
			sizeof(((struct notice *)0)->name)                                     \
	}
#define INTEGER(name)                                                                          \
	{                                                                                      \
#name, MEMBER_INTEGER, offsetof(struct notice, name), 0                        \
	}
#define REAL(name)                                                                             \
	{                                                                                      \
#name, MEMBER_REAL, offsetof(struct notice, name), 0                           \
	}

static const struct member {
	const char *name;
	enum member_kind kind;
	size_t offset, cap;
} members[] = {
	TEXT(session),
	TEXT(rule),
	TEXT(user),
	INTEGER(uid),
	TEXT(host),
	TEXT(what),
	TEXT(command),
	INTEGER(pid),
	TEXT(cards),
	TEXT(model),
	INTEGER(mem_bytes),
	INTEGER(made_ms),
	INTEGER(idle_since_ms),
	INTEGER(idle_ms),
	INTEGER(idle_below),
	REAL(idle_gpu_hours),
	REAL(cost),
	TEXT(currency),
	INTEGER(next_ms),
	INTEGER(end_ms),
	TEXT(release),
	TEXT(keep),
	TEXT(kept),
	INTEGER(freed_bytes),
	TEXT(result),
	INTEGER(count),
	{ "list", MEMBER_LINES, offsetof(struct notice, list), 0 },
};
enum { N_MEMBERS = sizeof(members) / sizeof(members[0]) };

static int64_t *integer_of(const struct notice *n, const struct member *m)
{
	return (int64_t *)(uintptr_t)((const char *)n + m->offset);
}

static double *real_of(const struct notice *n, const struct member *m)
{
	return (double *)(uintptr_t)((const char *)n + m->offset);
}

void notice_init(struct notice *n, enum notice_kind kind)
{
	memset(n, 0, sizeof(*n));
	n->kind = kind;
	for (size_t i = 0; i < N_MEMBERS; i++) {
		if (members[i].kind == MEMBER_INTEGER)
			*integer_of(n, &members[i]) = -1;
		else if (members[i].kind == MEMBER_REAL)
			*real_of(n, &members[i]) = (double)NAN;
	}
}

static json_t *lines_json(const char *text)
{
	json_t *lines = *text ? json_array() : json_null();
	for (size_t len; *text; text += len + 1) {
		len = strcspn(text, "\n");
		json_array_append_new(lines, json_stringn(text, len));
	}
	return lines;
}

static json_t *member_json(const struct notice *n, const struct member *m)
{
	if (m->kind == MEMBER_TEXT) {
		const char *text = (const char *)n + m->offset;
		return *text ? json_string(text) : json_null();
	}
	if (m->kind == MEMBER_LINES)
		return lines_json((const char *)n + m->offset);
	if (m->kind == MEMBER_INTEGER)
		return *integer_of(n, m) < 0 ? json_null() : json_integer(*integer_of(n, m));
	return isfinite(*real_of(n, m)) ? json_real(*real_of(n, m)) : json_null();
}

int notice_to_json_with(const struct notice *n, const struct notice_extra *extra,
	struct str *out, struct err *e)
{
	json_t *object = json_object();
	bool failed = json_object_set_new(
			      object, "kind", json_string(notice_kind_names[n->kind])) != 0;
	for (size_t i = 0; i < N_MEMBERS; i++)
		failed |= json_object_set_new(
				  object, members[i].name, member_json(n, &members[i])) != 0;
	if (extra) {
		failed |= json_object_set_new(object, "subject", json_string(extra->subject)) !=
			  0;
		failed |= json_object_set_new(object, "text", json_string(extra->text)) != 0;
	}
	char *text = failed ? NULL : json_dumps(object, JSON_COMPACT);
	if (text)
		str_add(out, text);
	free(text);
	json_decref(object);
	return failed || !text || out->failed ? err_memory(e) : 0;
}

int notice_to_json(const struct notice *n, struct str *out, struct err *e)
{
	return notice_to_json_with(n, NULL, out, e);
}

static void take_member(struct notice *n, const struct member *m, const json_t *value)
{
	if (m->kind == MEMBER_TEXT && json_is_string(value))
		str_escape((char *)n + m->offset, m->cap, json_string_value(value),
			json_string_length(value));
	else if (m->kind == MEMBER_INTEGER && json_is_integer(value))
		*integer_of(n, m) = json_integer_value(value);
	else if (m->kind == MEMBER_REAL && json_is_number(value))
		*real_of(n, m) = json_number_value(value);
}

int notice_from_json(struct notice *n, const char *bytes, size_t len, struct err *e)
{
	json_error_t why;
	json_t *object = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &why);
	const char *kind = json_string_value(json_object_get(object, "kind"));
	int found = NOTICE_KINDS;
	for (int i = 0; kind && i < NOTICE_KINDS; i++)
		if (strcmp(kind, notice_kind_names[i]) == 0)
			found = i;
	notice_init(n, NOTICE_WARNING);
	if (found < NOTICE_KINDS) {
		n->kind = (enum notice_kind)found;
		for (size_t i = 0; i < N_MEMBERS; i++)
			take_member(n, &members[i], json_object_get(object, members[i].name));
	}
	json_decref(object);
	return found < NOTICE_KINDS ? 0
				    : err_set(e, ERR_WORLD, "a stored notice cannot be read");
}

bool notice_is_plain_user(const char *user)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-";
	return *user && *user != '-' && *user != '.' && user[strspn(user, plain)] == '\0';
}
