/* The used memory of a card: as the driver reports it, or the sum over the processes on boards
 * that share the host's memory, where the driver does not report it. */
#include "driver/nvml/nvml.h"
#include "driver/nvml/nvml_decode.h"

/* One reading of memory. */
struct memory_job {
	enum nvml_memory_from from;
	int64_t total, used; /* or -1 */
	int64_t reserved;    /* not part of used; 0: none, or part of it */
};

static int read_by_driver(struct nvml_source *s, size_t card, int way, struct nvml_memory_v2 *m)
{
	void *handle = s->cards[card].handle;
	*m = (struct nvml_memory_v2){ .version = NVML_VERSION_WORD(struct nvml_memory_v2, 2) };
	if (way == 0)
		return NVML_CALL(s->lib.api.memory_v2, handle, m);
	struct nvml_memory v1 = { 0 };
	int code = NVML_CALL(s->lib.api.memory, handle, &v1);
	m->total = v1.total;
	m->used = v1.used; /* with what the driver reserves */
	return code;
}

/* Whether the driver does not report memory: neither call is supported. */
static bool is_unsupported(const struct nvml_card *c)
{
	const unsigned both = 3;
	return (c->ways[NVML_JOB_MEMORY].dead & both) == both;
}

static int sum_processes(struct nvml_source *s, size_t card, struct memory_job *job)
{
	struct nvml_card *c = &s->cards[card];
	if (!is_unsupported(c))
		return NVML_UNKNOWN; /* it is supported, and failed */
	if (job->from == NVML_MEMORY_LOOKED)
		job->used = c->listed ? c->listed_bytes : UNKNOWN_BYTES;
	else if (job->from == NVML_MEMORY_GLANCED)
		job->used = nvml_glance_processes(s, card);
	return NVML_OK;
}

/* Whether the memory of an instance has been unknown since GPM counters were read. */
static void notice_broken(struct nvml_source *s, size_t card, int code, uint64_t total)
{
	const struct card_id *id = &s->base.cards[card].id;
	bool broken = code == NVML_IN_USE || (code == NVML_OK && total == 0);
	if (broken && id->mig_index >= 0 && id->mem_total_bytes >= 0)
		nvml_stop_gpm(s, card, code == NVML_OK ? NVML_NO_DATA : code);
}

static int attempt_memory(struct nvml_source *s, size_t card, int way, void *out)
{
	struct memory_job *job = out;
	struct nvml_memory_v2 memory;
	if (way == 2)
		return sum_processes(s, card, job);
	int code = read_by_driver(s, card, way, &memory);
	notice_broken(s, card, code, memory.total);
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

void nvml_read_memory(struct nvml_source *s, size_t card, enum nvml_memory_from from)
{
	struct card_reading *r = &s->base.cards[card];
	struct memory_job job = { from, UNKNOWN_BYTES, UNKNOWN_BYTES, 0 };
	/* A scan asks for the total, which is not known from the processes. */
	if (from == NVML_MEMORY_SCANNED && is_unsupported(&s->cards[card]))
		return;
	r->mem_used_bytes = UNKNOWN_BYTES;
	const struct nvml_task task = { NVML_JOB_MEMORY, attempt_memory, &job };
	if (nvml_do(s, card, &task) != NVML_OK)
		return;
	if (job.total >= 0)
		r->id.mem_total_bytes = job.total;
	r->mem_used_bytes = job.used;
	r->mem_reserved_bytes = job.reserved;
	r->mem_includes_reserved = s->cards[card].ways[NVML_JOB_MEMORY].way == 1;
	r->mem_is_sum = s->cards[card].ways[NVML_JOB_MEMORY].way == 2;
}
