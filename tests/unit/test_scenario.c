/* The scenario language: what is read, and what is refused with which sentence. */
#include "test.h"

#include <stdio.h>

#include "driver/sim/scenario.h"

#define CARD "card 0 uuid GPU-0 name \"A card\" memory 80GiB\n"
#define PROCESS "process p pid 10\n"

static struct scenario *parse(const char *text)
{
	struct scenario *s = NULL;
	struct err e = { 0 };
	if (scenario_parse(&s, "x", text, strlen(text), &e) != 0)
		fail_msg("%s", e.text);
	if (scenario_resolve(s, NULL, &e) != 0)
		fail_msg("%s", e.text);
	return s;
}

static void test_everything_is_read(void **state)
{
	(void)state;
	struct scenario *s = parse(
		"host \"a \\\"b\\\\\"  # a comment\n"
		"start 2026-11-02T08:00:00Z\r\n"
		"driver 535.86.05 nvml 12.535.1 cuda 12.2\n"
		"samples-per-second 5\n"
		"ring 8s\n"
		"repeat 1d\n"
		"layout v3 32\n"
		"accounting on\n"
		"stamps boot\n"
		"missing nvmlA nvmlB\n"
		"\n"
		"card 0 uuid GPU-0 name \"NVIDIA A100\" memory 80GiB reserved 600MiB "
		"pci 0000:17:00.0 idle-power 60.5W max-power 400W gpm breaks\n"
		"card 1 uuid GPU-1 name Other memory 1.5GB energy no memory-info v1 "
		"gpm yes sm-active 30\n"
		"mig 0 index 2 gi 3 ci 0 uuid MIG-2 name \"1g.10gb\" memory 10GiB\n"
		"process train pid 42 user alice uid 1001 command \"python train.py\" kind mps "
		"started -2h\n"
		"at 1m load train card 1 sm 85 on 400ms off 600ms\n"
		"at 0s hold train mig 0/2 memory unknown\n");
	assert_string_equal(s->host, "a \"b\\");
	assert_int_equal(s->start_wall_us, 1793606400LL * 1000000);
	assert_string_equal(s->driver, "535.86.05");
	assert_string_equal(s->nvml, "12.535.1");
	assert_int_equal(s->cuda, 12020);
	assert_int_equal(s->samples_per_second, 5);
	assert_int_equal(s->ring_us, 8000000);
	assert_int_equal(s->repeat_us, 86400LL * 1000000);
	assert_int_equal(s->layout[2], 32);
	assert_true(s->accounting);
	assert_true(s->boot_stamps);
	assert_int_equal(s->n_missing, 2);
	assert_string_equal(s->missing[1], "nvmlB");
	assert_int_equal(s->n_cards, 3);
	assert_int_equal(s->n_physical, 2);
	assert_int_equal(s->cards[0].id.mem_total_bytes, 80LL << 30);
	assert_int_equal(s->cards[0].reserved_bytes, 600LL << 20);
	assert_int_equal(s->cards[0].idle_mw, 60500);
	assert_true(s->cards[0].has_mig);
	assert_int_equal(s->cards[1].id.mem_total_bytes, 1500000000);
	assert_int_equal(s->n_faults, 2); /* energy, memory v2 */
	assert_true(s->cards[1].gpm);
	assert_int_equal(s->cards[1].sm_active_pct, 30);
	assert_true(s->cards[0].gpm_breaks);
	assert_true(s->cards[2].gpm); /* as its card */
	assert_int_equal(s->cards[2].sm_active_pct, 50);
	assert_int_equal(s->cards[2].parent, 0);
	assert_int_equal(s->cards[2].id.mig_index, 2);
	assert_int_equal(s->cards[2].id.gpu_instance, 3);
	assert_string_equal(s->cards[2].id.parent_uuid, "GPU-0");
	assert_string_equal(s->cards[2].id.pci, "0000:17:00.0");
	assert_int_equal(s->processes[0].kind, PROCESS_MPS);
	assert_int_equal(s->processes[0].started_us, -7200LL * 1000000);
	assert_int_equal(s->events[2].verb, EVENT_VERB_HOLD); /* by time, after the faults */
	assert_int_equal(s->events[2].value, -1);
	assert_int_equal(s->events[3].on_us, 400000);
	scenario_free(s);
}

