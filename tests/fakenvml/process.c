/* The fake library's processes: who is on a card and who uses it. */
#include "fake.h"

#include <string.h>

#include "exports.h"

enum { LISTED_MAX = SCENARIO_PROCESSES_MAX + 4096, USES_MAX = SCENARIO_PROCESSES_MAX };
#define NOT_MIG 0xffffffffu

/* Entries of `kind` on a card into `out`; the ones that `grow` adds are compute. */
static unsigned list_processes(
	struct fake *f, size_t unit, unsigned kind, struct abi_process_detail *out)
{
	static struct play_holder holders[SCENARIO_PROCESSES_MAX]; /* under the lock */
	size_t found = play_holders(f->play, unit, holders, SCENARIO_PROCESSES_MAX);
	unsigned n = 0;
	for (size_t i = 0; i < found && i < SCENARIO_PROCESSES_MAX; i++) {
		const struct scenario_process *p = &f->scenario->processes[holders[i].process];
		const struct card_id *at = &f->scenario->cards[holders[i].card].id;
		int64_t mem_bytes = fake_memory(p->pid_file, holders[i].mem_bytes);
		if (!(p->kind & kind) || mem_bytes == 0)
			continue;
		bool mig = at->mig_index >= 0;
		out[n++] = (struct abi_process_detail){ .pid = play_pid(
								f->play, holders[i].process),
			.mem = (uint64_t)mem_bytes,
			.gi = mig ? (uint32_t)at->gpu_instance : NOT_MIG,
			.ci = mig ? (uint32_t)at->compute_instance : NOT_MIG };
	}
	if (play_quirks(f->play, unit)->grow_by == 0)
		f->grown[unit] = 0;
	for (int64_t i = 0; (kind & PROCESS_COMPUTE) && i < f->grown[unit]; i++)
		out[n++] = (struct abi_process_detail){
			.pid = 4000000 + (uint32_t)i, .gi = NOT_MIG, .ci = NOT_MIG
		};
	return n;
}

/* A refused caller finds a longer list when it comes again. */
static void grow_list(struct fake *f, size_t unit)
{
	const struct play_quirks *q = play_quirks(f->play, unit);
	f->grown[unit] += q->grow_by;
	if (f->grown[unit] > q->grow_to)
		f->grown[unit] = q->grow_to;
}

/* One of the nine lists: entries of 16, 24 or 32 bytes. */
static int running(const char *call, void *device, unsigned *count, void *infos, unsigned kind,
	int version)
{
	static struct abi_process_detail entries[LISTED_MAX]; /* under the lock */
	size_t unit = 0;
	int code = fake_enter(
		DOOR_DEVICE, call, device, &unit, "buffer=%u", infos && count ? *count : 0);
	if (code)
		return code;
	struct fake *f = fake_state();
	if (!count || (*count > 0 && !infos))
		return fake_leave(INVALID_ARGUMENT);
	unsigned n = list_processes(f, unit, kind, entries), room = *count;
	*count = n;
	if (n > room) {
		grow_list(f, unit);
		return fake_leave(INSUFFICIENT_SIZE);
	}
	size_t stride = (size_t)f->scenario->layout[version - 1];
	for (unsigned i = 0; i < n; i++)
		memcpy((char *)infos + i * stride, &entries[i], stride);
	return fake_leave(SUCCESS);
}

#define RUNNING(Name, kind)                                                                    \
	EXPORT int nvmlDeviceGet##Name##RunningProcesses(                                      \
		void *device, unsigned *count, void *infos)                                    \
	{                                                                                      \
		return running(__func__, device, count, infos, kind, 1);                       \
	}                                                                                      \
	EXPORT int nvmlDeviceGet##Name##RunningProcesses_v2(                                   \
		void *device, unsigned *count, void *infos)                                    \
	{                                                                                      \
		return running(__func__, device, count, infos, kind, 2);                       \
	}                                                                                      \
	EXPORT int nvmlDeviceGet##Name##RunningProcesses_v3(                                   \
		void *device, unsigned *count, void *infos)                                    \
	{                                                                                      \
		return running(__func__, device, count, infos, kind, 3);                       \
	}

