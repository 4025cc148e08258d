/* The views of nvidia-smi that are not queries of single fields: the table, the list (-L), the
 * full report (-q) as text and XML, the versions. Layouts and names are those that scripts
 * read. */
#pragma once

#include "present/filter.h"
#include "present/live.h"
#include "view/stat.h"

/* Whether nvidia-smi could open each card. ERR_WORLD: its sentence about the first that it
 * could not; the number is minus the driver's code. */
int smi_check(const struct stat_pick *s, struct err *e);
/* The same for the cards that `f` selects. */
int smi_check_live(struct live *l, const struct filter *f, struct err *e);

/* The generation of the driver, 535 for 535.261.03; unknown: the newest. Layouts follow it. */
int smi_generation(const struct stat_pick *s);

/* The n-th process of a board; NULL: there are fewer. */
const struct present_process *smi_process(
	const struct stat_pick *s, const struct present_board *b, size_t n);
/* The n-th instance of a board that is divided; NULL: there are fewer. */
const struct present_card *smi_instance(
	const struct stat_pick *s, const struct present_board *b, size_t n);
/* "C", "G", "C+G", "M+C". */
struct brief smi_type(const struct present_process *p);
/* "3", or "N/A" without an id. */
struct brief smi_id(int id);

/* The view without options, and its parts. */
void smi_table_wanted(unsigned char *wanted);
void smi_table(const struct stat_pick *s, struct str *out);
void smi_list(const struct stat_pick *s, struct str *out);
void smi_versions(const struct stat_pick *s, struct str *out);
/* The matrix of topo -m: how near two cards are, by the PCI tree in sysfs below `root`. NVLinks
 * are not in it. */
void smi_topology(const struct stat_pick *s, const char *root, struct str *out);

/* -q, in smi_report.c. `sections` are bits; 0: all. */
int smi_report_sections(const char *list, unsigned *sections, struct err *e);
/* Appends the names of the sections, each followed by a space. */
void smi_report_section_names(struct str *out);
void smi_report_wanted(unsigned char *wanted);
void smi_report(const struct stat_pick *s, bool xml, unsigned sections, struct str *out);
