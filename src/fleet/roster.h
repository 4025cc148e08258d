/* The state of each host of a fleet now: what `gua fleet status` shows. */
#ifndef GUA_FLEET_ROSTER_H
#define GUA_FLEET_ROSTER_H

#include "base/names.h"
#include "fleet/fleet.h"
#include "model/audit.h"
#include "model/restriction.h"
#include "render/text.h"

enum roster_state {
	ROSTER_MISSING, /* expected, and never seen in the look-back */
	ROSTER_SILENT,	/* seen, but not now */
	ROSTER_BEHIND,	/* scraped, but its recorder has not accounted for a while */
	ROSTER_OK,
	ROSTER_STATES,
};
extern const char *const roster_state_names[ROSTER_STATES];

struct roster_host {
	const char *name;
	enum roster_state state;
	int64_t accounted_ms; /* up to this moment; -1 unknown */
	int64_t gpus;	      /* -1 unknown */
	char version[48];     /* of its gua; "" unknown */
	bool is_scraped, is_missing;
};

/* Zero-initialise. */
struct roster {
	struct names names, expected_names;
	struct roster_host *hosts; /* the worst state first, then by name */
	size_t n, n_seen;	   /* in hosts[]: all, and without those that are missing */
	size_t counts[ROSTER_STATES];
	int64_t expected; /* how many; -1: not said */
	int64_t now_ms;
};

/* Expected hosts: a number, or a file with one name a line. */
int roster_expect(struct roster *r, const char *expect, struct err *e);
/* Asks the engine. `back_ms`: how long ago a host may have been seen last. */
int roster_read(
	struct roster *r, struct fleet *f, int64_t now_ms, int64_t back_ms, struct err *e);
/* Whether a host of this name was expected, with or without a port. */
bool roster_expects(const struct roster *r, const char *name);
/* Compares the hosts of an audit with those that were expected, of those that it is about. */
int roster_compare(
	const struct roster *r, struct audit *a, const struct restriction *only, struct err *e);
void roster_finish(struct roster *r);

/* A host without the port of its address: "node1" of "node1:9400". */
void roster_short_name(char *dst, size_t cap, const char *key);

struct roster_style {
	struct text_style text;
	bool all; /* also hosts that are well */
};
void roster_text(struct str *out, const struct roster *r, const struct fleet *f,
	const struct roster_style *style);
void roster_json(struct str *out, const struct roster *r, const struct fleet *f);

#endif
