/* The directory in which users ask to keep a session. They cannot write policy.db, so each
 * request is a small file there, of which the kernel says who wrote it; gua enforce takes it
 * over and leaves an answer. The directory has mode 3733: everybody may add a file, which gets
 * the directory's group, and nobody can list or touch those of others. */
#ifndef GUA_POLICY_KEEP_SPOOL_H
#define GUA_POLICY_KEEP_SPOOL_H

#include "policy/enforcer.h"

enum { KEEP_REASON_CAP = 128, KEEP_FILE_MAX = 1024 };

struct keep_request {
	uint32_t pid;
	uint64_t start_ticks;
	int64_t for_ms;
	char reason[KEEP_REASON_CAP];
	bool drop; /* give the session free again */
};

/* What became of a request. */
struct keep_answer {
	bool kept;
	uint32_t pid;
	uint64_t start_ticks; /* of the process that it is about */
	int64_t until_ms;
	char reason[KEEP_REASON_CAP]; /* of the user */
	char why[160];		      /* it was refused, or dropped */
};

void keep_spool_path(char *dst, size_t cap, const struct config_policy *config, const char *db);
/* Makes the directory, if it can. */
void keep_spool_make(const char *directory);

/* The user's side. ERR_WORLD: it cannot be written. */
int keep_spool_ask(const char *directory, const struct keep_request *r, struct err *e);
/* Whether the caller has asked about this process, and there is no answer yet. */
bool keep_spool_asked(const char *directory, uint32_t pid);
/* The answer about a process of this uid; ERR_NOTHING: there is none. */
int keep_spool_answer(const char *directory, uint32_t uid, uint32_t pid,
	struct keep_answer *answer, struct err *e);

/* Takes over requests: those that are within the limits become keeps. A user who makes very
 * many at once gets only some of them, and is not in the way of others. Fails only when
 * policy.db does. */
int keep_spool_take(struct enforcer *x, const char *directory, int64_t now_ms, struct err *e);

#endif