RUNNING(Compute, PROCESS_COMPUTE)
RUNNING(Graphics, PROCESS_GRAPHICS)
RUNNING(MPSCompute, PROCESS_MPS)

EXPORT int nvmlDeviceGetRunningProcessDetailList(void *device, struct abi_process_details *list)
{
	static const unsigned kinds[] = { PROCESS_COMPUTE, PROCESS_GRAPHICS, PROCESS_MPS,
		PROCESS_COMPUTE | PROCESS_GRAPHICS | PROCESS_MPS };
	static struct abi_process_detail entries[LISTED_MAX]; /* under the lock */
	ENTER_DEVICE(device, "version=%#x mode=%u", list->version, list->mode);
	if (list->version != 0x01000018)
		return fake_leave(VERSION_MISMATCH);
	if (list->mode > 3)
		return fake_leave(INVALID_ARGUMENT);
	unsigned n = list_processes(f, unit, kinds[list->mode], entries), room = list->count;
	list->count = n;
	if (n > (list->items ? room : 0))
		return fake_leave(INSUFFICIENT_SIZE);
	if (n)
		memcpy(list->items, entries, n * sizeof(entries[0]));
	return fake_leave(SUCCESS);
}

EXPORT int nvmlDeviceGetConfComputeMemSizeInfo(void *device, void *info)
{
	(void)info;
	ENTER_DEVICE(device, "%s", "");
	(void)f;
	return fake_leave(NOT_SUPPORTED);
}

/* The records that the driver gives beside the true ones after zombies were seen: nobody's
 * pid, more than 100 %, and one that is older than asked for. */
static size_t add_garbage(struct abi_process_use *out, uint64_t last_seen, uint64_t now_us)
{
	out[0] = (struct abi_process_use){ .stamp_us = now_us, .pid = 0, .sm = 50 };
	out[1] = (struct abi_process_use){ .stamp_us = now_us, .pid = 4100001, .sm = 77 };
	out[2] = (struct abi_process_use){
		.stamp_us = now_us, .pid = 4100002, .sm = 0xfffffff0u
	};
	out[3] = (struct abi_process_use){ .stamp_us = last_seen > 5000000 ? last_seen - 5000000
									   : 1,
		.pid = 4100003,
		.sm = 66 };
	return 4;
}

/* A process uses the card's memory half as much as its multiprocessors; one that draws encodes
 * and decodes as well, a little of each kind. */
static struct abi_process_use use_of(const struct fake *f, const struct play_use *use)
{
	const struct scenario_process *p = &f->scenario->processes[use->process];
	double drawn = p->kind & PROCESS_GRAPHICS ? use->sm_pct : 0;
	return (struct abi_process_use){ .stamp_us = fake_stamp(use->t_us, use->wall_us),
		.pid = play_pid(f->play, use->process),
		.sm = (uint32_t)(use->sm_pct + 0.5),
		.mem = (uint32_t)(use->sm_pct / 2),
		.enc = (uint32_t)(drawn / 4),
		.dec = (uint32_t)(drawn / 5),
		.jpg = (uint32_t)(drawn / 8),
		.ofa = (uint32_t)(drawn / 10) };
}

/* The processes that a test says are busy, encode or copy, whatever the scenario says. */
static size_t add_busy(
	const struct fake *f, size_t unit, struct abi_process_use *out, uint64_t now_us)
{
	static struct play_holder holders[16]; /* under the lock */
	size_t n = 0, found = play_holders(f->play, unit, holders, 16);
	for (size_t i = 0; i < found && i < 16; i++) {
		const char *file = f->scenario->processes[holders[i].process].pid_file;
		bool busy = *file && fake_does(file, "busy");
		bool encodes = *file && fake_does(file, "encodes");
		bool copies = *file && fake_does(file, "copies");
		if (busy || encodes || copies)
			out[n++] = (struct abi_process_use){ .stamp_us = now_us,
				.pid = play_pid(f->play, holders[i].process),
				.sm = busy ? 50 : 0,
				.mem = copies ? 80 : 0,
				.enc = encodes ? 30 : 0 };
	}
	return n;
}

