/* The kinds of sources: one table of names, which opens them, and which --source, its help, its
 * completion and run.source in the store are read with. Several names are joined by commas:
 * "nvml,sim". */
#ifndef GUA_SOURCE_KIND_H
#define GUA_SOURCE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "source/diagnosis.h"
#include "source/source_options.h"

struct source;

struct source_kind {
	const char *name;
	const char *help; /* a few words */
	/* Opens it and does the first scan; NULL: a word that stands for others, or for none.
	 */
	int (*open)(struct source **s, const struct source_options *options, struct err *e);
	/* Examines itself for `gua doctor`; there where open is. */
	void (*diagnose)(const struct diagnosis *d, struct findings *f);
	bool invented;	/* what it reports was not measured on a GPU */
	bool automatic; /* "auto" opens it */
};

/* The default, and the word for no source at all. */
#define SOURCE_AUTO "auto"
#define SOURCE_NONE "none"
/* Help of --source, where there must be one and where there may be none. */
#define SOURCE_HELP "auto (default), nvml, sim: invented data; or several: nvml,sim"
#define SOURCE_NONE_HELP "auto (default), nvml, sim: invented data, none; or several: nvml,sim"

enum { SOURCE_KINDS_MAX = 8 };

/* The kinds that a list of names stands for, each once, in its order; of "none" n is 0. */
struct source_list {
	const struct source_kind *kinds[SOURCE_KINDS_MAX];
	size_t n;
};

/* Reads a list of names. ERR_USAGE with the names that there are when one is unknown;
 * `or_none`: "none" is among them. */
int source_list_read(struct source_list *list, const char *names, bool or_none, struct err *e);
/* The names of the list, joined by commas. */
void source_list_text(const struct source_list *list, char *dst, size_t cap);

/* Checks --source and --scenario. */
int source_check(const char *names, const char *scenario, bool or_none, struct err *e);

/* Whether a list has a source whose data is invented, and whether it has one whose data is
 * measured. Names that are not in the table are passed over. */
bool source_is_invented(const char *names);
bool source_is_measured(const char *names);

/* Appends the names with a blank behind each, for completion. */
void source_words(struct str *out);
void source_words_none(struct str *out);

#endif
