/* Plays a capture: functions with the driver's own signatures, which answer from the file. */
#include "driver/capture/capture_play.h"

#include "driver/capture/capture_layout.h"
#include "driver/nvml/nvml_abi.h"
#include "driver/nvml/nvml_metric.h"

/* The current position of the play. */
struct play_time {
	struct moment now;
	int64_t loop_us; /* length of all rounds */
	int64_t loop;	 /* how often all rounds have been played */
	int round;	 /* the current round; -1: there are none */
};

/* A call in progress. */
struct playing {
	struct nvml_form form;
	struct nvml_key key;
	const uintptr_t *words; /* its parameters after the device and the numbers */
};

enum { ROUND_US = 1000000 };

/* Only one capture can be played at a time: see capture_play.h. */
static struct capture_play *current;

int capture_play_open(struct capture_play **result, struct capture_file *recorded,
	struct clock *clock, struct err *e)
{
	struct capture_play *play = current ? NULL : calloc(1, sizeof(*play));
	*result = NULL;
	if (!play) {
		capture_file_free(recorded);
		return current ? err_set(e, ERR_USAGE,
					 "a capture is already being played: one at a time")
			       : err_memory(e);
	}
	play->recorded = recorded;
	play->clock = clock;
	play->opened = clock_now(clock);
	for (int i = 0; i < CAPTURE_CARDS; i++) {
		play->cards[i] = (struct play_unit){ i, -1 };
		for (int k = 0; k < CAPTURE_INSTANCES; k++)
			play->instances[i][k] = (struct play_unit){ i, k };
	}
	current = *result = play;
	return 0;
}

void capture_play_close(struct capture_play *play)
{
	if (!play)
		return;
	current = NULL;
	capture_file_free(play->recorded);
	free(play);
}

static struct play_time play_time_now(const struct capture_play *play)
{
	const struct capture_file *r = play->recorded;
	struct play_time t = { .now = clock_now(play->clock), .round = -1 };
	if (r->n_rounds == 0)
		return t;
	int64_t first_us = r->rounds[0].boot_us;
	int64_t passed_us = t.now.boot_us - play->opened.boot_us;
	t.loop_us = r->rounds[r->n_rounds - 1].boot_us - first_us + ROUND_US;
	t.loop = passed_us > 0 ? passed_us / t.loop_us : 0;
	int64_t at_us = passed_us - t.loop * t.loop_us;
	for (t.round = 0; (size_t)t.round + 1 < r->n_rounds; t.round++)
		if (r->rounds[t.round + 1].boot_us - first_us > at_us)
			break;
	return t;
}

/* Returns the recorded answer at this moment; NULL: there is none. */
static const struct nvml_answer *find_answer(const struct playing *p)
{
	return capture_file_find(current->recorded, &p->key, play_time_now(current).round);
}

/* A call that was not made for the capture is not supported. There is no instance, and no
 * record of a process, that the capture does not have. */
static int code_of(const struct playing *p, const struct nvml_answer *a)
{
	bool asks_which = p->form.signature == NVML_SIG_INSTANCE ||
			  strcmp(p->key.symbol, "nvmlDeviceGetAccountingStats") == 0;
	return a ? a->code : asks_which ? NVML_NOT_FOUND : NVML_NOT_SUPPORTED;
}

/* Plays a call of which only the code matters. */
static int play_code(struct playing *p)
{
	return code_of(p, find_answer(p));
}

/* Returns how much the counter grows in one loop of the rounds. The last round counts as
 * ROUND_US long. */
