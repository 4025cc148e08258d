/* The checks of `gua doctor` other than those of the sources. Each function checks one thing,
 * changes nothing, and says what to do. */
#ifndef GUA_CMD_DOCTOR_H
#define GUA_CMD_DOCTOR_H

#include "model/finding.h"

/* The host to check. */
struct examination {
	const char *root; /* prefix of /proc, /sys, /dev and /etc; "" for the real ones */
	const char *db;	  /* the store's path */
};

/* doctor_host.c: the system, whether other users' processes are visible, the store. */
void examine_system(const struct examination *x, struct findings *f);
void examine_visibility(const struct examination *x, struct findings *f);
void examine_store(const struct examination *x, struct findings *f);

#endif
