/* Reads how much each process used a card since the last drain. */
#include "driver/nvml/nvml.h"
#include "driver/nvml/nvml_decode.h"

enum {
	USE_ENTRIES = 128, /* the driver's ring has 72 or 100 */
	MOST_ENTRIES = 16384,
	SIZE_TRIES = 8, /* for a list that grows while it is read */
	BUSY_PCT = 10,	/* from this utilisation on, some process must have used the card */
};

/* A request for the records since a moment, by the clock of the driver's stamps. */
struct use_job {
	int64_t since_us;
	unsigned n; /* number of records */
};

/* Fills s->raw_utils: by the older call (way 0), or by that of newer drivers, whose records
 * have more members. */
static int read_use(struct nvml_source *s, struct nvml_card *c, int way, struct use_job *job)
{
	unsigned long long since = (unsigned long long)job->since_us;
	size_t want = USE_ENTRIES;
	int code = NVML_TOO_SMALL;
	for (int tries = 0;
		code == NVML_TOO_SMALL && tries < SIZE_TRIES && want <= MOST_ENTRIES; tries++) {
		if (!nvml_reserve(&s->raw_utils, want, sizeof(struct nvml_process_sample_v1)))
			return NVML_NO_MEMORY;
		/* An entry that is counted but not filled must not be one of another card. */
		memset(s->raw_utils.data, 0,
			s->raw_utils.cap * sizeof(struct nvml_process_sample_v1));
		struct nvml_process_samples_v1 all = {
			.version = NVML_VERSION_WORD(struct nvml_process_samples_v1, 1),
			.count = (uint32_t)s->raw_utils.cap,
			.last_seen_us = since,
			.samples = s->raw_utils.data,
		};
		code = way == 0 ? NVML_CALL(s->lib.api.process_samples, c->handle,
					  s->raw_utils.data, &all.count, since)
				: NVML_CALL(s->lib.api.process_samples_v1, c->handle, &all);
		job->n = all.count;
		want = (job->n > s->raw_utils.cap ? job->n : s->raw_utils.cap) * 3 / 2 + 16;
	}
	return code;
}

/* Fills s->raw_utils with struct nvml_process_sample_v1, whichever call is used. */
static int attempt_use(struct nvml_source *s, size_t card, int way, void *out)
{
	struct nvml_card *c = &s->cards[card];
	struct use_job *job = out;
	int code = read_use(s, c, way, job);
	if (code == NVML_NOT_FOUND) {
		job->n = 0; /* no process had a sample: all were idle */
		return NVML_OK;
	}
	if (code == NVML_OK && job->n > s->raw_utils.cap)
		job->n = (unsigned)s->raw_utils.cap;
	if (code == NVML_OK && way == 0)
		nvml_decode_widen_uses(s->raw_utils.data, job->n);
	return code;
}

/* Whether the record of a pid counts. A process that is not in the lists may have started after
 * they were read. The reading reports this, and the record counts until the lists are read
 * again. */
static bool is_heard(struct nvml_card *c, struct card_reading *r, const struct process_util *u)
{
	if (u->pid == 0)
		return false;
	if (nvml_process_is_listed(c, u->pid))
		return true;
	const struct nvml_stranger *known = nvml_process_find_stranger(c, u->pid);
	if (known && known->unlisted)
		return false;
	if (u->sm_pct <= 0)
		return true;
	r->stranger |= c->listed;
	nvml_process_add_stranger(c, u->pid);
	return true;
}

/* Adds a record to the readings, which keep the newest one of each pid. */
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

static int64_t newest_stamp_us(const struct nvml_process_sample_v1 *records, unsigned n)
{
	int64_t newest_us = 0;
	for (unsigned i = 0; i < n; i++)
		if (records[i].sm_pct <= 100 && records[i].wall_us <= INT64_MAX &&
			(int64_t)records[i].wall_us > newest_us)
			newest_us = (int64_t)records[i].wall_us;
	return newest_us;
}

