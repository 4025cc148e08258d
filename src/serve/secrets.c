/* Reads secrets from a file and checks credentials against them. */
#include "serve/secrets.h"

enum { FILE_BYTES = 64 * 1024, HEADER_BYTES = 1024, SECRETS_MAX = 1000 };

struct secret {
	const char *name; /* in `text`, like the next */
	const char *secret;
	size_t len;
};

struct secrets {
	char *text; /* the file's lines, split into names and secrets */
	size_t text_len;
	struct secret *items;
	size_t n;
};

int secrets_read_file(const char *path, char **bytes, size_t *len, struct err *e)
{
	struct file_content f = { 0 };
	int rc = file_read_regular(path, FILE_BYTES, &f, e);
	if (rc == 0 && f.st.st_uid != 0 && f.st.st_uid != geteuid())
		rc = err_set(e, ERR_WORLD,
			"%s belongs to the uid %d; it must belong to root or to the server's "
			"user",
			path, (int)f.st.st_uid);
	if (rc == 0 && (f.st.st_mode & 037))
		rc = err_set(e, ERR_WORLD,
			"%s is refused, because other users may read it or write to it; run "
			"chmod 0600 on it, or 0640",
			path);
	if (rc) {
		free(f.data);
		return rc;
	}
	*bytes = f.data;
	*len = f.len;
	return 0;
}

static int add_line(
	struct secrets *s, char *line, size_t number, const char *file, struct err *e)
{
	char *colon = strchr(line, ':');
	size_t name = colon ? (size_t)(colon - line) : 0;
	if (name == 0 || name >= SECRET_NAME_CAP)
		return err_set(
			e, ERR_WORLD, "%s:%zu: a line must be NAME:SECRET", file, number);
	if (strlen(colon + 1) < SECRET_LEAST)
		return err_set(e, ERR_WORLD,
			"%s:%zu: a secret must have at least %d characters; 'openssl rand -hex "
			"24' makes one",
			file, number, (int)SECRET_LEAST);
	if (s->n == SECRETS_MAX)
		return err_set(
			e, ERR_WORLD, "%s has more than %d lines", file, (int)SECRETS_MAX);
	if (!array_one_more(&s->items, s->n))
		return err_memory(e);
	*colon = '\0';
	s->items[s->n++] = (struct secret){ line, colon + 1, strlen(colon + 1) };
	return 0;
}

int secrets_parse(struct secrets **secrets, const char *name, const char *bytes, size_t len,
	struct err *e)
{
	struct secrets *s = calloc(1, sizeof(*s));
	int rc = 0;
	size_t number = 0;
	*secrets = s;
	if (s)
		s->text = malloc(len + 1);
	if (!s || !s->text)
		return err_memory(e);
	if (memchr(bytes, '\0', len))
		return err_set(e, ERR_WORLD, "%s is not a text file", name);
	memcpy(s->text, bytes, len);
	s->text[len] = '\0';
	s->text_len = len;
	for (char *at = s->text, *next; at && rc == 0; at = next) {
		next = strchr(at, '\n');
		if (next)
			*next++ = '\0';
		number++;
		at[strcspn(at, "\r")] = '\0';
		if (*at && *at != '#')
			rc = add_line(s, at, number, name, e);
	}
	if (rc == 0 && s->n == 0)
		rc = err_set(e, ERR_WORLD, "%s has no line NAME:SECRET", name);
	return rc;
}

int secrets_read(struct secrets **s, const char *path, struct err *e)
{
	char *bytes = NULL;
	size_t len = 0;
	*s = NULL;
	if (secrets_read_file(path, &bytes, &len, e))
		return e->code;
	int rc = secrets_parse(s, path, bytes ? bytes : "", len, e);
	if (bytes)
		explicit_bzero(bytes, len);
	free(bytes);
	return rc;
}

void secrets_free(struct secrets *s)
{
	if (!s)
		return;
	if (s->text)
		explicit_bzero(s->text, s->text_len);
	free(s->text);
	free(s->items);
	free(s);
}

/* Returns 0 if both texts are equal. Takes the same time for all texts as long as `given`. */
static unsigned differ(const struct secret *secret, const char *given, size_t len)
{
	unsigned difference = secret->len != len;
	for (size_t i = 0; i < len; i++) {
		unsigned char own = (unsigned char)secret->secret[i < secret->len ? i : 0];
		difference |= own ^ (unsigned char)given[i];
	}
	return difference;
}

/* Decodes base64; false: malformed, or too long. */
static bool decode(const char *text, char *dst, size_t cap, size_t *len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0;
	unsigned n_bits = 0;
	*len = 0;
	for (; *text && *text != '='; text++) {
		const char *digit = strchr(digits, *text);
		if (!digit || *len + 1 >= cap)
			return false;
		bits = (bits << 6 | (uint32_t)(digit - digits)) & 0xffffff;
		n_bits += 6;
		if (n_bits >= 8) {
			n_bits -= 8;
			dst[(*len)++] = (char)(bits >> n_bits & 0xff);
		}
	}
	dst[*len] = '\0';
	return text[strspn(text, "=")] == '\0';
}

/* The credentials of a client: a secret and, with basic authentication, a name. */
struct credentials {
	char text[HEADER_BYTES];
	const char *name; /* NULL: any */
	const char *secret;
};

static bool read_header(struct credentials *c, const char *authorization)
{
	size_t len = 0;
	c->name = NULL;
	if (!authorization)
		return false;
	if (strncasecmp(authorization, "Bearer ", 7) == 0) {
		authorization += 7 + strspn(authorization + 7, " ");
		c->secret = c->text;
		return str_copy(c->text, sizeof(c->text), authorization);
	}
	if (strncasecmp(authorization, "Basic ", 6) != 0)
		return false;
	authorization += 6 + strspn(authorization + 6, " ");
	if (!decode(authorization, c->text, sizeof(c->text), &len) ||
		memchr(c->text, '\0', len))
		return false;
	char *colon = strchr(c->text, ':');
	if (!colon)
		return false;
	*colon = '\0';
	c->name = c->text;
	c->secret = colon + 1;
	return true;
}

bool secrets_allow(
	const struct secrets *s, const char *authorization, char name[SECRET_NAME_CAP])
{
	struct credentials c;
	const struct secret *found = NULL;
	*name = '\0';
	if (!read_header(&c, authorization))
		return false;
	size_t len = strlen(c.secret);
	for (size_t i = 0; i < s->n; i++) {
		bool same = differ(&s->items[i], c.secret, len) == 0;
		if (same && (!c.name || strcmp(c.name, s->items[i].name) == 0))
			found = &s->items[i];
	}
	if (found)
		str_copy(name, SECRET_NAME_CAP, found->name);
	explicit_bzero(c.text, sizeof(c.text));
	return found != NULL;
}
