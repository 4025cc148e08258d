/* Who is on a card: the three process lists merged, how much memory, and how much each process
 * used the card since the drain before. */
#include <string.h>

#include "source/nvml.h"
#include "source/nvml_decode.h"

enum {
	LIST_ENTRIES = 64, /* room for the usual without asking twice */
	USE_ENTRIES = 128, /* the driver's ring has 72 or 100 */
	MOST_ENTRIES = 16384,
	SIZE_TRIES = 8, /* for a list that grows while it is read */
};

static const unsigned list_kinds[NVML_LISTS] = {
	[NVML_COMPUTE] = PROCESS_COMPUTE,
	[NVML_GRAPHICS] = PROCESS_GRAPHICS,
	[NVML_MPS] = PROCESS_MPS,
};
/* Bytes of an entry by the list's symbol: _v2, _v3, unsuffixed. */
static const size_t entry_sizes[NVML_LIST_WAYS] = { 24, 24, 16 };

/* Asks a list into c->raw_list, which has room for the largest entries whatever the driver
 * writes; *n is how many came. */
static int read_list(struct nvml_card *c, nvml_list_call call, unsigned *n)
{
	size_t want = LIST_ENTRIES;
	for (int tries = 0; tries < SIZE_TRIES && want <= MOST_ENTRIES; tries++) {
		if (!nvml_reserve(&c->raw_list, want, NVML_ENTRY_LARGEST))
			return NVML_NO_MEMORY;
		memset(c->raw_list.data, NVML_FILL, c->raw_list.cap * NVML_ENTRY_LARGEST);
		*n = (unsigned)c->raw_list.cap;
		int code = NVML_CALL(call, c->handle, n, c->raw_list.data);
		if (code != NVML_TOO_SMALL)
			return code;
		want = (*n > c->raw_list.cap ? *n : c->raw_list.cap) * 3 / 2 + 16;
	}
	return NVML_TOO_SMALL;
}

/* One list by one of its symbols: its entries are added to c->processes. */
static int attempt_list(struct nvml_source *s, size_t card, int way, void *out)
{
	enum nvml_list list = *(enum nvml_list *)out;
	struct nvml_card *c = &s->cards[card];
	unsigned n = 0;
	int code = read_list(c, s->lib.api.lists[list][way], &n);
	if (code == NVML_NOT_FOUND || (code == NVML_OK && n == 0))
		return NVML_OK;
	if (code != NVML_OK)
		return code;
	if (n > c->raw_list.cap)
		n = (unsigned)c->raw_list.cap;
	if (!nvml_reserve(&c->processes, c->n_processes + n + LIST_ENTRIES,
		    sizeof(struct card_process)))
		return NVML_NO_MEMORY;
	size_t stride = nvml_entry_stride(
		c->raw_list.data, c->raw_list.cap * NVML_ENTRY_LARGEST, n, entry_sizes[way]);
	for (size_t i = 0; i < n; i++) {
		const unsigned char *entry = (unsigned char *)c->raw_list.data + i * stride;
		uint32_t pid;
		uint64_t mem_bytes;
		memcpy(&pid, entry, sizeof(pid));
		memcpy(&mem_bytes, entry + 8, sizeof(mem_bytes));
		c->n_processes = nvml_merge_process(
			c->processes.data, c->n_processes, pid, list_kinds[list], mem_bytes);
	}
	return NVML_OK;
}

void nvml_look_processes(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	int codes[NVML_LISTS];
	c->n_processes = 0;
	c->n_unlisted = 0;
	for (int list = 0; list < NVML_LISTS && c->handle; list++) {
		enum nvml_list which = (enum nvml_list)list;
		codes[list] = nvml_do(
			s, card, (enum nvml_job)(NVML_JOB_LISTS + list), attempt_list, &which);
	}
	if (!c->handle)
		return;
	c->listed = codes[NVML_COMPUTE] == NVML_OK;
	r->processes_known = c->listed;
	r->processes = c->processes.data;
	r->n_processes = c->n_processes;
}

static int attempt_memory(struct nvml_source *s, size_t card, int way, void *out)
{
	struct nvml_memory *memory = out;
	void *handle = s->cards[card].handle;
	if (way == 1)
		return NVML_CALL(s->lib.api.memory, handle, memory);
	struct nvml_memory_v2 v2 = { .version = NVML_VERSION_WORD(struct nvml_memory_v2, 2) };
	int code = NVML_CALL(s->lib.api.memory_v2, handle, &v2);
	*memory = (struct nvml_memory){ .total = v2.total, .free = v2.free, .used = v2.used };
	return code;
}

void nvml_look_memory(struct nvml_source *s, size_t card)
{
	struct card_reading *r = &s->base.cards[card];
	struct nvml_memory memory = { 0 };
	r->mem_used_bytes = UNKNOWN_BYTES;
	if (nvml_do(s, card, NVML_JOB_MEMORY, attempt_memory, &memory) != NVML_OK)
		return;
	/* Cards that share the host's memory say 0; garbage says more than there is. */
	if (memory.total == 0 || memory.total > INT64_MAX || memory.used > memory.total)
		return;
	r->id.mem_total_bytes = (int64_t)memory.total;
	r->mem_used_bytes = (int64_t)memory.used;
}

