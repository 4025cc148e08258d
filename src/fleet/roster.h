/* The state of each host of a fleet now: what `gua fleet status` shows. */
#pragma once

#include "base/names.h"
#include "fleet/fleet.h"
#include "model/audit.h"
#include "model/restriction.h"
#include "render/text.h"

enum roster_state {
	ROSTER_MISSING, /* expected, and never seen in the look-back */
	ROSTER_SILENT,	/* seen in the look-back, but not now */
	ROSTER_HOLES,	/* samples of another exporter, and scrapes are missing */
	ROSTER_BEHIND,	/* scraped, but its recorder has not accounted for a while */
	ROSTER_OK,
	ROSTER_STATES,
};
extern const char *const roster_state_names[ROSTER_STATES];

struct roster_host {
	const char *name;
	enum roster_state state;
	int64_t accounted_ms; /* accounted up to this moment; -1: unknown */
	int64_t gpus;	      /* -1 unknown */
	char version[48];     /* version of its gua or exporter; "": unknown */
	const char *metrics;  /* whose metrics: "gua", "dcgm"; "": none were seen */
	int64_t interval_ms;  /* between two samples; -1: gua counts */
	double observed;      /* share of the look-back with samples; NAN: gua counts */
	bool has_leases;      /* samples name the pod or job that has a card */
	bool is_scraped, is_missing;
};

/* Zero-initialise. */
struct roster {
	struct names names, expected_names;
	struct roster_host *hosts; /* the worst state first, then by name */
	size_t n, n_seen;	   /* number of hosts: all, and all but the missing ones */
	size_t counts[ROSTER_STATES];
	int64_t expected; /* number of expected hosts; -1: not given */
	int64_t now_ms;
	struct str exporters; /* lines about the exporters that were seen */
};

/* Sets the expected hosts: a number, or a file with one name per line. */
int roster_expect(struct roster *r, const char *expect, struct err *e);
/* Queries the engine. `back_ms`: how far back to look for hosts. */
int roster_read(
	struct roster *r, struct fleet *f, int64_t now_ms, int64_t back_ms, struct err *e);
/* Adds the hosts that another exporter watches, from an audit of its samples in the look-back;
 * then the state of each host is known. */
int roster_settle(
	struct roster *r, struct fleet *f, const struct audit *samples, struct err *e);
/* Whether a host of this name was expected, with or without a port. */
bool roster_expects(const struct roster *r, const char *name);
/* Compares the hosts of an audit with the expected ones, as far as the audit is about them. */
int roster_compare(
	const struct roster *r, struct audit *a, const struct restriction *only, struct err *e);
void roster_finish(struct roster *r);

/* A host name without its port: "node1" for "node1:9400". */
void roster_short_name(char *dst, size_t cap, const char *key);
/* Removes the ports from these names, but not where two would become equal. */
int roster_shorten(const char **keys, size_t n, struct arena *texts, struct err *e);

struct roster_style {
	struct text_style text;
	bool all; /* also show hosts without a fault */
};
void roster_text(struct str *out, const struct roster *r, const struct fleet *f,
	const struct roster_style *style);
void roster_json(struct str *out, const struct roster *r, const struct fleet *f);
