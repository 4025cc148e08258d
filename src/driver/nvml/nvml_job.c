/* Does a job in the best way that works on a card, remembers that way, and logs it once. */
#include "driver/nvml/nvml.h"

static const struct job {
	const char *name;
	const char *ways[NVML_WAYS]; /* the symbols, best first */
} jobs[NVML_JOBS] = {
	[NVML_JOB_UTIL] = { "utilisation",
		{ "nvmlDeviceGetSamples", "nvmlDeviceGetUtilizationRates",
			"nvmlGpmMigSampleGet" } },
	[NVML_JOB_PROCESS_UTIL] = { "process utilisation",
		{ "nvmlDeviceGetProcessUtilization",
			"nvmlDeviceGetProcessesUtilizationInfo" } },
	[NVML_JOB_ENERGY] = { "energy", { "nvmlDeviceGetTotalEnergyConsumption",
						"nvmlDeviceGetPowerUsage, integrated" } },
	[NVML_JOB_POWER] = { "power", { "nvmlDeviceGetPowerUsage" } },
	[NVML_JOB_MEMORY] = { "memory",
		{ "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo",
			"sum over processes" } },
	[NVML_JOB_LISTS + NVML_COMPUTE].name = "compute processes",
	[NVML_JOB_LISTS + NVML_GRAPHICS].name = "graphics processes",
	[NVML_JOB_LISTS + NVML_MPS].name = "MPS processes",
#define CALL(...)
#define OLDER(...)
#define OBJECT(...)
#define ASKED(...)
#define LIST(list, way, symbol) [NVML_JOB_LISTS + list].ways[way] = #symbol,
#include "driver/nvml/nvml_calls.def"
};

void nvml_job_forget_ways(struct nvml_card *c, bool is_instance)
{
	for (size_t job = 0; job < NVML_JOBS; job++)
		c->ways[job] = (struct nvml_way){ .way = NVML_WAY_UNTRIED };
	c->ways[NVML_JOB_UTIL].dead = 1U
				      << 2; /* GPM is read separately, after everything else */
	c->dead = (struct nvml_dead){ 0 };
	nvml_ring_forget(&c->ring);
	if (!is_instance)
		return;
	/* The driver does not support these for MIG instances, so they are not asked. */
	static const enum nvml_job none[] = { NVML_JOB_UTIL, NVML_JOB_PROCESS_UTIL,
		NVML_JOB_ENERGY, NVML_JOB_POWER };
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		c->ways[none[i]] = (struct nvml_way){
			.way = NVML_WAY_NONE, .code = NVML_NOT_SUPPORTED, .dead = ~0U
		};
}

bool nvml_job_is_fatal(int code)
{
	return code == NVML_UNINITIALISED || code == NVML_NO_DRIVER || code == NVML_MISMATCH;
}

bool nvml_job_is_lost(int code)
{
	return code == NVML_LOST || code == NVML_RESET_REQUIRED;
}

void nvml_job_heed(struct nvml_source *s, size_t card, int code)
{
	struct nvml_card *c = &s->cards[card];
	if (nvml_job_is_fatal(code)) {
		nvml_go_down(s, code);
	} else if (nvml_job_is_lost(code)) {
		nvml_cards_lose(s, card, code);
	} else if (code == NVML_BLOCKED || code == NVML_UNKNOWN) {
		c->failure = code;
	} else {
		/* Of an instance: it has just been destroyed. */
		if (code == NVML_BAD_ARGUMENT && s->base.cards[card].id.mig_index >= 0)
			nvml_cards_lose(s, card, NVML_NOT_FOUND);
		c->answered = true;
	}
}

static void use_way(struct nvml_source *s, size_t card, enum nvml_job job, int way, int code)
{
	struct nvml_way *w = &s->cards[card].ways[job];
	w->way = way;
	w->code = code;
	unsigned bit = 1U << (way < 0 ? NVML_WAYS : way);
	if (way == 0 || (s->logged[job] & bit))
		return;
	s->logged[job] |= bit;
	const struct card_id *id = &s->base.cards[card].id;
	if (way < 0)
		log_notice("no %s from the driver on GPU %d: %s", jobs[job].name, id->index,
			nvml_lib_code_text(code));
	else
		log_notice("%s on GPU %d by %s, because of %s: %s", jobs[job].name, id->index,
			jobs[job].ways[way], jobs[job].ways[0], nvml_lib_code_text(code));
}

void nvml_job_turn_to(struct nvml_source *s, size_t card, enum nvml_job job, int way, int code)
{
	s->cards[card].ways[job].dead |= (1U << way) - 1;
	use_way(s, card, job, way, code);
}

bool nvml_job_is_unsupported(const struct nvml_card *c, enum nvml_job job)
{
	const unsigned both = 3;
	return (c->ways[job].dead & both) == both;
}

bool nvml_job_is_for_good(int code)
{
	return code == NVML_NOT_SUPPORTED || code == NVML_NO_FUNCTION ||
	       code == NVML_BAD_VERSION || code == NVML_DEPRECATED;
}