/* Fills c->raw_utils with records of the older call; *n is how many came. */
static int read_use(struct nvml_source *s, struct nvml_card *c, unsigned *n)
{
	unsigned long long since = (unsigned long long)c->process_seen_us;
	size_t want = USE_ENTRIES;
	for (int tries = 0; tries < SIZE_TRIES && want <= MOST_ENTRIES; tries++) {
		if (!nvml_reserve(&c->raw_utils, want, sizeof(struct nvml_process_sample_v1)))
			return NVML_NO_MEMORY;
		*n = (unsigned)c->raw_utils.cap;
		int code = NVML_CALL(
			s->lib.api.process_samples, c->handle, c->raw_utils.data, n, since);
		if (code != NVML_TOO_SMALL)
			return code;
		want = (*n > c->raw_utils.cap ? *n : c->raw_utils.cap) * 3 / 2 + 16;
	}
	return NVML_TOO_SMALL;
}

/* The same by the call of newer drivers, whose records say more. */
static int read_use_v1(struct nvml_source *s, struct nvml_card *c, unsigned *n)
{
	size_t want = USE_ENTRIES;
	for (int tries = 0; tries < SIZE_TRIES && want <= MOST_ENTRIES; tries++) {
		if (!nvml_reserve(&c->raw_utils, want, sizeof(struct nvml_process_sample_v1)))
			return NVML_NO_MEMORY;
		struct nvml_process_samples_v1 all = {
			.version = NVML_VERSION_WORD(struct nvml_process_samples_v1, 1),
			.count = (uint32_t)c->raw_utils.cap,
			.last_seen_us = (uint64_t)c->process_seen_us,
			.samples = c->raw_utils.data,
		};
		int code = NVML_CALL(s->lib.api.process_samples_v1, c->handle, &all);
		*n = all.count < c->raw_utils.cap ? all.count : (unsigned)c->raw_utils.cap;
		if (code != NVML_TOO_SMALL)
			return code;
		want = (all.count > c->raw_utils.cap ? all.count : c->raw_utils.cap) * 3 / 2 +
		       16;
	}
	return NVML_TOO_SMALL;
}

/* Fills c->raw_utils with struct nvml_process_sample_v1, whichever call it was. */
static int attempt_use(struct nvml_source *s, size_t card, int way, void *out)
{
	struct nvml_card *c = &s->cards[card];
	unsigned *n = out;
	int code = way == 0 ? read_use(s, c, n) : read_use_v1(s, c, n);
	if (code == NVML_NOT_FOUND) {
		*n = 0; /* nobody had a sample: all idle */
		return NVML_OK;
	}
	if (code == NVML_OK && *n > c->raw_utils.cap)
		*n = (unsigned)c->raw_utils.cap;
	if (code == NVML_OK && way == 0)
		nvml_widen_uses(c->raw_utils.data, *n);
	return code;
}

static bool is_listed(const struct nvml_card *c, uint32_t pid)
{
	const struct card_process *processes = c->processes.data;
	for (size_t i = 0; i < c->n_processes; i++)
		if (processes[i].pid == pid)
			return true;
	return false;
}

/* Whether the lists know the pid. One that started since they were read is looked for by
 * reading them again, once a drain and never twice for the same stranger. */
static bool is_known(struct nvml_source *s, size_t card, uint32_t pid, bool *looked)
{
	struct nvml_card *c = &s->cards[card];
	if (is_listed(c, pid))
		return true;
	for (size_t i = 0; i < c->n_unlisted; i++)
		if (c->unlisted[i] == pid)
			return false;
	if (!*looked) {
		*looked = true;
		nvml_look_processes(s, card);
		if (!c->handle || is_listed(c, pid))
			return c->handle != NULL;
	}
	if (!c->listed)
		return true; /* there is no list to compare with */
	if (c->n_unlisted < sizeof(c->unlisted) / sizeof(c->unlisted[0]))
		c->unlisted[c->n_unlisted++] = pid;
	return false;
}

/* Puts a record among the readings: one for each pid, the newest. */
static void add_use(
	struct card_reading *r, struct process_util *to, const struct process_util *use)
{
	for (size_t i = 0; i < r->n_process_utils; i++) {
		if (to[i].pid != use->pid)
			continue;
		if (use->wall_us > to[i].wall_us)
			to[i] = *use;
		return;
	}
	to[r->n_process_utils++] = *use;
}

void nvml_drain_process_util(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	int64_t now_us = clock_now(s->clock).wall_us;
	if (c->process_seen_us > now_us)
		c->process_seen_us = now_us; /* the clock was set back */
	unsigned n = 0;
	if (nvml_do(s, card, NVML_JOB_PROCESS_UTIL, attempt_use, &n) != NVML_OK)
		return;
	if (!nvml_reserve(&c->utils, n + 1, sizeof(struct process_util)))
		return;
	now_us = clock_now(s->clock).wall_us;
	int64_t seen_us = c->process_seen_us;
	bool looked = false;
	r->process_util_known = true;
	r->process_utils = c->utils.data;
	r->n_engines = c->ways[NVML_JOB_PROCESS_UTIL].way == 0 ? ENGINE_JPEG : ENGINE_COUNT;
	const struct nvml_process_sample_v1 *records = c->raw_utils.data;
	for (unsigned i = 0; i < n && c->handle; i++) {
		struct process_util use;
		if (!nvml_decode_use(&records[i], seen_us, now_us, &use))
			continue;
		if (use.wall_us > c->process_seen_us)
			c->process_seen_us = use.wall_us;
		if (use.pid && is_known(s, card, use.pid, &looked))
			add_use(r, c->utils.data, &use);
	}
}
