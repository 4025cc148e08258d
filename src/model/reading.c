/* Names of what readings hold. */
#include "model/reading.h"

const char *const card_status_names[CARD_STATUS_COUNT] = {
	[CARD_STATUS_OK] = "ok",
	[CARD_STATUS_LOST] = "lost",
	[CARD_STATUS_ASLEEP] = "asleep",
	[CARD_STATUS_DENIED] = "denied",
};
