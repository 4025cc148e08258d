/* What a card is: its identity, what people call it, and its status. */
#pragma once

#include "base/base.h"

enum { UUID_CAP = 96, CARD_NAME_CAP = 96, PCI_CAP = 32, VERSION_CAP = 80 };
enum { SOURCE_CAP = 16, SOURCE_LIST_CAP = 64 }; /* name of a source; several with commas */
#define UNKNOWN_BYTES (-1LL)

/* A card, or a MIG instance, which is a card of its own. */
struct card_id {
	char uuid[UUID_CAP];
	char name[CARD_NAME_CAP];
	char parent_uuid[UUID_CAP];	    /* of a MIG instance; else "" */
	char pci[PCI_CAP];		    /* sysfs form "0000:17:00.0"; "" when unknown */
	int index;			    /* the driver's index of the physical card */
	int mig_index;			    /* index of the instance within its card, or -1 */
	int gpu_instance, compute_instance; /* GI and CI id, or -1 */
	int64_t mem_total_bytes;	    /* or -1 */
};
/* What people call a card: "0", or "0:1" for instance 1 of card 0. */
enum { CARD_LABEL_CAP = 24 };
struct brief card_label(const struct card_id *id);
/* Whether the UUID is the card's own: a card that was never asked has a placeholder. */
bool card_has_uuid(const struct card_id *id);

enum card_status {
	CARD_STATUS_OK,
	CARD_STATUS_LOST,   /* fell off the bus: `code` has the driver's error */
	CARD_STATUS_ASLEEP, /* runtime-suspended and left alone */
	CARD_STATUS_DENIED, /* present, but we may not open it */
};
#define CARD_STATUS_COUNT 4
extern const char *const card_status_names[CARD_STATUS_COUNT]; /* ok lost asleep denied */
/* The status of this name; an unknown name and NULL are CARD_STATUS_LOST. */
enum card_status card_status_of(const char *name);

/* Whether `id` names the card: its index ("0"), index and instance ("0:1"), UUID or the
 * beginning of it, with or without "GPU-" (also of an instance's card), or PCI address. */
bool card_is_named(const char *id, const struct card_id *card);
/* The same for options_list_takes(). */
bool card_matches(const char *id, const void *card);
/* A card's model without the name of its maker. */
const char *card_short_name(const char *name);

/* What the recorder says about a card at a tick, for pages and exporters that show the present.
 * What the driver does not report is NAN (doubles) or -1 (integers). */
struct card_now {
	double util_pct;	    /* mean since the previous tick */
	double power_w;		    /* the same */
	double power_limit_w;	    /* in force */
	double temperature_c;	    /* of the chip */
	int64_t mem_used_bytes;	    /* by the driver's account */
	int64_t idle_held_since_ms; /* idle-held without a pause since then; -1: not idle-held
				     */
};

/* Nothing is known. */
void card_now_clear(struct card_now *now);

/* What the store has about a card from earlier runs. */
struct card_past {
	int64_t seen_ms; /* accounted up to here; -1: the card is new; INT64_MAX: unknown */
	int64_t idle_held_since_ms; /* see struct card_now; as of then */
	enum card_status status;    /* as of then */
};
