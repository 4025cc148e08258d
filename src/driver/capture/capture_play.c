/* Plays a capture: functions with the driver's own signatures, which answer from the file. */
#include "driver/capture/capture_play.h"

#include <stdlib.h>
#include <string.h>

#include "driver/capture/capture_layout.h"
#include "driver/nvml/nvml_abi.h"
#include "driver/nvml/nvml_metric.h"

/* What a handle points to. */
struct play_unit {
	int card, instance;
};

struct capture_play {
	struct capture_file *recorded;
	struct clock *clock;
	struct moment opened;
	struct play_unit cards[CAPTURE_CARDS], instances[CAPTURE_CARDS][CAPTURE_INSTANCES];
};

/* The current position of the play. */
struct play_time {
	struct moment now;
	int64_t loop_us; /* length of all rounds */
	int64_t loop;	 /* how often all rounds have been played */
	int round;	 /* the current round; -1: there are none */
};

/* A call about a handle (NULL: the driver), with its numbers (as many as the call has). */
struct play_call {
	const void *handle;
	const char *symbol;
	int args[NVML_ARGS];
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

const struct capture_file *capture_play_recorded(const struct capture_play *play)
{
	return play->recorded;
}

struct moment capture_play_opened(const struct capture_play *play)
{
	return play->opened;
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

/* Returns the newest name that the capture has of the call that this function plays. */
static const char *name_of(const void *function);

static struct play_call call_of(const void *handle, const void *function, int number)
{
	return (struct play_call){ handle, name_of(function), { number } };
}

static struct nvml_key key_of(const struct play_call *call)
{
	const struct play_unit *unit = call->handle;
	struct nvml_key key = { .symbol = call->symbol,
		.card = unit ? unit->card : -1,
		.instance = unit ? unit->instance : -1 };
	memcpy(key.args, call->args, sizeof(key.args));
	return key;
}

/* Returns the recorded answer at this moment; NULL: there is none. */
static const struct nvml_answer *play_answer(const struct play_call *call)
{
	const struct nvml_key key = key_of(call);
	return capture_file_find(current->recorded, &key, play_time_now(current).round);
}

/* A call that was not made for the capture is not supported. */
static int code_of(const struct nvml_answer *a)
{
	return a ? a->code : NVML_NOT_SUPPORTED;
}

/* Answers a call that fills in `out`, one pointer for each part of the form; returns the code.
 */
static int play_out(const struct play_call *call, void *const *out)
{
	const struct nvml_answer *a = play_answer(call);
	struct nvml_form form;
	if (code_of(a) != NVML_OK || !nvml_calls_find(call->symbol, &form))
		return code_of(a);
	const char *values = a->values;
	for (unsigned i = 0; form.layout[0] && i < nvml_calls_parts(&form); i++)
		capture_layout_read(form.layout, &values, out[i]);
	return NVML_OK;
}

/* The same for a text. */
static int play_text(const struct play_call *call, char *text, unsigned length)
{
	char whole[CAPTURE_LAYOUT_MAX] = "";
	const struct nvml_answer *a = play_answer(call);
	if (code_of(a) != NVML_OK)
		return code_of(a);
	const char *values = a->values;
	capture_layout_read("t96", &values, whole);
	if (strlen(whole) >= length)
		return NVML_TOO_SMALL;
	strcpy(text, whole);
	return NVML_OK;
}

/* Returns the name under which the capture has the call of a metric. */
static const char *symbol_of(enum metric metric)
{
	const struct capture_file *r = current->recorded;
	for (size_t i = 0; i < nvml_n_metric_rows; i++) {
		const struct nvml_call *row = &nvml_metric_rows[i];
		if (row->metric == metric)
			return row->older && !capture_file_has(r, row->symbol) ? row->older
									       : row->symbol;
	}
	return "";
}

static int play_many(enum metric metric, void *handle, void *const *out)
{
	const struct play_call call = { .handle = handle, .symbol = symbol_of(metric) };
	return play_out(&call, out);
}

/* The same with the caller's numbers. */
static int play_of(enum metric metric, void *handle, const int *args, void *out)
{
	struct play_call call = { .handle = handle, .symbol = symbol_of(metric) };
	memcpy(call.args, args, sizeof(call.args));
	return play_out(&call, &out);
}

static int play_words(enum metric metric, void *handle, int which, char *text, unsigned length)
{
	const struct play_call call = {
		.handle = handle, .symbol = symbol_of(metric), .args = { which }
	};
	return play_text(&call, text, length);
}

static int play_field(void *handle, int count, struct nvml_field *field)
{
	const struct play_call call = { .handle = handle,
		.symbol = "nvmlDeviceGetFieldValues",
		.args = { (int)field->id, (int)field->scope } };
	struct {
		uint32_t type;
		int32_t code;
		uint64_t value;
	} got = { 0 };
	void *out = &got;
	(void)count;
	int code = play_out(&call, &out);
	field->type = got.type;
	field->code = got.code;
	memcpy(field->value, &got.value, sizeof(got.value));
	return code;
}

static int play_health(enum metric metric, void *handle, struct nvml_fabric_health *health)
{
	const int args[NVML_ARGS] = { (int)(health->version >> 24) };
	return play_of(metric, handle, args, health);
}

/* clang-format off */
#define OUT1(m) static int play_##m(void *h, void *a)                                          \
	{ void *out[] = { a }; return play_many(METRIC_##m, h, out); }
#define OUT2(m) static int play_##m(void *h, void *a, void *b)                                 \
	{ void *out[] = { a, b }; return play_many(METRIC_##m, h, out); }
#define OUT3(m) static int play_##m(void *h, void *a, void *b, void *c)                        \
	{ void *out[] = { a, b, c }; return play_many(METRIC_##m, h, out); }
#define OUT4(m) static int play_##m(void *h, void *a, void *b, void *c, void *d)               \
	{ void *out[] = { a, b, c, d }; return play_many(METRIC_##m, h, out); }
#define FUNCTION_ONE(m) OUT1(m)
#define FUNCTION_TWO(m) OUT2(m)
#define FUNCTION_POINT(m) OUT2(m)
#define FUNCTION_THREE(m) OUT3(m)
#define FUNCTION_FOUR(m) OUT4(m)
#define FUNCTION_FIVE(m) OUT1(m)
#define FUNCTION_LONG(m) OUT1(m)
#define FUNCTION_OF(m) static int play_##m(void *h, int x, void *a)                            \
	{ const int args[NVML_ARGS] = { x }; return play_of(METRIC_##m, h, args, a); }
#define FUNCTION_ERRORS(m) static int play_##m(void *h, int x, int y, void *a)                 \
	{ const int args[NVML_ARGS] = { x, y }; return play_of(METRIC_##m, h, args, a); }
#define FUNCTION_PLACE(m) static int play_##m(void *h, int x, int y, int z, void *a)           \
	{ const int args[NVML_ARGS] = { x, y, z }; return play_of(METRIC_##m, h, args, a); }
#define FUNCTION_TEXT(m) static int play_##m(void *h, char *text, unsigned length)             \
	{ return play_words(METRIC_##m, h, 0, text, length); }
#define FUNCTION_TEXT_OF(m) static int play_##m(void *h, int x, char *text, unsigned length)   \
	{ return play_words(METRIC_##m, h, x, text, length); }
#define FUNCTION_NAME(m) OUT1(m)
#define FUNCTION_VERSION(m) OUT1(m)
#define FUNCTION_ENGINES(m) OUT1(m)
#define FUNCTION_SYSTEM(m) static int play_##m(void *a)                                        \
	{ void *out[] = { a }; return play_many(METRIC_##m, NULL, out); }
#define FUNCTION_CHECK(m) static int play_##m(void *h)                                         \
	{ return play_many(METRIC_##m, h, NULL); }
#define FUNCTION_VERSIONED(m) OUT1(m)
#define FUNCTION_VERSIONED_TWO(m) OUT2(m)
#define FUNCTION_CLASSES(m) OUT1(m)
#define FUNCTION_SRAM(m) OUT1(m)
#define FUNCTION_FABRIC(m) OUT1(m)
#define FUNCTION_FABRIC_RESULT(m) OUT1(m)
#define FUNCTION_FABRIC_CLUSTER(m) OUT1(m)
#define FUNCTION_HEALTH(m) static int play_##m(void *h, struct nvml_fabric_health *a)          \
	{ return play_health(METRIC_##m, h, a); }
#define FUNCTION_PLATFORM(m) OUT1(m)
#define FUNCTION_PLATFORM_GUID(m) OUT1(m)
#define FUNCTION_BYTES(m) OUT1(m)
/* Shapes that make no call of their own. */
#define FUNCTION_PCI(m) enum { play_##m };
#define FUNCTION_MEMORY(m) enum { play_##m };
#define FUNCTION_RATES(m) enum { play_##m };
#define FUNCTION_LIBRARY(m) enum { play_##m };
#define FUNCTION_ROOT_PORT(m) enum { play_##m };

#define ROW(m, shape, ...) FUNCTION_##shape(m)
#define CALL(m, shape, ...) FUNCTION_##shape(m)
#define VALUE(m, ...)
#include "driver/nvml/nvml_metrics.def"
#undef ROW
#undef CALL
#undef VALUE

#define ROW(m, ...) [METRIC_##m] = (void *)play_##m,
#define CALL(m, ...) [METRIC_##m] = (void *)play_##m,
#define VALUE(m, ...) [METRIC_##m] = (void *)play_field,
static void *const metric_functions[METRIC_COUNT] = {
#include "driver/nvml/nvml_metrics.def"
};
#undef ROW
#undef CALL
#undef VALUE
/* clang-format on */

static void *play_find_metric(const char *symbol)
{
	for (size_t i = 0; i < nvml_n_metric_rows; i++) {
		const struct nvml_call *row = &nvml_metric_rows[i];
		bool same = row->symbol && strcmp(row->symbol, symbol) == 0;
		if (same || (row->older && strcmp(row->older, symbol) == 0))
			return metric_functions[row->metric];
	}
	return NULL;
}

enum { LOOPS_KEPT = 8 }; /* ring entries are kept of this many loops of the rounds */
/* Smaller stamps count from boot. */
#define LEAST_WALL_US UINT64_C(1000000000000000)

/* Returns the layout of an entry of a process list, by the count of its numbers. */
static const char *layout_of(const char *row)
{
	static const char *const lists[] = { "uQuuQ", "uQuu" };
	for (size_t i = 0; i < 2; i++) {
		const char *end = row;
		if (capture_layout_read(lists[i], &end, NULL))
			return lists[i];
	}
	return "uQ";
}

static int play_list(const void *handle, const void *function, unsigned *count, void *entries)
{
	const struct play_call call = call_of(handle, function, 0);
	const struct nvml_answer *a = play_answer(&call);
	if (code_of(a) != NVML_OK)
		return code_of(a);
	unsigned room = *count;
	*count = (unsigned)a->n_rows;
	if (a->n_rows > room)
		return NVML_TOO_SMALL;
	unsigned char *to = entries;
	for (size_t i = 0; i < a->n_rows; i++) {
		const char *row = current->recorded->rows[a->first_row + i];
		const char *layout = layout_of(row);
		memset(to, 0, capture_layout_size(layout));
		capture_layout_read(layout, &row, to);
		to += capture_layout_size(layout);
	}
	return NVML_OK;
}

static int play_accounting_pids(void *handle, unsigned *count, unsigned *pids)
{
	const struct play_call call = call_of(handle, play_accounting_pids, 0);
	const struct nvml_answer *a = play_answer(&call);
	if (code_of(a) != NVML_OK)
		return code_of(a);
	unsigned room = *count;
	*count = (unsigned)a->n_rows;
	for (size_t i = 0; i < a->n_rows && i < room; i++) {
		const char *row = current->recorded->rows[a->first_row + i];
		capture_layout_read("u", &row, &pids[i]);
	}
	return a->n_rows > room ? NVML_TOO_SMALL : NVML_OK;
}

/* A ring, or a list of records with stamps, while it is read. */
struct stamped {
	const struct play_call *call;
	const char *layout;
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
	capture_layout_read(s->layout, &row, entry);
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
	size_t size = capture_layout_size(s->layout);
	if (s->n < s->room)
		memcpy(s->to + s->n * size, entry, size);
	s->n++;
}

/* Collects the entries of all rounds; returns the code of the current round. */
static int play_stamped(struct stamped *s)
{
	const struct capture_file *r = current->recorded;
	struct play_time t = play_time_now(current);
	int code = code_of(play_answer(s->call));
	if (code != NVML_OK && code != NVML_NOT_FOUND)
		return code;
	const struct nvml_key key = key_of(s->call);
	int64_t loop = t.loop > LOOPS_KEPT ? t.loop - LOOPS_KEPT : 0;
	for (; r->n_rounds && loop <= t.loop; loop++)
		for (int round = 0; (size_t)round < r->n_rounds; round++) {
			const struct nvml_answer *a = capture_file_find(r, &key, round);
			for (size_t i = 0; a && a->round == round && i < a->n_rows; i++)
				add_stamped(s, r->rows[a->first_row + i], loop, &t);
		}
	return s->n ? NVML_OK : NVML_NOT_FOUND;
}

static int play_samples(void *handle, int ring, unsigned long long since_us, int *type,
	unsigned *count, void *samples)
{
	const struct play_call call = call_of(handle, play_samples, ring);
	struct stamped s = { .call = &call,
		.layout = "QQ",
		.since_us = since_us,
		.to = samples,
		.room = samples ? *count : 0 };
	const struct nvml_answer *a = play_answer(&call);
	*type = NVML_VALUE_U32;
	if (code_of(a) == NVML_OK) {
		const char *values = a->values;
		capture_layout_read("i", &values, type);
	}
	int code = play_stamped(&s);
	*count = (unsigned)(s.n < s.room || !samples ? s.n : s.room);
	return code;
}

static int play_process_samples(
	void *handle, void *records, unsigned *count, unsigned long long since_us)
{
	const struct play_call call = call_of(handle, play_process_samples, 0);
	struct stamped s = { .call = &call,
		.layout = "uQuuuu",
		.pid_first = true,
		.since_us = since_us,
		.to = records,
		.room = records ? *count : 0 };
	int code = play_stamped(&s);
	*count = (unsigned)s.n;
	return code == NVML_OK && s.n > s.room ? NVML_TOO_SMALL : code;
}

static int play_process_samples_v1(void *handle, struct nvml_process_samples_v1 *all)
{
	const struct play_call call = call_of(handle, play_process_samples_v1, 0);
	struct stamped s = { .call = &call,
		.layout = "Quuuuuuu",
		.since_us = all->last_seen_us,
		.to = (unsigned char *)all->samples,
		.room = all->samples ? all->count : 0 };
	int code = play_stamped(&s);
	all->count = (uint32_t)s.n;
	return code == NVML_OK && s.n > s.room ? NVML_TOO_SMALL : code;
}

/* A GPM sample only says what it is a sample of. */
struct gpm_subject {
	const void *handle;
	int gpu_instance;
};

static int play_gpm_alloc(void **sample)
{
	*sample = calloc(1, sizeof(struct gpm_subject));
	return *sample ? NVML_OK : NVML_NO_MEMORY;
}

static int play_gpm_free(void *sample)
{
	free(sample);
	return NVML_OK;
}

static int play_gpm_sample(void *handle, void *sample)
{
	const struct play_call call = call_of(handle, play_gpm_sample, 0);
	*(struct gpm_subject *)sample = (struct gpm_subject){ handle, -1 };
	return code_of(play_answer(&call));
}

static int play_gpm_mig_sample(void *handle, unsigned gpu_instance, void *sample)
{
	const struct play_call call = call_of(handle, play_gpm_mig_sample, (int)gpu_instance);
	*(struct gpm_subject *)sample = (struct gpm_subject){ handle, (int)gpu_instance };
	return code_of(play_answer(&call));
}

static int play_gpm_metrics(struct nvml_gpm_metrics *get)
{
	const struct gpm_subject *of = get->samples[1];
	struct play_call call = call_of(of->handle, play_gpm_metrics, of->gpu_instance);
	struct {
		uint32_t code;
		double value;
	} got = { 0 };
	void *out = &got;
	call.args[1] = (int)get->metric.id;
	int code = of->handle ? play_out(&call, &out) : NVML_BAD_ARGUMENT;
	get->metric.code = got.code;
	get->metric.value = got.value;
	return code;
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

static int play_event_register(void *handle, unsigned long long kinds, void *set)
{
	const struct play_call call = call_of(handle, play_event_register, 0);
	(void)kinds;
	(void)set;
	return code_of(play_answer(&call));
}

static int play_event_wait(void *set, struct nvml_event *event, unsigned timeout_ms)
{
	(void)set;
	(void)event;
	(void)timeout_ms;
	return NVML_TIMEOUT;
}

static int play_init(void)
{
	const struct play_call call = call_of(NULL, play_init, 0);
	return code_of(play_answer(&call));
}

static int play_shutdown(void)
{
	return NVML_OK;
}

static const char *play_error(int code)
{
	static char text[CAPTURE_LAYOUT_MAX];
	const struct play_call call = call_of(NULL, play_error, code);
	return play_text(&call, text, sizeof(text)) == NVML_OK ? text : "Unknown Error";
}

static int play_count(unsigned *count)
{
	const struct play_call call = call_of(NULL, play_count, 0);
	void *out = count;
	return play_out(&call, &out);
}

/* A card on which a call was stuck is not asked, as with the real driver. */
static int play_by_index(unsigned index, void **handle)
{
	if (index >= CAPTURE_CARDS)
		return NVML_BAD_ARGUMENT;
	*handle = &current->cards[index];
	const struct play_call call = call_of(*handle, play_by_index, 0);
	return current->recorded->stuck[index] ? NVML_STUCK : code_of(play_answer(&call));
}

static int play_mig_by_index(void *handle, unsigned index, void **instance)
{
	const struct play_unit *unit = handle;
	const struct play_call call = call_of(handle, play_mig_by_index, (int)index);
	if (index >= CAPTURE_INSTANCES)
		return NVML_NOT_FOUND;
	const struct nvml_answer *a = play_answer(&call);
	*instance = &current->instances[unit->card][index];
	return a ? a->code : NVML_NOT_FOUND;
}

/* Calls that fill in only a text, or one struct. */
#define PLAY_VERSION(member)                                                                   \
	static int play_##member(char *text, unsigned cap)                                     \
	{                                                                                      \
		const struct play_call call = call_of(NULL, play_##member, 0);                 \
		return play_text(&call, text, cap);                                            \
	}
#define PLAY_TEXT(member)                                                                      \
	static int play_##member(void *handle, char *text, unsigned cap)                       \
	{                                                                                      \
		const struct play_call call = call_of(handle, play_##member, 0);               \
		return play_text(&call, text, cap);                                            \
	}
#define PLAY_ONE(member)                                                                       \
	static int play_##member(void *handle, void *out)                                      \
	{                                                                                      \
		const struct play_call call = call_of(handle, play_##member, 0);               \
		return play_out(&call, &out);                                                  \
	}
PLAY_VERSION(library_version)
PLAY_VERSION(driver_version)
PLAY_TEXT(uuid)
PLAY_TEXT(name)
PLAY_ONE(pci)
PLAY_ONE(persistence)
PLAY_ONE(memory_v2)
PLAY_ONE(memory)
PLAY_ONE(rates)
PLAY_ONE(power)
PLAY_ONE(power_limit)
PLAY_ONE(accounting_mode)
PLAY_ONE(gpm_support)
PLAY_ONE(mig_max)
PLAY_ONE(gpu_instance)
PLAY_ONE(compute_instance)
PLAY_ONE(event_kinds)

static int play_mig_mode(void *handle, unsigned *now, unsigned *pending)
{
	const struct play_call call = call_of(handle, play_mig_mode, 0);
	void *out[] = { now, pending };
	return play_out(&call, out);
}

static int play_accounting_stats(void *handle, unsigned pid, void *stats)
{
	const struct play_call call = call_of(handle, play_accounting_stats, (int)pid);
	return play_answer(&call) ? play_out(&call, &stats) : NVML_NOT_FOUND;
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

/* The energy continues where the last loop ended. */
static int play_energy(void *handle, void *mj)
{
	const struct play_call call = call_of(handle, play_energy, 0);
	const struct nvml_key key = key_of(&call);
	struct play_time t = play_time_now(current);
	uint64_t now = 0;
	int code = play_out(&call, &mj);
	if (code != NVML_OK || t.loop == 0)
		return code;
	memcpy(&now, mj, sizeof(now));
	now += (uint64_t)t.loop * energy_of_loop(&key, &t);
	memcpy(mj, &now, sizeof(now));
	return code;
}

/* clang-format off */
#define CALL(...)
#define OLDER(...)
#define OBJECT(...)
#define ASKED(...)
#define LIST(list, way, symbol) \
	static int play_##symbol(void *handle, unsigned *count, void *entries) \
	{ \
		return play_list(handle, play_##symbol, count, entries); \
	}
#include "driver/nvml/nvml_calls.def"

/* Two kinds of functions are always there: those that every library must have, which may be
 * missing in the capture if the driver was stuck; and those for objects that exist only here.
 */
static const struct play_function {
	const char *symbol;
	void *function;
	bool always;
} functions[] = {
#define CALL(member, parameters, required, symbol, ...) { #symbol, play_##member, required },
#define OLDER(member, symbol, ...) { #symbol, play_##member, false },
#define OBJECT(member, parameters, required, symbol) { #symbol, play_##member, true },
#define ASKED(member, symbol, ...) { #symbol, play_##member, false },
#define LIST(list, way, symbol) { #symbol, play_##symbol, false },
#include "driver/nvml/nvml_calls.def"
};
/* clang-format on */

static const char *name_of(const void *function)
{
	const struct play_function *f = functions;
	while (f->function != function)
		f++;
	for (const struct play_function *end = functions + sizeof(functions) / sizeof(*f);
		f + 1 < end && f[1].function == function; f++)
		if (capture_file_has(current->recorded, f->symbol))
			break;
	return f->symbol;
}

void *capture_play_find(const struct capture_play *play, const char *symbol)
{
	bool there = capture_file_has(play->recorded, symbol);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(functions[i].symbol, symbol) == 0)
			return there || functions[i].always ? functions[i].function : NULL;
	return there ? play_find_metric(symbol) : NULL;
}