/* The same event on several days; `until` is of the same day. */
static void test_days(void **state)
{
	(void)state;
	static const int64_t hours[] = { 9, 11, 33, 35, 177, 179 };
	struct scenario *s = parse(CARD "on 0-1,7 at 9h lost card 0 until 11h\n");
	assert_int_equal(s->n_events, 6);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(s->events[i].at_us, hours[i] * 3600 * 1000000);
		assert_int_equal(s->events[i].line, 2);
	}
	scenario_free(s);
	s = parse(CARD PROCESS "on 3 at 1h hold p card 0 memory 1GiB\nat 1s exit p\n");
	assert_int_equal(s->events[0].at_us, 1000000);
	assert_int_equal(s->events[1].at_us, 73LL * 3600 * 1000000);
	scenario_free(s);
}

static void test_texts(void **state)
{
	(void)state;
	struct scenario *s = parse(PROCESS "process q pid 11 tag \"a b\" notebook_path x.ipynb "
					   "user bob login ssh\n");
	assert_int_equal(s->n_texts, 3);
	assert_int_equal(s->texts[0].process, 1);
	assert_int_equal(s->texts[0].which, PROCESS_TAG);
	assert_string_equal(s->texts[0].text, "a b");
	assert_int_equal(s->texts[1].which, PROCESS_NOTEBOOK_PATH);
	assert_string_equal(s->texts[2].text, "ssh");
	assert_string_equal(s->processes[1].user, "bob");
	scenario_free(s);
}

static void test_defaults(void **state)
{
	(void)state;
	struct scenario *s = parse(CARD PROCESS);
	assert_string_equal(s->driver, "560.35.05");
	assert_string_equal(s->nvml, "12.560.35.05");
	assert_int_equal(s->samples_per_second, 6);
	assert_int_equal(s->ring_us, 10000000);
	assert_string_equal(s->cards[0].id.pci, "0000:10:00.0");
	assert_string_equal(s->processes[0].user, "p");
	assert_int_equal(s->processes[0].uid, -1);
	scenario_free(s);
	scenario_free(parse("")); /* a host without cards */
}