/* Converts n records in s->raw_utils, from either call, into the reading. */
static void take_records(struct nvml_source *s, size_t card, int way, unsigned n)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	r->n_process_utils = 0;
	if (!nvml_reserve(&c->utils, n + 1, sizeof(struct process_util)))
		return;
	struct moment now = clock_now(s->clock);
	const struct nvml_process_sample_v1 *records = s->raw_utils.data;
	c->stamps = nvml_ring_stamps_learn(c->stamps, newest_stamp_us(records, n), &now);
	int64_t now_us = nvml_ring_stamps_now(c->stamps, &now);
	r->process_util_known = true;
	r->process_utils = c->utils.data;
	r->n_engines = way == 0 ? ENGINE_JPEG : ENGINE_COUNT;
	for (unsigned i = 0; i < n; i++) {
		struct process_util use;
		if (!nvml_decode_use(&records[i], c->since_us, now_us, &use))
			continue;
		use.wall_us += nvml_ring_stamps_to_wall(c->stamps, &now);
		if (is_heard(c, r, &use))
			add_use(r, c->utils.data, &use);
	}
}

/* Whether the card was busy and has processes, but the driver reports no use for any of them.
 * A little use may have been rounded to 0. */
static bool is_nobodys(const struct nvml_card *c, const struct card_reading *r)
{
	double sum_pct = 0;
	for (size_t i = 0; i < r->n_samples; i++)
		sum_pct += r->samples[i].util_pct;
	if (!(sum_pct >= BUSY_PCT * (double)r->n_samples) || r->n_samples == 0)
		return false;
	for (size_t i = 0; i < r->n_process_utils; i++)
		if (r->process_utils[i].sm_pct > 0)
			return false;
	return !c->listed || c->n_processes > 0;
}

/* Adds the use since a sample of the drain to the parts. False: it cannot be read. */
static bool add_part(struct nvml_source *s, size_t card, int64_t wall_us)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	struct moment now = clock_now(s->clock);
	int64_t to_wall_us = nvml_ring_stamps_to_wall(c->stamps, &now);
	int64_t now_us = nvml_ring_stamps_now(c->stamps, &now);
	struct use_job job = { wall_us - to_wall_us, 0 };
	const struct nvml_task task = { NVML_JOB_PROCESS_UTIL, attempt_use, &job };
	if (nvml_job_do(s, card, &task) != NVML_OK ||
		!nvml_reserve(&c->parts, r->n_parts + job.n + 1, sizeof(struct process_part)))
		return false;
	struct process_part *parts = c->parts.data;
	const struct nvml_process_sample_v1 *records = s->raw_utils.data;
	r->parts = parts;
	parts[r->n_parts++] = (struct process_part){ .since_us = wall_us };
	for (unsigned i = 0; i < job.n; i++) {
		struct process_util use;
		if (nvml_decode_use(&records[i], job.since_us, now_us, &use) &&
			reading_process_util(r, use.pid))
			parts[r->n_parts++] =
				(struct process_part){ use.pid, wall_us, use.sm_pct };
	}
	return true;
}

void nvml_use_drain(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct card_reading *r = &s->base.cards[card];
	const struct nvml_way *in_force = &c->ways[NVML_JOB_PROCESS_UTIL];
	struct use_job job = { c->since_us, 0 };
	const struct nvml_task task = { NVML_JOB_PROCESS_UTIL, attempt_use, &job };
	if (nvml_job_do(s, card, &task) != NVML_OK)
		return;
	take_records(s, card, in_force->way, job.n);
	/* Some drivers report 0 for all processes in one call and true values in the other. */
	if (is_nobodys(c, r) && in_force->way == 0 &&
		nvml_job_try(s, card, &task, 1) == NVML_OK) {
		take_records(s, card, 1, job.n);
		if (!is_nobodys(c, r))
			nvml_job_turn_to(s, card, NVML_JOB_PROCESS_UTIL, 1, NVML_NO_DATA);
	}
	if (is_nobodys(c, r)) {
		r->process_util_known = false;
		r->n_process_utils = 0;
		return;
	}
	size_t n = s->base.drains & DRAIN_BRIEF ? 1 : use_parts(r, &c->past);
	for (size_t i = 1; i < n; i++)
		if (!add_part(s, card, use_part_us(r, i, n)))
			break;
	use_keep(&c->past, r);
}
