/* Asks for every row of the table of calls: once what does not change, in rounds what does, and
 * GPM last, since it may break other calls. */
#include "driver/capture/capture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "driver/capture/capture_ask.h"
#include "driver/capture/capture_facts.h"

enum {
	ERRORS_MAX = 30,
	STATS_MAX = 32, /* records of accounting mode of each card */
	GPM_APART_US = 1000000,
};

static const struct capture_unit no_unit = { -1, -1 };

/* Marks the rows whose call an earlier row makes, and the spare ones. */
static void plan(struct capture *c)
{
	for (size_t i = 0; i < nvml_plan_length(); i++) {
		struct nvml_form form, before;
		int args[NVML_ARGS], earlier[NVML_ARGS];
		c->done[i] = !nvml_plan_form(i, &form, args);
		for (size_t k = 0; k < i && !c->done[i]; k++)
			c->done[i] = nvml_plan_form(k, &before, earlier) &&
				     strcmp(before.symbol, form.symbol) == 0 &&
				     memcmp(args, earlier, sizeof(args)) == 0;
	}
}

static struct capture_question question_of(size_t place, struct capture_unit unit)
{
	struct capture_question q = { .place = place, .unit = unit };
	nvml_plan_form(place, &q.form, q.args);
	return q;
}

/* What is learned from an answer, for the questions that follow. */
static void learn(struct capture *c, const struct capture_question *q, uint64_t number)
{
	struct capture_card *card = q->unit.card >= 0 ? &c->cards[q->unit.card] : NULL;
	const char *symbol = q->form.symbol;
	if (strncmp(symbol, "nvmlDeviceGetCount", 18) == 0)
		c->n_cards = number < CAPTURE_CARDS ? (unsigned)number : CAPTURE_CARDS;
	else if (q->form.signature == NVML_SIG_INDEX)
		card->there = true;
	else if (strcmp(symbol, "nvmlDeviceGetMigMode") == 0)
		card->mig = number == 1;
	else if (q->form.signature == NVML_SIG_INSTANCE)
		card->instances |= 1U << q->args[0];
	else if (strcmp(symbol, "nvmlDeviceGetGpuInstanceId") == 0 && q->unit.instance >= 0)
		card->gpu_instances[q->unit.instance] = (int)number;
	else if (strcmp(symbol, "nvmlGpmQueryDeviceSupport") == 0)
		card->gpm = number != 0;
}

static bool ask_and_learn(struct capture *c, const struct capture_question *q)
{
	struct capture_reply reply;
	bool well = capture_ask(c, q, &reply);
	if (well)
		learn(c, q, reply.number);
	return well;
}

/* Asks with every number that makes sense. */
static void ask_each(struct capture *c, struct capture_question *q)
{
	struct capture_reply reply = { 0 };
	if (q->form.signature == NVML_SIG_ERROR) {
		for (q->args[0] = 0; q->args[0] <= ERRORS_MAX; q->args[0]++)
			capture_ask(c, q, &reply);
	} else if (q->form.signature == NVML_SIG_INSTANCE) {
		int most = c->cards[q->unit.card].mig ? CAPTURE_INSTANCES : 0;
		for (q->args[0] = 0; q->args[0] < most; q->args[0]++)
			ask_and_learn(c, q);
	} else if (strcmp(q->form.symbol, "nvmlDeviceGetAccountingStats") == 0) {
		size_t n = c->seen->n_pids < STATS_MAX ? c->seen->n_pids : STATS_MAX;
		for (size_t i = 0; i < n; i++) {
			q->args[0] = (int)c->seen->pids[i];
			capture_ask(c, q, &reply);
		}
	} else if (!ask_and_learn(c, q) && q->form.n_args == 1 && q->args[0] == 3 &&
		   q->form.signature == NVML_SIG_OUT) {
		q->args[0] = 2; /* the older layout of the fabric's health */
		capture_ask(c, q, &reply);
	}
}