static void test_mistakes(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{ "hots x\n", "x:1: a line cannot begin with 'hots'" },
		{ "host\n", "x:1: the host's name is missing" },
		{ "host a b\n", "x:1: 'b' is not expected here" },
		{ "host \"a\n", "x:1: a quote is not closed" },
		{ "host \"a\"b\n", "x:1: a blank is missing behind a closing quote" },
		{ "host \"\"\n", "x:1: the host's name is empty" },
		{ "start now\n",
			"x:1: the start is 'now'; write it like 2026-11-02T08:00:00Z" },
		{ "ring 2m\n", "x:1: the ring must be from 1s to 60s" },
		{ "repeat 500ms\n", "x:1: repeat must be whole seconds" },
		{ "accounting off\n", "x:1: write accounting on, or leave it out" },
		{ "stamps\n", "x:1: write stamps boot, or leave it out" },
		{ "layout v4 24\n", "x:1: write layout v1|v2|v3 16|24|32" },
		{ "layout v3 20\n", "x:1: write layout v1|v2|v3 16|24|32" },
		{ "driver 1 cuda x\n", "x:1: the CUDA version is 'x'; write it like 12.6" },
		{ "card 1 uuid\n", "x:1: cards are numbered in order: the next is 0" },
		{ "card 64\n",
			"x:1: the card's index is '64' and must be a number from 0 to 63" },
		{ "card 0 uuid G\n", "x:1: uuid, name and memory are needed" },
		{ "card 0 colour red\n", "x:1: 'colour' is not a key of a card" },
		{ "card 0 memory 80\n",
			"x:1: the memory is '80'; write it like 80GiB, 8GB, 512MiB or 0B" },
		{ "card 0 memory 9999999999GiB\n",
			"x:1: the memory is too large: '9999999999GiB'" },
		{ "card 0 memory -1GiB\n",
			"x:1: the memory is '-1GiB'; write it like 80GiB, 8GB, 512MiB or 0B" },
		{ CARD "card 1 uuid GPU-0 name B memory 1GiB\n",
			"x:2: another card has the uuid 'GPU-0'" },
		{ "card 0 uuid G name B memory 1GiB idle-power 9W max-power 8W\n",
			"x:1: max-power is below idle-power" },
		{ "card 0 gpm maybe\n", "x:1: gpm must be yes, no or breaks" },
		{ CARD "mig 0 index 0 gi 1 ci 0 gpm breaks\n", "x:2: gpm must be yes or no" },
		{ "card 0 sm-active 101\n",
			"x:1: sm-active is '101' and must be a number from 0 to 100" },
		{ CARD "mig 1 index 0\n", "x:2: there is no card 1" },
		{ CARD "mig 0 index 7 gi 1 ci 0 uuid M name M memory 1GiB\n",
			"x:2: write mig CARD index I gi G ci C uuid ..." },
		{ "process p\n", "x:1: the process 'p' needs a pid" },
		{ "process p pid 0\n",
			"x:1: the pid is '0' and must be a number from 1 to 4194304" },
		{ "process p pid file\n", "x:1: the file is missing" },
		{ "process p pid file a/b\n", "x:1: the file is 'a/b' and must be a name "
					      "without / and not begin with "
					      "." },
		{ "process p pid file ..\n",
			"x:1: the file is '..' and must be a name without / and not begin with "
			"." },
		{ "process card pid 1\n", "x:1: a process cannot be called 'card'" },
		{ PROCESS "process p pid 2\n", "x:2: there is a process 'p' already" },
		{ "process p pid 1 kind x\n",
			"x:1: the kind must be compute, graphics, both or mps" },
		{ "process p pid 1 started 1h\n",
			"x:1: a process can have started up to 90d before the scenario" },
		{ "at 5 exit p\n", "x:1: the time: '5' has no unit; write 5s, 5m, 5h or 5d" },
		{ "at 5s\n", "x:1: the event after the time is missing" },
		{ "at 5s explode\n", "x:1: there is no event or fault 'explode'" },
		{ "at 5s exit p\n", "x:1: there is no process 'p'" },
		{ CARD PROCESS "at 0s hold p card 1 memory 1GiB\n", "x:3: there is no card 1" },
		{ CARD PROCESS "at 0s hold p card 0x memory 1GiB\n",
			"x:3: there is no card 0x" },
		{ CARD PROCESS "at 0s hold p mig 0/1 memory 1GiB\n",
			"x:3: there is no mig 0/1" },
		{ CARD PROCESS "at 0s hold p card 0 memory\n", "x:3: the memory is missing" },
		{ CARD PROCESS "at 0s load p card 0 sm 101\n",
			"x:3: the percentage is '101' and must be a number from 0 to 100" },
		{ CARD PROCESS "at 0s load p card 0 sm 1 on 1s\n",
			"x:3: on needs off: write on 400ms off 600ms" },
		{ CARD PROCESS "at 0s load p card 0 sm 1 on 1s off 0\n",
			"x:3: on and off must be longer than 0s" },
		{ CARD "at 5s lost card 0 until 5s\n",
			"x:2: the time after until must be later than the time after at" },
		{ CARD "on 0 9h xid 1 card 0\n", "x:2: write on DAYS at T EVENT" },
		{ CARD "on\n", "x:2: the list of days is missing" },
		{ CARD "on x at 9h xid 1 card 0\n",
			"x:2: the days must be numbers up to 366, like 0-4,7" },
		{ CARD "on 0, at 9h xid 1 card 0\n",
			"x:2: the days must be numbers up to 366, like 0-4,7" },
		{ CARD "on 4-2 at 9h xid 1 card 0\n",
			"x:2: the days must be numbers up to 366, like 0-4,7" },
		{ CARD "on 0-99999999999999999999 at 9h xid 1 card 0\n",
			"x:2: the days must be numbers up to 366, like 0-4,7" },
		{ CARD "on 0 at 9h lost card 0 until 8h\n",
			"x:2: the time after until must be later than the time after at" },
		{ CARD "on 0 at 9h xid 1 card 0 more\n", "x:2: 'more' is not expected here" },
		{ CARD "at 5s fail nvmlX\n", "x:2: write fail CALL [card N] code C [until T]" },
		{ CARD "at 5s zero-use card 1\n", "x:2: there is no card 1" },
		{ CARD "at 5s zero-use card 0 call nvmlX\n",
			"x:2: nvmlX does not report the use of processes" },
		{ CARD "at 5s zero-use card 0 call\n", "x:2: the call is missing" },
		{ CARD "at 5s power-factor card 0\n", "x:2: the factor is missing" },
		{ CARD "at 5s power-factor card 0 1.5\n",
			"x:2: the factor is '1.5' and must be a number from 2 to 40" },
		{ CARD "mig 0 index 0 gi 1 ci 0 uuid M name M memory 1GiB\n"
		       "at 5s power-factor mig 0/0 2\n",
			"x:3: this happens to whole cards, not to MIG instances" },
		{ CARD "at 5s suspend 0\n", "x:2: a suspend must be longer than 0s" },
		{ "at 5s step +1h\n", "x:1: step needs a start line" },
		{ "repeat 1m\n" CARD "at 1m lost card 0\n",
			"x:3: this event is later than the interval of repeat" },
		{ "repeat 1m\n" CARD "at 1s lost card 0 until 61s\n",
			"x:3: this event is later than the interval of repeat" },
		{ "card 0 pci 0000:1:00.0\n",
			"x:1: the PCI address is '0000:1:00.0'; write it like 0000:17:00.0" },
		{ "at 5s suspend 1h\nat 6s suspend 1s\n",
			"x:2: the host is already suspended" },
		{ "repeat 1h\nat 0s suspend 1h\n", "x:2: the host is already suspended" },
		{ "\x1b[1m\n", "x:1: a line cannot begin with '\\x1B[1m'" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scenario *s = NULL;
		struct err e = { 0 };
		int code = scenario_parse(&s, "x", cases[i][0], strlen(cases[i][0]), &e);
		assert_int_equal(code, ERR_USAGE);
		assert_null(s);
		assert_string_equal(e.text, cases[i][1]);
	}
}

