/* Names of what ticks hold. */
#include "model/tick.h"

#include <stdio.h>
#include <string.h>

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
	[EVENT_RECORDER_OFF] = "recorder-off",
};

enum event_kind event_kind_of(const char *name)
{
	int kind = 0;
	while (kind < EVENT_KINDS && strcmp(event_kind_names[kind], name) != 0)
		kind++;
	return (enum event_kind)kind;
}

void event_label(char *dst, size_t cap, const char *kind, int64_t value)
{
	if (event_kind_of(kind) == EVENT_XID)
		snprintf(dst, cap, "XID %lld", (long long)value);
	else
		snprintf(dst, cap, "%s", kind);
	for (char *c = dst; *c; c++)
		*c = *c == '-' ? ' ' : *c;
}
