/* The table of metrics: names, nearest names, how values are written. */
#include "test.h"

#include <math.h>
#include <string.h>

#include "model/metric.h"

static void every_name_finds_its_row(void **state)
{
	(void)state;
	for (int i = 0; i < METRIC_COUNT; i++) {
		assert_non_null(metrics[i].name);
		assert_int_equal(metric_find(metrics[i].name, strlen(metrics[i].name)), i);
		for (const char *at = metrics[i].synonyms; *at;) {
			size_t len = strcspn(at, " ");
			assert_int_equal(metric_find(at, len), i);
			at += len + (at[len] == ' ');
		}
		size_t help = strlen(metrics[i].help);
		assert_true(help > 5 && metrics[i].help[help - 1] == '.');
		assert_true(metrics[i].scale > 0);
	}
	assert_int_equal(metric_find("CLOCKS.GR", 9), METRIC_CLOCK_GRAPHICS);
	assert_int_equal(metric_find("clocks.g", 8), -1);
	assert_int_equal(metric_find("", 0), -1);
}

static void texts_of_the_driver_come_first(void **state)
{
	(void)state;
	for (int i = 0; i < METRIC_COUNT; i++)
		assert_int_equal(metrics[i].form == METRIC_FORM_DRIVER_TEXT,
			i < (int)METRIC_DRIVER_TEXTS);
}

static void the_nearest_names_are_found(void **state)
{
	(void)state;
	int found[3];
	assert_int_equal(metric_nearest("utilisation.gpu", 15, found, 3), 3);
	assert_int_equal(found[0], METRIC_UTILIZATION_GPU);
	assert_int_equal(metric_nearest("pstat", 5, found, 1), 1);
	assert_int_equal(found[0], METRIC_PSTATE);
	assert_int_equal(metric_nearest("temprature.gpu", 14, found, 1), 1);
	assert_int_equal(found[0], METRIC_TEMPERATURE_GPU);
	char longest[300];
	memset(longest, 'x', sizeof(longest));
	metric_nearest(longest, sizeof(longest), found, 3);
	assert_int_equal(metric_nearest("qqqqqqqq", 8, found, 3), 0);
}

static const char *shown(enum metric m, double value)
{
	static char text[64];
	metric_show(text, sizeof(text), m, value);
	return text;
}

static void values_are_written_as_nvidia_smi_does(void **state)
{
	(void)state;
	assert_string_equal(shown(METRIC_UTILIZATION_GPU, 36), "36");
	assert_string_equal(shown(METRIC_MEMORY_TOTAL, 42949672960.0), "40960");
	assert_string_equal(shown(METRIC_MEMORY_USED, 1048575), "0");
	assert_string_equal(shown(METRIC_POWER_DRAW, 25.5), "25.50");
	assert_string_equal(shown(METRIC_PSTATE, 0), "P0");
	assert_string_equal(shown(METRIC_PSTATE, 12), "P12");
	assert_string_equal(shown(METRIC_PSTATE, 32), "");
	assert_string_equal(shown(METRIC_PCI_DEVICE_ID, 0x20b210de), "0x20B210DE");
	assert_string_equal(shown(METRIC_PCI_BUS, 0x7), "0x07");
	assert_string_equal(shown(METRIC_REASONS, 0x40), "0x0000000000000040");
	assert_string_equal(shown(METRIC_ECC_CURRENT, 1), "Enabled");
	assert_string_equal(shown(METRIC_ECC_CURRENT, 0), "Disabled");
	assert_string_equal(shown(METRIC_COMPUTE_MODE, 3), "Exclusive_Process");
	assert_string_equal(shown(METRIC_COMPUTE_MODE, 7), "");
	assert_string_equal(shown(METRIC_REMAPPED_PENDING, 1), "Yes");
	assert_string_equal(shown(METRIC_RECOVERY_ACTION, 4), "Drain and Reset");
	assert_string_equal(shown(METRIC_RECOVERY_ACTION, 5), "");
	assert_string_equal(shown(METRIC_FABRIC_STATE, 0), "");
	assert_string_equal(shown(METRIC_PLATFORM_PEER, 0), "Direct Connected");
	assert_string_equal(shown(METRIC_PLATFORM_PEER, 1), "");
	assert_string_equal(shown(METRIC_INFOROM_CHECK, 0), "invalid");
	assert_string_equal(shown(METRIC_PCI_CLASS, 3), "0x3");
	assert_string_equal(shown(METRIC_TEMPERATURE_MARGIN, -4), "-4");
	assert_string_equal(shown(METRIC_COUNTER_SW_POWER, 1999), "1");
	assert_string_equal(
		shown(METRIC_GUA_IDLE_SINCE, 1793606400000.0), "2026-11-02T08:00:00Z");
	for (int i = 0; i < METRIC_COUNT; i++)
		assert_string_equal(shown((enum metric)i, NAN), "");
}

static void reasons_are_made_from_their_bits(void **state)
{
	(void)state;
	double values[METRIC_COUNT];
	metric_texts texts;
	unsigned char wanted[METRIC_COUNT] = { [METRIC_REASON_HW_THERMAL] = 1 };
	metric_complete(wanted);
	assert_true(wanted[METRIC_REASONS]);
	metric_clear(values, texts);
	metric_derive(values);
	assert_true(isnan(values[METRIC_REASON_IDLE]));
	values[METRIC_REASONS] = 0x41;
	metric_derive(values);
	assert_string_equal(shown(METRIC_REASON_IDLE, values[METRIC_REASON_IDLE]), "Active");
	assert_string_equal(
		shown(METRIC_REASON_HW_THERMAL, values[METRIC_REASON_HW_THERMAL]), "Active");
	assert_string_equal(
		shown(METRIC_REASON_SW_POWER, values[METRIC_REASON_SW_POWER]), "Not Active");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_name_finds_its_row),
		cmocka_unit_test(texts_of_the_driver_come_first),
		cmocka_unit_test(the_nearest_names_are_found),
		cmocka_unit_test(values_are_written_as_nvidia_smi_does),
		cmocka_unit_test(reasons_are_made_from_their_bits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