/* Whether a row is asked about a unit in the first pass. */
static bool is_static(const struct nvml_form *form, struct capture_unit unit)
{
	if (form->rounds || form->signature == NVML_SIG_GPM)
		return false;
	if (unit.card < 0)
		return form->subject == NVML_OF_DRIVER;
	return form->subject == NVML_OF_ANY ||
	       (form->subject == NVML_OF_CARD && unit.instance < 0);
}

static bool may_ask(const struct capture *c, struct capture_unit unit)
{
	const struct capture_card *card = unit.card >= 0 ? &c->cards[unit.card] : NULL;
	return !c->ended && !(card && (card->stuck || card->asleep));
}

static void ask_static(struct capture *c, struct capture_unit unit)
{
	bool found_before = false; /* the newer name of this row */
	for (size_t i = 0; i < nvml_plan_length() && may_ask(c, unit); i++) {
		struct capture_question q = question_of(i, unit);
		bool skip = q.form.spare && found_before;
		if (!q.form.spare)
			found_before = false;
		if (c->done[i] || skip || !is_static(&q.form, unit))
			continue;
		bool handle = q.form.signature == NVML_SIG_INDEX;
		if (unit.card >= 0 && !handle && !c->cards[unit.card].there)
			continue;
		ask_each(c, &q);
		found_before = !c->done[i];
	}
}

static struct capture_unit unit_of(unsigned card, int instance)
{
	return (struct capture_unit){ (int)card, instance };
}

static void ask_cards(struct capture *c)
{
	for (unsigned i = 0; i < c->n_cards; i++) {
		if (c->cards[i].asleep) {
			str_addf(c->out, "asleep %u\n", i);
			continue;
		}
		ask_static(c, unit_of(i, -1));
		for (int k = 0; k < CAPTURE_INSTANCES; k++)
			if (c->cards[i].instances & 1U << k)
				ask_static(c, unit_of(i, k));
	}
}

/* The rings other than that of utilisation are only read once. */
static void ask_rings(struct capture *c, struct capture_question *q, bool first)
{
	struct capture_reply reply;
	int at = q->unit.instance < 0 ? CAPTURE_INSTANCES : q->unit.instance;
	uint64_t *since_us = &c->cards[q->unit.card].since_us[at];
	for (q->args[0] = 0; q->args[0] <= 2 && may_ask(c, q->unit); q->args[0]++) {
		bool use = q->args[0] == NVML_SAMPLE_GPU;
		q->since_us = use ? *since_us : 0;
		if ((use || first) && capture_ask(c, q, &reply) && use)
			*since_us = reply.number;
	}
}

static void ask_changing(struct capture *c, struct capture_unit unit, bool first)
{
	int at = unit.instance < 0 ? CAPTURE_INSTANCES : unit.instance;
	uint64_t since_us = unit.card >= 0 ? c->cards[unit.card].since_us[at] : 0;
	for (size_t i = 0; i < nvml_n_forms && may_ask(c, unit); i++) {
		struct capture_question q = question_of(i, unit);
		struct capture_reply reply;
		if (!q.form.rounds || c->done[i])
			continue;
		q.since_us = since_us;
		if (q.form.signature == NVML_SIG_SAMPLES)
			ask_rings(c, &q, first);
		else
			capture_ask(c, &q, &reply);
	}
}

/* Calls `each` for every card and instance that can be asked. */
static void for_units(struct capture *c,
	void (*each)(struct capture *, struct capture_unit, bool), bool first)
{
	for (unsigned i = 0; i < c->n_cards; i++) {
		if (!c->cards[i].there)
			continue;
		each(c, unit_of(i, -1), first);
		for (int k = 0; k < CAPTURE_INSTANCES; k++)
			if (c->cards[i].instances & 1U << k)
				each(c, unit_of(i, k), first);
	}
}

static void wait_us(struct capture *c, int64_t until_us)
{
	clock_wait(c->o->clock, until_us, NULL, 0);
}

static void ask_rounds(struct capture *c)
{
	int64_t begin_us = clock_now(c->o->clock).boot_us;
	for (int i = 0; i < c->o->rounds && c->n_cards && !c->ended; i++) {
		wait_us(c, begin_us + (int64_t)i * 1000000);
		struct moment now = clock_now(c->o->clock);
		if (i == 0)
			c->seen->begin_ms = now.wall_us / 1000;
		str_addf(c->out, "round %d %" PRId64 " %" PRId64 "\n", i, now.wall_us,
			now.boot_us);
		for_units(c, ask_changing, i == 0);
	}
	str_add(c->out, "end of rounds\n");
}

