/* The simulated source: plays a scenario instead of asking a driver. */
#include "driver/sim/play.h"
#include "driver/source.h"
#include "driver/use.h"
#include "lab.h"
#include "weeks.h"

/* What is kept for one card besides its reading. */
struct sim_card {
	size_t unit;	      /* index into scenario.cards */
	int64_t drained_us;   /* scenario time of the last drain */
	int64_t power_us;     /* of the last reading of power; INT64_MIN: none */
	double integrated_mj; /* energy from power, where the counter fails */
	struct util_sample *samples;
	size_t cap, n_kept; /* of samples; those that glances made for the next drain */
	struct process_util *process_utils;
	struct process_part *parts;
	struct use_past past;
	struct card_process *processes;
};

enum { SIM_XIDS = 16 }; /* at a drain, at most */

struct sim {
	struct source source;
	struct source_xid xids[SIM_XIDS];
	uint64_t xids_seen; /* as play_xid() counts them */
	struct scenario *scenario;
	struct play *play;
	struct clock *clock;
	int64_t origin_us; /* boot time at scenario time 0 */
	struct sim_card *cards;
	struct play_use *uses; /* scratch, as many as a card has seats */
	struct play_holder *holders;
};

/* The driver's calls behind the metrics of live views; a fault of such a call is a fault of its
 * metrics. */
static const struct metric_call {
	enum metric metric;
	const char *call;
} sim_calls[] = {
	{ METRIC_TEMPERATURE_GPU, "nvmlDeviceGetTemperature" },
	{ METRIC_FAN_SPEED, "nvmlDeviceGetFanSpeed" },
	{ METRIC_UTILIZATION_GPU, "nvmlDeviceGetUtilizationRates" },
	{ METRIC_UTILIZATION_MEMORY, "nvmlDeviceGetUtilizationRates" },
	{ METRIC_POWER_DRAW, "nvmlDeviceGetPowerUsage" },
	{ METRIC_POWER_ENFORCED, "nvmlDeviceGetEnforcedPowerLimit" },
	{ METRIC_PSTATE, "nvmlDeviceGetPerformanceState" },
};

/* Lets time pass: on a virtual clock at once, unless `wait` asks to wait anyway. */
static void pass(struct sim *sim, int64_t us, bool wait)
{
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
	if (clock_is_virtual(sim->clock) && !wait)
		clock_advance(sim->clock, us);
	else
		nanosleep(&t, NULL);
	play_follow(sim->play, sim->clock, sim->origin_us);
}

/* Simulates that `call` is made: takes the scenario's time, and returns its code. */
static int sim_call(struct sim *sim, const char *call, int unit)
{
	const struct scenario_fault *fault = play_fault(sim->play, FAULT_SLOW, call, unit);
	if (fault)
		pass(sim, fault->slow_us, false);
	/* The call hangs until that fault ends. On a virtual clock that moment is known, so
	 * time jumps there. */
	while ((fault = play_fault(sim->play, FAULT_HANG, call, unit)) != NULL) {
		int64_t end_us = play_fault_end(sim->play, fault);
		bool known = clock_is_virtual(sim->clock) && end_us != INT64_MAX;
		pass(sim, known ? end_us - play_time(sim->play) : 5000, !known);
	}
	fault = play_fault(sim->play, FAULT_FAIL, call, unit);
	return fault ? fault->code : 0;
}

static bool metric_works(struct sim *sim, enum metric m, size_t unit)
{
	for (size_t i = 0; i < sizeof(sim_calls) / sizeof(sim_calls[0]); i++)
		if (sim_calls[i].metric == m)
			return sim_call(sim, sim_calls[i].call, (int)unit) == 0;
	return true;
}

/* source_ops.metrics. */
static void sim_metrics(struct source *s, const struct metric_request *request, double *values,
	metric_texts texts)
{
	struct sim *sim = (struct sim *)s;
	size_t unit = sim->cards[request->card].unit;
	int parent = sim->scenario->cards[unit].parent;
	if (request->board && parent >= 0)
		unit = (size_t)parent;
	for (int m = 0; m < METRIC_COUNT; m++) {
		if (!request->wanted[m])
			continue;
		if (m < METRIC_DRIVER_TEXTS)
			play_metric_text(
				sim->scenario, unit, (enum metric)m, texts[m], METRIC_TEXT_CAP);
		else if (metric_works(sim, (enum metric)m, unit)) {
			double value =
				play_metric(sim->play, sim->scenario, unit, (enum metric)m);
			values[m] = isnan(value) ? values[m] : value;
		}
	}
}

