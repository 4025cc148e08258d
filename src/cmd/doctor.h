/* What `gua doctor` examines besides the sources, which examine themselves. Each function looks
 * at one thing, changes nothing, and says what to do. */
#ifndef GUA_CMD_DOCTOR_H
#define GUA_CMD_DOCTOR_H

#include "model/finding.h"

/* What is being looked at. */
struct examination {
	const char *root; /* where /proc, /sys, /dev and /etc are; "" for the real ones */
	const char *db;	  /* the store's path */
};

/* doctor_host.c: system, who can be seen, the store. */
void examine_system(const struct examination *x, struct findings *f);
void examine_visibility(const struct examination *x, struct findings *f);
void examine_store(const struct examination *x, struct findings *f);

#endif
