/* A notice: everything that a user is told about a session, as plain values. Templates
 * make text of it (notice_write()); as JSON it goes to programs and waits in the store. */
#pragma once

#include "base/piece.h"
#include "model/process.h"
#include "model/release.h"

enum notice_kind {
	NOTICE_WARNING,
	NOTICE_AGAIN,
	NOTICE_FINAL,
	NOTICE_ENDED,	  /* the session was ended */
	NOTICE_NOT_ENDED, /* it should have been ended; `result` says why it was not */
	NOTICE_DIGEST,	  /* in place of several that were held back */
	NOTICE_ALARM,	  /* for the administrator: nothing is done until somebody has looked */
	NOTICE_TEST,
	NOTICE_KINDS,
};
/* warning again final ended not-ended digest alarm test: in JSON, and names of templates. */
extern const char *const notice_kind_names[NOTICE_KINDS];

enum { NOTICE_HOST_CAP = 128, NOTICE_TEXT_CAP = 256 };
/* A digest stands for at most this many notices, each a line. */
enum { NOTICE_PARTS_MOST = 12, NOTICE_LINE_CAP = 1024 };

/* Texts are safe to show and "" when unknown; moments, bytes and counts -1; numbers NAN. */
struct notice {
	enum notice_kind kind;
	char session[LABEL_CAP]; /* its key: equal keys are one session */
	char rule[TAG_CAP];
	char user[USER_CAP];
	int64_t uid;
	char host[NOTICE_HOST_CAP];
	char what[NOTEBOOK_CAP];   /* its notebook, job or container */
	char lease[LABEL_CAP];	   /* of a lease: "job 4"; it has no process */
	char command[COMMAND_CAP]; /* the command of its process, as stored */
	int64_t pid;		   /* the pid to use in commands */
	char cards[LABEL_CAP];	   /* "3", or "0, 1" */
	char model[LABEL_CAP];	   /* model of the cards, if all have the same */
	int64_t mem_bytes;	   /* held on all of them */
	int64_t made_ms;	   /* when this notice was made */
	int64_t idle_since_ms;
	int64_t idle_ms;       /* how long it was seen idle, without unobserved time */
	int64_t idle_below;    /* percent of use from which on it is not idle */
	double idle_gpu_hours; /* cards times hours of idle time */
	double cost;	       /* cost of these hours */
	char currency[16];
	int64_t next_ms;	   /* when the next notice comes */
	int64_t end_ms;		   /* when the session will be ended */
	char release[RELEASE_CAP]; /* the command that frees the memory */
	/* The commands that keep the session, and that show why it is judged. */
	char keep[NOTICE_TEXT_CAP], explain[NOTICE_TEXT_CAP];
	char kept[NOTICE_TEXT_CAP]; /* when it was kept before, and the reasons */
	int64_t freed_bytes;
	char result[NOTICE_TEXT_CAP]; /* what was done, or why nothing was */
	int64_t count;		      /* number of notices in a digest */
	/* Their lines, each ended with \n. */
	char list[NOTICE_PARTS_MOST * NOTICE_LINE_CAP];
};

/* Makes a notice in which every member is unknown. */
void notice_init(struct notice *n, enum notice_kind kind);

/* Adds a part to a digest: its line, and its user, host and earliest end if the digest has
 * none yet. Parts beyond NOTICE_PARTS_MOST are not added. */
void notice_add_part(struct notice *digest, const struct notice *part);

/* Text that is added to the JSON for programs that receive it. */
struct notice_extra {
	const char *subject, *text;
};
/* One JSON object; unknown values are null. `extra` may be NULL. ERR_WORLD: out of memory. */
int notice_to_json(const struct notice *n, const struct notice_extra *extra, struct str *out,
	struct err *e);
/* Reads that JSON back; ERR_WORLD: it is malformed. */
int notice_from_json(struct notice *n, const char *bytes, size_t len, struct err *e);

/* Whether a user name is safe as a file name and mail address: letters, digits, dots, dashes
 * and underscores, and no dot or dash at the beginning. */
bool notice_is_plain_user(const char *user);

/* A template makes a subject and a text from a notice: its first line is "Subject: ...", then
 * come an empty line and the text. {name} stands for a fact; {{ is a brace. A line with an
 * unknown fact is left out. The administrator's templates are DIRECTORY/KIND.txt; a kind
 * without a file has a built-in one. */
/* An expanded template. Finish both. */
struct notice_text {
	struct str subject; /* one line */
	struct str body;    /* lines that end with \n */
};
void notice_text_finish(struct notice_text *t);

/* A template's text, and its name in messages. */
struct notice_template {
	const char *name;
	const char *text;
	size_t len;
};

/* ERR_USAGE: the template names a fact that does not exist, or has no subject; the message has
 * file and line. */
int notice_expand(struct notice_text *t, const struct notice *n,
	const struct notice_template *from, struct err *e);

/* Uses the template of the notice's kind: the administrator's, else the built-in one. A
 * wrong template of the administrator is an error, but the built-in one is used, so that no
 * notice is lost because of a spelling mistake. */
int notice_write(
	struct notice_text *t, const struct notice *n, const char *directory, struct err *e);
