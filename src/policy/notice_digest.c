/* Digests: one notice that stands for several. */
#include <string.h>

#include "policy/notice_text.h"

/* What a part says, as pieces of its line. A piece with a fact that is not known is left out.
 */
static const char *const lines[NOTICE_KINDS] = {
	[NOTICE_WARNING] = "Subject: x\n\n"
			   "your {command} (pid {pid}) holds {memory} on card {cards}\n"
			   "unused since {since}\n"
			   "it will be ended at {end} unless it uses the card\n"
			   "release it: {release}\n",
	[NOTICE_FINAL] = "Subject: x\n\n"
			 "LAST NOTICE: your {command} (pid {pid}) will be ended at {end}\n"
			 "it holds {memory} on card {cards}, unused since {since}\n"
			 "release it: {release}\n",
	[NOTICE_ENDED] = "Subject: x\n\n"
			 "your {command} (pid {pid}) was ended\n"
			 "it had held card {cards} without using it since {since}\n"
			 "{result}\n",
	[NOTICE_NOT_ENDED] = "Subject: x\n\n"
			     "your {command} (pid {pid}) was to be ended, and was not\n"
			     "{result}\n"
			     "it has held card {cards} without using it since {since}\n"
			     "release it: {release}\n",
};

/* The lines of a text as one, with semicolons between them. */
static void join(struct str *out, const char *text)
{
	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		str_add(out, out->len ? "; " : "");
		str_add_bytes(out, text, len);
	}
}

static void add_line(struct notice *digest, const char *text)
{
	char line[NOTICE_LINE_CAP];
	size_t used = strlen(digest->list);
	text_copy(line, sizeof(line) - 1, text);
	text_copy(digest->list + used, sizeof(digest->list) - used, line);
	used += strlen(line);
	text_copy(digest->list + used, sizeof(digest->list) - used, "\n");
}

void notice_add_part(struct notice *digest, const struct notice *part)
{
	const char *line = lines[part->kind] ? lines[part->kind] : lines[NOTICE_WARNING];
	const struct notice_template from = { "built-in", line, strlen(line) };
	struct notice_text text;
	struct str joined = { 0 };
	struct err e = { 0 };
	if (digest->count >= NOTICE_PARTS_MOST || notice_expand(&text, part, &from, &e) != 0)
		return;
	join(&joined, str_text(&text.body));
	add_line(digest, str_text(&joined));
	if (digest->count < 1) {
		text_copy(digest->user, sizeof(digest->user), part->user);
		text_copy(digest->host, sizeof(digest->host), part->host);
		digest->uid = part->uid;
	}
	digest->count = digest->count < 0 ? 1 : digest->count + 1;
	if (part->end_ms >= 0 && (digest->end_ms < 0 || part->end_ms < digest->end_ms))
		digest->end_ms = part->end_ms;
	str_finish(&joined);
	notice_text_finish(&text);
}
