/* Names of what readings hold. */
#include "model/reading.h"

#include <string.h>

const char *const card_status_names[CARD_STATUS_COUNT] = {
	[CARD_STATUS_OK] = "ok",
	[CARD_STATUS_LOST] = "lost",
	[CARD_STATUS_ASLEEP] = "asleep",
	[CARD_STATUS_DENIED] = "denied",
};

bool card_has_uuid(const struct card_id *id)
{
	return id->uuid[0] && strncmp(id->uuid, "pci-", 4) != 0 &&
	       strncmp(id->uuid, "index-", 6) != 0;
}

bool util_is_known(enum util_kind kind)
{
	return kind != UTIL_NONE && kind != UTIL_UNKNOWN;
}