/* source_ops.accounts. */
static size_t sim_accounts(
	struct source *s, size_t card, struct process_account *out, size_t max)
{
	struct sim *sim = (struct sim *)s;
	struct play_account *all = calloc(max, sizeof(*all));
	size_t n = all ? play_account_list(sim->play, sim->cards[card].unit, all, max) : 0;
	for (size_t i = 0; i < n; i++)
		out[i] = (struct process_account){ .pid = all[i].pid,
			.gpu_pct = floor(all[i].sm_pct + 0.5),
			.memory_pct = floor(all[i].sm_pct / 2),
			.mem_peak_bytes = all[i].peak_bytes,
			.time_ms = all[i].length_us / 1000 };
	free(all);
	return n;
}

void sim_diagnose(const struct diagnosis *d, struct findings *f)
{
	if (!d->source)
		finding_advise(finding_add(f, FINDING_PROBLEM, "simulation", "%s", d->why.text),
			"its scenario decides when it fails: see gua-scenario(5)");
	else
		finding_add(f, FINDING_OK, "simulation",
			"a simulated driver with %zu card%s: its data is invented",
			d->source->n_cards, d->source->n_cards == 1 ? "" : "s");
}

/* Boot time of a virtual clock at scenario time 0. */
#define VIRTUAL_ORIGIN_US (3600LL * 1000000)
/* How long before the scenario its host was started: processes may be this old. */
#define UPTIME_US (90LL * 86400 * 1000000)

/* Moves to the current moment; fails while the scenario's driver cannot be initialised. */
static int go_to_now(struct sim *sim, struct err *e)
{
	play_follow(sim->play, sim->clock, sim->origin_us);
	int code = sim_call(sim, "nvmlInit_v2", -1);
	sim->source.code = code;
	if (code == 0)
		return 0;
	return err_set(
		e, ERR_WORLD, "the simulated driver cannot be initialised: code %d", code);
}

/* Reads the status of a card; true when the card can be read. */
static bool read_status(struct sim *sim, size_t i)
{
	struct card_reading *card = &sim->source.cards[i];
	size_t unit = sim->cards[i].unit;
	int code = sim_call(sim, "nvmlDeviceGetHandleByIndex_v2", (int)unit);
	card->status = play_status(sim->play, unit, &card->code);
	if (card->status == CARD_STATUS_OK && code != 0) {
		card->status = code == 4 ? CARD_STATUS_DENIED : CARD_STATUS_LOST;
		card->code = code;
	}
	return card->status == CARD_STATUS_OK;
}

static int sim_scan(struct source *s, struct err *e)
{
	struct sim *sim = (struct sim *)s;
	if (go_to_now(sim, e) != 0)
		return ERR_WORLD;
	for (size_t i = 0; i < s->n_cards; i++)
		read_status(sim, i);
	return 0;
}

/* The samples of the ring that are newer than the last drain. */
static void read_ring(struct sim *sim, size_t i)
{
	struct card_reading *card = &sim->source.cards[i];
	struct sim_card *own = &sim->cards[i];
	card->util_kind = UTIL_RING;
	size_t n = play_ring_size(sim->play, own->unit);
	for (size_t k = 0; k < n; k++) {
		const struct play_sample *sample = play_ring_at(sim->play, own->unit, k);
		if (sample->t_us > own->drained_us)
			own->samples[card->n_samples++] = (struct util_sample){ sample->wall_us,
				(double)sample->util_pct };
	}
}

