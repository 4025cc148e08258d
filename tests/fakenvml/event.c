/* The fake library's event sets: XIDs of the scenario. */
#include "fake.h"

#include <stdlib.h>

#include "exports.h"

#define EVENT_XID 8ull
#define SUPPORTED (0x1ull | 0x2 | 0x4 | EVENT_XID)

struct event_set {
	uint64_t seen; /* XIDs before this one are old */
	bool registered[SCENARIO_UNITS_MAX];
};

EXPORT int nvmlEventSetCreate(struct event_set **set)
{
	int code = fake_enter(DOOR_SYSTEM, __func__, NULL, NULL, "%s", "");
	if (code)
		return code;
	*set = calloc(1, sizeof(**set));
	if (*set)
		(*set)->seen = play_xid_count(fake_state()->play);
	return fake_leave(*set ? SUCCESS : 20);
}

EXPORT int nvmlEventSetFree(struct event_set *set)
{
	int code = fake_enter(DOOR_SYSTEM, __func__, NULL, NULL, "%s", "");
	if (code)
		return code;
	free(set);
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types)
{
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	*types = SUPPORTED;
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceRegisterEvents(
	void *device, unsigned long long types, struct event_set *set)
{
	ENTER_DEVICE(device, "types=%#llx", types);
	(void)f;
	if ((types & ~SUPPORTED) || card->parent >= 0)
		return fake_leave(NOT_SUPPORTED);
	set->registered[unit] = types & EVENT_XID;
	return fake_leave(SUCCESS);
}

/* Takes the next event of a registered card; false: none yet. */
static bool next_event(struct event_set *set, struct abi_event *data)
{
	uint32_t card = 0;
	int64_t xid = 0;
	while (play_xid(fake_state()->play, &set->seen, &card, &xid)) {
		if (!set->registered[card])
			continue;
		*data = (struct abi_event){ .device = fake_handle(card),
			.type = EVENT_XID,
			.data = (uint64_t)xid,
			.gi = 0xffffffffu,
			.ci = 0xffffffffu };
		return true;
	}
	return false;
}

EXPORT int nvmlEventSetWait_v2(
	struct event_set *set, struct abi_event *data, unsigned timeout_ms)
{
	for (unsigned waited_ms = 0;; waited_ms += 5) {
		/* One line in the log, however often it looks. */
		const char *format = waited_ms ? NULL : "timeout=%u";
		int code = fake_enter(DOOR_SYSTEM, __func__, NULL, NULL, format, timeout_ms);
		if (code)
			return code;
		bool found = next_event(set, data);
		fake_leave(SUCCESS);
		if (found)
			return SUCCESS;
		if (waited_ms >= timeout_ms)
			return TIMEOUT;
		fake_sleep_us(5000);
	}
}
