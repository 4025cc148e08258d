/* Splits text into words with the quoting rules of a POSIX shell. */
#include "base/words.h"

/* The state while a line is split. */
struct word_split {
	const char *at; /* next byte of the line */
	char *out;	/* next byte of the words' text */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static bool read_double(struct word_split *r)
{
	r->at++;
	while (*r->at && *r->at != '"') {
		if (*r->at == '\\' && r->at[1] && strchr("\"\\$`\n", r->at[1])) {
			r->at++;
			if (*r->at == '\n') { /* a continued line */
				r->at++;
				continue;
			}
		}
		*r->out++ = *r->at++;
	}
	if (*r->at != '"')
		return false;
	r->at++;
	return true;
}

static bool read_escape(struct word_split *r)
{
	r->at++;
	if (*r->at == '\0')
		return false;
	if (*r->at != '\n')
		*r->out++ = *r->at;
	r->at++;
	return true;
}

/* Reads one word and adds its NUL; false: a quote is open. */
static bool read_word(struct word_split *r)
{
	bool whole = true;
	while (whole && *r->at && !is_blank(*r->at)) {
		if (*r->at == '\'') {
			for (r->at++; *r->at && *r->at != '\''; r->at++)
				*r->out++ = *r->at;
			whole = *r->at++ == '\'';
		} else if (*r->at == '"')
			whole = read_double(r);
		else if (*r->at == '\\')
			whole = read_escape(r);
		else
			*r->out++ = *r->at++;
	}
	*r->out++ = '\0';
	return whole;
}

int words_split(const char *line, char ***words, size_t *n, struct err *e)
{
	/* A word takes at least one byte and a blank, so there are at most len/2 + 1 words. */
	size_t len = strlen(line), most = len / 2 + 2;
	char **list = malloc(most * sizeof(*list) + len + most);
	if (!list)
		return err_memory(e);
	struct word_split r = { line, (char *)(list + most) };
	*n = 0;
	for (;;) {
		while (is_blank(*r.at))
			r.at++;
		if (!*r.at)
			break;
		list[(*n)++] = r.out;
		if (!read_word(&r)) {
			free(list);
			return err_set(e, ERR_USAGE,
				"a quote is not closed, or a backslash ends it: %s", line);
		}
	}
	list[*n] = NULL;
	*words = list;
	return 0;
}

const char *words_for_shell(const char *line)
{
	bool doubled = false;
	for (const char *c = line; *c; c++) {
		if (*c == '\\' && c[1]) {
			c++;
		} else if (*c == '"') {
			doubled = !doubled;
		} else if (*c == '\'' && !doubled) {
			c = strchr(c + 1, '\'');
			if (!c)
				return NULL;
		} else if (strchr(doubled ? "$`" : "$`|&;<>*", *c)) {
			return c;
		}
	}
	return NULL;
}

void words_quote(struct str *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-./:,@%+=";
	if (*word && *word != '~' && word[strspn(word, plain)] == '\0') {
		str_add(out, word);
		return;
	}
	str_add(out, "'");
	for (const char *c = word; *c; c++)
		if (*c == '\'')
			str_add(out, "'\\''");
		else
			str_add_bytes(out, c, 1);
	str_add(out, "'");
}
