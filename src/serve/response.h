/* Answers in the form that libmicrohttpd sends, with the headers that all of them have. */
#ifndef GUA_SERVE_RESPONSE_H
#define GUA_SERVE_RESPONSE_H

#include "serve/route.h"

struct MHD_Connection;
struct MHD_Response;

/* A response that can be sent many times. */
struct response {
	struct MHD_Response *whole, *unchanged; /* unchanged: the 304 response, or NULL */
	int status;
	size_t bytes; /* of the body */
	char etag[40];
};

/* Makes a response from an answer, whose body it takes over. When out of memory, it returns
 * one that closes the connection. */
struct response *response_new(struct answer *a, const struct route *route);
void response_free(struct response *r);
/* Queues it; returns the status that is sent, or 0 on failure. */
int response_send(const struct response *r, struct MHD_Connection *connection);

#endif