static void test_bytes_that_are_no_text(void **state)
{
	(void)state;
	struct scenario *s = NULL;
	struct err e = { 0 };
	assert_int_equal(scenario_parse(&s, "x", "host a\0b\n", 9, &e), ERR_USAGE);
	assert_string_equal(e.text, "x:1: there is a NUL in the line");
	char *long_line = malloc(5000);
	memset(long_line, 'a', 5000);
	assert_int_equal(scenario_parse(&s, "x", long_line, 5000, &e), ERR_USAGE);
	assert_string_equal(e.text, "x:1: the line is longer than 2047 bytes");
	/* The longest line, one word; the longest line, all words. */
	assert_int_equal(scenario_parse(&s, "x", long_line, 2047, &e), ERR_USAGE);
	for (size_t i = 0; i < 2047; i += 2)
		long_line[i] = ' ';
	assert_int_equal(scenario_parse(&s, "x", long_line, 2047, &e), ERR_USAGE);
	assert_string_equal(e.text, "x:1: there are more than 64 words");
	free(long_line);
	char *big = calloc(1, SCENARIO_BYTES_MAX + 1);
	memset(big, '\n', SCENARIO_BYTES_MAX + 1);
	assert_int_equal(scenario_parse(&s, "x", big, SCENARIO_BYTES_MAX + 1, &e), ERR_USAGE);
	assert_string_equal(e.text, "x is larger than 1000000 bytes");
	free(big);
}

