/* Names of cards and of their status; compares what a user wrote with the index, the UUID and
 * the address of a card. */
#include "model/card.h"

const char *const card_status_names[CARD_STATUS_COUNT] = {
	[CARD_STATUS_OK] = "ok",
	[CARD_STATUS_LOST] = "lost",
	[CARD_STATUS_ASLEEP] = "asleep",
	[CARD_STATUS_DENIED] = "denied",
};

enum card_status card_status_of(const char *name)
{
	int status = str_place(card_status_names, CARD_STATUS_COUNT, name);
	return status < CARD_STATUS_COUNT ? (enum card_status)status : CARD_STATUS_LOST;
}

struct brief card_label(const struct card_id *id)
{
	return id->mig_index < 0 ? str_whole(id->index, "")
				 : str_brief("%d:%d", id->index, id->mig_index);
}

bool card_has_uuid(const struct card_id *id)
{
	return id->uuid[0] && strncmp(id->uuid, "pci-", 4) != 0 &&
	       strncmp(id->uuid, "index-", 6) != 0;
}

/* "17:00.0", "0000:17:00.0" and the driver's "00000000:17:00.0" name 0000:17:00.0. */
static bool names_pci(const char *id, const char *pci)
{
	unsigned a[4], b[4];
	int end = 0;
	if (sscanf(pci, "%x:%x:%x.%x", &b[0], &b[1], &b[2], &b[3]) != 4)
		return false;
	if (sscanf(id, "%x:%x:%x.%x%n", &a[0], &a[1], &a[2], &a[3], &end) == 4 && !id[end])
		return memcmp(a, b, sizeof(a)) == 0;
	end = 0;
	return sscanf(id, "%x:%x.%x%n", &a[1], &a[2], &a[3], &end) == 3 && !id[end] &&
	       a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

/* Also without the "GPU-" or "MIG-" that reports leave out. */
static bool begins(const char *uuid, const char *id)
{
	size_t len = strlen(id);
	bool bare = strlen(uuid) > 4 && uuid[3] == '-' && strncasecmp(id, uuid + 4, len) == 0;
	return len > 3 && (bare || strncasecmp(id, uuid, len) == 0);
}

bool card_is_named(const char *id, const struct card_id *card)
{
	char *end = NULL;
	if (*id >= '0' && *id <= '9') {
		long index = strtol(id, &end, 10);
		if (*end == '\0' && end - id < 4)
			return index == card->index;
		if (*end == ':' && strspn(end + 1, "0123456789") == strlen(end + 1) && end[1] &&
			strlen(end) < 4)
			return index == card->index && atoi(end + 1) == card->mig_index;
	}
	if (names_pci(id, card->pci))
		return true;
	return begins(card->uuid, id) || begins(card->parent_uuid, id);
}

bool card_matches(const char *id, const void *card)
{
	return card_is_named(id, card);
}

const char *card_short_name(const char *name)
{
	return strncmp(name, "NVIDIA ", 7) == 0 ? name + 7 : name;
}

void card_now_clear(struct card_now *now)
{
	*now = (struct card_now){ .util_pct = NAN,
		.power_w = NAN,
		.power_limit_w = NAN,
		.temperature_c = NAN,
		.mem_used_bytes = -1,
		.idle_held_since_ms = -1 };
}
