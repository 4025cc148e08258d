/* Connects to the engine of a fleet as options and gua.conf say. Only for gua-fleet. */
#ifndef GUA_CMD_FLEET_ENGINE_H
#define GUA_CMD_FLEET_ENGINE_H

#include "cmd/cmd_fleet.h"
#include "fleet/fleet.h"
#include "audit/audit.h"

/* Shows progress if standard error is a terminal. */
int fleet_engine_connect(struct fleet *f, const struct fleet_values *v,
	const struct config_fleet *c, struct err *e);
/* Refuses questions that metrics cannot answer. */
int fleet_engine_check(const struct audit_question *q, struct err *e);
/* Removes the line of progress. */
void fleet_engine_quiet(void);

#endif
