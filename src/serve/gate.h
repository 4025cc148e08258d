/* Who may send requests: the other end of a connection, as the kernel reports it; the Host
 * header, secrets, and a trusted proxy. */
#pragma once

#include <sys/socket.h>

#include "base/base.h"
#include "config/config.h"
#include "serve/secrets.h"

/* The other end of a connection: its address and, if it is on this host, its user. */
struct peer {
	char address[48]; /* "192.0.2.1", "unix" */
	bool local;	  /* a unix socket, or the loopback interface */
	bool has_uid;
	uint32_t uid;
};

/* Finds the user that opened a connection. A unix socket knows its peer (SO_PEERCRED); for a
 * connection over the loopback interface, the kernel is asked who owns the other socket
 * (sock_diag(7)). The uid stays unknown if the kernel does not report it, or if the process
 * has already closed the socket. `address` is the client's; NULL: a unix socket. */
void gate_find_peer(struct peer *p, int fd, const struct sockaddr *address);

/* A number for the client that limits apply to: a user of this host, or the network of an
 * address. `user` is the one that a trusted proxy names; "": there is no proxy. */
uint64_t gate_client_number(const struct peer *p, const char *user);

struct gate {
	/* Its host_names are names by which clients may call this server, separated by blanks
	 * or commas, in addition to addresses and localhost. A page of another site whose name
	 * resolves to this server (DNS rebinding) sends that name, and is refused.
	 * Its trust_proxy is the address of the proxy whose user header is trusted, or "unix".
	 * On this host, where every user can connect, it is trusted only from proxy_uid. */
	const struct config_serve *conf;
	bool any_host;		       /* clients are local programs: a unix socket */
	const struct secrets *secrets; /* NULL: everybody may send requests */
	uint32_t proxy_uid;
};

/* The parts of a request that are checked; NULL: not sent. */
struct gate_client {
	const struct peer *peer;
	const char *host, *authorization, *user;
	bool open; /* the requested page needs no secret */
};

enum gate_verdict { GATE_PASS, GATE_WRONG_HOST, GATE_NO_SECRET };

/* Whether it is the trusted proxy. */
bool gate_is_proxy(const struct gate *g, const struct peer *p);
/* Checks a client and sets `user`: the user that the proxy names, else the owner of the
 * secret, else "uid:N" of the peer; "": unknown. */
enum gate_verdict gate_check(
	const struct gate *g, const struct gate_client *c, char user[SECRET_NAME_CAP]);

/* ERR_USAGE unless `text` is an address or "unix". */
int gate_check_proxy(const char *text, struct err *e);
/* ERR_USAGE unless `name` can be the name of a header. */
int gate_check_header(const char *name, struct err *e);