/* One record a process, the last one first: the driver does not sort them. With garbage the
 * first true pid also has an impossible record and an old one. */
static size_t collect_uses(struct fake *f, size_t unit, uint64_t last_seen, unsigned call,
	struct abi_process_use *out)
{
	static struct play_use uses[USES_MAX]; /* under the lock */
	bool by_wall = !f->scenario->boot_stamps;
	const struct play_since since = { (int64_t)last_seen - (by_wall ? 0 : f->origin_us),
		by_wall };
	size_t n = 0, found = play_uses(f->play, unit, since, uses, USES_MAX);
	uint64_t now_us = fake_stamp_now();
	bool zero = play_quirks(f->play, unit)->zero_use & call;
	for (size_t i = found; i-- > 0;) {
		out[n] = use_of(f, &uses[i]);
		if (zero)
			out[n] = (struct abi_process_use){ .stamp_us = out[n].stamp_us,
				.pid = out[n].pid };
		n++;
	}
	n += add_busy(f, unit, out + n, now_us);
	if (!play_quirks(f->play, unit)->garbage)
		return n;
	size_t true_ones = n;
	n += add_garbage(out + n, last_seen, now_us);
	struct play_holder holder;
	if (true_ones == 0 && play_holders(f->play, unit, &holder, 1) > 0)
		out[n++] = (struct abi_process_use){
			.stamp_us = now_us, .pid = play_pid(f->play, holder.process), .sm = 4711
		};
	if (true_ones > 0) {
		out[n] = out[0];
		out[n++].sm = 4711;
	}
	return n;
}

EXPORT int nvmlDeviceGetProcessUtilization(void *device, struct abi_process_sample *samples,
	unsigned *count, unsigned long long last_seen)
{
	static struct abi_process_use uses[USES_MAX + 32]; /* under the lock */
	ENTER_DEVICE(device, "last=%llu buffer=%u", last_seen, samples && count ? *count : 0);
	if (card->parent >= 0 || card->has_mig)
		return fake_leave(NOT_SUPPORTED);
	if (!count)
		return fake_leave(INVALID_ARGUMENT);
	size_t n = collect_uses(f, unit, last_seen, ZERO_USE_OLDER, uses);
	if (!samples || n > *count) {
		/* The first call is told the capacity of the ring, whatever is in it. */
		*count = n > 100 ? (unsigned)n : 100;
		return fake_leave(INSUFFICIENT_SIZE);
	}
	for (size_t i = 0; i < n; i++)
		samples[i] = (struct abi_process_sample){ .pid = uses[i].pid,
			.stamp_us = uses[i].stamp_us,
			.sm = uses[i].sm,
			.mem = uses[i].mem,
			.enc = uses[i].enc,
			.dec = uses[i].dec };
	*count = (unsigned)n;
	return fake_leave(n ? SUCCESS : NOT_FOUND);
}

EXPORT int nvmlDeviceGetProcessesUtilizationInfo(void *device, struct abi_processes_use *info)
{
	static struct abi_process_use uses[USES_MAX + 32]; /* under the lock */
	ENTER_DEVICE(device, "version=%#x last=%llu", info->version,
		(unsigned long long)info->last_seen_us);
	if (info->version != 0x01000018)
		return fake_leave(VERSION_MISMATCH);
	if (card->parent >= 0 || card->has_mig)
		return fake_leave(NOT_SUPPORTED);
	size_t n = collect_uses(f, unit, info->last_seen_us, ZERO_USE_NEWER, uses);
	unsigned room = info->count;
	info->count = (unsigned)n;
	if (n == 0)
		return fake_leave(NOT_FOUND);
	if (!info->items || n > room)
		return fake_leave(INSUFFICIENT_SIZE);
	memcpy(info->items, uses, n * sizeof(uses[0]));
	return fake_leave(SUCCESS);
}
