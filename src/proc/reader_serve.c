/* The process of a reader: reads what may block, and answers with plain values. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/owner.h"
#include "proc/reader_private.h"

/* What the process keeps between two requests. `root` is filled in by the owner. */
struct served {
	const char *root;
	struct owners *owners; /* NULL: cannot be opened */
};

static void begin(void *context, struct helper_place *place)
{
	struct served *s = context;
	if (owners_open(&s->owners, s->root, NULL) == 0)
		owners_say_where(s->owners, place->text);
}

static void add(struct str *reply, const void *bytes, size_t len)
{
	str_add_bytes(reply, bytes, len);
}

static void answer_result(struct str *reply, int why, const void *bytes, size_t len)
{
	const struct reader_result result = { why, why ? 0 : (uint32_t)len };
	add(reply, &result, sizeof(result));
	if (!why)
		add(reply, bytes, len);
}

static void describe(struct served *s, const struct reader_request *request, struct str *reply)
{
	for (uint32_t i = 0; i < request->n; i++) {
		struct reader_answer answer = { .id = { .started_ms = -1, .uid = -1 } };
		uint32_t pid = request->targets[i].pid;
		answer.there = request->targets[i].brief
				       ? owners_describe_brief(s->owners, pid, &answer.id)
				       : owners_describe(s->owners, pid, &answer.id);
		answer.late = strncmp(answer.id.user, "uid:", 4) == 0 &&
			      owners_names_are_late(s->owners);
		add(reply, &answer, sizeof(answer));
	}
}

/* Reads one file of the process with this handle. */
static void read_one(int handle, enum reader_question question, struct str *reply)
{
	char bytes[PROC_ARGUMENTS_CAP];
	struct proc_rollup rollup = { 0 };
	struct proc_io io = { 0 };
	if (question == READER_ROLLUP) {
		int rc = proc_read_rollup(handle, 0, &rollup);
		answer_result(reply, rc ? errno : 0, &rollup, sizeof(rollup));
	} else if (question == READER_IO) {
		int rc = proc_read_io(handle, 0, &io);
		answer_result(reply, rc ? errno : 0, &io, sizeof(io));
	} else {
		ssize_t n = proc_read_arguments(handle, 0, bytes, sizeof(bytes));
		answer_result(reply, n < 0 ? errno : 0, bytes, n < 0 ? 0 : (size_t)n);
	}
}

static void answer_one(
	struct served *s, const struct reader_request *request, struct str *reply)
{
	int proc = owners_proc(s->owners);
	uint32_t pid = request->targets[0].pid;
	uint64_t start_ticks = request->targets[0].start_ticks;
	owners_mark_process(s->owners, pid);
	int handle = proc_open_process(proc, pid);
	if (handle < 0 || proc_start_ticks(handle, 0) != start_ticks)
		answer_result(reply, ESRCH, NULL, 0);
	else
		read_one(handle, request->question, reply);
	if (handle >= 0)
		close(handle);
}

static void serve(void *context, const struct str *bytes, struct str *reply)
{
	struct served *s = context;
	struct reader_request request;
	if (!s->owners || bytes->len != sizeof(request))
		return;
	memcpy(&request, bytes->data, sizeof(request));
	if (request.n > READER_BATCH)
		return;
	if (request.question == READER_DESCRIBE) {
		describe(s, &request, reply);
	} else if (request.question == READER_ASK_AGAIN) {
		owners_ask_again(s->owners);
		answer_result(reply, 0, NULL, 0);
	} else {
		answer_one(s, &request, reply);
	}
}

int reader_start_helper(struct helper **h, const char *root, struct err *e)
{
	/* The process gets a copy of this. */
	struct served s = { .root = root };
	const struct helper_work work = {
		.name = READER_NAME, .serve = serve, .begin = begin, .context = &s
	};
	return helper_new(h, &work, e);
}
