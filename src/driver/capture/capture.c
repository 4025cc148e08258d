/* Makes a capture: asks the driver every question on this host and writes the answers as lines,
 * with made-up names in place of secrets. */
#include "driver/capture/capture.h"

#include "base/names.h"
#include "driver/capture/capture_call.h"
#include "driver/capture/capture_layout.h"
#include "driver/nvml/nvml_host.h"

/* A card, or an instance of it. */
struct capture_unit {
	int card, instance;
};

struct capture_card {
	bool there;		 /* it has a handle */
	bool asleep, stuck, mig; /* it must not be asked (asleep, stuck); its instances are
				    asked too (mig) */
	bool gpm;
	unsigned instances; /* bits */
	int gpu_instances[CAPTURE_INSTANCES];
	uint64_t since_us[CAPTURE_INSTANCES + 1]; /* stamp of the newest sample; the last entry
						     is that of the card itself */
};

struct capture {
	const struct nvml_capture_options *o;
	struct str *out;
	struct captured *seen;
	struct capture_caller caller; /* copied into each helper */
	struct helper *helper;
	struct names secrets[NVML_SECRETS]; /* true names by kind */
	struct capture_card cards[CAPTURE_CARDS];
	unsigned n_cards, n_left;
	bool *done;   /* by place among all calls: it is missing, or an earlier row makes it */
	bool crashed; /* the last call ended its process */
	uint64_t number; /* first number of the last answer; for samples, the newest stamp */
	bool ended;	 /* nothing more can be asked */
	struct err why;
};

/* One call: its place among all, its subject and its numbers. */
struct capture_question {
	size_t place;
	struct nvml_form form;
	struct capture_unit unit;
	int args[NVML_ARGS];
	uint64_t since_us;
};

/* Numbers the true names of a kind, so that the same name always becomes the same made-up name.
 * From 1 on; 0: out of memory. */
static unsigned number_of(struct names *secrets, const char *text, size_t len)
{
	char own[4 * CAPTURE_LAYOUT_MAX + 1];
	snprintf(own, sizeof(own), "%.*s", (int)len, text);
	return names_find(secrets, 0, own, NULL) + 1;
}

static void add_name(enum nvml_secret kind, const char *text, unsigned number, struct str *out)
{
	static const char *const words[] = {
		[NVML_SECRET_SERIAL] = "serial", [NVML_SECRET_HOST] = "host"
	};
	bool gpu = strncmp(text, "GPU-", 4) == 0;
	if (kind == NVML_SECRET_UUID)
		str_addf(out, "%s-00000000-0000-0000-0000-%012u", gpu ? "GPU" : "MIG", number);
	else
		str_addf(out, "%s-%u", words[kind], number);
}

/* Writes the number with the same count of hexadecimal digits. */
static void add_bytes(size_t digits, unsigned number, struct str *out)
{
	char text[16];
	size_t len = (size_t)snprintf(text, sizeof(text), "%04x", number);
	str_add(out, "x");
	str_add_repeat(out, "0", digits > len ? digits - len : 0);
	str_add_bytes(out, text, digits < len ? digits : len);
}

/* Appends the words of `text`, with secret words replaced: texts in quotes, or bytes. */
static void replace_secrets(
	struct names *secrets, enum nvml_secret kind, const char *text, struct str *out)
{
	while (kind != NVML_SECRET_NONE && *text) {
		const char *end = *text == '"' ? strchr(text + 1, '"') : NULL;
		size_t bytes = kind == NVML_SECRET_ID && *text == 'x' ? strcspn(text, " ") : 0;
		if (end && end > text + 1) {
			unsigned number =
				number_of(&secrets[kind], text + 1, (size_t)(end - text - 1));
			str_add(out, "\"");
			add_name(kind, text + 1, number, out);
			str_add(out, "\"");
			text = end + 1;
		} else if (bytes > 1 && strspn(text + 1, "0") < bytes - 1) {
			add_bytes(bytes - 1, number_of(&secrets[kind], text, bytes), out);
			text += bytes;
		} else {
			size_t len = end ? 2 : 1;
			str_add_bytes(out, text, len);
			text += len;
		}
	}
	str_add(out, text);
}