static uint64_t energy_of_loop(const struct nvml_key *key, const struct play_time *t)
{
	const struct capture_file *r = current->recorded;
	const struct nvml_answer *ends[] = { capture_file_find(r, key, 0),
		capture_file_find(r, key, (int)r->n_rounds) };
	uint64_t mj[2] = { 0, 0 };
	for (size_t i = 0; i < 2; i++) {
		if (!ends[i] || ends[i]->code != NVML_OK)
			return 0;
		const char *values = ends[i]->values;
		capture_layout_read("Q", &values, &mj[i]);
	}
	int64_t known_us = t->loop_us - ROUND_US;
	if (mj[1] <= mj[0] || known_us <= 0)
		return 0;
	double grown_mj = (double)(mj[1] - mj[0]) * (double)t->loop_us / (double)known_us;
	return grown_mj < 1e15 ? (uint64_t)grown_mj : 0; /* more is implausible */
}

/* Fills in the parts of the form. Energy continues where the last loop ended. */
static int play_values(struct playing *p)
{
	struct play_time t = play_time_now(current);
	const struct nvml_answer *a = find_answer(p);
	int code = code_of(p, a);
	if (code != NVML_OK)
		return code;
	const char *values = a->values;
	for (unsigned i = 0; i < nvml_calls_parts(&p->form); i++)
		capture_layout_read(p->form.layout, &values, (void *)p->words[i]);
	if (t.loop > 0 && strcmp(p->key.symbol, "nvmlDeviceGetTotalEnergyConsumption") == 0) {
		uint64_t mj;
		memcpy(&mj, (void *)p->words[0], sizeof(mj));
		mj += (uint64_t)t.loop * energy_of_loop(&p->key, &t);
		memcpy((void *)p->words[0], &mj, sizeof(mj));
	}
	return NVML_OK;
}

static int play_text(struct playing *p)
{
	char whole[CAPTURE_LAYOUT_MAX] = "";
	const struct nvml_answer *a = find_answer(p);
	int code = code_of(p, a);
	if (code != NVML_OK)
		return code;
	const char *values = a->values;
	capture_layout_read("t96", &values, whole);
	if (strlen(whole) >= (unsigned)p->words[1])
		return NVML_TOO_SMALL;
	strcpy((char *)p->words[0], whole);
	return NVML_OK;
}

static int play_layout(struct playing *p)
{
	const struct nvml_fabric_health *health = (void *)p->words[0];
	p->key.args[0] = (int)(health->version >> 24);
	return play_values(p);
}

static int play_field(struct playing *p)
{
	const struct nvml_field *field = (void *)*++p->words; /* after their number */
	p->key.args[0] = (int)field->id;
	p->key.args[1] = (int)field->scope;
	return play_values(p);
}

static int play_list(struct playing *p)
{
	unsigned *count = (unsigned *)p->words[0], room = *count;
	unsigned char *to = (unsigned char *)p->words[1];
	const struct nvml_answer *a = find_answer(p);
	int code = code_of(p, a);
	if (code != NVML_OK)
		return code;
	*count = (unsigned)a->n_rows;
	if (a->n_rows > room)
		return NVML_TOO_SMALL;
	for (size_t i = 0; i < a->n_rows; i++) {
		const char *row = current->recorded->rows[a->first_row + i];
		const char *layout = capture_layout_of_row(p->form.row, row);
		memset(to, 0, capture_layout_size(layout));
		capture_layout_read(layout, &row, to);
		to += capture_layout_size(layout);
	}
	return NVML_OK;
}

enum { LOOPS_KEPT = 8 }; /* ring entries are kept of this many loops of the rounds */
/* Smaller stamps count from boot. */
#define LEAST_WALL_US UINT64_C(1000000000000000)

/* A ring, or a list of records with stamps, while it is read. */
struct stamped {
	const struct playing *call;
	bool pid_first; /* the stamp follows a pid */
	uint64_t since_us;
	unsigned char *to;
	size_t room, n;
};

/* Adds an entry, if it is new and not in the future. A stamp of 0 stays: real drivers have
 * such entries. */
