/* Names of what ticks hold. */
#include "model/tick.h"

const char *const event_kind_names[EVENT_KINDS] = {
	[EVENT_CARD_LOST] = "card-lost",
	[EVENT_CARD_BACK] = "card-back",
	[EVENT_CARD_NEW] = "card-new",
	[EVENT_CARD_ASLEEP] = "card-asleep",
	[EVENT_CARD_AWAKE] = "card-awake",
	[EVENT_DRIVER_DOWN] = "driver-down",
	[EVENT_DRIVER_UP] = "driver-up",
	[EVENT_GAP] = "gap",
	[EVENT_CLOCK_STEP] = "clock-step",
	[EVENT_SUSPEND] = "suspend",
	[EVENT_STORE_FAULT] = "store-fault",
	[EVENT_XID] = "xid",
	[EVENT_SUSPECT] = "suspect-use",
};
