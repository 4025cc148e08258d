/* Asks the kernel which user is at the other end of a connection, and decides whether a client
 * may send requests. */
#include "serve/gate.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

/* An address and its port, in network byte order. */
struct end {
	uint8_t family;
	uint16_t port;
	uint32_t address[4];
};

/* Reads an end; an IPv4-mapped IPv6 address becomes IPv4. False: it is neither. */
static bool read_end(struct end *e, const struct sockaddr *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;
	*e = (struct end){ .family = AF_INET };
	if (address && address->sa_family == AF_INET) {
		e->port = four->sin_port;
		memcpy(e->address, &four->sin_addr, sizeof(four->sin_addr));
	} else if (address && address->sa_family == AF_INET6) {
		bool mapped = IN6_IS_ADDR_V4MAPPED(&six->sin6_addr);
		e->port = six->sin6_port;
		e->family = mapped ? AF_INET : AF_INET6;
		memcpy(e->address, &six->sin6_addr.s6_addr[mapped ? 12 : 0], mapped ? 4 : 16);
	} else {
		return false;
	}
	return true;
}

/* Asks the kernel for the one socket that is bound to `own` and connected to `other`. */
static bool ask(int netlink, const struct end *own, const struct end *other)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} request = {
		.head = { .nlmsg_len = sizeof(request),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST },
		.body = { .sdiag_family = own->family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_states = UINT32_MAX,
			.id = { .idiag_sport = own->port,
				.idiag_dport = other->port,
				.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } }
	};
	memcpy(request.body.id.idiag_src, own->address, sizeof(own->address));
	memcpy(request.body.id.idiag_dst, other->address, sizeof(other->address));
	return send(netlink, &request, sizeof(request), 0) == (ssize_t)sizeof(request);
}

/* Reads the owner from the reply. A socket that no process has open any more has no inode,
 * and its uid is meaningless. */
static bool read_owner(int netlink, uint32_t *uid)
{
	union {
		struct nlmsghdr head;
		char bytes[1024];
	} answer;
	struct inet_diag_msg found;
	ssize_t n = recv(netlink, &answer, sizeof(answer), MSG_DONTWAIT);
	if (n < (ssize_t)(NLMSG_HDRLEN + sizeof(found)) ||
		answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	memcpy(&found, NLMSG_DATA(&answer.head), sizeof(found));
	*uid = found.idiag_uid;
	return found.idiag_inode != 0;
}

static bool find_owner(uint32_t *uid, int fd, const struct end *client)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct end server;
	if (getsockname(fd, (struct sockaddr *)&own, &len) != 0 ||
		!read_end(&server, (const struct sockaddr *)&own))
		return false;
	int netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (netlink < 0)
		return false;
	bool found = ask(netlink, client, &server) && read_owner(netlink, uid);
	close(netlink);
	return found;
}

void gate_find_peer(struct peer *p, int fd, const struct sockaddr *address)
{
	struct ucred owner;
	socklen_t len = sizeof(owner);
	struct end client;
	*p = (struct peer){ .address = "unix", .local = true };
	if (!read_end(&client, address)) {
		p->has_uid = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &len) == 0;
		p->uid = p->has_uid ? owner.uid : 0;
		return;
	}
	inet_ntop(client.family, client.address, p->address, sizeof(p->address));
	p->local = client.family == AF_INET
			   ? (ntohl(client.address[0]) >> 24) == 127
			   : IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)client.address);
	p->has_uid = p->local && find_owner(&p->uid, fd, &client);
}

uint64_t gate_client_number(const struct peer *p, const char *user)
{
	char name[320];
	struct in6_addr six;
	if (*user)
		snprintf(name, sizeof(name), "user %s", user);
	else if (p->has_uid)
		snprintf(name, sizeof(name), "uid %u", (unsigned)p->uid);
	else if (inet_pton(AF_INET6, p->address, &six) ==
		 1) /* for IPv6, the 64-bit network is one client */
		snprintf(name, sizeof(name), "%02x%02x:%02x%02x:%02x%02x:%02x%02x::/64",
			six.s6_addr[0], six.s6_addr[1], six.s6_addr[2], six.s6_addr[3],
			six.s6_addr[4], six.s6_addr[5], six.s6_addr[6], six.s6_addr[7]);
	else
		str_copy(name, sizeof(name), p->address);
	return str_sum(name);
}

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
	/* "host", "[address]", or one of these with ":port". */
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
	return is_address(host) || strcasecmp(host, "localhost") == 0 ||
	       is_listed(g->conf->host_names, host);
}

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
	const char *trusted = g->conf->trust_proxy;
	if (!trusted || strcmp(p->address, trusted) != 0)
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
