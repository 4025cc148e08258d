/* The kinds of identity that time is attributed to, and what is measured for each. The table
 * below is the only list of them: the option --by, its help and completion, the SQL and the
 * output follow from it. */
#pragma once

#include "base/base.h"

/* Where a name is unique: two users may have notebooks of the same name, and two hosts units
 * of the same name. */
enum identity_scope { SCOPE_ALL, SCOPE_USER, SCOPE_HOST };

/* X(ID, name, SQL over a row of the table process, name of those without one, scope). A
 * kind without SQL is a group of users (GROUP), or what the card is. */
#define IDENTITY_KINDS(X)                                                                      \
	X(USER, "user", "user", "(no user)", SCOPE_ALL)                                        \
	X(GROUP, "group", NULL, "(no group)", SCOPE_ALL)                                       \
	X(PROCESS, "process", "command", "(no command)", SCOPE_ALL)                            \
	X(NOTEBOOK, "notebook", "coalesce(notebook_path, notebook)", "(no notebook)",          \
		SCOPE_USER)                                                                    \
	X(JOB, "job", "job", "(no job)", SCOPE_ALL)                                            \
	X(JOB_NAME, "job_name", "job_name", "(no job name)", SCOPE_USER)                       \
	X(CONTAINER, "container",                                                              \
		"coalesce(pod || '/' || nullif(substr(container, instr(container, '/') + 1), " \
		"container), container)",                                                      \
		"(no container)", SCOPE_HOST)                                                  \
	X(NAMESPACE, "namespace", "nullif(substr(pod, 1, instr(pod, '/') - 1), '')",           \
		"(no namespace)", SCOPE_ALL)                                                   \
	X(WORKLOAD, "workload", "iif(instr(pod, '/'), pod, NULL)", "(no workload)", SCOPE_ALL) \
	X(POD, "pod", "pod", "(no pod)", SCOPE_ALL)                                            \
	X(UNIT, "unit", "unit", "(no unit)", SCOPE_HOST)                                       \
	X(TAG, "tag", "tag", "(no tag)", SCOPE_ALL)                                            \
	X(ACCOUNT, "account", "account", "(no account)", SCOPE_ALL)                            \
	X(LOGIN, "login", "login", "(unknown)", SCOPE_ALL)                                     \
	X(SESSION, "session", "coalesce(login || ' ', '') || session", "(no session)",         \
		SCOPE_USER)                                                                    \
	X(CARD, "card", NULL, "", SCOPE_ALL)                                                   \
	X(MODEL, "model", NULL, "(unknown model)", SCOPE_ALL)                                  \
	X(HOST, "host", NULL, "", SCOPE_ALL)

/* "user, group, ...", for help. */
#define IDENTITY_NAMED(id, name, ...) name ", "
#define IDENTITY_LIST IDENTITY_KINDS(IDENTITY_NAMED)

enum identity {
#define IDENTITY_ID(id, ...) IDENTITY_##id,
	IDENTITY_KINDS(IDENTITY_ID)
#undef IDENTITY_ID
		IDENTITIES
};

struct identity_kind {
	const char *name;   /* in options, CSV and JSON */
	const char *column; /* SQL over the table process; NULL: none */
	const char *none;   /* the name of the row for processes without one */
	enum identity_scope scope;
};
extern const struct identity_kind identity_kinds[IDENTITIES];

/* What a breakdown is grouped by: one kind, or a second one within the first. */
enum { BY_MAX = 2 };
struct by {
	enum identity kinds[BY_MAX];
	size_t n;
};

/* Reads "KIND" or "KIND,KIND". ERR_USAGE: not a kind, one twice, or more than two. */
int identity_by_parse(struct by *by, const char *text, struct err *e);
/* Appends the names of the kinds, for completion. */
void identity_words(struct str *out);
/* Whether this kind is in it, and whether it is alone. */
bool identity_by_has(const struct by *by, enum identity kind);
bool identity_by_is(const struct by *by, enum identity kind);

/* What the hours of a row mean. The share of a card's time (model/audit.h) is a separate
 * column and adds up for every kind. */
enum measure {
	MEASURE_PRESENCE,  /* a user's: once per card and moment */
	MEASURE_USERS,	   /* the presence of several users, added up */
	MEASURE_PROCESSES, /* the time of processes, each by its own state, added up */
	MEASURE_CARDS,	   /* the cards' own time */
	MEASURE_SHARES,	   /* shares of the cards' time: for a fleet, whose metrics have nothing
			      else */
	MEASURES,
};
extern const char *const measure_names[MEASURES]; /* in JSON */

/* Whether the kind distinguishes cards, not processes. */
bool identity_is_of_card(enum identity kind);
/* The measure of rows that are distinguished by the first `level` + 1 kinds. `of_users`:
 * they are restricted to the time of some users. */
enum measure identity_by_measure(const struct by *by, size_t level, bool of_users);
