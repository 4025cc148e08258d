/* Describes this machine for the run's row. */
#pragma once

#include "model/tick.h"

/* Fills hostname (`name` when it is not ""), machine_id and environment from below `root`;
 * info->source is filled already. */
void machine_describe(struct run_info *info, const char *root, const char *name);
