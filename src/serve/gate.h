/* Who may ask: the check of the Host header, of secrets, and of a trusted proxy. */
#ifndef GUA_SERVE_GATE_H
#define GUA_SERVE_GATE_H

#include "serve/peer.h"
#include "serve/secrets.h"

struct gate {
	/* Names that clients may call this server, with blanks or commas between them, besides
	 * addresses and localhost; NULL: none. A page of another site whose name leads here
	 * (DNS rebinding) sends its own name, and is refused. */
	const char *host_names;
	bool any_host;		       /* clients are local programs: a unix socket */
	const struct secrets *secrets; /* NULL: everybody may ask */
	/* The address whose user header is believed: an address, or "unix"; NULL: none. On this
	 * host, where every user can connect, it is believed from this user alone. */
	const char *trust_proxy;
	uint32_t proxy_uid;
	const char *user_header;
};

/* What a client sent, of what is checked; NULL: not sent. */
struct gate_client {
	const struct peer *peer;
	const char *host, *authorization, *user;
	bool open; /* what it asks for needs no secret */
};

enum gate_verdict { GATE_PASS, GATE_WRONG_HOST, GATE_NO_SECRET };

/* Whether it is the trusted proxy. */
bool gate_is_proxy(const struct gate *g, const struct peer *p);
/* Judges a client; `user` gets who asks, or "": whom the proxy names, else whose secret it is,
 * else "uid:N" of the peer. */
enum gate_verdict gate_check(
	const struct gate *g, const struct gate_client *c, char user[SECRET_NAME_CAP]);

/* ERR_USAGE unless `text` is an address or "unix". */
int gate_check_proxy(const char *text, struct err *e);
/* ERR_USAGE unless `name` can be the name of a header. */
int gate_check_header(const char *name, struct err *e);

#endif
