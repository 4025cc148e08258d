/* libgua as a program sees it: linked with the shared library and gua.h alone. */
#include "test.h"

#include <gua.h>

#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* Two cards; one holder that works and one whose memory nobody knows. */
static const char scenario[] =
	"card 0 uuid GPU-a name \"Card A\" memory 80GiB idle-power 60W max-power 400W\n"
	"card 1 uuid GPU-b name \"Card B\" memory 48GiB idle-power 20W max-power 300W\n"
	"process busy pid 4001 user alice uid 1001 command \"python train.py\"\n"
	"process screen pid 4002 user root uid 0 command \"Xorg\" kind graphics\n"
	"at 0s hold busy card 0 memory 8GB\n"
	"at 0s load busy card 0 sm 90\n"
	"at 0s hold screen card 0 memory 300MB\n"
	"at 0s lost card 1 code 15 until 1000h\n";

static char scenario_path[] = "/tmp/gua-test-XXXXXX";

static int write_scenario(void **state)
{
	(void)state;
	int fd = mkstemp(scenario_path);
	if (fd < 0 || write(fd, scenario, strlen(scenario)) != (ssize_t)strlen(scenario))
		return -1;
	return close(fd);
}

static int remove_scenario(void **state)
{
	(void)state;
	return unlink(scenario_path);
}

static struct gua *open_scenario(void)
{
	struct gua_options options = GUA_INIT(struct gua_options);
	struct gua *gua = NULL;
	options.source = "sim";
	options.scenario = scenario_path;
	int rc = gua_open(&gua, &options);
	if (rc)
		print_error("%s\n", gua_error(gua));
	assert_int_equal(rc, GUA_OK);
	return gua;
}

static void test_cards(void **state)
{
	(void)state;
	struct gua *gua = open_scenario();
	assert_int_equal(gua_card_count(gua), 2);
	struct gua_card a = GUA_INIT(struct gua_card), b = GUA_INIT(struct gua_card);
	assert_int_equal(gua_card(gua, 0, &a), GUA_OK);
	assert_int_equal(gua_card(gua, 1, &b), GUA_OK);
	assert_string_equal(a.uuid, "GPU-a");
	assert_string_equal(a.name, "Card A");
	assert_int_equal(a.status, GUA_CARD_OK);
	assert_int_equal(a.index, 0);
	assert_int_equal(a.mig_index, -1);
	assert_int_equal(a.gpu_instance, -1);
	assert_int_equal(a.mem_total_bytes, 80LL << 30);
	assert_true(a.mem_used_bytes >= 8300000000);
	assert_int_equal(a.mem_free_bytes, a.mem_total_bytes - a.mem_used_bytes);
	assert_true(a.power_w > 60 && a.power_w <= 400);
	assert_true(a.processes_known);
	assert_int_equal(a.processes, 2);
	assert_int_equal(b.status, GUA_CARD_LOST);
	assert_true(isnan(b.util_pct));
	gua_close(gua);
}

static void test_unknown_is_not_zero(void **state)
{
	(void)state;
	struct gua *gua = open_scenario();
	struct gua_card lost = GUA_INIT(struct gua_card);
	assert_int_equal(gua_card(gua, 1, &lost), GUA_OK);
	assert_int_equal(lost.mem_used_bytes, -1);
	assert_int_equal(lost.mem_free_bytes, -1);
	assert_true(isnan(lost.power_w));
	assert_int_equal(lost.processes_known, 0);
	assert_int_equal(lost.processes, 0);
	gua_close(gua);
}

/* What a process does between two refreshes; the simulated driver samples six times a second,
 * so that a refresh right after another may see none. */
static double use_of(struct gua *gua, uint32_t pid, struct gua_process *p)
{
	struct gua_card card = GUA_INIT(struct gua_card);
	assert_int_equal(gua_refresh(gua), GUA_OK);
	assert_int_equal(gua_card(gua, 0, &card), GUA_OK);
	for (size_t i = 0; i < card.processes; i++) {
		*p = (struct gua_process)GUA_INIT(struct gua_process);
		assert_int_equal(gua_card_process(gua, 0, i, p), GUA_OK);
		if (p->pid == pid)
			return p->sm_pct;
	}
	fail_msg("no process %u", pid);
	return NAN;
}

static void test_processes(void **state)
{
	(void)state;
	struct gua *gua = open_scenario();
	struct gua_process p;
	for (int i = 0; i < 6000 && use_of(gua, 4001, &p) < 50; i++)
		usleep(10 * 1000);
	assert_true(p.sm_pct > 50 && p.sm_pct <= 100);
	assert_int_equal(p.kind, GUA_PROCESS_COMPUTE);
	assert_int_equal(p.mem_bytes, 8000000000);
	assert_true(use_of(gua, 4002, &p) == 0);
	assert_int_equal(p.kind, GUA_PROCESS_GRAPHICS);
	assert_int_equal(p.mem_bytes, 300000000);
	struct gua_card card = GUA_INIT(struct gua_card);
	assert_int_equal(gua_card(gua, 0, &card), GUA_OK);
	assert_true(card.util_pct > 50 && card.util_pct <= 100);
	gua_close(gua);
}