static void add_stamped(
	struct stamped *s, const char *row, int64_t loop, const struct play_time *t)
{
	const struct nvml_round *first = &current->recorded->rounds[0];
	const struct moment *opened = &current->opened;
	unsigned char entry[CAPTURE_LAYOUT_MAX] = { 0 };
	size_t at = s->pid_first ? 8 : 0;
	uint64_t stamp_us = 0;
	capture_layout_read(s->call->form.row, &row, entry);
	memcpy(&stamp_us, entry + at, sizeof(stamp_us));
	bool boot = stamp_us < LEAST_WALL_US;
	int64_t first_us = boot ? first->boot_us : first->wall_us;
	int64_t opened_us = boot ? opened->boot_us : opened->wall_us;
	uint64_t now_us = (uint64_t)(boot ? t->now.boot_us : t->now.wall_us);
	if (loop > 0 && stamp_us <= (uint64_t)first_us)
		return; /* what was in the ring before the first round is played only once */
	if (stamp_us && stamp_us <= INT64_MAX / 2) {
		stamp_us += (uint64_t)(opened_us - first_us + loop * t->loop_us);
		if (stamp_us <= s->since_us || stamp_us > now_us)
			return;
	}
	memcpy(entry + at, &stamp_us, sizeof(stamp_us));
	size_t size = capture_layout_size(s->call->form.row);
	if (s->n < s->room)
		memcpy(s->to + s->n * size, entry, size);
	s->n++;
}

/* Collects the entries of all rounds; returns the code of the current round. */
static int play_stamped(struct stamped *s)
{
	const struct capture_file *r = current->recorded;
	struct play_time t = play_time_now(current);
	int code = code_of(s->call, find_answer(s->call));
	if (code != NVML_OK && code != NVML_NOT_FOUND)
		return code;
	int64_t loop = t.loop > LOOPS_KEPT ? t.loop - LOOPS_KEPT : 0;
	for (; r->n_rounds && loop <= t.loop; loop++)
		for (int round = 0; (size_t)round < r->n_rounds; round++) {
			const struct nvml_answer *a =
				capture_file_find(r, &s->call->key, round);
			for (size_t i = 0; a && a->round == round && i < a->n_rows; i++)
				add_stamped(s, r->rows[a->first_row + i], loop, &t);
		}
	return s->n ? NVML_OK : NVML_NOT_FOUND;
}

static int play_samples(struct playing *p)
{
	int *type = (int *)p->words[1];
	unsigned *count = (unsigned *)p->words[2];
	struct stamped s = { .call = p, .since_us = p->words[0], .to = (void *)p->words[3] };
	const struct nvml_answer *a = find_answer(p);
	s.room = s.to ? *count : 0;
	*type = NVML_VALUE_U32;
	if (code_of(p, a) == NVML_OK) {
		const char *values = a->values;
		capture_layout_read("i", &values, type);
	}
	int code = play_stamped(&s);
	*count = (unsigned)(s.n < s.room || !s.to ? s.n : s.room);
	return code;
}

/* Plays a call for the use of processes. */
static int play_uses(struct stamped s, unsigned *count)
{
	s.room = s.to ? *count : 0;
	int code = play_stamped(&s);
	*count = (unsigned)s.n;
	return code == NVML_OK && s.n > s.room ? NVML_TOO_SMALL : code;
}

static int play_use(struct playing *p)
{
	const struct stamped s = {
		.call = p, .pid_first = true, .since_us = p->words[2], .to = (void *)p->words[0]
	};
	return play_uses(s, (unsigned *)p->words[1]);
}

static int play_use_v1(struct playing *p)
{
	struct nvml_process_samples_v1 *all = (void *)p->words[0];
	const struct stamped s = {
		.call = p, .since_us = all->last_seen_us, .to = (void *)all->samples
	};
	return play_uses(s, &all->count);
}

/* A GPM sample only says what it is a sample of. */
struct gpm_subject {
	int card, gpu_instance;
};

