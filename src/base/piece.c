/* Compares and splits parts of texts. */
#include "base/piece.h"

bool piece_is_like(struct piece text, const char *pattern)
{
	size_t n = strlen(pattern);
	if (n && pattern[0] == '*')
		return text.len >= n - 1 &&
		       memcmp(text.at + text.len - (n - 1), pattern + 1, n - 1) == 0;
	if (n && pattern[n - 1] == '*')
		return text.len >= n - 1 && memcmp(text.at, pattern, n - 1) == 0;
	return text.len == n && memcmp(text.at, pattern, n) == 0;
}

size_t piece_span(struct piece text, const char *set)
{
	size_t n = 0;
	while (n < text.len && text.at[n] && strchr(set, text.at[n]))
		n++;
	return n;
}

struct piece piece_cut(struct piece *text, char separator)
{
	const char *end = text->len ? memchr(text->at, separator, text->len) : NULL;
	struct piece first = { text->at, end ? (size_t)(end - text->at) : text->len };
	*text = end ? piece_skip(*text, first.len + 1) : (struct piece){ NULL, 0 };
	return first;
}

struct piece piece_skip(struct piece text, size_t n)
{
	return (struct piece){ text.at + n, text.len - n };
}

static struct piece without_slashes(struct piece path)
{
	while (path.len > 1 && path.at[path.len - 1] == '/')
		path.len--;
	return path;
}

struct piece piece_basename(struct piece path)
{
	path = without_slashes(path);
	const char *slash = path.len ? memrchr(path.at, '/', path.len) : NULL;
	if (!slash || path.len == 1)
		return path;
	return piece_skip(path, (size_t)(slash - path.at) + 1);
}

struct piece piece_directory(struct piece path)
{
	path = without_slashes(path);
	const char *slash = path.len ? memrchr(path.at, '/', path.len) : NULL;
	return (struct piece){ path.at, slash ? (size_t)(slash - path.at) : 0 };
}