/* Takes one reading now, as a driver without a ring does. */
static void read_rate(struct sim *sim, size_t i)
{
	struct card_reading *card = &sim->source.cards[i];
	struct sim_card *own = &sim->cards[i];
	size_t n = play_ring_size(sim->play, own->unit);
	card->util_kind = UTIL_POLLED;
	if (n == 0)
		return;
	const struct play_sample *newest = play_ring_at(sim->play, own->unit, n - 1);
	own->samples[0] = (struct util_sample){ play_wall(sim->play, play_time(sim->play)),
		(double)newest->util_pct };
	card->n_samples = 1;
}

/* Keeps a reading of an instance that is present and whose use is unknown. */
static void keep_unknown(struct sim *sim, size_t i)
{
	struct sim_card *own = &sim->cards[i];
	if (own->n_kept < own->cap)
		own->samples[own->n_kept++] =
			(struct util_sample){ play_wall(sim->play, play_time(sim->play)), NAN };
}

/* Adds the use since a sample of the drain to the parts. */
static void add_part(struct sim *sim, size_t i, int64_t wall_us)
{
	struct card_reading *card = &sim->source.cards[i];
	struct sim_card *own = &sim->cards[i];
	const struct play_since since = { .us = wall_us, .by_wall = true };
	size_t most = sim->scenario->cards[own->unit].n_seats;
	size_t n = play_uses(sim->play, own->unit, since, sim->uses, most);
	own->parts[card->n_parts++] = (struct process_part){ .since_us = wall_us };
	for (size_t k = 0; k < n; k++) {
		const struct play_use *use = &sim->uses[k];
		own->parts[card->n_parts++] = (struct process_part){
			.pid = sim->scenario->processes[use->process].pid,
			.since_us = wall_us,
			.sm_pct = use->sm_pct < 100 ? use->sm_pct : 100,
		};
	}
}

static void read_process_utils(struct sim *sim, size_t i)
{
	struct card_reading *card = &sim->source.cards[i];
	struct sim_card *own = &sim->cards[i];
	int code = sim_call(sim, "nvmlDeviceGetProcessUtilization", (int)own->unit);
	card->process_util_known = code == 0 && card->util_kind != UTIL_NONE;
	if (!card->process_util_known)
		return;
	size_t most = sim->scenario->cards[own->unit].n_seats;
	const struct play_since since = { .us = own->drained_us };
	size_t n = play_uses(sim->play, own->unit, since, sim->uses, most);
	for (size_t k = 0; k < n; k++) {
		const struct play_use *use = &sim->uses[k];
		double pct = use->sm_pct < 100 ? use->sm_pct : 100;
		own->process_utils[k] = (struct process_util){
			.pid = sim->scenario->processes[use->process].pid,
			.wall_us = use->wall_us,
			.sm_pct = pct,
			.engine_pct = { [ENGINE_MEMORY] = floor(pct / 2),
				[ENGINE_JPEG] = NAN,
				[ENGINE_FLOW] = NAN },
		};
	}
	card->n_process_utils = n;
	card->n_engines = ENGINE_JPEG;
	size_t parts = use_parts(card, &own->past);
	for (size_t k = 1; k < parts; k++)
		add_part(sim, i, use_part_us(card, k, parts));
	use_keep(&own->past, card);
}

static void read_power(struct sim *sim, size_t i)
{
	struct card_reading *card = &sim->source.cards[i];
	struct sim_card *own = &sim->cards[i];
	int unit = (int)own->unit;
	if (sim_call(sim, "nvmlDeviceGetPowerUsage", unit) == 0)
		card->power_mw = (double)play_power_mw(sim->play, own->unit);
	if (sim_call(sim, "nvmlDeviceGetTotalEnergyConsumption", unit) == 0) {
		card->energy_mj = floor(play_energy_mj(sim->play, own->unit));
		return;
	}
	int64_t now_us = play_time(sim->play);
	if (!isnan(card->power_mw) && own->power_us != INT64_MIN)
		own->integrated_mj += card->power_mw * (double)(now_us - own->power_us) / 1e6;
	own->power_us = isnan(card->power_mw) ? INT64_MIN : now_us;
	card->energy_mj = isnan(card->power_mw) ? NAN : own->integrated_mj;
}

