/* The fake library's accounting mode: statistics of the processes that are and were on a card.
 */
#include "fake.h"

#include <string.h>

#include "exports.h"

enum { ACCOUNTS_MAX = SCENARIO_PROCESSES_MAX + 128 };

/* The header: not supported by the card, or the mode is off. MIG turns it off. */
static bool is_off(const struct fake *f, const struct scenario_card *card)
{
	return !f->scenario->accounting || card->parent >= 0 || card->has_mig;
}

EXPORT int nvmlDeviceGetAccountingPids(void *device, unsigned *count, unsigned *pids)
{
	static struct play_account accounts[ACCOUNTS_MAX]; /* under the lock */
	ENTER_DEVICE(device, "buffer=%u", pids && count ? *count : 0);
	if (is_off(f, card))
		return fake_leave(NOT_SUPPORTED);
	if (!count || (*count > 0 && !pids))
		return fake_leave(INVALID_ARGUMENT);
	size_t n = play_account_list(f->play, unit, accounts, ACCOUNTS_MAX);
	unsigned room = *count;
	*count = (unsigned)n;
	if (n > room)
		return fake_leave(INSUFFICIENT_SIZE);
	for (size_t i = 0; i < n; i++)
		pids[i] = accounts[i].pid;
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetAccountingStats(
	void *device, unsigned pid, struct abi_accounting *stats)
{
	static struct play_account accounts[ACCOUNTS_MAX]; /* under the lock */
	ENTER_DEVICE(device, "pid=%u", pid);
	if (is_off(f, card))
		return fake_leave(NOT_SUPPORTED);
	if (!stats)
		return fake_leave(INVALID_ARGUMENT);
	size_t n = play_account_list(f->play, unit, accounts, ACCOUNTS_MAX);
	for (size_t i = 0; i < n; i++) {
		const struct play_account *a = &accounts[i];
		if (a->pid != pid)
			continue;
		*stats = (struct abi_accounting){ .gpu = (uint32_t)(a->sm_pct + 0.5),
			.memory = (uint32_t)(a->sm_pct / 2),
			.peak = (uint64_t)a->peak_bytes,
			.time_ms = (uint64_t)a->length_us / 1000,
			.start_us = (uint64_t)a->start_wall_us,
			.running = a->running };
		return fake_leave(SUCCESS);
	}
	return fake_leave(NOT_FOUND);
}
