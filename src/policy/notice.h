/* A notice: all that a user is told about a session, as plain values. It becomes a text by a
 * template (notice_text.h) and JSON for programs, and waits in the store as that JSON. */
#ifndef GUA_POLICY_NOTICE_H
#define GUA_POLICY_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "model/release.h"
#include "proc/piece.h"

enum notice_kind {
	NOTICE_WARNING,
	NOTICE_AGAIN,
	NOTICE_FINAL,
	NOTICE_ENDED,	  /* the session was ended */
	NOTICE_NOT_ENDED, /* it should have been; `result` says why it was not */
	NOTICE_DIGEST,	  /* in place of several that were held back */
	NOTICE_ALARM,	  /* for the administrator: nothing is done until somebody looks */
	NOTICE_TEST,
	NOTICE_KINDS,
};
/* warning again final ended not-ended digest alarm test: in JSON, and the names of templates.
 */
extern const char *const notice_kind_names[NOTICE_KINDS];

enum { NOTICE_HOST_CAP = 128, NOTICE_TEXT_CAP = 256 };
/* A digest stands for at most this many notices, each a line. */
enum { NOTICE_PARTS_MOST = 12, NOTICE_LINE_CAP = 480 };

/* Texts are safe to show and "" when unknown; moments, bytes and counts -1; numbers NAN. */
struct notice {
	enum notice_kind kind;
	char session[LABEL_CAP]; /* its key: equal keys are one session */
	char rule[TAG_CAP];
	char user[USER_CAP];
	int64_t uid;
	char host[NOTICE_HOST_CAP];
	char what[LABEL_CAP];	   /* the notebook, job or container */
	char command[COMMAND_CAP]; /* of its process, as the store has it */
	int64_t pid;		   /* the process to name in commands */
	char cards[LABEL_CAP];	   /* "3", or "0, 1" */
	char model[LABEL_CAP];	   /* of the cards, when all have the same */
	int64_t mem_bytes;	   /* held on all of them */
	int64_t made_ms;	   /* when this notice was made */
	int64_t idle_since_ms;
	int64_t idle_ms;       /* how long it was seen idle: unobserved time is not in it */
	double idle_gpu_hours; /* cards times hours since then */
	double cost;	       /* of these hours */
	char currency[16];
	int64_t next_ms;	    /* of the next notice */
	int64_t end_ms;		    /* when the session will be ended */
	char release[RELEASE_CAP];  /* the command that gives the memory back */
	char keep[NOTICE_TEXT_CAP]; /* the command that asks for more time */
	char kept[NOTICE_TEXT_CAP]; /* when it was kept before, and why */
	int64_t freed_bytes;
	char result[NOTICE_TEXT_CAP]; /* what was done, or why not */
	int64_t count;		      /* of notices in a digest */
	/* Their lines, each ended with \n. */
	char list[NOTICE_PARTS_MOST * NOTICE_LINE_CAP];
};

/* A notice in which nothing is known. */
void notice_init(struct notice *n, enum notice_kind kind);

/* Adds a part to a digest: its line, and its user, host and earliest end if the digest has none
 * yet. Parts beyond NOTICE_PARTS_MOST are left out. */
void notice_add_part(struct notice *digest, const struct notice *part);

/* One JSON object; unknown values are null. ERR_WORLD: out of memory. */
int notice_to_json(const struct notice *n, struct str *out, struct err *e);
/* The same with what was made of it for people, for programs that receive it. */
struct notice_extra {
	const char *subject, *text;
};
int notice_to_json_with(const struct notice *n, const struct notice_extra *extra,
	struct str *out, struct err *e);
/* Reads it back; ERR_WORLD: it is not such JSON. */
int notice_from_json(struct notice *n, const char *bytes, size_t len, struct err *e);

/* Whether a name of a user can be a file's name and a mail's address: plain letters, digits,
 * dots, dashes and underscores, and it begins with neither a dot nor a dash. */
bool notice_is_plain_user(const char *user);

#endif
