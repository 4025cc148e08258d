/* gua enforce: what its subcommands share. */
#pragma once

#include "cmd/cmd.h"
#include "cmd/share/configure.h"
#include "policy/facts.h"
#include "policy/rules.h"
#include "render/text.h"

struct enforce_options {
	const char *db, *policy_db, *now, *root, *clock;
	struct configure_options conf;
	struct window_words window;
	bool json, utc, once;
};

/* A subcommand while it runs. */
struct enforce {
	const struct command *self;
	const struct enforce_options *o;
	struct configuration *conf;
	struct policy policy;
	char db[PATH_MAX], policy_db[PATH_MAX];
	int64_t now_ms;
	const char *operand; /* after the subcommand; NULL: none */
};

/* Functions that only the program gua-enforce has: the `parts` of its command. Without them,
 * the subcommands are handed over to that program. */
struct enforce_parts {
	int (*run)(struct enforce *x, struct err *e);
	int (*test_notice)(struct enforce *x, struct err *e);
};

/* Returns as struct command's `run`. */
int enforce_simulate(struct enforce *x, struct err *e);

/* Finds the socket on which users ask gua enforce: with --db, the one beside that store; else
 * the configured one, or the system's if there is one. */
int enforce_socket(
	char path[PATH_MAX], const struct config_policy *config, const char *db, struct err *e);

/* Reads a pid, or a lease: "slurm:4". ERR_USAGE: it is neither. */
int enforce_parse_asked(const char *text, struct facts_asked *what, struct err *e);
/* Writes a moment in the zone that was asked for, or "-". */
struct brief enforce_moment(const struct enforce *x, int64_t ms);
