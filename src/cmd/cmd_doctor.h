/* The checks of `gua doctor` other than those of the sources. Each function checks one thing,
 * changes nothing, and says what to do. */
#ifndef GUA_CMD_CMD_DOCTOR_H
#define GUA_CMD_CMD_DOCTOR_H

#include "base/str.h"
#include "cmd/cmd.h"
#include "model/finding.h"
#include "driver/source.h"

/* The host to check. */
struct examination {
	const char *root; /* prefix of /proc, /sys, /dev and /etc; "" for the real ones */
	const char *db;	  /* the store's path */
};

/* doctor_host.c: the system, whether other users' processes are visible, the store. */
void examine_system(const struct examination *x, struct findings *f);
void examine_visibility(const struct examination *x, struct findings *f);
void examine_store(const struct examination *x, struct findings *f);
/* Whether notices of gua enforce reach users, if the configuration sends any. */
void examine_notices(const struct examination *x, struct findings *f);

/* Whether the processes on the cards of these sources (a list that ends with
 * NULL) can be read. */
void examine_processes(
	const struct examination *x, const struct source *const *sources, struct findings *f);

/* The lines of a capture about the system. */
void capture_system(const char *root, struct str *out);
/* doctor_capture.c: writes everything that the driver answers into a file. Returns the exit
 * status. */
struct nvml_capture_options;
int doctor_capture(
	const struct command *self, const char *path, const struct nvml_capture_options *o);

#endif
