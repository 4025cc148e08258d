/* Keeps the answers of a capture in order, and finds them. */
#include "driver/capture/capture_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "driver/capture/capture_file_parse.h"

enum { FILE_MAX = 8 << 20 };

static int compare_keys(const struct nvml_key *a, const struct nvml_key *b)
{
	int by_symbol = strcmp(a->symbol, b->symbol);
	if (by_symbol)
		return by_symbol;
	const int x[] = { a->card, a->instance, a->args[0], a->args[1], a->args[2] };
	const int y[] = { b->card, b->instance, b->args[0], b->args[1], b->args[2] };
	for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

static int compare_answers(const void *a, const void *b)
{
	const struct nvml_answer *x = a, *y = b;
	int by_key = compare_keys(&x->key, &y->key);
	return by_key ? by_key : (x->round > y->round) - (x->round < y->round);
}

/* How many answers come before the first that is greater than this one. */
static size_t count_until(const struct nvml_recorded *r, const struct nvml_answer *last)
{
	size_t low = 0, high = r->n_answers;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_answers(&r->answers[middle], last) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct nvml_answer *nvml_recorded_find(
	const struct nvml_recorded *r, const struct nvml_key *key, int round)
{
	const struct nvml_answer last = { .key = *key, .round = round };
	size_t n = count_until(r, &last);
	if (n == 0 || compare_keys(&r->answers[n - 1].key, key) != 0)
		return NULL;
	return &r->answers[n - 1];
}

bool nvml_recorded_has(const struct nvml_recorded *r, const char *symbol)
{
	const struct nvml_answer least = {
		.key = { symbol, -2, -2, { INT32_MIN, INT32_MIN, INT32_MIN } }, .round = -2
	};
	size_t n = count_until(r, &least);
	return n < r->n_answers && strcmp(r->answers[n].key.symbol, symbol) == 0;
}

static int compare_processes(const void *a, const void *b)
{
	const struct nvml_recorded_process *x = a, *y = b;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

const struct nvml_recorded_process *nvml_recorded_process(
	const struct nvml_recorded *r, uint32_t pid)
{
	const struct nvml_recorded_process wanted = { .pid = pid };
	if (r->n_processes == 0)
		return NULL;
	return bsearch(
		&wanted, r->processes, r->n_processes, sizeof(wanted), compare_processes);
}

/* Takes `text` over; `name` is that of the file in messages. */
static int parse(
	struct nvml_recorded **result, const char *name, char *text, size_t len, struct err *e)
{
	struct nvml_recorded *r = calloc(1, sizeof(*r));
	*result = NULL;
	if (!r) {
		free(text);
		return err_memory(e);
	}
	r->text = text;
	r->made = r->system = r->kernel = r->library = "";
	int rc = nvml_recorded_fill(r, len, e);
	if (rc) {
		nvml_recorded_free(r);
		return err_prefix(e, "%s", name);
	}
	if (r->n_answers)
		qsort(r->answers, r->n_answers, sizeof(r->answers[0]), compare_answers);
	if (r->n_processes)
		qsort(r->processes, r->n_processes, sizeof(r->processes[0]), compare_processes);
	*result = r;
	return 0;
}

int nvml_recorded_open(struct nvml_recorded **r, const char *path, struct err *e)
{
	struct file_content content;
	*r = NULL;
	int rc = file_read_regular(path, FILE_MAX, &content, e);
	return rc ? rc : parse(r, path, content.data, content.len, e);
}

void nvml_recorded_free(struct nvml_recorded *r)
{
	if (!r)
		return;
	free(r->text);
	free(r->answers);
	free(r->rows);
	free(r->processes);
	free(r->rounds);
	free(r);
}
