/* A request to gua-post: three lines (deadline, URL, header), then the body. */
#include "policy/post.h"

int post_write(struct str *out, const struct post_request *r, struct err *e)
{
	if (strpbrk(r->url, "\r\n") || strpbrk(r->header, "\r\n"))
		return err_set(e, ERR_USAGE, "webhook_url must not have a line break");
	str_addf(out, "%lld\n%s\n%s\n", (long long)r->timeout_ms, r->url, r->header);
	str_add_bytes(out, r->body, r->body_len);
	if (out->failed)
		return err_memory(e);
	return out->len <= POST_REQUEST_MOST
		       ? 0
		       : err_set(e, ERR_USAGE, "the notice is too long to be posted");
}

/* Ends the next line with a NUL and returns it; NULL: it has no end. */
static const char *take_line(char **at, size_t *len)
{
	char *line = *at, *end = memchr(line, '\n', *len);
	if (!end || memchr(line, '\0', (size_t)(end - line)))
		return NULL;
	*end = '\0';
	*at = end + 1;
	*len -= (size_t)(*at - line);
	return line;
}

int post_read(struct post_request *r, char *bytes, size_t len, struct err *e)
{
	char *end = NULL;
	const char *limit = take_line(&bytes, &len);
	const char *url = limit ? take_line(&bytes, &len) : NULL;
	const char *header = url ? take_line(&bytes, &len) : NULL;
	long long ms = limit ? strtoll(limit, &end, 10) : 0;
	if (!header || !*url || *end || ms <= 0 || ms > POST_LONGEST_MS)
		return err_set(e, ERR_USAGE, "this is not a request of gua enforce");
	*r = (struct post_request){ ms, url, header, bytes, len };
	return 0;
}
