/* A database of the Python tool that somebody else made or something damaged, read to its end.
 */
#include "fuzz_file.h"

#include <math.h>

#include "import/pyfile.h"

enum { MAX_SAMPLES = 10000 };

static void read_samples(struct pyfile *f)
{
	struct pyfile_sample sample;
	struct err e = { 0 };
	for (int i = 0; i < MAX_SAMPLES && pyfile_next(f, &sample, &e) == 1; i++) {
		CHECK(sample.at_ms >= 0);
		CHECK(isnan(sample.util_pct) ||
			(sample.util_pct >= 0 && sample.util_pct <= 100));
		check_safe(sample.uuid);
		for (size_t k = 0; k < sample.n_processes; k++) {
			check_safe(sample.processes[k].user);
			check_safe(sample.processes[k].command);
			CHECK(sample.processes[k].mem_bytes >= -1);
		}
		struct card_id id = { 0 };
		pyfile_device(f, sample.uuid, &id);
		check_safe(id.name);
	}
	check_safe(e.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[FUZZ_PATH];
	struct pyfile *f = NULL;
	struct pyfile_facts facts;
	const int64_t now_ms = INT64_C(1793952000000);
	struct err e = { 0 };
	fuzz_file_at(path, "db", data, size);
	if (pyfile_open(&f, path, now_ms, &e) != 0) {
		CHECK(e.text[0]);
		check_safe(e.text);
	} else {
		if (pyfile_facts(f, &facts, &e) == 0) {
			check_safe(facts.hostname);
			check_safe(facts.driver);
		}
		read_samples(f);
		pyfile_close(f);
	}
	fuzz_file_remove(path);
	return 0;
}
