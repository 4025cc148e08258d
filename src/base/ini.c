/* Reads ini files in place, one line after the other. */
#include "base/ini.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static char *skip_blanks(char *at)
{
	while (is_blank(*at))
		at++;
	return at;
}

static void trim_end(char *text)
{
	size_t len = strlen(text);
	while (len && is_blank(text[len - 1]))
		text[--len] = '\0';
}

/* The end of a text that begins with a quote: behind the closing quote, or NULL. */
static char *quote_end(char *at)
{
	for (at++; *at && *at != '"'; at++)
		if (*at == '\\' && at[1])
			at++;
	return *at ? at + 1 : NULL;
}

/* Removes the quotes from `text`, which ends with its closing quote, and the backslashes that
 * escape a quote or a backslash. */
static char *unquote(char *text)
{
	char *out = text;
	char *last = text + strlen(text) - 1;
	for (char *at = text + 1; at < last; at++) {
		if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
			at++;
		*out++ = *at;
	}
	*out = '\0';
	return text;
}

/* Cuts off a comment: # at the start or after a blank, outside of quotes. False: open quote. */
static bool cut_comment(char *text)
{
	for (char *at = text; *at;) {
		if (*at == '#' && (at == text || is_blank(at[-1]))) {
			*at = '\0';
			return true;
		}
		bool opens = *at == '"' && (at == text || is_blank(at[-1]));
		at = opens ? quote_end(at) : at + 1;
		if (!at)
			return false;
	}
	return true;
}

static bool wrong(struct ini_item *item, const char *what)
{
	item->kind = INI_WRONG;
	item->first = what;
	item->second = NULL;
	return true;
}

static bool is_quoted(char *text)
{
	return *text == '"' && quote_end(text) == text + strlen(text);
}

/* Reads "[section]" or "[kind NAME]"; `at` is after the bracket. */
static bool read_section(struct ini_item *item, char *at)
{
	char *close = at;
	while (*close && *close != ']') {
		close = *close == '"' ? quote_end(close) : close + 1;
		if (!close)
			return wrong(item, "a quote is not closed");
	}
	if (!*close)
		return wrong(item, "a section needs ] at its end");
	if (*skip_blanks(close + 1))
		return wrong(item, "there is something after the ] of a section");
	*close = '\0';
	at = skip_blanks(at);
	trim_end(at);
	if (!*at)
		return wrong(item, "the section has no name");
	item->kind = INI_SECTION;
	item->first = at;
	char *name = at + strcspn(at, " \t");
	if (!*name)
		return true;
	*name = '\0';
	name = skip_blanks(name + 1);
	item->second = is_quoted(name) ? unquote(name) : name;
	return true;
}

/* key = value */
static bool read_pair(struct ini_item *item, char *at)
{
	bool quoted = *at == '"';
	char *end = quoted ? quote_end(at) : at + strcspn(at, "=");
	if (!end)
		return wrong(item, "a quote is not closed");
	char *equals = skip_blanks(end);
	if (*equals != '=')
		return wrong(item, "neither a section nor KEY = VALUE");
	char *value = skip_blanks(equals + 1);
	*end = *equals = '\0';
	trim_end(at);
	item->kind = INI_PAIR;
	item->first = quoted ? unquote(at) : at;
	if (!*item->first)
		return wrong(item, "there is no key before the =");
	trim_end(value);
	item->second = is_quoted(value) ? unquote(value) : value;
	return true;
}

void ini_start(struct ini *i, char *bytes, size_t len)
{
	bool mark = len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0;
	*i = (struct ini){ .at = bytes + (mark ? 3 : 0), .end = bytes + len, .line = 1 };
}

bool ini_next(struct ini *i, struct ini_item *item)
{
	while (i->at < i->end) {
		char *line = i->at, *end = memchr(line, '\n', (size_t)(i->end - line));
		end = end ? end : i->end;
		size_t len = (size_t)(end - line);
		*item = (struct ini_item){ .line = i->line++ };
		i->at = end + 1;
		len -= len && line[len - 1] == '\r';
		line[len] = '\0';
		/* A line may be shown and compared: UTF-8 without controls but tabs. */
		for (size_t at = 0; at < len;) {
			unsigned code = 0;
			size_t n = str_utf8_char(line + at, len - at, &code);
			if (!n || (code < 0x20 && code != '\t') ||
				(code >= 0x7f && code < 0xa0))
				return wrong(item, "a character that is not text: the file "
						   "must be plain UTF-8");
			at += n;
		}
		line = skip_blanks(line);
		if (!*line || *line == '#' || *line == ';')
			continue;
		if (!cut_comment(line))
			return wrong(item, "a quote is not closed");
		trim_end(line);
		return *line == '[' ? read_section(item, line + 1) : read_pair(item, line);
	}
	return false;
}
