/* The processes on a card: the three process lists merged. */
#include <string.h>

#include "driver/nvml/nvml.h"
#include "driver/nvml/nvml_decode.h"

enum {
	LIST_ENTRIES = 64, /* usually enough, so that the driver is asked once */
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

/* Reads a list into c->raw_list, which has room for the largest entries; *n is how many came.
 */
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

/* A list to be read, and where its entries are added. */
struct list_job {
	enum nvml_list list;
	struct nvml_buffer *to; /* of struct card_process */
	size_t *n;
};

/* One list by one of its symbols. */
static int attempt_list(struct nvml_source *s, size_t card, int way, void *out)
{
	const struct list_job *job = out;
	struct nvml_card *c = &s->cards[card];
	unsigned n = 0;
	int code = read_list(c, s->lib.api.lists[job->list][way], &n);
	if (code == NVML_NOT_FOUND || (code == NVML_OK && n == 0))
		return NVML_OK;
	if (code != NVML_OK)
		return code;
	if (n > c->raw_list.cap)
		n = (unsigned)c->raw_list.cap;
	if (!nvml_reserve(job->to, *job->n + n + LIST_ENTRIES, sizeof(struct card_process)))
		return NVML_NO_MEMORY;
	size_t stride = nvml_entry_stride(
		c->raw_list.data, c->raw_list.cap * NVML_ENTRY_LARGEST, n, entry_sizes[way]);
	for (size_t i = 0; i < n; i++) {
		const unsigned char *entry = (unsigned char *)c->raw_list.data + i * stride;
		uint32_t pid;
		uint64_t mem_bytes;
		memcpy(&pid, entry, sizeof(pid));
		memcpy(&mem_bytes, entry + 8, sizeof(mem_bytes));
		*job->n = nvml_merge_process(
			job->to->data, *job->n, pid, list_kinds[job->list], mem_bytes);
	}
	return NVML_OK;
}

bool nvml_is_listed(const struct nvml_card *c, uint32_t pid)
{
	const struct card_process *processes = c->processes.data;
	for (size_t i = 0; i < c->n_processes; i++)
		if (processes[i].pid == pid)
			return true;
	return false;
}

/* Strangers (pids with use that are in no list) that the lists read just now do not have
 * either count as garbage from now on: another look would not find them. */
static void judge_strangers(struct nvml_card *c)
{
	for (size_t i = 0; i < NVML_STRANGERS; i++)
		if (c->strangers[i].pid)
			c->strangers[i].unlisted = !nvml_is_listed(c, c->strangers[i].pid);
}

/* Memory of the processes as far as it is known; -1: of none of them. */
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

int64_t nvml_glance_processes(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	size_t n = 0;
	struct list_job job = { NVML_COMPUTE, &c->glanced, &n };
	const struct nvml_task task = { NVML_JOB_LISTS + NVML_COMPUTE, attempt_list, &job };
	int code = nvml_do(s, card, &task);
	int64_t bytes = sum_bytes(&c->glanced, n);
	if (code != NVML_OK || bytes < 0)
		return UNKNOWN_BYTES;
	/* Memory that only the other lists had at the last look is taken as unchanged. */
	bool more = c->listed && c->compute_bytes >= 0 && c->listed_bytes > c->compute_bytes;
	return bytes + (more ? c->listed_bytes - c->compute_bytes : 0);
}

void nvml_look_processes(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	int codes[NVML_LISTS];
	c->n_processes = 0;
	c->n_looks++;
	for (int list = 0; list < NVML_LISTS && c->handle; list++) {
		struct list_job job = { (enum nvml_list)list, &c->processes, &c->n_processes };
		const struct nvml_task task = { (enum nvml_job)(NVML_JOB_LISTS + list),
			attempt_list, &job };
		codes[list] = nvml_do(s, card, &task);
		if (list == NVML_COMPUTE)
			c->compute_bytes = sum_bytes(&c->processes, c->n_processes);
	}
	if (!c->handle)
		return;
	c->listed_bytes = sum_bytes(&c->processes, c->n_processes);
	c->listed = codes[NVML_COMPUTE] == NVML_OK;
	if (c->listed)
		judge_strangers(c);
	r->processes_known = c->listed;
	r->processes = c->processes.data;
	r->n_processes = c->n_processes;
}
