/* What users ask gua enforce and what it answers, and the way to ask: for gua keep and gua
 * enforce explain. The program gua has this side only: it cannot listen. */
#ifndef GUA_POLICY_USER_TALK_H
#define GUA_POLICY_USER_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/err.h"
#include "base/str.h"

enum {
	USER_REQUEST_MAX = 1024, /* bytes */
	USER_ANSWER_MAX = 64 * 1024,
	USER_REASON_CAP = 128,
};

enum user_ask {
	USER_ASK_LIST,	  /* what the user keeps */
	USER_ASK_KEEP,	  /* keep the session of a process */
	USER_ASK_DROP,	  /* do not keep it any more */
	USER_ASK_EXPLAIN, /* what happens to it, and why */
	USER_ASKS,
};

struct user_request {
	enum user_ask ask;
	uint32_t pid;	      /* not of a list */
	uint64_t start_ticks; /* of a keep and a drop */
	int64_t for_ms;	      /* of a keep */
	char reason[USER_REASON_CAP];
	bool json, utc; /* of an explanation */
};

/* Reads a request, which may be any bytes. False: it is malformed. */
bool user_request_parse(struct user_request *r, const char *bytes, size_t len);
/* Writes one, as JSON. */
void user_request_write(struct str *out, const struct user_request *r);

/* A session that is kept, by one of its processes. */
struct user_kept {
	uint32_t pid;
	int64_t until_ms;
	char reason[USER_REASON_CAP];
};

/* What gua enforce says. */
struct user_answer {
	bool ok;
	char why[256];		/* not, or what was done */
	struct str text;	/* an explanation */
	struct user_kept *kept; /* of the user, or what was asked for */
	size_t n_kept;
};
void user_answer_finish(struct user_answer *a);
/* Adds to what is kept; false: there are enough. */
bool user_answer_keep(struct user_answer *a, int64_t pid, int64_t until_ms, const char *reason);
/* Reads an answer. Its texts can be shown, but for the line ends of `text`. False: it makes no
 * sense; the answer is to be finished all the same. */
bool user_answer_parse(struct user_answer *a, const char *bytes, size_t len);
/* Writes one, as JSON. */
void user_answer_write(struct str *out, const struct user_answer *a);

/* Where the socket is: as configured, or, if that is NULL, by the store. */
void user_talk_path(char *dst, size_t cap, const char *configured, const char *db);

/* Opens the directory of the path; *name is what follows. -1: errno says why not. */
int user_talk_open_directory(const char *path, const char **name);
/* The address of a name in an open directory: paths of sockets are short. */
void user_talk_address(struct sockaddr_un *a, int directory, const char *name);

/* The user's side: asks, and waits for the answer, which is to be finished in any case. Fails
 * if gua enforce is not running or does not answer, and if it refuses: the error says why. */
int user_talk_ask(const char *path, const struct user_request *r, struct user_answer *answer,
	struct err *e);

/* Of the lines of /etc/subuid, the first uid of the range that has this one; the uid itself if
 * none has. */
uint32_t user_talk_owner(const char *bytes, size_t len, uint32_t uid);

#endif
