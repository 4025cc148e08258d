/* CUDA_VISIBLE_DEVICES: from our environment, or from /proc for a process that runs already. */
#include "cmd/track_visible.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/helper.h"
#include "proc/parse.h"
#include "proc/proc.h"
#include "driver/kind.h"
#include "track/tracker.h"

#define NAME "CUDA_VISIBLE_DEVICES"
enum { ENVIRONMENT_CAP = 256 * 1024, DEADLINE_MS = 1000 };

/* Appends "NAME=value" if the environment has it. */
static void find(const char *bytes, size_t len, struct str *reply)
{
	struct proc_arguments all = { bytes, len, 0 };
	const char *one;
	size_t one_len;
	while (proc_next_argument(&all, &one, &one_len))
		if (one_len >= sizeof(NAME) && memcmp(one, NAME "=", sizeof(NAME)) == 0) {
			str_add_bytes(reply, one, one_len);
			return;
		}
}

/* Runs in the helper, because reading an environment may block; see proc/proc.h. */
static void serve(void *context, const struct str *request, struct str *reply)
{
	const struct track_values *v = context;
	struct err e = { 0 };
	int proc = -1;
	char *bytes = malloc(ENVIRONMENT_CAP);
	(void)request;
	if (bytes && proc_open(&proc, v->root ? v->root : "", &e) == 0) {
		ssize_t n =
			proc_read_environment(proc, (uint32_t)v->pid, bytes, ENVIRONMENT_CAP);
		if (n > 0) {
			find(bytes, (size_t)n, reply);
			explicit_bzero(bytes, (size_t)n);
		}
	}
	if (proc >= 0)
		close(proc);
	free(bytes);
}

static char *of_process(const struct track_values *v)
{
	struct track_values copy = *v;
	const struct helper_work work = {
		.name = TRACK_HELPER_NAME, .serve = serve, .context = &copy
	};
	struct helper *helper = NULL;
	struct err e = { 0 };
	const struct str request = { 0 }, *reply = NULL;
	char *value = NULL;
	if (helper_new(&helper, &work, &e))
		return NULL;
	if (helper_send(helper, &request, &e) == 0 &&
		helper_receive(helper, DEADLINE_MS, &reply, &e) == 0 && reply->len)
		value = strdup(str_text(reply) + sizeof(NAME));
	int left = helper_free(helper, DEADLINE_MS);
	if (left >= 0)
		close(left);
	return value;
}

char *track_visible(const struct track_values *v)
{
	if (!track_own_gpus(v) || strcmp(v->source, SOURCE_NONE) == 0)
		return NULL;
	if (v->pid)
		return of_process(v);
	const char *value = getenv(NAME);
	return value ? strdup(value) : NULL;
}