static bool is_asleep(const char *root, const char *pci)
{
	struct nvml_host_power power = { 0 };
	bool asleep = nvml_host_asleep(&power, root, pci);
	nvml_host_power_close(&power);
	return asleep;
}

static void add_gpus(const char *root, struct names *secrets, struct str *out)
{
	struct proc_card gpus[PROC_CARDS_MAX];
	size_t n = nvml_host_cards(root, gpus);
	for (size_t i = 0; i < n; i++) {
		char name[CARD_NAME_CAP], uuid[UUID_CAP + 2] = "\"";
		str_copy(name, sizeof(name), gpus[i].name);
		for (char *quote; (quote = strchr(name, '"')) != NULL;)
			*quote = '\'';
		str_copy(uuid + 1, UUID_CAP, gpus[i].uuid);
		strcat(uuid, "\"");
		str_addf(out, "gpu %s %s \"%s\" ", gpus[i].pci,
			is_asleep(root, gpus[i].pci) ? "asleep" : "awake", name);
		replace_secrets(secrets, NVML_SECRET_UUID, uuid, out);
		str_add(out, "\n");
	}
}

enum { LEFT_MAX = 4 }; /* stuck helpers; with this many, nothing more is asked */

/* Appends the call and its subject, which is "-", "0" or "0/2". */
static void add_call(struct capture *c, const struct capture_question *q, const char *symbol)
{
	str_addf(c->out, "call %s ", symbol);
	if (q->unit.card < 0)
		str_add(c->out, "-");
	else
		str_addf(c->out, "%d", q->unit.card);
	if (q->unit.instance >= 0)
		str_addf(c->out, "/%d", q->unit.instance);
	for (unsigned i = 0; i < q->form.n_args; i++)
		str_addf(c->out, "%s%d%s", i ? "," : " (", q->args[i],
			i + 1 == q->form.n_args ? ")" : "");
	str_add(c->out, " =");
}

/* Writes what stands in place of an answer. */
static void add_no_answer(struct capture *c)
{
	if (c->crashed)
		str_add(c->out, " no answer: it ended the process that called it\n");
	else
		str_addf(c->out, " no answer in %.1f s\n", (double)c->o->deadline_ms / 1000);
}

/* Gives up a helper that did not answer, or has ended: the next call starts another one. */
static void give_up(struct capture *c, struct capture_unit unit)
{
	char where[HELPER_PLACE_CAP];
	helper_where(c->helper, where, sizeof(where));
	if (!c->seen->stuck[0])
		snprintf(c->seen->stuck, sizeof(c->seen->stuck), "%.63s %s", where,
			c->crashed ? "ended the process that called it"
				   : "did not answer in time");
	helper_free(c->helper, 0);
	c->helper = NULL;
	c->n_left++;
	if (unit.card >= 0)
		c->cards[unit.card].stuck = true;
	c->ended |= unit.card < 0 || c->n_left >= LEFT_MAX;
}

/* Sends a request and waits for the reply; `text` points into it until the next request. */
static bool exchange(struct capture *c, const struct capture_request *request,
	struct capture_reply *reply, const char **text)
{
	const struct str *got = NULL;
	struct err e = { 0 };
	const struct helper_work work = { .name = "gua-capture",
		.begin = capture_call_begin,
		.serve = capture_call_serve,
		.end = capture_call_end,
		.context = &c->caller };
	if (!c->helper && !c->ended && helper_new(&c->helper, &work, &c->why) != 0)
		c->ended = true;
	bool well = c->helper && helper_send(c->helper, request, sizeof(*request), &e) == 0 &&
		    helper_receive(c->helper, c->o->deadline_ms, &got, &e) == 0 &&
		    got->len >= sizeof(*reply);
	c->crashed = !well && e.code != ERR_BUSY;
	if (!well)
		return false;
	memcpy(reply, got->data, sizeof(*reply));
	*text = got->data + sizeof(*reply);
	return true;
}

static void note_pid(struct captured *seen, uint32_t pid)
{
	for (size_t i = 0; i < seen->n_pids; i++)
		if (seen->pids[i] == pid)
			return;
	if (pid && array_reserve(&seen->pids, &seen->cap_pids, seen->n_pids + 1))
		seen->pids[seen->n_pids++] = pid;
}

