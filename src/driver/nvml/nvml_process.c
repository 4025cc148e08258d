/* The processes on a card (the three process lists merged), and the used memory of a card: as
 * the driver reports it, or the sum over the processes. */
#include "driver/nvml/nvml.h"
#include "driver/nvml/nvml_decode.h"

/* From here on: the used memory of a card. It is what the driver reports, or the sum over the
 * processes on boards that share the host's memory, where the driver does not report it. */

/* One reading of memory. */
struct memory_job {
	enum nvml_memory_from from;
	int64_t total, used; /* or -1 */
	int64_t reserved;    /* not part of used; 0: none, or part of it */
};

int nvml_process_ask_memory(
	struct nvml_source *s, void *handle, int way, struct nvml_memory_v2 *m)
{
	*m = (struct nvml_memory_v2){ .version = NVML_VERSION_WORD(struct nvml_memory_v2, 2) };
	if (way == 0)
		return NVML_CALL(s->lib.api.memory_v2, handle, m);
	struct nvml_memory v1 = { 0 };
	int code = NVML_CALL(s->lib.api.memory, handle, &v1);
	m->total = v1.total;
	m->free = v1.free;
	m->used = v1.used;
	return code;
}

enum {
	LIST_ENTRIES = 64, /* usually enough, so that one call is enough */
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

/* Reads a list into s->raw_list, which has room for the largest entries; *n is the number of
 * entries. */
static int read_list(struct nvml_source *s, void *handle, nvml_list_call call, unsigned *n)
{
	size_t want = LIST_ENTRIES;
	for (int tries = 0; tries < SIZE_TRIES && want <= MOST_ENTRIES; tries++) {
		if (!nvml_reserve(&s->raw_list, want, NVML_ENTRY_LARGEST))
			return NVML_NO_MEMORY;
		memset(s->raw_list.data, NVML_FILL, s->raw_list.cap * NVML_ENTRY_LARGEST);
		*n = (unsigned)s->raw_list.cap;
		int code = NVML_CALL(call, handle, n, s->raw_list.data);
		if (code != NVML_TOO_SMALL)
			return code;
		want = (*n > s->raw_list.cap ? *n : s->raw_list.cap) * 3 / 2 + 16;
	}
	return NVML_TOO_SMALL;
}

/* A list to read, and where to add its entries. */
struct list_job {
	enum nvml_list list;
	struct nvml_buffer *to; /* of struct card_process */
	size_t *n;
};

/* Reads one list with one of its symbols. */
static int attempt_list(struct nvml_source *s, size_t card, int way, void *out)
{
	const struct list_job *job = out;
	unsigned n = 0;
	int code = read_list(s, s->cards[card].handle, s->lib.api.lists[job->list][way], &n);
	if (code == NVML_NOT_FOUND || (code == NVML_OK && n == 0))
		return NVML_OK;
	if (code != NVML_OK)
		return code;
	if (n > s->raw_list.cap)
		n = (unsigned)s->raw_list.cap;
	if (!nvml_reserve(job->to, *job->n + n + LIST_ENTRIES, sizeof(struct card_process)))
		return NVML_NO_MEMORY;
	size_t stride = nvml_decode_stride(
		s->raw_list.data, s->raw_list.cap * NVML_ENTRY_LARGEST, n, entry_sizes[way]);
	for (size_t i = 0; i < n; i++) {
		const unsigned char *entry = (unsigned char *)s->raw_list.data + i * stride;
		uint32_t pid;
		uint64_t mem_bytes;
		memcpy(&pid, entry, sizeof(pid));
		memcpy(&mem_bytes, entry + 8, sizeof(mem_bytes));
		*job->n = nvml_decode_merge_process(
			job->to->data, *job->n, pid, list_kinds[job->list], mem_bytes);
	}
	return NVML_OK;
}

/* Adds up the memory of the processes for which it is known; -1: it is known for none. */
static int64_t sum_bytes(const struct nvml_buffer *list, size_t n)
{
	const struct card_process *processes = list->data;
	int64_t sum = 0;
	size_t known = 0;
	for (size_t i = 0; i < n; i++) {
		if (processes[i].mem_bytes < 0)
			continue;
		sum += processes[i].mem_bytes;
		known++;
	}
	return n && !known ? UNKNOWN_BYTES : sum;
}

/* Returns the sum of the processes' memory, read again without changing the lists; -1: not
 * known. */
static int64_t nvml_glance_processes(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	size_t n = 0;
	struct list_job job = { NVML_COMPUTE, &c->glanced, &n };
	const struct nvml_task task = { NVML_JOB_LISTS + NVML_COMPUTE, attempt_list, &job };
	int code = nvml_job_do(s, card, &task);
	int64_t bytes = sum_bytes(&c->glanced, n);
	if (code != NVML_OK || bytes < 0)
		return UNKNOWN_BYTES;
	/* Memory that only the other lists reported at the last look counts as unchanged. */
	bool more = c->listed && c->compute_bytes >= 0 && c->listed_bytes > c->compute_bytes;
	return bytes + (more ? c->listed_bytes - c->compute_bytes : 0);
}

static int attempt_memory(struct nvml_source *s, size_t card, int way, void *out)
{
	struct memory_job *job = out;
	struct nvml_memory_v2 memory;
	if (way == 2) {
		struct nvml_card *c = &s->cards[card];
		if (!nvml_job_is_unsupported(c, NVML_JOB_MEMORY))
			return NVML_UNKNOWN; /* the call is supported, but failed */
		if (job->from == NVML_MEMORY_LOOKED)
			job->used = c->listed ? c->listed_bytes : UNKNOWN_BYTES;
		else if (job->from == NVML_MEMORY_GLANCED)
			job->used = nvml_glance_processes(s, card);
		return NVML_OK;
	}
	int code = nvml_process_ask_memory(s, s->cards[card].handle, way, &memory);
	/* The memory of an instance may be unknown since GPM counters were read. */
	const struct card_id *id = &s->base.cards[card].id;
	bool broken = code == NVML_IN_USE || (code == NVML_OK && memory.total == 0);
	if (broken && id->mig_index >= 0 && id->mem_total_bytes >= 0)
		nvml_gpm_stop(s, card, code == NVML_OK ? NVML_NO_DATA : code);
	if (code != NVML_OK)
		return code;
	/* Cards that share the host's memory report 0; a broken answer is more than the total.
	 */
	if (memory.total == 0 && s->base.cards[card].id.mem_total_bytes < 0)
		return NVML_NOT_SUPPORTED;
	if (memory.total == 0 || nvml_decode_memory(memory.total) < 0 ||
		memory.used > memory.total)
		return NVML_NO_DATA;
	job->total = (int64_t)memory.total;
	job->used = (int64_t)memory.used;
	if (memory.reserved <= memory.total - memory.used)
		job->reserved = (int64_t)memory.reserved;
	return NVML_OK;
}

void nvml_process_read_memory(struct nvml_source *s, size_t card, enum nvml_memory_from from)
{
	struct card_reading *r = &s->base.cards[card];
	struct memory_job job = { from, UNKNOWN_BYTES, UNKNOWN_BYTES, 0 };
	/* A scan asks for the total, which the processes do not show. */
	if (from == NVML_MEMORY_SCANNED &&
		nvml_job_is_unsupported(&s->cards[card], NVML_JOB_MEMORY))
		return;
	r->mem_used_bytes = UNKNOWN_BYTES;
	const struct nvml_task task = { NVML_JOB_MEMORY, attempt_memory, &job };
	if (nvml_job_do(s, card, &task) != NVML_OK)
		return;
	if (job.total >= 0)
		r->id.mem_total_bytes = job.total;
	r->mem_used_bytes = job.used;
	r->mem_reserved_bytes = job.reserved;
	r->mem_includes_reserved = s->cards[card].ways[NVML_JOB_MEMORY].way == 1;
	r->mem_is_sum = s->cards[card].ways[NVML_JOB_MEMORY].way == 2;
}

bool nvml_process_is_listed(const struct nvml_card *c, uint32_t pid)
{
	const struct card_process *processes = c->processes.data;
	for (size_t i = 0; i < c->n_processes; i++)
		if (processes[i].pid == pid)
			return true;
	return false;
}

/* Strangers (pids with use that are in no list) that are not in the lists read just now either
 * count as garbage from now on: another look would not find them. A stranger that was listed
 * before has left, and its records may come late. */
static void judge_strangers(struct nvml_card *c)
{
	for (size_t i = 0; i < NVML_STRANGERS; i++) {
		struct nvml_stranger *s = &c->strangers[i];
		bool listed = s->pid && nvml_process_is_listed(c, s->pid);
		s->left |= listed;
		s->unlisted = s->pid && !listed && !s->left;
	}
}

struct nvml_stranger *nvml_process_find_stranger(struct nvml_card *c, uint32_t pid)
{
	for (size_t i = 0; i < NVML_STRANGERS; i++)
		if (c->strangers[i].pid == pid)
			return &c->strangers[i];
	return NULL;
}

struct nvml_stranger *nvml_process_add_stranger(struct nvml_card *c, uint32_t pid)
{
	struct nvml_stranger *s = nvml_process_find_stranger(c, pid);
	if (s)
		return s;
	s = &c->strangers[c->next_stranger];
	*s = (struct nvml_stranger){ .pid = pid };
	c->next_stranger = (c->next_stranger + 1) % NVML_STRANGERS;
	return s;
}

/* The pids of a list; if it is long, the first ones. */
struct pids {
	uint32_t pid[LIST_ENTRIES];
	size_t n;
};

void nvml_process_look(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	int codes[NVML_LISTS];
	const struct card_process *processes = c->processes.data;
	struct pids before = { .n = 0 };
	for (size_t i = 0; c->listed && i < c->n_processes && before.n < LIST_ENTRIES; i++)
		before.pid[before.n++] = processes[i].pid;
	c->n_processes = 0;
	c->n_looks++;
	for (int list = 0; list < NVML_LISTS && c->handle; list++) {
		struct list_job job = { (enum nvml_list)list, &c->processes, &c->n_processes };
		const struct nvml_task task = { (enum nvml_job)(NVML_JOB_LISTS + list),
			attempt_list, &job };
		codes[list] = nvml_job_do(s, card, &task);
		if (list == NVML_COMPUTE)
			c->compute_bytes = sum_bytes(&c->processes, c->n_processes);
	}
	if (!c->handle)
		return;
	c->listed_bytes = sum_bytes(&c->processes, c->n_processes);
	c->listed = codes[NVML_COMPUTE] == NVML_OK;
	if (c->listed) {
		/* Which processes were in the lists before and are no longer there? */
		for (size_t i = 0; i < before.n; i++)
			if (!nvml_process_is_listed(c, before.pid[i]))
				nvml_process_add_stranger(c, before.pid[i])->left = true;
		judge_strangers(c);
	}
	r->processes_known = c->listed;
	r->processes = c->processes.data;
	r->n_processes = c->n_processes;
}
