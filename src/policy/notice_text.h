/* Templates: make a subject and a text from a notice. A template is a plain text whose first
 * line is "Subject: ...", then an empty line, then the text. {name} stands for a fact; {{ is
 * a brace. A line with an unknown fact is left out. The administrator's templates are
 * DIRECTORY/KIND.txt; a kind without a file has a built-in one. */
#ifndef GUA_POLICY_NOTICE_TEXT_H
#define GUA_POLICY_NOTICE_TEXT_H

#include "policy/notice.h"

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

#endif
