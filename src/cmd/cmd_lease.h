/* gua lease: what its subcommands share, and what gua doctor says about leases. */
#pragma once

#include "cmd/cmd.h"
#include "config/config.h"
#include "lease/lease_dir.h"
#include "model/finding.h"

/* The directory of leases and the host, as a command was told. */
struct lease_place {
	const char *path; /* NULL: the usual one */
	const char *root;
	const char *boot; /* the id of this boot */
	const struct config_leases *config;
	int64_t now_ms;
	bool once; /* watch: asks once */
};

/* cmd_lease.parts, which gua-lease has. */
struct lease_parts {
	/* Writes the leases of a scheduler. */
	int (*watch)(const struct lease_place *p, enum lease_kind kind, struct err *e);
};

/* Adds a row about the leases of this host, and one for each thing that is wrong with them;
 * none where no scheduler is seen. */
void cmd_lease_examine(struct findings *f, const struct lease_place *p);
