/* The other end of a connection: its address and, if it is on this host, its user, as the
 * kernel reports them. */
#ifndef GUA_SERVE_PEER_H
#define GUA_SERVE_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

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
void peer_find(struct peer *p, int fd, const struct sockaddr *address);

/* A number for the client that limits apply to: a user of this host, or the network of an
 * address. `user` is the one that a trusted proxy names; "": there is no proxy. */
uint64_t peer_client(const struct peer *p, const char *user);

#endif
