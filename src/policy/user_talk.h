/* Requests of users to gua enforce, its answers, and the client side of the socket: for gua
 * keep and gua enforce explain. The program gua has the client side only: it cannot listen. */
#pragma once

#include <sys/un.h>

#include "policy/facts.h"

enum {
	USER_REQUEST_MAX = 1024, /* bytes */
	USER_ANSWER_MAX = 64 * 1024,
	USER_REASON_CAP = 128,
};

enum user_ask {
	USER_ASK_LIST,	  /* what the user keeps */
	USER_ASK_KEEP,	  /* keep the session of a process, or a lease */
	USER_ASK_DROP,	  /* do not keep it any more */
	USER_ASK_EXPLAIN, /* what happens to it, and why */
	USER_ASKS,
};

struct user_request {
	enum user_ask ask;
	struct facts_asked what; /* except in a list */
	uint64_t start_ticks;	 /* of a process, for keep and drop */
	int64_t for_ms;		 /* for keep */
	char reason[USER_REASON_CAP];
	bool json, utc; /* for explain */
};

/* Reads a request, which may be any bytes. False: it is malformed. */
bool user_talk_parse_request(struct user_request *r, const char *bytes, size_t len);
/* Writes one, as JSON. */
void user_talk_write_request(struct str *out, const struct user_request *r);

/* A session that is kept, by one of its processes; or a lease. */
struct user_kept {
	struct facts_asked what;
	int64_t until_ms;
	char reason[USER_REASON_CAP];
};

/* The answer of gua enforce. */
struct user_answer {
	bool ok;
	char why[256];		/* why it was refused, or what was done */
	struct str text;	/* an explanation */
	struct user_kept *kept; /* the user's keeps, or the one that was asked for */
	size_t n_kept;
};
void user_talk_finish_answer(struct user_answer *a);
/* Adds a kept session; false: the list is full. */
bool user_talk_add_kept(struct user_answer *a, const struct user_kept *kept);
/* Reads an answer. Its texts are safe to show, except for the line ends of `text`. False: it
 * is malformed; finish the answer in either case. */
bool user_talk_parse_answer(struct user_answer *a, const char *bytes, size_t len);
/* Writes one, as JSON. */
void user_talk_write_answer(struct str *out, const struct user_answer *a);

/* The path of the socket: as configured or, if that is NULL, in /run for the system's store
 * and beside any other store. */
void user_talk_path(char *dst, size_t cap, const char *configured, const char *db);

/* Opens the directory of the path; *name is what follows. -1 with errno on failure. */
int user_talk_open_directory(const char *path, const char **name);
/* The address of a socket in an open directory, because socket paths are limited to about
 * 100 bytes. */
void user_talk_address(struct sockaddr_un *a, int directory, const char *name);

/* The client side: sends a request and waits for the answer, which must be finished in any
 * case. Fails if gua enforce is not running, does not answer, or refuses; the error has its
 * reason. */
int user_talk_ask(const char *path, const struct user_request *r, struct user_answer *answer,
	struct err *e);

/* In the lines of /etc/subuid, the first uid of the range that contains this uid; the uid
 * itself if none does. */
uint32_t user_talk_owner(const char *bytes, size_t len, uint32_t uid);