static void test_wrong_use_is_a_code_and_a_sentence(void **state)
{
	(void)state;
	struct gua *gua = open_scenario();
	struct gua_card card = GUA_INIT(struct gua_card), no_size = { 0 };
	struct gua_process process = GUA_INIT(struct gua_process);
	assert_int_equal(gua_card(gua, 2, &card), GUA_WRONG_USE);
	assert_string_equal(gua_error(gua), "there is no card 2 of 2");
	assert_int_equal(gua_card(gua, 0, &no_size), GUA_WRONG_USE);
	assert_int_equal(gua_card(gua, 0, NULL), GUA_WRONG_USE);
	assert_int_equal(gua_card_process(gua, 0, 2, &process), GUA_WRONG_USE);
	assert_string_equal(gua_error(gua), "card 0 has no process 2");
	assert_int_equal(gua_card(gua, 0, &card), GUA_OK);
	assert_string_equal(gua_error(gua), "");
	gua_close(gua);
	gua_close(NULL);
	assert_int_equal(gua_refresh(NULL), GUA_WRONG_USE);
	assert_int_equal(gua_card(NULL, 0, &card), GUA_WRONG_USE);
	assert_int_equal(gua_card_count(NULL), 0);
}

static void test_failed_open(void **state)
{
	(void)state;
	struct gua_options options = GUA_INIT(struct gua_options), no_size = { 0 };
	struct gua *gua = NULL;
	options.source = "amd";
	assert_int_equal(gua_open(&gua, &options), GUA_WRONG_USE);
	assert_non_null(strstr(gua_error(gua), "unknown source 'amd'"));
	assert_int_equal(gua_card_count(gua), 0);
	assert_int_equal(gua_refresh(gua), GUA_WRONG_USE);
	gua_close(gua);

	options.source = "nvml";
	options.nvml_path = "/nonexistent/libnvidia-ml.so.1";
	assert_int_equal(gua_open(&gua, &options), GUA_FAILED);
	assert_non_null(strstr(gua_error(gua), "/nonexistent/libnvidia-ml.so.1"));
	gua_close(gua);

	assert_int_equal(gua_open(&gua, &no_size), GUA_WRONG_USE);
	gua_close(gua);
}

/* A program that was built with fewer fields gets those, and not a byte more. */
static void test_an_older_and_a_newer_program(void **state)
{
	(void)state;
	struct gua *gua = open_scenario();
	struct gua_card card;
	memset(&card, 0x5a, sizeof(card));
	card.size = offsetof(struct gua_card, pci);
	assert_int_equal(gua_card(gua, 0, &card), GUA_OK);
	assert_string_equal(card.uuid, "GPU-a");
	assert_int_equal(card.size, offsetof(struct gua_card, pci));
	for (size_t i = card.size; i < sizeof(card); i++)
		assert_int_equal(((unsigned char *)&card)[i], 0x5a);

	struct {
		struct gua_process known;
		char later[16];
	} newer;
	memset(&newer, 0x5a, sizeof(newer));
	newer.known.size = sizeof(newer);
	assert_int_equal(gua_card_process(gua, 0, 0, &newer.known), GUA_OK);
	for (size_t i = 0; i < sizeof(newer.later); i++)
		assert_int_equal(newer.later[i], 0);
	gua_close(gua);
}

static void test_two_handles(void **state)
{
	(void)state;
	struct gua *one = open_scenario(), *other = open_scenario();
	gua_close(one);
	assert_int_equal(gua_refresh(other), GUA_OK);
	assert_int_equal(gua_card_count(other), 2);
	gua_close(other);
}

static void test_words(void **state)
{
	(void)state;
	assert_true(strlen(gua_version()) >= 5);
	for (int code = GUA_NO_MEMORY; code <= GUA_OK; code++)
		assert_string_not_equal(gua_code_text(code), gua_code_text(-99));
	assert_string_equal(gua_error(NULL), "out of memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cards),
		cmocka_unit_test(test_unknown_is_not_zero),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_wrong_use_is_a_code_and_a_sentence),
		cmocka_unit_test(test_failed_open),
		cmocka_unit_test(test_an_older_and_a_newer_program),
		cmocka_unit_test(test_two_handles),
		cmocka_unit_test(test_words),
	};
	return cmocka_run_group_tests(tests, write_scenario, remove_scenario);
}
