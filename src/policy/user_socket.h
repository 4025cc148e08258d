/* Where users ask gua enforce: a socket, of which the kernel says who is on the other side
 * (SO_PEERCRED). One request for each connection, one record each way (SOCK_SEQPACKET), so that
 * there are no half requests and no half answers.
 *
 * Nothing that a user does makes gua enforce wait or grow: places for connections are few, and
 * those of one user fewer; a connection that asks nothing is closed; an answer is one send(2)
 * that never waits, and its place stays taken until the user has closed the connection. A user
 * with subordinate uids (/etc/subuid) is one user. */
#ifndef GUA_POLICY_USER_SOCKET_H
#define GUA_POLICY_USER_SOCKET_H

#include <poll.h>

#include "policy/user_talk.h"

enum { USER_PLACES = 64, USER_PLACES_OF_ONE = 8 };

/* The service. */
struct user_socket;

/* Makes the socket, open to all. A socket of this user that nobody listens to any more is
 * replaced; whatever else has its name is left alone, and an error. */
int user_socket_open(struct user_socket **out, const char *path, struct err *e);
/* Removes it. */
void user_socket_close(struct user_socket *s);

/* Fills in what to poll for, at most USER_PLACES + 1. Returns how many. */
size_t user_socket_fds(const struct user_socket *s, struct pollfd *fds);
/* Until user_socket_step() has something to do without being woken; -1: nothing. */
int64_t user_socket_wait_ms(const struct user_socket *s);

/* Fills the answer to a request of a user, which is empty. */
typedef void (*user_answerer)(
	void *context, const struct user_request *r, uint32_t uid, struct user_answer *answer);
/* Accepts, reads and answers what is there, and waits for nothing. */
void user_socket_step(struct user_socket *s, user_answerer answer, void *context);

#endif
