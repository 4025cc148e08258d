/* The socket on which users send requests to gua enforce. The kernel reports the uid of the
 * other side (SO_PEERCRED). Each connection has one request and one answer, each a single
 * record (SOCK_SEQPACKET), so that neither is split.
 *
 * Nothing that a user does makes gua enforce wait or grow: the number of connections is
 * limited, in all and for each user; a connection without a request is closed; an answer is one
 * send(2) that never waits, and its place stays taken until the user has closed the connection.
 * All subordinate uids of a user (/etc/subuid) count as that user. */
#ifndef GUA_POLICY_USER_SOCKET_H
#define GUA_POLICY_USER_SOCKET_H

#include <poll.h>

#include "policy/user_talk.h"

enum { USER_PLACES = 64, USER_PLACES_OF_ONE = 8 };

/* The service. */
struct user_socket;

/* Creates the socket, open to all users. An old socket of this user that nobody listens on
 * is replaced; any other file of that name is left alone, and is an error. */
int user_socket_open(struct user_socket **out, const char *path, struct err *e);
/* Removes it. */
void user_socket_close(struct user_socket *s);

/* Fills in the descriptors to poll, at most USER_PLACES + 1. Returns how many. */
size_t user_socket_fds(const struct user_socket *s, struct pollfd *fds);
/* How long until user_socket_step() has something to do without an event; -1: nothing. */
int64_t user_socket_wait_ms(const struct user_socket *s);

/* Fills the answer, which is empty, to a request of a user. */
typedef void (*user_answerer)(
	void *context, const struct user_request *r, uint32_t uid, struct user_answer *answer);
/* Accepts, reads and answers what is there, without blocking. */
void user_socket_step(struct user_socket *s, user_answerer answer, void *context);

#endif
