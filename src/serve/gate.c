/* Decides whether a client may send requests. */
#include "serve/gate.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

enum { HOST_CAP = 256 };

static bool is_address(const char *text)
{
	unsigned char bytes[sizeof(struct in6_addr)];
	return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

int gate_check_proxy(const char *text, struct err *e)
{
	if (strcmp(text, "unix") == 0 || is_address(text))
		return 0;
	return err_set(
		e, ERR_USAGE, "'%s' is not an address; write 127.0.0.1, ::1 or unix", text);
}

int gate_check_header(const char *name, struct err *e)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789"
				    "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"; /* RFC 9110, 5.6.2 */
	if (*name && name[strspn(name, token)] == '\0')
		return 0;
	return err_set(e, ERR_USAGE,
		"'%s' cannot be the name of a header; write one like X-Forwarded-User", name);
}

/* Takes the host from "host:port" or "[address]:port"; false: it has neither form. */
static bool read_host(char host[HOST_CAP], const char *header)
{
	bool brackets = *header == '[';
	size_t len = brackets ? strcspn(header, "]") : strcspn(header, ":");
	const char *rest = header + len + (brackets && header[len] == ']');
	if (brackets && header[len] != ']')
		return false;
	if (*rest && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")] != '\0'))
		return false;
	len -= brackets;
	if (len == 0 || len >= HOST_CAP)
		return false;
	memcpy(host, header + brackets, len);
	host[len] = '\0';
	/* A name may end with a dot, for the DNS root. */
	if (!brackets && len > 1 && host[len - 1] == '.')
		host[len - 1] = '\0';
	return true;
}

static bool is_listed(const char *names, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = names ? names : ""; *at;) {
		at += strspn(at, " ,");
		size_t word = strcspn(at, " ,");
		if (word == len && strncasecmp(at, name, len) == 0)
			return true;
		at += word;
	}
	return false;
}

/* Whether the Host header is one of our names or an address. Anyone can make a name resolve
 * to this server; an address cannot be misused in this way. */
static bool is_our_name(const struct gate *g, const char *header)
{
	char host[HOST_CAP];
	if (g->any_host || !header)
		return true;
	if (!read_host(host, header))
		return false;
	return is_address(host) || strcasecmp(host, "localhost") == 0 ||
	       is_listed(g->host_names, host);
}

/* Whether the text can be a user's name. */
static bool is_name(const char *text)
{
	size_t len = strlen(text);
	char safe[SECRET_NAME_CAP];
	if (len == 0 || len >= sizeof(safe))
		return false;
	return str_escape(safe, sizeof(safe), text, len) == len && memcmp(safe, text, len) == 0;
}

bool gate_is_proxy(const struct gate *g, const struct peer *p)
{
	if (!g->trust_proxy || strcmp(p->address, g->trust_proxy) != 0)
		return false;
	return !p->local || (p->has_uid && p->uid == g->proxy_uid);
}

enum gate_verdict gate_check(
	const struct gate *g, const struct gate_client *c, char user[SECRET_NAME_CAP])
{
	*user = '\0';
	if (!is_our_name(g, c->host))
		return GATE_WRONG_HOST;
	bool proxy = gate_is_proxy(g, c->peer);
	if (proxy && c->user && is_name(c->user))
		str_copy(user, SECRET_NAME_CAP, c->user);
	if (!proxy && !g->secrets && c->peer->has_uid)
		snprintf(user, SECRET_NAME_CAP, "uid:%u", (unsigned)c->peer->uid);
	if (!g->secrets || proxy)
		return GATE_PASS;
	if (secrets_allow(g->secrets, c->authorization, user) || c->open)
		return GATE_PASS;
	return GATE_NO_SECRET;
}
