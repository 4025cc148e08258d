/* Names of what readings hold. */
#include "model/reading.h"

#include <stdio.h>
#include <string.h>

const char *const card_status_names[CARD_STATUS_COUNT] = {
	[CARD_STATUS_OK] = "ok",
	[CARD_STATUS_LOST] = "lost",
	[CARD_STATUS_ASLEEP] = "asleep",
	[CARD_STATUS_DENIED] = "denied",
};

void card_label(char *dst, size_t cap, const struct card_id *id)
{
	if (id->mig_index < 0)
		snprintf(dst, cap, "%d", id->index);
	else
		snprintf(dst, cap, "%d:%d", id->index, id->mig_index);
}

bool card_has_uuid(const struct card_id *id)
{
	return id->uuid[0] && strncmp(id->uuid, "pci-", 4) != 0 &&
	       strncmp(id->uuid, "index-", 6) != 0;
}

bool util_is_known(enum util_kind kind)
{
	return kind != UTIL_NONE && kind != UTIL_UNKNOWN;
}
