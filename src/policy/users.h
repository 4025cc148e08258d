/* The socket on which users send requests to gua enforce run, and the answers. The kernel
 * reports the uid of the other side (SO_PEERCRED). Each connection has one request and one
 * answer, each a single record (SOCK_SEQPACKET), so that neither is split. Only for
 * gua-enforce.
 *
 * Nothing that a user does makes gua enforce wait or grow: the number of connections is
 * limited, in all and for each user; a connection without a request is closed; an answer is one
 * send(2) that never waits, and its place stays taken until the user has closed the connection.
 * All subordinate uids of a user (/etc/subuid) count as that user. */
#pragma once

#include "policy/enforcer.h"
#include "policy/user_talk.h"

enum { USERS_PLACES = 64, USERS_PLACES_OF_ONE = 8, USERS_FDS = USERS_PLACES + 1 };

struct users;

/* Creates the socket, open to all users. An old socket of this user that nobody listens on
 * is replaced; any other file of that name is left alone, and is an error. The enforcer is
 * borrowed; its policy.db may be closed and opened again between calls. */
int users_open(struct users **out, struct enforcer *enforcer, struct err *e);
/* Removes the socket. */
void users_close(struct users *u);

/* Accepts, reads and answers what is there, without blocking; `now_ms` is the moment that
 * passes judge. In all of these, NULL means that no socket is open. */
void users_step(struct users *u, int64_t now_ms);
/* Fills in the descriptors to poll, at most USERS_FDS. Returns how many. */
size_t users_fds(const struct users *u, struct pollfd *fds);
/* How long until users_step() has something to do without an event; -1: nothing. */
int64_t users_wait_ms(const struct users *u);
