/* Reads the driver's records of processes that have ended. A drain asks which pids have a
 * record. It reads the record of a pid when the pid is new, or when a look shows that the
 * process started or ended. */
#include "driver/nvml/nvml.h"

#include "driver/nvml/nvml_decode.h"

enum {
	PID_ENTRIES = 256, /* usually enough, so that one call is enough */
	PID_MOST = 4000,   /* the most that the driver keeps */
	SIZE_TRIES = 6,
};

int nvml_account_mode(struct nvml_source *s, void *handle)
{
	unsigned on = 0;
	return NVML_CALL(s->lib.api.accounting_mode, handle, &on) == NVML_OK ? on != 0 : -1;
}

static int compare(const void *a, const void *b)
{
	return array_compare(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Reads the pids that have records, in the driver's order. */
static int read_pids(struct nvml_source *s, struct nvml_card *c, unsigned *n)
{
	struct nvml_buffer *pids = &c->accounts.pids;
	size_t want = PID_ENTRIES;
	int code = NVML_TOO_SMALL;
	for (int tries = 0; tries < SIZE_TRIES && code == NVML_TOO_SMALL; tries++) {
		if (!nvml_reserve(pids, want, sizeof(uint32_t)))
			return NVML_NO_MEMORY;
		*n = (unsigned)pids->cap;
		code = NVML_CALL(s->lib.api.accounting_pids, c->handle, n, pids->data);
		want = *n > pids->cap ? *n + PID_ENTRIES : 2 * pids->cap;
		want = want < PID_MOST ? want : PID_MOST;
	}
	if (code != NVML_OK)
		return code;
	if (*n > pids->cap)
		*n = (unsigned)pids->cap;
	return NVML_OK;
}

/* Adds a life that has ended, unless it ended before the source was opened. A record that ends
 * in the future is garbage, or the clock was set back after the process started. */
static void add_ended(struct nvml_source *s, size_t card, uint32_t pid,
	const struct nvml_account_stats *stats)
{
	struct nvml_accounts *a = &s->cards[card].accounts;
	struct card_reading *r = &s->base.cards[card];
	struct moment now = clock_now(s->clock);
	enum nvml_stamps stamps =
		nvml_ring_stamps_learn(s->cards[card].stamps, (int64_t)stats->start_us, &now);
	int64_t started_ms =
		((int64_t)stats->start_us + nvml_ring_stamps_to_wall(stamps, &now)) / 1000;
	int64_t latest_ms = (now.wall_us + NVML_AHEAD_US) / 1000;
	if (started_ms > latest_ms || stats->time_ms > (uint64_t)latest_ms)
		return;
	int64_t ended_ms = started_ms + (int64_t)stats->time_ms;
	if (ended_ms < s->opened_ms || ended_ms > latest_ms ||
		!nvml_reserve(&a->ended, r->n_ended + 1, sizeof(struct ended_process)))
		return;
	struct ended_process *all = a->ended.data;
	all[r->n_ended++] = (struct ended_process){ .pid = pid,
		.started_ms = started_ms,
		.ended_ms = ended_ms,
		.mem_peak_bytes = stats->peak_bytes > 0 ? nvml_decode_memory(stats->peak_bytes)
							: UNKNOWN_BYTES };
	r->ended = all;
}

/* Reads the record of a pid into its life; false: there is no longer a record. */
static bool read_life(struct nvml_source *s, size_t card, struct nvml_life *life)
{
	struct nvml_card *c = &s->cards[card];
	struct nvml_account_stats stats = { 0 };
	int code = NVML_CALL(s->lib.api.accounting_stats, c->handle, life->pid, &stats);
	nvml_job_heed(s, card, code);
	if (code != NVML_OK || stats.start_us > INT64_MAX)
		return false;
	bool ended = stats.time_ms > 0;
	bool same = life->start_us == (int64_t)stats.start_us;
	if (ended && !(same && life->ended))
		add_ended(s, card, life->pid, &stats);
	*life = (struct nvml_life){ .pid = life->pid,
		.ended = ended,
		.asked_look = c->n_looks,
		.start_us = (int64_t)stats.start_us };
	return true;
}

/* Finds what is known of a pid; *at moves along the lives, which are in order. */
static struct nvml_life recall(const struct nvml_accounts *a, size_t *at, uint32_t pid)
{
	const struct nvml_life *lives = a->lives.data;
	while (*at < a->n_lives && lives[*at].pid < pid)
		++*at;
	if (*at < a->n_lives && lives[*at].pid == pid)
		return lives[*at];
	return (struct nvml_life){ .pid = pid, .start_us = -1 };
}

void nvml_account_drain(struct nvml_source *s, size_t card)
{
	struct nvml_card *c = &s->cards[card];
	struct nvml_accounts *a = &c->accounts;
	unsigned n = 0;
	if (s->devices[c->device].accounting != 1 || s->base.cards[card].id.mig_index >= 0)
		return;
	nvml_enter(s, s->base.cards[card].id.index, "nvmlDeviceGetAccountingPids");
	int code = read_pids(s, c, &n);
	nvml_job_heed(s, card, code);
	if (code != NVML_OK || !nvml_reserve(&a->next, n + 1, sizeof(struct nvml_life)))
		return;
	if (n)
		qsort(a->pids.data, n, sizeof(uint32_t), compare);
	const uint32_t *pids = a->pids.data;
	struct nvml_life *next = a->next.data;
	size_t kept = 0, at = 0;
	for (unsigned i = 0; i < n && c->handle; i++) {
		if (pids[i] == 0 || (i > 0 && pids[i] == pids[i - 1]))
			continue;
		struct nvml_life life = recall(a, &at, pids[i]);
		/* A record is read again when newer process lists contradict it. */
		bool doubtful = life.asked_look != c->n_looks &&
				life.ended == nvml_process_is_listed(c, life.pid);
		bool ask = life.start_us < 0 || doubtful;
		if (!ask || read_life(s, card, &life))
			next[kept++] = life;
	}
	struct nvml_buffer before = a->lives;
	a->lives = a->next;
	a->next = before;
	a->n_lives = kept;
}

size_t nvml_account_read(
	struct source *base, size_t card, struct process_account *out, size_t max)
{
	struct nvml_source *s = (struct nvml_source *)base;
	struct nvml_card *c = &s->cards[card];
	unsigned n = 0;
	size_t kept = 0;
	if (!c->handle || nvml_account_mode(s, c->handle) != 1 ||
		read_pids(s, c, &n) != NVML_OK)
		return 0;
	const uint32_t *pids = c->accounts.pids.data;
	for (unsigned i = 0; i < n && kept < max; i++) {
		struct nvml_account_stats stats = { 0 };
		if (NVML_CALL(s->lib.api.accounting_stats, c->handle, pids[i], &stats) !=
			NVML_OK)
			continue;
		out[kept++] = (struct process_account){ .pid = pids[i],
			.gpu_pct = stats.gpu_pct,
			.memory_pct = stats.memory_pct,
			.mem_peak_bytes = nvml_decode_memory(stats.peak_bytes),
			.time_ms = (int64_t)stats.time_ms };
	}
	return kept;
}