static void drain_card(struct sim *sim, size_t i)
{
	struct card_reading *card = &sim->source.cards[i];
	struct sim_card *own = &sim->cards[i];
	int unit = (int)own->unit;
	reading_clear_drained(card);
	if (!read_status(sim, i))
		return;
	/* Instances have neither utilisation nor power. */
	if (sim->scenario->cards[unit].parent >= 0) {
		keep_unknown(sim, i);
		card->util_kind = UTIL_UNKNOWN;
		card->n_samples = own->n_kept;
		own->n_kept = 0;
		return;
	}
	if (sim_call(sim, "nvmlDeviceGetSamples", unit) == 0)
		read_ring(sim, i);
	else if (sim_call(sim, "nvmlDeviceGetUtilizationRates", unit) == 0)
		read_rate(sim, i);
	int64_t read_us = play_time(sim->play);
	read_process_utils(sim, i);
	own->drained_us = read_us;
	read_power(sim, i);
}

/* A card with MIG on is not in cards[]: its XIDs are left out. */
static void collect_xids(struct sim *sim)
{
	struct source *s = &sim->source;
	uint32_t unit;
	int64_t number;
	s->xids = sim->xids;
	s->n_xids = 0;
	while (s->n_xids < SIM_XIDS && play_xid(sim->play, &sim->xids_seen, &unit, &number))
		for (size_t i = 0; i < s->n_cards; i++)
			if (sim->cards[i].unit == unit)
				sim->xids[s->n_xids++] = (struct source_xid){ i, number };
}

static int sim_drain(struct source *s, const bool *which, struct err *e)
{
	struct sim *sim = (struct sim *)s;
	if (go_to_now(sim, e) != 0)
		return ERR_WORLD;
	collect_xids(sim);
	for (size_t i = 0; i < s->n_cards; i++)
		if (!which || which[i])
			drain_card(sim, i);
	return 0;
}

static void read_memory(struct sim *sim, size_t i)
{
	struct card_reading *card = &sim->source.cards[i];
	int unit = (int)sim->cards[i].unit;
	int64_t used = play_memory_used(sim->play, sim->cards[i].unit);
	int64_t reserved = sim->scenario->cards[unit].reserved_bytes;
	card->mem_used_bytes = UNKNOWN_BYTES;
	card->mem_reserved_bytes = 0;
	if (sim_call(sim, "nvmlDeviceGetMemoryInfo_v2", unit) == 0) {
		card->mem_used_bytes = used;
		card->mem_reserved_bytes = reserved;
	} else if (sim_call(sim, "nvmlDeviceGetMemoryInfo", unit) == 0) {
		card->mem_used_bytes = used + reserved;
	}
}

static void look_at_card(struct sim *sim, size_t i)
{
	struct card_reading *card = &sim->source.cards[i];
	struct sim_card *own = &sim->cards[i];
	int unit = (int)own->unit;
	card->processes_known = false;
	card->n_processes = 0;
	card->mem_used_bytes = UNKNOWN_BYTES;
	if (!read_status(sim, i))
		return;
	read_memory(sim, i);
	if (sim_call(sim, "nvmlDeviceGetComputeRunningProcesses_v2", unit) != 0)
		return;
	card->processes_known = true;
	size_t most = sim->scenario->cards[unit].n_seats;
	card->n_processes = play_holders(sim->play, own->unit, sim->holders, most);
	for (size_t k = 0; k < card->n_processes; k++) {
		const struct scenario_process *p =
			&sim->scenario->processes[sim->holders[k].process];
		own->processes[k] =
			(struct card_process){ p->pid, p->kind, sim->holders[k].mem_bytes };
	}
}

static int sim_glance(struct source *s, unsigned what, struct err *e)
{
	struct sim *sim = (struct sim *)s;
	if (go_to_now(sim, e) != 0)
		return ERR_WORLD;
	for (size_t i = 0; i < s->n_cards; i++) {
		bool ok = read_status(sim, i);
		if (what & GLANCE_MEMORY)
			s->cards[i].mem_used_bytes = UNKNOWN_BYTES;
		if (what & GLANCE_ENERGY)
			s->cards[i].energy_mj = NAN;
		if (!ok)
			continue;
		if (what & GLANCE_MEMORY)
			read_memory(sim, i);
		if (sim->scenario->cards[sim->cards[i].unit].parent >= 0)
			keep_unknown(sim, i);
		else if (what & GLANCE_ENERGY)
			read_power(sim, i);
	}
	return 0;
}