static int play_gpm_alloc(void **sample)
{
	struct gpm_subject *of = malloc(sizeof(*of));
	*sample = of;
	if (of)
		*of = (struct gpm_subject){ -1, -1 };
	return of ? NVML_OK : NVML_NO_MEMORY;
}

static int play_gpm_free(void *sample)
{
	free(sample);
	return NVML_OK;
}

static int play_gpm(struct playing *p)
{
	*(struct gpm_subject *)p->words[0] =
		(struct gpm_subject){ p->key.card, p->form.n_args ? p->key.args[0] : -1 };
	return play_code(p);
}

static int play_gpm_metric(struct playing *p)
{
	const struct nvml_gpm_metrics *get = (void *)p->words[0];
	const struct gpm_subject *of = get->samples[1];
	p->key.card = of->card;
	p->key.args[0] = of->gpu_instance;
	p->key.args[1] = (int)get->metric.id;
	return of->card >= 0 ? play_values(p) : NVML_BAD_ARGUMENT;
}

/* An event set that never has an event. */
static int play_event_set_new(void **set)
{
	*set = current;
	return NVML_OK;
}

static int play_event_set_free(void *set)
{
	(void)set;
	return NVML_OK;
}

static int play_event_wait(void *set, struct nvml_event *event, unsigned timeout_ms)
{
	(void)set;
	(void)event;
	(void)timeout_ms;
	return NVML_TIMEOUT;
}

static int play_shutdown(void)
{
	return NVML_OK;
}

/* A card on which a call was stuck is not asked, as with the real driver. */
static int play_index(struct playing *p)
{
	unsigned index = (unsigned)p->words[0];
	if (index >= CAPTURE_CARDS)
		return NVML_BAD_ARGUMENT;
	*(void **)p->words[1] = &current->cards[index];
	p->key.card = (int)index;
	return current->recorded->stuck[index] ? NVML_STUCK : play_code(p);
}

static int play_instance(struct playing *p)
{
	unsigned index = (unsigned)p->key.args[0];
	if (index >= CAPTURE_INSTANCES)
		return NVML_NOT_FOUND;
	*(void **)p->words[0] = &current->instances[p->key.card][index];
	return play_code(p);
}

static const char *play_error(int code)
{
	static char text[CAPTURE_LAYOUT_MAX];
	const uintptr_t words[] = { (uintptr_t)text, sizeof(text) };
	struct playing p = { .key = { "nvmlErrorString", -1, -1, { code } }, .words = words };
	return play_text(&p) == NVML_OK ? text : "Unknown Error";
}

static int (*const players[])(struct playing *p) = {
	[NVML_SIG_PLAIN] = play_code,
	[NVML_SIG_INDEX] = play_index,
	[NVML_SIG_VALUES] = play_values,
	[NVML_SIG_TEXT] = play_text,
	[NVML_SIG_LAYOUT] = play_layout,
	[NVML_SIG_FIELD] = play_field,
	[NVML_SIG_LIST] = play_list,
	[NVML_SIG_SAMPLES] = play_samples,
	[NVML_SIG_USE] = play_use,
	[NVML_SIG_USE_V1] = play_use_v1,
	[NVML_SIG_INSTANCE] = play_instance,
	[NVML_SIG_GPM] = play_gpm,
	[NVML_SIG_GPM_METRIC] = play_gpm_metric,
	[NVML_SIG_EVENTS] = play_code,
};

