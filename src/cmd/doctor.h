/* The checks of `gua doctor` other than those of the sources. Each function checks one thing,
 * changes nothing, and says what to do. */
#ifndef GUA_CMD_DOCTOR_H
#define GUA_CMD_DOCTOR_H

#include "model/finding.h"
#include "source/source.h"

/* The host to check. */
struct examination {
	const char *root; /* prefix of /proc, /sys, /dev and /etc; "" for the real ones */
	const char *db;	  /* the store's path */
};

/* doctor_host.c: the system, whether other users' processes are visible, the store. */
void examine_system(const struct examination *x, struct findings *f);
void examine_visibility(const struct examination *x, struct findings *f);
void examine_store(const struct examination *x, struct findings *f);

/* Whether the processes on the cards of these sources (a list that ends with
 * NULL) can be read. */
void examine_processes(
	const struct examination *x, const struct source *const *sources, struct findings *f);

#endif