static char *many(const char *head, const char *format, int n)
{
	size_t cap = 200 + (size_t)n * 64, len = 0;
	char *text = malloc(cap);
	len += (size_t)snprintf(text, cap, "%s", head);
	for (int i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, cap - len, format, i, i + 1);
	return text;
}

static void expect_parse(char *text, int code, const char *sentence)
{
	struct scenario *s = NULL;
	struct err e = { 0 };
	assert_int_equal(scenario_parse(&s, "x", text, strlen(text), &e), code);
	if (sentence)
		assert_string_equal(e.text, sentence);
	scenario_free(s);
	free(text);
}

static void test_limits(void **state)
{
	(void)state;
	expect_parse(many("", "process p%d pid %d\n", 4096), 0, NULL);
	expect_parse(many("", "process p%d pid %d\n", 4097), ERR_USAGE,
		"x:4097: there are more than 4096 processes");
	expect_parse(many(PROCESS, "at 1s exit p #%.0d\n", 50000), 0, NULL);
	expect_parse(many(PROCESS, "at 1s exit p\n", 65537), ERR_USAGE,
		"x:65538: there are more than 65536 events");
	expect_parse(many("", "card %d uuid GPU-%d name x memory 1GiB\n", 64), 0, NULL);
}

static const char *variable(const char *name)
{
	if (strcmp(name, SCENARIO_PIDS) == 0)
		return "/a/directory";
	if (strcmp(name, "GOOD") == 0)
		return "77";
	return strcmp(name, "BAD") == 0 ? "7x" : NULL;
}

static int resolve(const char *text, struct err *e)
{
	struct scenario *s = NULL;
	assert_int_equal(scenario_parse(&s, "x", text, strlen(text), e), 0);
	int code = scenario_resolve(s, variable, e);
	if (code == 0)
		assert_int_not_equal(idmap_get(&s->by_pid, 77), IDMAP_NONE);
	scenario_free(s);
	return code;
}

static void test_pids(void **state)
{
	(void)state;
	struct err e = { 0 };
	assert_int_equal(resolve("process p pid env GOOD\n", &e), 0);
	assert_int_equal(resolve("process p pid file KEY\nprocess q pid 77\n", &e), 0);
	assert_int_equal(resolve("process p pid env BAD\n", &e), ERR_USAGE);
	assert_string_equal(e.text, "BAD is '7x' and must be a pid");
	assert_int_equal(resolve("process p pid env NONE\n", &e), ERR_USAGE);
	assert_string_equal(e.text, "the scenario's process 'p' needs the variable NONE");
	struct scenario *s = NULL;
	assert_int_equal(scenario_parse(&s, "x", "process p pid file f\n", 21, &e), 0);
	assert_string_equal(s->processes[0].pid_file, "f");
	assert_int_equal(scenario_resolve(s, NULL, &e), ERR_USAGE);
	assert_string_equal(
		e.text, "the scenario's process 'p' needs the variable FAKENVML_PIDS");
	scenario_free(s);
	/* What is in the files is not known before it is played. */
	assert_int_equal(resolve(CARD "process p pid file f\nprocess q pid file f\n"
				      "process r pid 77\nat 0s start p\nat 0s start q\n",
				 &e),
		0);
#define TWO CARD "process a pid 77\nprocess b pid 77\nat 0s hold a card 0 memory 1GiB\n"
	assert_int_equal(resolve(TWO "at 5s start b\n", &e), ERR_USAGE);
	assert_string_equal(
		e.text, "line 5 of the scenario: pid 77 already belongs to a running process");
	assert_int_equal(resolve(TWO "at 4s exit a\nat 5s start b\n", &e), 0);
	/* In the second round b still lives when a begins. */
	assert_int_equal(
		resolve("repeat 1m\n" TWO "at 4s exit a\nat 5s start b\n", &e), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_is_read),
		cmocka_unit_test(test_days),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_bytes_that_are_no_text),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_pids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
