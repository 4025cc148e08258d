/* Results of sub-track analyze that are compared: JSON documents. A line "%%" is between two;
 * a single one is compared with itself. */
#include "fuzz_file.h"

#include "subtrack/subtrack.h"

static void compare(struct subtrack_session *sessions, const char *statistic)
{
	struct subtrack_comparison c = { .sessions = sessions, .n = 2, .statistic = statistic };
	struct err e = { 0 };
	if (subtrack_compare(&c, &e) != 0) {
		CHECK(e.text[0]);
		check_safe(e.text);
	} else {
		char *text = json_dumps(c.result, 0);
		CHECK(text);
		free(text);
	}
	json_decref(c.result);
	str_finish(&c.warnings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char between[] = "\n%%\n";
	const uint8_t *at = size ? memmem(data, size, between, strlen(between)) : NULL;
	const uint8_t *second = at ? at + strlen(between) : data;
	char one[FUZZ_PATH], two[FUZZ_PATH];
	fuzz_file_at(one, "1.json", data, at ? (size_t)(at - data) : size);
	fuzz_file_at(two, "2.json", second, size - (size_t)(second - data));
	struct subtrack_session sessions[] = { { "a", one }, { "b", two } };
	compare(sessions, "mean");
	compare(sessions, "std");
	fuzz_file_remove(one);
	fuzz_file_remove(two);
	return 0;
}