/* Makes a call and writes its answer; false: there is no answer, or its code is not 0. */
static bool ask(struct capture *c, const struct capture_question *q)
{
	const char *text = "";
	struct capture_reply reply = { 0 };
	struct capture_request request = { .place = (int64_t)q->place,
		.card = q->unit.card,
		.instance = q->unit.instance,
		.since_us = q->since_us };
	memcpy(request.args, q->args, sizeof(request.args));
	c->number = 0;
	if (c->ended || c->done[q->place])
		return false;
	if (!exchange(c, &request, &reply, &text)) {
		if (!c->helper)
			return false;
		add_call(c, q, q->form.symbol);
		add_no_answer(c);
		give_up(c, q->unit);
		return false;
	}
	if (reply.missing) {
		str_addf(c->out, "missing %s\n", q->form.symbol);
		c->done[q->place] = true;
		return false;
	}
	/* The pid is the first number of an entry, or the second after a stamp. */
	if (q->form.row && q->form.signature != NVML_SIG_SAMPLES) {
		for (const char *row = text; (row = strchr(row, '\n')) != NULL;) {
			row += strspn(row, "\n ");
			if (q->form.signature == NVML_SIG_USE_V1)
				row += strcspn(row, " ");
			note_pid(c->seen, (uint32_t)strtoul(row, NULL, 10));
		}
	}
	add_call(c, q, reply.older ? q->form.older : q->form.symbol);
	str_addf(c->out, " %d", reply.code);
	replace_secrets(c->secrets, q->form.secret, text, c->out);
	str_add(c->out, "\n");
	c->seen->n_calls++;
	c->number = reply.number;
	return reply.code == NVML_OK;
}

/* Whether a library is in a directory that belongs to the system: not in /run/user, for
 * example. */
static bool is_of_system(const char *path)
{
	static const char *const places[] = { "/usr/lib", "/usr/local/lib",
		"/usr/local/nvidia/", "/lib/", "/lib32/", "/lib64/", "/run/opengl-driver/" };
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strncmp(path, places[i], strlen(places[i])) == 0)
			return !strstr(path, "/../");
	return false;
}

/* Opens the library; false: there is none, which is written to the capture. A path that may
 * name a user's directory is shortened. */
static bool open_library(struct capture *c)
{
	struct capture_reply reply = { 0 };
	const char *text = "";
	if (!exchange(c, &(struct capture_request){ .place = -1 }, &reply, &text)) {
		str_add(c->out, "library");
		add_no_answer(c);
		if (c->helper)
			give_up(c, (struct capture_unit){ -1, -1 });
		return false;
	}
	const char *slash = strrchr(text, '/');
	char safe[512];
	const char *shown = is_of_system(text) || !slash ? text : slash + 1;
	str_escape(safe, sizeof(safe), shown, strcspn(shown, "\""));
	if (reply.code == NVML_OK)
		str_addf(c->out, "library \"%s\"\n", safe);
	else
		str_add(c->out, "library none\n");
	return reply.code == NVML_OK;
}

enum {
	ERRORS_MAX = 30,
	STATS_MAX = 32, /* records of accounting mode of each card */
	GPM_APART_US = 1000000,
};

/* Marks the rows that are not asked: those whose call an earlier row makes, and spare ones. */
static void plan(struct capture *c)
{
	for (size_t i = 0; i < nvml_calls_count(); i++) {
		struct nvml_form form, before;
		int args[NVML_ARGS], earlier[NVML_ARGS];
		c->done[i] = !nvml_calls_at(i, &form, args);
		for (size_t k = 0; k < i && !c->done[i]; k++)
			c->done[i] = nvml_calls_at(k, &before, earlier) &&
				     strcmp(before.symbol, form.symbol) == 0 &&
				     memcmp(args, earlier, sizeof(args)) == 0;
	}
}

static struct capture_question question_of(size_t place, struct capture_unit unit)
{
	struct capture_question q = { .place = place, .unit = unit };
	nvml_calls_at(place, &q.form, q.args);
	return q;
}

/* Learns from an answer what the questions that follow need. */
static void learn(struct capture *c, const struct capture_question *q)
{
	struct capture_card *card = q->unit.card >= 0 ? &c->cards[q->unit.card] : NULL;
	const char *symbol = q->form.symbol;
	uint64_t number = c->number;
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
	bool well = ask(c, q);
	if (well)
		learn(c, q);
	return well;
}