/* Plays the call at a place among all calls, by the newest name that the capture has of it. */
static int play(size_t place, const uintptr_t *words)
{
	const struct capture_file *r = current->recorded;
	struct playing p = { .words = words };
	int unused[NVML_ARGS];
	for (nvml_calls_at(place, &p.form, unused);
		place + 1 < nvml_n_forms && nvml_forms[place + 1].spare &&
		!capture_file_has(r, p.form.symbol);
		place++)
		p.form = nvml_forms[place + 1];
	bool older = p.form.older && !capture_file_has(r, p.form.symbol);
	p.key = (struct nvml_key){ older ? p.form.older : p.form.symbol, -1, -1, { 0 } };
	if (p.form.subject != NVML_OF_DRIVER && p.form.signature != NVML_SIG_INDEX &&
		p.form.signature != NVML_SIG_GPM_METRIC) {
		const struct play_unit *unit = (const void *)*p.words++;
		p.key.card = unit->card;
		p.key.instance = unit->instance;
	}
	for (unsigned i = 0; i < nvml_calls_passed(&p.form); i++)
		p.key.args[i] = (int)*p.words++;
	return players[p.form.signature](&p);
}

/* clang-format off */
/* The places of the calls: see nvml_calls_at(). */
enum {
#define CALL(member, parameters, required, symbol, ...) PLACE_##symbol,
#define OLDER(member, symbol, ...) PLACE_##symbol,
#define LIST(list, way, symbol) PLACE_##symbol,
#define OBJECT(...)
#define ASKED(member, symbol, ...) PLACE_##symbol,
#include "driver/nvml/nvml_calls.def"
#define ROW(metric, ...) PLACE_##metric,
#define CALL(metric, ...) PLACE_##metric,
#define VALUE(metric, ...) PLACE_##metric,
#include "driver/nvml/nvml_metrics.def"
#undef ROW
#undef CALL
#undef VALUE
};

/* A function for each call, by which play() knows what is called. */
#define FUNCTION(name)                                                                         \
	static int play_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, \
		uintptr_t f)                                                                   \
	{                                                                                      \
		return play(PLACE_##name, (const uintptr_t[NVML_WORDS]){ a, b, c, d, e, f });  \
	}
#define CALL(member, parameters, required, symbol, ...) FUNCTION(symbol)
#define OLDER(member, symbol, ...) FUNCTION(symbol)
#define LIST(list, way, symbol) FUNCTION(symbol)
#define OBJECT(...)
#define ASKED(...)
#include "driver/nvml/nvml_calls.def"
#define ROW(metric, ...) FUNCTION(metric)
#define CALL(metric, ...) FUNCTION(metric)
#define VALUE(metric, ...) FUNCTION(metric)
#include "driver/nvml/nvml_metrics.def"
#undef ROW
#undef CALL
#undef VALUE

/* Two kinds of functions are always there: those that every library must have, which may be
 * missing in the capture if the driver was stuck; and those for objects that exist only here.
 */
static const struct play_function {
	const char *symbol;
	void *function;
	bool always;
} functions[] = {
#define CALL(member, parameters, required, symbol, ...) { #symbol, play_##symbol, required },
#define OLDER(member, symbol, ...) { #symbol, play_##symbol, false },
#define OBJECT(member, parameters, required, symbol) { #symbol, play_##member, true },
#define ASKED(member, symbol, ...) { #symbol, play_##member, false },
#define LIST(list, way, symbol) { #symbol, play_##symbol, false },
#include "driver/nvml/nvml_calls.def"
};

/* By row of nvml_metrics.def. */
static void *const metric_functions[] = {
#define ROW(metric, ...) play_##metric,
#define CALL(metric, ...) play_##metric,
#define VALUE(metric, ...) play_##metric,
#include "driver/nvml/nvml_metrics.def"
};
/* clang-format on */

void *capture_play_find(const struct capture_play *play, const char *symbol)
{
	bool there = capture_file_has(play->recorded, symbol);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(functions[i].symbol, symbol) == 0)
			return there || functions[i].always ? functions[i].function : NULL;
	for (size_t i = 0; there && i < nvml_n_metric_rows; i++) {
		const struct nvml_call *row = &nvml_metric_rows[i];
		if ((row->symbol && strcmp(row->symbol, symbol) == 0) ||
			(row->older && strcmp(row->older, symbol) == 0))
			return metric_functions[i];
	}
	return NULL;
}
