/* Templates: a notice becomes a subject and a text. A template is a plain text whose first line
 * is "Subject: ...", then an empty line, then the text. {name} stands for a fact; {{ is a
 * brace. A line with a fact that is not known is left out. The administrator's templates are
 * DIRECTORY/KIND.txt; for a kind without a file there is one built in. */
#ifndef GUA_POLICY_NOTICE_TEXT_H
#define GUA_POLICY_NOTICE_TEXT_H

#include "policy/notice.h"

/* What a template became. Finish both. */
struct notice_text {
	struct str subject; /* one line */
	struct str body;    /* lines that end with \n */
};
void notice_text_finish(struct notice_text *t);

/* A template's text, and what messages call it. */
struct notice_template {
	const char *name;
	const char *text;
	size_t len;
};

/* ERR_USAGE: the template names a fact that does not exist, or has no subject; the message has
 * file and line. */
int notice_expand(struct notice_text *t, const struct notice *n,
	const struct notice_template *from, struct err *e);

/* The template of the notice's kind: the administrator's, else the built-in one. A template of
 * the administrator's that is wrong is an error, and the built-in one is used: a notice is not
 * lost because of a spelling. */
int notice_write(
	struct notice_text *t, const struct notice *n, const char *directory, struct err *e);

#endif