/* Asks once with each number that makes sense. */
static void ask_each(struct capture *c, struct capture_question *q)
{
	if (q->form.signature == NVML_SIG_ERROR) {
		for (q->args[0] = 0; q->args[0] <= ERRORS_MAX; q->args[0]++)
			ask(c, q);
	} else if (q->form.signature == NVML_SIG_INSTANCE) {
		int most = c->cards[q->unit.card].mig ? CAPTURE_INSTANCES : 0;
		for (q->args[0] = 0; q->args[0] < most; q->args[0]++)
			ask_and_learn(c, q);
	} else if (strcmp(q->form.symbol, "nvmlDeviceGetAccountingStats") == 0) {
		size_t n = c->seen->n_pids < STATS_MAX ? c->seen->n_pids : STATS_MAX;
		for (size_t i = 0; i < n; i++) {
			q->args[0] = (int)c->seen->pids[i];
			ask(c, q);
		}
	} else if (!ask_and_learn(c, q) && q->form.signature == NVML_SIG_LAYOUT) {
		q->args[0] = 2; /* the older layout of the fabric's health */
		ask(c, q);
	}
}

/* Whether a row is asked about a unit in the first pass. */
static bool is_static(const struct nvml_form *form, struct capture_unit unit)
{
	if (form->rounds || form->signature == NVML_SIG_GPM ||
		form->signature == NVML_SIG_GPM_METRIC)
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
	bool found_before = false; /* the row with the newer name was found */
	for (size_t i = 0; i < nvml_calls_count() && may_ask(c, unit); i++) {
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

/* Rings other than that of utilisation are read only once. */
static void ask_rings(struct capture *c, struct capture_question *q, bool first)
{
	int at = q->unit.instance < 0 ? CAPTURE_INSTANCES : q->unit.instance;
	uint64_t *since_us = &c->cards[q->unit.card].since_us[at];
	for (q->args[0] = 0; q->args[0] <= 2 && may_ask(c, q->unit); q->args[0]++) {
		bool use = q->args[0] == NVML_SAMPLE_GPU;
		q->since_us = use ? *since_us : 0;
		if ((use || first) && ask(c, q) && use)
			*since_us = c->number;
	}
}

static void ask_changing(struct capture *c, struct capture_unit unit, bool first)
{
	int at = unit.instance < 0 ? CAPTURE_INSTANCES : unit.instance;
	uint64_t since_us = unit.card >= 0 ? c->cards[unit.card].since_us[at] : 0;
	for (size_t i = 0; i < nvml_n_forms && may_ask(c, unit); i++) {
		struct capture_question q = question_of(i, unit);
		if (!q.form.rounds || c->done[i])
			continue;
		q.since_us = since_us;
		if (q.form.signature == NVML_SIG_SAMPLES)
			ask_rings(c, &q, first);
		else
			ask(c, &q);
	}
}

/* Calls `each` for every card and instance that can be asked. */
static void for_units(struct capture *c,
	void (*each)(struct capture *, struct capture_unit, bool), bool first)
{
	for (unsigned i = 0; i < c->n_cards; i++) {
		if (!c->cards[i].there)
			continue;
		each(c, (struct capture_unit){ (int)i, -1 }, first);
		for (int k = 0; k < CAPTURE_INSTANCES; k++)
			if (c->cards[i].instances & 1U << k)
				each(c, (struct capture_unit){ (int)i, k }, first);
	}
}

static size_t place_of(const char *symbol)
{
	size_t i = 0;
	while (i < nvml_n_forms && strcmp(nvml_forms[i].symbol, symbol) != 0)
		i++;
	return i;
}

/* Takes a GPM sample of a card, or of one of its instances. */
static void ask_gpm(struct capture *c, struct capture_unit unit, bool first)
{
	struct capture_card *card = &c->cards[unit.card];
	if (!card->gpm || card->mig != (unit.instance >= 0) || !may_ask(c, unit))
		return;
	int instance = unit.instance < 0 ? -1 : card->gpu_instances[unit.instance];
	struct capture_unit board = { unit.card, -1 };
	struct capture_question q = question_of(
		place_of(instance < 0 ? "nvmlGpmSampleGet" : "nvmlGpmMigSampleGet"), board);
	q.args[0] = instance;
	q.since_us = !first;
	bool well = ask(c, &q);
	if (first || !well)
		return;
	q = question_of(place_of("nvmlGpmMetricsGet"), board);
	q.args[0] = instance;
	for (q.args[1] = 1; q.args[1] <= 2; q.args[1]++)
		ask(c, &q);
}

/* On some drivers GPM breaks the calls for memory; a second reading shows that. */
static void ask_memory_again(struct capture *c, struct capture_unit unit, bool first)
{
	struct capture_question q = question_of(place_of("nvmlDeviceGetMemoryInfo_v2"), unit);
	(void)first;
	if (!c->cards[unit.card].gpm || !may_ask(c, unit) || c->done[q.place])
		return;
	str_add(c->out, "# after GPM: ");
	ask(c, &q);
}

static void ask_driver(struct capture *c)
{
	struct proc_card gpus[PROC_CARDS_MAX];
	if (!open_library(c))
		return;
	ask_static(c, (struct capture_unit){ -1, -1 });
	/* A card that sleeps must not be woken. */
	bool same = nvml_host_cards(c->o->root, gpus) == c->n_cards;
	for (unsigned i = 0; same && i < c->n_cards; i++)
		c->cards[i].asleep = is_asleep(c->o->root, gpus[i].pci);
	for (unsigned i = 0; i < c->n_cards; i++) {
		if (c->cards[i].asleep) {
			str_addf(c->out, "asleep %u\n", i);
			continue;
		}
		ask_static(c, (struct capture_unit){ (int)i, -1 });
		for (int k = 0; k < CAPTURE_INSTANCES; k++)
			if (c->cards[i].instances & 1U << k)
				ask_static(c, (struct capture_unit){ (int)i, k });
	}
	int64_t begin_us = clock_now(c->o->clock).boot_us;
	for (int i = 0; i < c->o->rounds && c->n_cards && !c->ended; i++) {
		clock_wait(c->o->clock, begin_us + (int64_t)i * 1000000, NULL, 0);
		struct moment now = clock_now(c->o->clock);
		if (i == 0)
			c->seen->begin_ms = now.wall_us / 1000;
		str_addf(c->out, "round %d %" PRId64 " %" PRId64 "\n", i, now.wall_us,
			now.boot_us);
		for_units(c, ask_changing, i == 0);
	}
	str_add(c->out, "end of rounds\n");
	bool any = false;
	for (unsigned i = 0; i < c->n_cards; i++)
		any |= c->cards[i].gpm;
	if (any && !c->ended) {
		for_units(c, ask_gpm, true);
		clock_wait(c->o->clock, clock_now(c->o->clock).boot_us + GPM_APART_US, NULL, 0);
		for_units(c, ask_gpm, false);
		for_units(c, ask_memory_again, false);
	}
	c->seen->n_cards = c->n_cards;
}

int capture_make(const struct nvml_capture_options *o, struct str *out, struct captured *seen,
	struct err *e)
{
	struct capture *c = calloc(1, sizeof(*c));
	*seen = (struct captured){ .begin_ms = clock_wall_ms(o->clock) };
	if (c)
		c->done = calloc(nvml_calls_count(), sizeof(*c->done));
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
	struct nvml_site site;
	nvml_host_read_site(&site, o->root);
	for (size_t i = 0; i < NVML_PLACES; i++)
		if (site.places & 1U << i)
			str_addf(out, "place %s\n", nvml_place_names[i]);
	str_addf(out, "module %s\n",
		!site.has_module	 ? "none"
		: site.module_version[0] ? site.module_version
					 : "unknown");
	for (size_t i = 0; i < site.n_nodes; i++)
		str_addf(out, "node %s %d\n", site.nodes[i].name, site.nodes[i].error);
	add_gpus(o->root, c->secrets, out);
	ask_driver(c);
	if (c->helper)
		helper_free(c->helper, o->deadline_ms);
	int rc = out->failed ? err_memory(e) : 0;
	for (size_t i = 0; i < NVML_SECRETS; i++)
		names_finish(&c->secrets[i]);
	free(c->done);
	free(c);
	return rc;
}

void capture_finish(struct captured *seen)
{
	free(seen->pids);
	*seen = (struct captured){ 0 };
}