static int sim_look(struct source *s, const bool *which, struct err *e)
{
	struct sim *sim = (struct sim *)s;
	if (go_to_now(sim, e) != 0)
		return ERR_WORLD;
	for (size_t i = 0; i < s->n_cards; i++)
		if (!which || which[i])
			look_at_card(sim, i);
	return 0;
}

static bool sim_describe(struct source *s, uint32_t pid, struct process_id *id)
{
	struct sim *sim = (struct sim *)s;
	int64_t started_us = 0;
	int found = play_process(sim->play, pid, &started_us);
	if (found < 0)
		return false;
	const struct scenario_process *p = &sim->scenario->processes[found];
	*id = (struct process_id){ .pid = pid, .uid = p->uid, .owner_uid = -1 };
	id->start_ticks = (uint64_t)((started_us + UPTIME_US) / 10000) + 1;
	id->started_ms = play_wall(sim->play, started_us) / 1000;
	str_escape(id->user, sizeof(id->user), p->user, strlen(p->user));
	str_escape(id->command, sizeof(id->command), p->command, strlen(p->command));
	for (size_t i = 0; i < sim->scenario->n_texts; i++) {
		const struct scenario_text *text = &sim->scenario->texts[i];
		const struct process_field *field = &process_fields[text->which];
		if (text->process == (uint32_t)found)
			str_escape((char *)id + field->offset, field->cap, text->text,
				strlen(text->text));
	}
	return true;
}

/* The texts of a scenario are external input, like a driver's. */
static void escape_id(struct card_id *id, const struct card_id *raw)
{
	*id = *raw;
	str_escape(id->name, CARD_NAME_CAP, raw->name, strlen(raw->name));
	str_escape(id->uuid, UUID_CAP, raw->uuid, strlen(raw->uuid));
	str_escape(id->parent_uuid, UUID_CAP, raw->parent_uuid, strlen(raw->parent_uuid));
	str_escape(id->pci, PCI_CAP, raw->pci, strlen(raw->pci));
}

static void sim_board(struct source *s, size_t card, struct card_id *id)
{
	struct sim *sim = (struct sim *)s;
	int parent = sim->scenario->cards[sim->cards[card].unit].parent;
	if (parent < 0)
		return;
	escape_id(id, &sim->scenario->cards[parent].id);
}

static size_t sim_facilities(struct source *s, struct facility *rows, size_t max)
{
	static const char *const jobs[] = { "utilisation", "process utilisation",
		"process list", "memory", "energy" };
	(void)s;
	size_t n = 0;
	for (; n < max && n < sizeof(jobs) / sizeof(jobs[0]); n++)
		rows[n] =
			(struct facility){ .job = jobs[n], .how = "simulated", .works = true };
	return n;
}

static void sim_close(struct source *s)
{
	struct sim *sim = (struct sim *)s;
	for (size_t i = 0; sim->cards && i < s->n_cards; i++) {
		free(sim->cards[i].samples);
		free(sim->cards[i].process_utils);
		free(sim->cards[i].parts);
		use_finish(&sim->cards[i].past);
		free(sim->cards[i].processes);
	}
	play_close(sim->play);
	scenario_free(sim->scenario);
	free(sim->source.cards);
	free(sim->cards);
	free(sim->uses);
	free(sim->holders);
	free(sim);
}

static const struct source_ops sim_ops = {
	.name = "sim",
	.scan = sim_scan,
	.drain = sim_drain,
	.glance = sim_glance,
	.look = sim_look,
	.describe = sim_describe,
	.metrics = sim_metrics,
	.accounts = sim_accounts,
	.board = sim_board,
	.facilities = sim_facilities,
	.close = sim_close,
};

