/* The views of nvidia-smi that are not queries of single fields: the table, the list (-L), the
 * full report (-q) as text and XML, the versions. Layouts and names are those that scripts
 * read. */
#ifndef GUA_VIEW_SMI_H
#define GUA_VIEW_SMI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "present/filter.h"
#include "present/live.h"
#include "view/stat.h"

/* One look at the selected cards. */
struct smi {
	struct live *live;
	const struct present *now; /* of the live view */
	struct stat_boards boards; /* of the cards that -i names; without -i, all */
};

/* ERR_NOTHING: -i names no card. */
int smi_init(struct smi *s, struct live *l, const struct filter *f, struct err *e);
void smi_finish(struct smi *s);
/* Whether nvidia-smi could open each card. ERR_WORLD: its sentence about the first that it
 * could not; the number is minus the driver's code. */
int smi_check(const struct smi *s, struct err *e);
/* The same for the cards that `f` selects. */
int smi_check_live(struct live *l, const struct filter *f, struct err *e);

/* The view without options, and its parts. */
void smi_table_wanted(unsigned char *wanted);
void smi_table(const struct smi *s, struct str *out);
void smi_list(const struct smi *s, struct str *out);
void smi_versions(const struct smi *s, struct str *out);

/* -q. `sections` are bits; 0: all. */
int smi_report_sections(const char *list, unsigned *sections, struct err *e);
/* Appends the names of the sections, each followed by a space. */
void smi_report_section_names(struct str *out);
void smi_report_wanted(unsigned char *wanted);
void smi_report(const struct smi *s, unsigned sections, struct str *out);
void smi_report_xml(const struct smi *s, struct str *out);

#endif
