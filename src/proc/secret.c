/* Recognises words that may carry a secret. */
#include "proc/secret.h"

#include <string.h>
#include <strings.h>

/* What is cut: all after `mark` up to the last `until`, or to the end of the text when `until`
 * is 0. Marks are found in any case. */
static const struct cut {
	const char *mark;
	char until;
	bool keep_mark;
	enum secret_text from; /* the kinds of text from this one on */
} cuts[] = {
	{ "://", '@', true, SECRET_LABEL },
	{ ":", '@', true, SECRET_WORD }, /* user:password@host */
	{ "?", 0, false, SECRET_PATH },
	{ "&", 0, false, SECRET_PATH },
	{ "password=", 0, true, SECRET_LABEL },
	{ "passwd=", 0, true, SECRET_LABEL },
	{ "pwd=", 0, true, SECRET_LABEL },
	{ "token=", 0, true, SECRET_LABEL },
	{ "secret=", 0, true, SECRET_LABEL },
	{ "key=", 0, true, SECRET_LABEL },
	{ "auth=", 0, true, SECRET_LABEL },
	{ "credential=", 0, true, SECRET_LABEL },
	{ "credentials=", 0, true, SECRET_LABEL },
	{ "=", 0, false, SECRET_WORD },
};

static bool is_name_byte(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c >= 0x80 || (c && strchr("._-+,@%~/", c));
}

bool secret_is_file_name(const char *word, size_t len)
{
	if (len == 0 || word[0] == '-' || word[0] == '+')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_name_byte((unsigned char)word[i]))
			return false;
	return true;
}

/* Returns where the mark is, or `len`. */
static size_t find_mark(const char *text, size_t len, const char *mark)
{
	size_t n = strlen(mark);
	for (size_t i = 0; i + n <= len; i++)
		if (strncasecmp(text + i, mark, n) == 0)
			return i;
	return len;
}

static size_t apply(const struct cut *cut, char *text, size_t len)
{
	size_t at = find_mark(text, len, cut->mark);
	if (at == len)
		return len;
	size_t from = at + strlen(cut->mark);
	if (!cut->until)
		return cut->keep_mark ? from : at;
	const char *end = memrchr(text + from, cut->until, len - from);
	if (!end)
		return len;
	size_t to = (size_t)(end - text) + 1;
	memmove(text + from, text + to, len - to);
	return len - (to - from);
}

size_t secret_cut(char *text, size_t len, enum secret_text kind)
{
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++)
		if (kind >= cuts[i].from)
			len = apply(&cuts[i], text, len);
	return len;
}
