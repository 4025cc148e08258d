/* Names of events, as stored and printed, and what the driver's XID numbers mean. */
#include "model/event.h"

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
	return (enum event_kind)str_place(event_kind_names, EVENT_KINDS, name);
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

static const struct xid {
	int number;
	const char *meaning;
} xids[] = {
	{ 13, "a program made the card do something that is not allowed; mostly a fault of the "
	      "program" },
	{ 31, "a program used memory of the card that is not its own; mostly a fault of the "
	      "program" },
	{ 32, "the card received a damaged command; the PCI connection or the program may be "
	      "the cause" },
	{ 43, "the work of a program was ended after an error of the program; the card is not "
	      "damaged" },
	{ 44, "the card failed while it switched from one program to another" },
	{ 45, "the driver ended the work of a program, because it was killed or after another "
	      "error" },
	{ 46, "the card has stopped working on its commands. Reset it" },
	{ 48, "a memory error that ECC cannot correct. Reset the card; replace it if this "
	      "happens again" },
	{ 61, "the card's power controller stopped at an error. Reset the card or restart the "
	      "host" },
	{ 62, "the card's power controller has stopped. Reset the card or restart the host" },
	{ 63, "a bad place in memory is being replaced by a spare one, which takes effect when "
	      "the card is reset" },
	{ 64, "a bad place in memory could not be replaced. Reset the card; replace it if this "
	      "happens again" },
	{ 68, "the video decoder failed" },
	{ 69, "a program gave the card a command that it does not know; mostly a fault of the "
	      "program" },
	{ 74, "the NVLink connection to another card failed. Check its bridge or cables" },
	{ 79, "the card no longer answers on the PCI bus. Restart the host; check power, "
	      "temperature and seating of the card" },
	{ 92, "many memory errors were corrected in a short time. Watch this card" },
	{ 94, "a memory error that ECC cannot correct, but only the program that used that "
	      "memory had to end" },
	{ 95, "a memory error that ECC cannot correct, which may affect every program on the "
	      "card. Reset it" },
	{ 109, "switching between two programs took too long, and a program was ended" },
	{ 119, "the card's own processor (GSP) did not answer the driver in time. Reset the "
	       "card or restart the host" },
	{ 120, "the card's own processor (GSP) failed. Reset the card or restart the host" },
	{ 121, "the connection between the CPU and the card on one module (C2C) failed" },
	{ 140, "a memory error that ECC cannot correct. Reset the card; replace it if this "
	       "happens again" },
	{ 143, "the card could not be initialised. Restart the host" },
	{ 149, "the NVLink connection to another card failed. Check its bridge or cables" },
	{ 154, "the driver changed its advice on how to recover the card: see the kernel log "
	       "(dmesg)" },
};

const char *event_xid_meaning(int64_t number)
{
	for (size_t i = 0; i < sizeof(xids) / sizeof(xids[0]); i++)
		if (xids[i].number == number)
			return xids[i].meaning;
	return NULL;
}