static bool make_card(struct sim *sim, size_t unit)
{
	const struct scenario *s = sim->scenario;
	struct card_reading *card = &sim->source.cards[sim->source.n_cards];
	struct sim_card *own = &sim->cards[sim->source.n_cards++];
	size_t ring = (size_t)(s->ring_us * s->samples_per_second / s->second_us);
	*own = (struct sim_card){
		.unit = unit, .drained_us = INT64_MIN, .power_us = INT64_MIN
	};
	own->cap = ring;
	own->samples = calloc(ring, sizeof(*own->samples));
	own->process_utils = calloc(s->cards[unit].n_seats + 1, sizeof(*own->process_utils));
	own->parts = calloc(PROCESS_PARTS * (s->cards[unit].n_seats + 1), sizeof(*own->parts));
	own->processes = calloc(s->cards[unit].n_seats + 1, sizeof(*own->processes));
	*card = (struct card_reading){ .source = "sim", .own_processes = true };
	escape_id(&card->id, &s->cards[unit].id);
	reading_clear(card, CARD_STATUS_OK, 0);
	card->samples = own->samples;
	card->process_utils = own->process_utils;
	card->parts = own->parts;
	card->processes = own->processes;
	return own->samples && own->process_utils && own->parts && own->processes;
}

/* Makes the cards: every card without MIG, and every instance of a card with MIG. */
static bool make_cards(struct sim *sim)
{
	const struct scenario *s = sim->scenario;
	size_t seats = 1;
	sim->source.cards = calloc(s->n_cards + 1, sizeof(*sim->source.cards));
	sim->cards = calloc(s->n_cards + 1, sizeof(*sim->cards));
	if (!sim->source.cards || !sim->cards)
		return false;
	for (size_t i = 0; i < s->n_cards; i++) {
		seats += s->cards[i].n_seats;
		if (!s->cards[i].has_mig && !make_card(sim, i))
			return false;
	}
	sim->uses = calloc(seats, sizeof(*sim->uses));
	sim->holders = calloc(seats, sizeof(*sim->holders));
	return sim->uses && sim->holders;
}

static int read_scenario(struct sim *sim, const struct source_options *o, struct err *e)
{
	int failed = 0;
	if (o->scenario)
		failed = scenario_read(&sim->scenario, o->scenario, e);
	else if (o->weeks)
		failed = scenario_parse(&sim->scenario, "weeks.scenario", weeks_scenario,
			sizeof(weeks_scenario) - 1, e);
	else
		failed = scenario_parse(&sim->scenario, "lab.scenario", lab_scenario,
			sizeof(lab_scenario) - 1, e);
	if (!failed && !o->scenario && o->weeks) /* the clock decides which two weeks */
		sim->scenario->has_start = false;
	return failed ? failed : scenario_resolve(sim->scenario, NULL, e);
}

int sim_source_open(struct source **s, const struct source_options *options, struct err *e)
{
	*s = NULL;
	struct sim *sim = calloc(1, sizeof(*sim));
	if (!sim)
		return err_memory(e);
	sim->source.ops = &sim_ops;
	sim->clock = options->clock;
	bool virtual_time = clock_is_virtual(sim->clock);
	sim->origin_us = virtual_time ? VIRTUAL_ORIGIN_US : clock_now(sim->clock).boot_us;
	int failed = read_scenario(sim, options, e);
	if (!failed && options->sample_period_us) {
		/* Samples less often: the ring keeps its number of samples. */
		int64_t in_ring = sim->scenario->ring_us * sim->scenario->samples_per_second /
				  sim->scenario->second_us;
		sim->scenario->second_us =
			options->sample_period_us * sim->scenario->samples_per_second;
		sim->scenario->ring_us = in_ring * options->sample_period_us;
	}
	failed = failed ? failed : play_open(&sim->play, sim->scenario, virtual_time, e);
	if (!failed && !make_cards(sim))
		failed = err_memory(e);
	failed = failed ? failed : sim_scan(&sim->source, e);
	if (failed) {
		sim_close(&sim->source);
		return failed;
	}
	sim->xids_seen = play_xid_count(sim->play);
	sim->source.sample_period_us =
		sim->scenario->second_us / sim->scenario->samples_per_second;
	const char *driver = sim->scenario->driver, *host = sim->scenario->host;
	str_escape(sim->source.driver_version, VERSION_CAP, driver, strlen(driver));
	str_escape(sim->source.hostname, sizeof(sim->source.hostname), host, strlen(host));
	*s = &sim->source;
	return 0;
}
