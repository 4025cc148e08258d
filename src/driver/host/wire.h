/* The bytes that the process that asks the driver and the one that uses its readings send to
 * each other. Each struct is described once, member by member, and both sides use that
 * description. Of a source, the first process sends what has changed since the last time; the
 * second keeps a mirror of it. Both are the same program, so numbers are sent as they are in
 * memory; but every length, text, enum and bool is checked, like bytes from outside. */
#pragma once

#include "driver/host/round.h"
#include "driver/source.h"

/* Bytes that were received. */
struct wire {
	const char *bytes;
	size_t left;
	bool bad; /* they ended too early, or made no sense: all further reads give zeros */
};

void wire_write(struct str *out, const void *src, size_t size);
void wire_read(struct wire *in, void *dst, size_t size);
void wire_write_number(struct str *out, int64_t number);
/* Reads a number between the limits. For any other number the bytes are bad, and it returns the
 * lower limit. */
int64_t wire_read_number(struct wire *in, int64_t least, int64_t most);
/* A text of any length. The text that is read is safe to show, and cut to what fits. */
void wire_write_text(struct str *out, const char *text);
void wire_read_text(struct wire *in, char *dst, size_t cap);
/* Returns its code, which is 0 when there was none. */
void wire_write_err(struct str *out, const struct err *e);
int wire_read_err(struct wire *in, struct err *e);

/* The members of a struct that are sent. */
struct wire_form;
extern const struct wire_form wire_avoid;  /* struct source_avoid: how to know the card */
extern const struct wire_form wire_id;	   /* struct card_id */
extern const struct wire_form wire_asked;  /* struct round: what to do */
extern const struct wire_form wire_made;   /* struct round: what it has done */
extern const struct wire_form wire_wanted; /* struct round_card: what to do */
extern const struct wire_form wire_done;   /* struct round_card: what it has done */
extern const struct wire_form wire_slow;   /* struct round_card: what changes slowly */

void wire_write_form(struct str *out, const void *from, const struct wire_form *form);
/* If the bytes are bad, this member and all that follow keep their values. */
void wire_read_form(struct wire *in, void *to, const struct wire_form *form);

/* What the other side knows already. */
struct wire_sent {
	struct source head; /* without what it points to */
	struct card_reading *cards;
	size_t n;
};

/* Which arrays the last call has read again; others are sent only if their length changed. */
struct wire_fresh {
	bool drained, looked;
	const bool *drained_cards, *looked_cards; /* flags of them; NULL: all */
};

void wire_write_source(struct str *out, const struct source *s, struct wire_sent *sent,
	const struct wire_fresh *fresh);
void wire_sent_finish(struct wire_sent *sent);

enum { WIRE_ARRAYS = 5 };
/* The memory behind the arrays of a card. */
struct mirror_arrays {
	void *items[WIRE_ARRAYS];
	size_t cap[WIRE_ARRAYS];
};

/* The source as the other side has it, without calls. */
struct mirror {
	struct source source;
	struct mirror_arrays *arrays; /* as many as source.cards */
	struct source_xid *xids;
	size_t cap_xids;
};

/* Reads the state that was received; false: it makes no sense, or out of memory. The mirror
 * stays valid whatever the bytes are. */
bool wire_mirror_read(struct mirror *m, struct wire *in);
void wire_mirror_finish(struct mirror *m);
