/* Events of cards, drivers, hosts and recorders. */
#pragma once

#include "base/base.h"

/* Kinds of events; the names are stored. */
enum event_kind {
	EVENT_CARD_LOST,
	EVENT_CARD_BACK,
	EVENT_CARD_NEW,
	EVENT_CARD_ASLEEP,
	EVENT_CARD_AWAKE,
	EVENT_DRIVER_DOWN, /* driver unloaded, mismatch, hung */
	EVENT_DRIVER_UP,
	EVENT_GAP,	    /* time without readings although the recorder ran */
	EVENT_CLOCK_STEP,   /* the wall clock jumped; value: ms */
	EVENT_SUSPEND,	    /* the host was suspended; value: ms */
	EVENT_STORE_FAULT,  /* the store could not be written; value: rows dropped, or 0 */
	EVENT_XID,	    /* value: XID number */
	EVENT_SUSPECT,	    /* a card's utilisation is not plausible */
	EVENT_RECORDER_OFF, /* no recorder was running; value: ms. Never stored: it follows from
			       the runs */
	EVENT_KINDS,
};
extern const char *const event_kind_names[EVENT_KINDS];
/* The kind of that name; EVENT_KINDS: there is none. */
enum event_kind event_kind_of(const char *name);
/* What people call it: "card lost" for card-lost, "XID 79". */
void event_label(char *dst, size_t cap, const char *kind, int64_t value);

/* What happened and what to do, in one or two sentences without a final full stop; NULL: the
 * number is not one of the common ones. The numbers are those of "XID Errors" in NVIDIA's
 * documentation and of nverror.h in its kernel modules; the words are ours. */
const char *event_xid_meaning(int64_t number);
