/* The idle spells of an audit. Only for model/audit.h. */
#ifndef GUA_MODEL_AUDIT_SPELLS_H
#define GUA_MODEL_AUDIT_SPELLS_H

#include <stddef.h>
#include <stdint.h>

#include "model/process.h"
#include "model/spell.h"

/* A spell that overlaps the window. Its begin, end and sums are those of the whole spell. */
struct audit_spell {
	size_t host, card, path; /* indexes; path: which store */
	int64_t id;		 /* of its process's row there */
	uint32_t pid;
	int64_t started_ms;		  /* of the process; -1 unknown */
	const char *user;		  /* the audit's, like the next */
	const char *texts[PROCESS_TEXTS]; /* NULL: none */
	struct spell spell;		  /* without its indexes; SPELL_OPEN: it goes on */
	int64_t window_ms;		  /* its idle time within the window */
};

/* Those with the most idle time within the window, in that order. */
struct audit_spells {
	struct audit_spell *items;
	size_t n, n_left_out;
};

#endif
