/* What the passes of an audit take from one store. Functions named _read may run in any thread,
 * those named _add take what they have read, or read the store themselves. Only for audit/. */
#ifndef GUA_AUDIT_GATHER_PARTS_H
#define GUA_AUDIT_GATHER_PARTS_H

#include "audit/gather.h"

/* The survey: hosts and runs, cards, where the data begins and ends. */
int records_add(struct gather *g, struct gather_file *file, struct err *e);
int hosts_add(struct gather *g, struct gather_file *file, struct err *e);
/* The first record of the same host. */
size_t hosts_first(const struct gather *g, size_t record);
int cards_add(struct gather *g, struct gather_file *file, struct err *e);
int bounds_read(struct gather *g, struct gather_file *file, struct err *e);
void bounds_add(struct gather *g, const struct gather_file *file);

/* The holders: the processes that the audit is restricted to; what a user holds now; the
 * longest idle spells; memory without a process. */
int wanted_read(struct gather *g, struct gather_file *file, struct err *e);
int wanted_add(struct gather *g, struct gather_file *file, struct err *e);
int wanted_check(const struct gather *g, struct err *e);
int present_add(struct gather *g, struct gather_file *file, struct err *e);
int person_read(struct gather *g, struct gather_file *file, struct err *e);
int spells_read(struct gather *g, struct gather_file *file, struct err *e);
int spells_add(struct gather *g, struct gather_file *file, struct err *e);
int orphans_add(struct gather *g, struct gather_file *file, struct err *e);
/* Counts the events that a report mentions, by kind. */
int events_add(struct gather *g, struct gather_file *file, struct err *e);
/* Sorts what was read. */
void present_sort(struct audit *a);
void events_sort(struct audit *a);
void spells_sort(struct audit_spells *all);
/* Reads what the rows of processes say about the spell, and about the process, with that
 * index; the store is open. */
int spell_describe(struct gather *g, size_t index, struct err *e);
int process_describe(struct gather *g, size_t index, struct err *e);

#endif
