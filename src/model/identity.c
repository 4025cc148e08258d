/* The table of the kinds of identity. */
#include "model/identity.h"

#include "base/nearest.h"

const struct identity_kind identity_kinds[IDENTITIES] = {
#define IDENTITY_ROW(id, ...) [IDENTITY_##id] = { __VA_ARGS__ },
	IDENTITY_KINDS(IDENTITY_ROW)
#undef IDENTITY_ROW
};

const char *const measure_names[MEASURES] = {
	[MEASURE_PRESENCE] = "presence",
	[MEASURE_USERS] = "presence_of_users",
	[MEASURE_PROCESSES] = "process_time",
	[MEASURE_CARDS] = "card_time",
	[MEASURE_SHARES] = "share",
};

bool identity_is_of_card(enum identity kind)
{
	return kind == IDENTITY_CARD || kind == IDENTITY_MODEL || kind == IDENTITY_HOST;
}

void identity_words(struct str *out)
{
	for (size_t i = 0; i < IDENTITIES; i++)
		str_addf(out, "%s ", identity_kinds[i].name);
}

/* The kind of that name; IDENTITIES: there is none, and *near is the most similar one. */
static enum identity find_kind(const char *name, size_t len, const char **near)
{
	struct nearest like = nearest_to(name, len);
	for (size_t i = 0; i < IDENTITIES; i++) {
		const char *own = identity_kinds[i].name;
		if (strlen(own) == len && strncmp(own, name, len) == 0)
			return (enum identity)i;
		nearest_try(&like, own);
	}
	*near = like.name;
	return IDENTITIES;
}

int identity_by_parse(struct by *by, const char *text, struct err *e)
{
	*by = (struct by){ .n = 0 };
	for (const char *at = text;; at++) {
		size_t len = strcspn(at, ",");
		const char *near;
		char safe[64];
		enum identity kind = find_kind(at, len, &near);
		str_escape(safe, sizeof(safe), at, len);
		if (kind == IDENTITIES) {
			struct str all = { 0 };
			if (near)
				return err_set(e, ERR_USAGE,
					"there is no '%s'; did you mean '%s'?", safe, near);
			for (size_t i = 0; i < IDENTITIES; i++)
				str_addf(&all, "%s%s", i ? ", " : "", identity_kinds[i].name);
			err_set(e, ERR_USAGE, "there is no '%s'; there are %s", safe,
				str_text(&all));
			str_finish(&all);
			return ERR_USAGE;
		}
		if (by->n == BY_MAX)
			return err_set(e, ERR_USAGE, "give one kind or two, not more");
		if (by->n && by->kinds[0] == kind)
			return err_set(e, ERR_USAGE, "%s is there twice", safe);
		by->kinds[by->n++] = kind;
		at += len;
		if (!*at)
			return 0;
	}
}

bool identity_by_has(const struct by *by, enum identity kind)
{
	for (size_t i = 0; i < by->n; i++)
		if (by->kinds[i] == kind)
			return true;
	return false;
}

bool identity_by_is(const struct by *by, enum identity kind)
{
	return by->n == 1 && by->kinds[0] == kind;
}

enum measure identity_by_measure(const struct by *by, size_t level, bool of_users)
{
	bool user = false, holders = of_users;
	for (size_t i = 0; i <= level; i++) {
		enum identity kind = by->kinds[i];
		if (identity_kinds[kind].column && kind != IDENTITY_USER)
			return MEASURE_PROCESSES;
		user |= kind == IDENTITY_USER;
		holders |= !identity_is_of_card(kind);
	}
	return user ? MEASURE_PRESENCE : holders ? MEASURE_USERS : MEASURE_CARDS;
}
