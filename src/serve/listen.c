/* Parses listening addresses and opens sockets. */
#include "serve/listen.h"

#include <arpa/inet.h>
#include <sys/socket.h>

static bool parse_host(struct listen_address *a, const char *host, uint16_t port)
{
	if (strcmp(host, "localhost") == 0)
		host = "127.0.0.1";
	if (inet_pton(AF_INET, host, &a->at.in.sin_addr) == 1) {
		a->at.in.sin_family = AF_INET;
		a->at.in.sin_port = htons(port);
		a->len = sizeof(a->at.in);
		return true;
	}
	if (inet_pton(AF_INET6, host, &a->at.in6.sin6_addr) != 1)
		return false;
	a->at.in6.sin6_family = AF_INET6;
	a->at.in6.sin6_port = htons(port);
	a->len = sizeof(a->at.in6);
	return true;
}

int listen_parse(struct listen_address *a, const char *text, struct err *e)
{
	char host[64];
	*a = (struct listen_address){ 0 };
	if (strncmp(text, "unix:", 5) == 0) {
		const char *path = text + 5;
		if (*path != '/' ||
			!str_copy(a->at.un.sun_path, sizeof(a->at.un.sun_path), path))
			return err_set(e, ERR_USAGE,
				"unix: takes an absolute path of at most %zu bytes, not '%s'",
				sizeof(a->at.un.sun_path) - 1, path);
		a->at.un.sun_family = AF_UNIX;
		a->len = sizeof(a->at.un);
		return 0;
	}
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	bool brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';
	char *end = NULL;
	unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
	bool good = colon && colon[1] >= '0' && colon[1] <= '9' && *end == '\0' &&
		    port <= 65535 && len > 0 && len < sizeof(host) &&
		    (brackets || !memchr(text, ':', len));
	if (good) {
		snprintf(host, sizeof(host), "%.*s", (int)(brackets ? len - 2 : len),
			brackets ? text + 1 : text);
		good = parse_host(a, host, (uint16_t)port);
	}
	return good ? 0
		    : err_set(e, ERR_USAGE,
			      "'%s' is not an address to listen on; write 127.0.0.1:9848, "
			      "[::1]:9848 or unix:/run/gua/serve.sock",
			      text);
}

bool listen_is_local(const struct listen_address *a)
{
	switch (a->at.any.sa_family) {
	case AF_UNIX:
		return true;
	case AF_INET:
		return (ntohl(a->at.in.sin_addr.s_addr) >> 24) == 127;
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(&a->at.in6.sin6_addr);
	default:
		return false;
	}
}

void listen_text(char *dst, size_t cap, const struct listen_address *a)
{
	char host[INET6_ADDRSTRLEN] = "";
	if (a->at.any.sa_family == AF_UNIX) {
		snprintf(dst, cap, "unix:%s", a->at.un.sun_path);
	} else if (a->at.any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a->at.in6.sin6_addr, host, sizeof(host));
		snprintf(dst, cap, "[%s]:%u", host, ntohs(a->at.in6.sin6_port));
	} else {
		inet_ntop(AF_INET, &a->at.in.sin_addr, host, sizeof(host));
		snprintf(dst, cap, "%s:%u", host, ntohs(a->at.in.sin_port));
	}
}

/* Removes the socket of a server that has ended. One that accepts connections is left alone. */
static void remove_stale(const struct listen_address *a)
{
	struct stat st;
	if (a->at.any.sa_family != AF_UNIX || lstat(a->at.un.sun_path, &st) != 0 ||
		!S_ISSOCK(st.st_mode))
		return;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, &a->at.any, a->len) != 0 && errno == ECONNREFUSED)
		unlink(a->at.un.sun_path);
	close(fd);
}

static int bind_and_listen(
	int fd, const struct listen_address *a, const struct listen_owner *owner)
{
	int on = 1;
	if (a->at.any.sa_family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* The kernel creates the file with this mode. Unless it is `closed`, every user who
	 * can enter the directory may connect, as with a port of the loopback interface. */
	mode_t mask = umask(owner->closed ? 0117 : 0111);
	int rc = bind(fd, &a->at.any, a->len);
	int error = errno;
	umask(mask);
	if (rc == 0 && owner->closed && owner->uid != geteuid()) {
		/* Sets the owner. Without privilege, a process can give a file only to a group
		 * that it is in. */
		if (lchown(a->at.un.sun_path, owner->uid, owner->gid) != 0 &&
			lchown(a->at.un.sun_path, (uid_t)-1, owner->gid) != 0)
			log_warning("cannot give %s to the user of the proxy: %s; open the "
				    "socket with gua-serve.socket and SocketUser=",
				a->at.un.sun_path, strerror(errno));
	}
	errno = error;
	return rc == 0 ? listen(fd, SOMAXCONN) : rc;
}

int listen_open(const struct listen_address *a, const struct listen_owner *owner, struct err *e)
{
	char text[160];
	remove_stale(a);
	int fd = socket(a->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && bind_and_listen(fd, a, owner) == 0)
		return fd;
	int error = errno;
	listen_text(text, sizeof(text), a);
	file_close(fd);
	return err_set(e, ERR_WORLD, "cannot listen on %s: %s%s", text, strerror(error),
		error == EADDRINUSE ? "; choose another address with --listen" : "");
}

int listen_of(struct listen_address *a, int fd, struct err *e)
{
	*a = (struct listen_address){ .len = sizeof(a->at) };
	if (getsockname(fd, &a->at.any, &a->len) != 0)
		return err_set(
			e, ERR_WORLD, "cannot use the socket %d: %s", fd, strerror(errno));
	return 0;
}