static size_t place_of(const char *symbol)
{
	size_t i = 0;
	while (i < nvml_n_forms && strcmp(nvml_forms[i].symbol, symbol) != 0)
		i++;
	return i;
}

/* A sample of a card, or of one of its instances. */
static void ask_gpm(struct capture *c, struct capture_unit unit, bool first)
{
	struct capture_card *card = &c->cards[unit.card];
	struct capture_reply reply;
	if (!card->gpm || card->mig != (unit.instance >= 0) || !may_ask(c, unit))
		return;
	int instance = unit.instance < 0 ? -1 : card->gpu_instances[unit.instance];
	struct capture_unit board = { unit.card, -1 };
	struct capture_question q = question_of(
		place_of(instance < 0 ? "nvmlGpmSampleGet" : "nvmlGpmMigSampleGet"), board);
	q.args[0] = instance;
	q.since_us = !first;
	bool well = capture_ask(c, &q, &reply);
	if (first || !well)
		return;
	q = question_of(place_of("nvmlGpmMetricsGet"), board);
	q.args[0] = instance;
	for (q.args[1] = 1; q.args[1] <= 2; q.args[1]++)
		capture_ask(c, &q, &reply);
}

/* On some drivers GPM breaks the calls for memory: a capture shows that. */
static void ask_memory_again(struct capture *c, struct capture_unit unit, bool first)
{
	struct capture_question q = question_of(place_of("nvmlDeviceGetMemoryInfo_v2"), unit);
	struct capture_reply reply;
	(void)first;
	if (!c->cards[unit.card].gpm || !may_ask(c, unit) || c->done[q.place])
		return;
	str_add(c->out, "# after GPM: ");
	capture_ask(c, &q, &reply);
}

static void ask_all_gpm(struct capture *c)
{
	bool any = false;
	for (unsigned i = 0; i < c->n_cards; i++)
		any |= c->cards[i].gpm;
	if (!any || c->ended)
		return;
	for_units(c, ask_gpm, true);
	wait_us(c, clock_now(c->o->clock).boot_us + GPM_APART_US);
	for_units(c, ask_gpm, false);
	for_units(c, ask_memory_again, false);
}

static void ask_driver(struct capture *c)
{
	bool asleep[CAPTURE_CARDS] = { false };
	if (!capture_open(c))
		return;
	ask_static(c, no_unit);
	nvml_capture_asleep(c->o->root, c->n_cards, asleep);
	for (unsigned i = 0; i < c->n_cards; i++)
		c->cards[i].asleep = asleep[i];
	ask_cards(c);
	ask_rounds(c);
	ask_all_gpm(c);
	c->seen->n_cards = c->n_cards;
}

int nvml_capture(const struct nvml_capture_options *o, struct str *out,
	struct nvml_captured *seen, struct err *e)
{
	struct capture *c = calloc(1, sizeof(*c));
	*seen = (struct nvml_captured){ .begin_ms = clock_wall_ms(o->clock) };
	if (c)
		c->done = calloc(nvml_plan_length(), sizeof(*c->done));
	if (!c || !c->done) {
		free(c);
		return err_memory(e);
	}
	c->o = o;
	c->out = out;
	c->seen = seen;
	c->caller.choice = (struct nvml_lib_choice){
		.path = o->path, .option = o->option, .root = o->root
	};
	plan(c);
	nvml_capture_facts(o->root, &c->secrets, out);
	ask_driver(c);
	if (c->helper)
		helper_free(c->helper, o->deadline_ms);
	int rc = out->failed ? err_memory(e) : 0;
	nvml_secrets_finish(&c->secrets);
	free(c->done);
	free(c);
	return rc;
}

void nvml_captured_finish(struct nvml_captured *seen)
{
	free(seen->pids);
	*seen = (struct nvml_captured){ 0 };
}