int nvml_job_try(struct nvml_source *s, size_t card, const struct nvml_task *task, int way)
{
	struct nvml_way *w = &s->cards[card].ways[task->job];
	if (w->dead & (1U << way))
		return NVML_NOT_SUPPORTED;
	nvml_enter(s, s->base.cards[card].id.index, jobs[task->job].ways[way]);
	int code = task->attempt(s, card, way, task->out);
	nvml_job_heed(s, card, code);
	if (nvml_job_is_for_good(code))
		w->dead |= 1U << way;
	return code;
}

int nvml_job_do(struct nvml_source *s, size_t card, const struct nvml_task *task)
{
	struct nvml_card *c = &s->cards[card];
	enum nvml_job job = task->job;
	struct nvml_way *w = &c->ways[job];
	int why = NVML_OK;
	for (int way = 0; way < NVML_WAYS && jobs[job].ways[way] && c->handle; way++) {
		bool was_dead = w->dead & (1U << way);
		int code = nvml_job_try(s, card, task, way);
		if (code == NVML_OK) {
			use_way(s, card, job, way, why);
			return code;
		}
		if (way == 0)
			why = was_dead && w->code ? w->code : code;
	}
	if (c->handle)
		use_way(s, card, job, NVML_WAY_NONE, why);
	return why;
}

/* Adds a card to the note of a row: "GPU 0", or "GPU 0/2" for its third instance. */
static void add_label(struct facility *row, const struct card_id *id)
{
	char *note = row->note;
	size_t cap = sizeof(row->note);
	if (!note[0])
		str_copy(note, cap, "GPU");
	size_t len = strlen(note);
	if (len + 17 >= cap) {
		if (note[len - 1] != '~')
			snprintf(note + len, cap - len, " ~");
		return;
	}
	if (id->mig_index >= 0)
		snprintf(note + len, cap - len, " %d/%d", id->index, id->mig_index);
	else
		snprintf(note + len, cap - len, " %d", id->index);
}

/* Makes one row for the cards that do a job in this way; false: there is no such card. */
static bool describe_way(
	struct nvml_source *s, enum nvml_job job, int way, struct facility *row)
{
	size_t users = 0, asked = 0;
	int code = NVML_OK;
	*row = (struct facility){
		.job = jobs[job].name, .fallback = way > 0, .works = way >= 0
	};
	for (size_t i = 0; i < s->base.n_cards; i++) {
		const struct nvml_way *w = &s->cards[i].ways[job];
		asked += w->way != NVML_WAY_UNTRIED;
		if (w->way != way)
			continue;
		users++;
		code = w->code;
		add_label(row, &s->base.cards[i].id);
	}
	row->how = way >= 0 ? jobs[job].ways[way] : nvml_lib_code_text(code);
	if (users == asked)
		str_copy(row->note, sizeof(row->note), way > 0 ? nvml_lib_code_text(code) : "");
	return users > 0;
}

/* Makes one row for the devices with the mode on, or off; false: there is no such device. */
static bool describe_mode(struct nvml_source *s, bool accounting, int on, struct facility *row)
{
	*row = (struct facility){ .job = accounting ? "ended processes" : "persistence mode",
		.how = !accounting ? on ? "on" : "off"
		       : on	   ? "accounting mode is on"
				   : "accounting mode is off",
		.works = true };
	for (size_t i = 0; i < s->n_devices; i++) {
		const struct nvml_device *d = &s->devices[i];
		if ((accounting ? d->accounting : d->persistence) == on)
			add_label(row, &d->id);
	}
	return row->note[0] != '\0';
}

size_t nvml_job_facilities(struct source *base, struct facility *rows, size_t max)
{
	struct nvml_source *s = (struct nvml_source *)base;
	size_t n = 0;
	if (n < max) {
		rows[n] = (struct facility){
			.job = "library", .how = s->lib.path, .works = true
		};
		str_copy(rows[n].note, sizeof(rows[n].note), s->lib.version);
		n++;
	}
	for (int job = 0; job < NVML_JOBS; job++)
		for (int way = NVML_WAY_NONE; way < NVML_WAYS && n < max; way++)
			n += describe_way(s, (enum nvml_job)job, way, &rows[n]);
	if (n < max) {
		/* One row for the cards whose GPM counters are read, if there is one. */
		struct facility *row = &rows[n];
		*row = (struct facility){ .job = "SM activity",
			.how = s->gpm_stopped ? "it broke other calls" : "GPM counters",
			.works = !s->gpm_stopped };
		for (size_t i = 0; i < s->base.n_cards; i++)
			if (s->cards[i].gpm.works)
				add_label(row, &s->base.cards[i].id);
		n += row->note[0] || s->gpm_stopped;
	}
	for (int i = 0; i < 4 && n < max; i++)
		n += describe_mode(s, i >= 2, i % 2, &rows[n]);
	return n;
}
