/* Answers of a fleet's engine, in pieces of any size: the result does not depend on the pieces,
 * every sample is finite and has labels, and what may be shown is safe. */
#include "fuzz.h"

#include <math.h>

#include "fleet/engine_answer.h"

struct seen {
	size_t n;
	double sum;
};

static int take(void *context, const struct sample *sample, struct err *e)
{
	struct seen *seen = context;
	(void)e;
	CHECK(isfinite(sample->value) && isfinite(sample->time_s));
	CHECK(sample->labels->n <= ANSWER_LABELS);
	for (size_t i = 0; i < sample->labels->n; i++)
		CHECK(sample->labels->values[i] < sample->labels->text.len);
	CHECK(strlen(engine_answer_label(sample->labels, "instance")) <= ANSWER_TOKEN_MAX);
	seen->n++;
	seen->sum = fmod(seen->sum + sample->value, 1e9);
	return 0;
}

/* Reads all bytes in pieces of that size. */
static int read_all(struct engine_answer *a, const uint8_t *data, size_t size, size_t piece)
{
	struct err e = { 0 };
	int rc = 0;
	engine_answer_start(a);
	for (size_t at = 0; at < size && rc == 0; at += piece)
		rc = engine_answer_feed(
			a, (const char *)data + at, size - at < piece ? size - at : piece, &e);
	if (rc == 0)
		rc = engine_answer_end(a, &e);
	CHECK((rc == 0) == (e.code == 0));
	check_safe(e.text);
	check_safe(a->error);
	check_safe(a->version);
	for (size_t i = 0; i < a->n_warnings; i++)
		check_safe(a->warnings[i]);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen whole = { 0 }, parts = { 0 };
	struct engine_answer a = { .take = take, .context = &whole };
	struct engine_answer b = { .take = take, .context = &parts };
	int one = read_all(&a, data, size, size ? size : 1);
	int other = read_all(&b, data, size, 1 + size % 7);
	CHECK(one == other && whole.n == parts.n && a.n_samples == whole.n);
	CHECK(whole.sum == parts.sum && a.success == b.success);
	engine_answer_finish(&a);
	engine_answer_finish(&b);
	return 0;
}
