/* How a source examines itself: whether it can be used on this host, and what is in the way.
 * It is asked whether or not it could be opened; it reads, and changes nothing. */
#ifndef GUA_DRIVER_KIND_H
#define GUA_DRIVER_KIND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "driver/source_host.h"
#include "model/finding.h"

struct source;

/* What is known when a source is asked to examine itself. */
struct diagnosis {
	const char *name;      /* as the user named the source: "nvml", "capture:FILE" */
	const char *root;      /* where /proc, /sys and /dev are; "" for the real ones */
	struct source *source; /* drained and looked at once; NULL: that failed */
	struct err why;	       /* then: the sentence */
	bool hangs;	       /* if it failed: whether it did not answer in time */
	void *before; /* what the kind's look() saw before the source was opened, or NULL */
};

/* Of each kind, for the table of kinds. */
void *nvml_diagnose_before(const char *root);
void nvml_diagnose(const struct diagnosis *d, struct findings *f);
void sim_diagnose(const struct diagnosis *d, struct findings *f);
void captured_diagnose(const struct diagnosis *d, struct findings *f);

/* The kinds of sources: one table, which is used to open them, to read --source and run.source
 * in the store, and to make the help and completion of --source. Several names are joined by
 * commas: "nvml,sim". */

struct source;

struct source_kind {
	const char *name;
	const char *help; /* a few words */
	/* Opens it and does the first scan; NULL: this name stands for other kinds, or for
	 * none. */
	int (*open)(struct source **s, const struct source_options *options, struct err *e);
	/* Looks at the host before the source is opened: a library may change it, as NVIDIA's
	 * makes device nodes for root. To be freed with free(). May be NULL, and return it. */
	void *(*look)(const char *root);
	/* Examines the source for `gua doctor`; set when `open` is set. */
	void (*diagnose)(const struct diagnosis *d, struct findings *f);
	bool invented;	/* its data is not measured on a GPU of this host, now */
	bool automatic; /* "auto" opens it */
	bool may_block; /* its calls may never return: a host opens it, where there is one */
};

/* Opens a source of a kind: here, or by the host. */
int source_kind_open(const struct source_kind *kind, struct source **s,
	const struct source_options *options, struct err *e);
/* Whether the host opens it. A clock that only this process can read keeps it here. */
bool source_kind_is_apart(const struct source_kind *kind, const struct source_options *options);

/* How each kind is opened, for the table. */
int nvml_source_open(struct source **s, const struct source_options *options, struct err *e);
int sim_source_open(struct source **s, const struct source_options *options, struct err *e);
int captured_source_open(
	struct source **s, const struct source_options *options, struct err *e);
int captured_check(const char *path, struct err *e);

/* The default, and the name that means no source. */
#define SOURCE_AUTO "auto"
#define SOURCE_NONE "none"
/* A capture is named with its file, "capture:FILE", and alone. */
#define SOURCE_CAPTURE "capture"

enum { SOURCE_NAME_CAP = PATH_MAX + 16 };

/* The file of a capture; NULL: the name is not one. In a store the name has no file. */
const char *source_capture_path(const char *name);
/* Makes the file of a capture absolute, in `dst` of SOURCE_NAME_CAP bytes; others stay. */
int source_make_absolute(const char **name, char *dst, struct err *e);
/* Whether the data is played from a capture. */
bool source_is_captured(const char *names);

/* Help of --source, where a source is required and where there may be none. */
#define SOURCE_HELP                                                                            \
	"where readings come from: auto (default), nvml, sim (invented data), several: "       \
	"nvml,sim, or a capture of another host: capture:FILE"

#define SOURCE_NONE_HELP                                                                       \
	"where readings come from: auto (default), nvml, sim (invented data), none, several: " \
	"nvml,sim, or a capture of another host: capture:FILE"

/* Help of --scenario. */
#define SCENARIO_HELP "scenario for the simulated source: see man gua-scenario"

enum { SOURCE_KINDS_MAX = 8 };

/* The kinds that a list of names stands for, each once, in its order; of "none" n is 0. */
struct source_list {
	const struct source_kind *kinds[SOURCE_KINDS_MAX];
	size_t n;
};

/* Reads a list of names. ERR_USAGE with the known names when a name is unknown; `or_none`:
 * "none" is allowed. */
int source_list_read(struct source_list *list, const char *names, bool or_none, struct err *e);
/* The names of the list, joined by commas. */
void source_list_text(const struct source_list *list, char *dst, size_t cap);

/* Checks --source and --scenario, and that a capture can be played. */
int source_check(const char *names, const char *scenario, bool or_none, struct err *e);

/* Whether a list has a source with simulated data, and whether it has one with measured data.
 * Names that are not in the table are ignored. */
bool source_is_invented(const char *names);
bool source_is_measured(const char *names);

/* Appends the names, each followed by a blank, for completion. */
void source_words(struct str *out);
void source_words_none(struct str *out);

#endif
