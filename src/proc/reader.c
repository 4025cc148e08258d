/* Decides what a reader's process may be asked, and keeps its answers. */
#include "proc/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/str.h"
#include "proc/proc.h"
#include "proc/owner.h"
#include "proc/reader_private.h"
#include "proc/wary.h"

enum {
	NAMES = 256, /* remembered for when there is no process to ask */
	TRIES = 2,   /* how many processes may block one call of reader_expect() */
};
/* How often brief descriptions are repeated. */
#define AGAIN_US 5000000

/* A description, and what is known about it. */
struct known {
	struct reader_answer answer;
	bool brief; /* as of reader_describe() */
	bool used;  /* was returned */
};

struct known_name {
	int64_t uid;
	char name[USER_CAP];
};

struct reader {
	char *root;
	struct owners *direct; /* for what does not block; has no names */
	struct reader_process process;
	struct wary wary;
	struct known *known; /* of reader_expect(), by pid */
	size_t n_known, cap_known;
	struct known_name names[NAMES];
	size_t next_name;
	bool brief;	  /* see reader_be_brief() */
	int64_t again_us; /* brief descriptions are not repeated before this */
};

int reader_open(struct reader **out, const char *root, struct err *e)
{
	struct reader *r = calloc(1, sizeof(*r));
	if (r)
		r->root = strdup(root);
	int rc = r && r->root ? owners_open_nameless(&r->direct, root, e) : err_memory(e);
	if (rc) {
		reader_close(r);
		return rc;
	}
	r->process.root = r->root;
	for (size_t i = 0; i < NAMES; i++)
		r->names[i].uid = -1;
	*out = r;
	return 0;
}

void reader_dismiss(struct reader *r)
{
	if (r && r->process.helper)
		helper_dismiss(r->process.helper);
}

void reader_close(struct reader *r)
{
	if (!r)
		return;
	reader_process_end(&r->process);
	owners_close(r->direct);
	free(r->known);
	free(r->root);
	free(r);
}

void reader_start(struct reader *r)
{
	reader_process_is_there(&r->process);
}

void reader_be_brief(struct reader *r)
{
	r->brief = true;
}

uint64_t reader_start_ticks(struct reader *r, uint32_t pid)
{
	return owners_start_ticks(r->direct, pid);
}

int reader_proc(const struct reader *r)
{
	return owners_proc(r->direct);
}

const char *reader_boot_id(struct reader *r)
{
	return owners_boot_id(r->direct);
}

bool reader_owns(const struct reader *r, pid_t pid)
{
	for (size_t i = 0; i < r->process.n_left; i++)
		if (r->process.left[i].pid == pid)
			return true;
	return r->process.helper && helper_pid(r->process.helper) == pid;
}

double reader_cpu_s(const struct reader *r)
{
	clockid_t clock;
	struct timespec used;
	const struct helper *h = r->process.helper;
	if (!h || clock_getcpuclockid(helper_pid(h), &clock) != 0 ||
		clock_gettime(clock, &used) != 0)
		return 0;
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static struct known_name *find_name(struct reader *r, int64_t uid)
{
	for (size_t i = 0; i < NAMES; i++)
		if (r->names[i].uid == uid)
			return &r->names[i];
	return NULL;
}

static void remember_name(struct reader *r, const struct reader_answer *a)
{
	if (a->id.owner_uid < 0 || strncmp(a->id.user, "uid:", 4) == 0)
		return;
	struct known_name *name = find_name(r, a->id.owner_uid);
	if (!name) {
		name = &r->names[r->next_name];
		r->next_name = (r->next_name + 1) % NAMES;
	}
	name->uid = a->id.owner_uid;
	memcpy(name->name, a->id.user, sizeof(name->name));
}

/* Describes a process by what does not block, without the reader's process. */
static void describe_directly(struct reader *r, uint32_t pid, struct reader_answer *a)
{
	a->there = owners_describe_brief(r->direct, pid, &a->id);
	const struct known_name *name =
		a->id.owner_uid >= 0 ? find_name(r, a->id.owner_uid) : NULL;
	if (name)
		memcpy(a->id.user, name->name, sizeof(a->id.user));
	a->late = a->id.owner_uid >= 0 && !name;
}

/* The reader's process was stuck, or died, while it read `pid`; 0: it was not reading one. */
static void blame(struct reader *r, uint32_t pid)
{
	struct reader_answer a = { 0 };
	if (pid)
		describe_directly(r, pid, &a);
	wary_add(&r->wary, a.there ? &a.id : NULL, reader_now_us());
}

/* Whether the whole description of a process may be read. As long as nothing has blocked, this
 * reads nothing. */
static bool allows(struct reader *r, uint32_t pid)
{
	struct process_id id;
	if (wary_is_calm(&r->wary))
		return true;
	owners_describe_brief(r->direct, pid, &id);
	return wary_allows(&r->wary, &id, reader_now_us());
}

/* Bytes from another process: a text may have no end. */
static void end_texts(struct process_id *id)
{
	id->user[sizeof(id->user) - 1] = '\0';
	for (size_t i = 0; i < PROCESS_TEXTS; i++) {
		const struct process_field *field = &process_fields[i];
		((char *)id)[field->offset + field->cap - 1] = '\0';
	}
}

static bool take_answers(struct reader *r, const struct reader_request *request,
	const struct str *reply, struct known *out)
{
	if (reply->len != request->n * sizeof(struct reader_answer))
		return false;
	for (uint32_t i = 0; i < request->n; i++) {
		struct reader_answer *a = &out[i].answer;
		memcpy(a, reply->data + i * sizeof(*a), sizeof(*a));
		a->id.pid = request->targets[i].pid;
		end_texts(&a->id);
		remember_name(r, a);
		struct process_id *blocked = wary_find(&r->wary, a->id.pid, a->id.start_ticks);
		if (blocked)
			memcpy(blocked->user, a->id.user, sizeof(blocked->user));
		out[i].brief = a->late || (request->targets[i].brief && !blocked && !r->brief);
	}
	return true;
}

static void make_request(struct reader *r, struct reader_request *request, const uint32_t *pids,
	size_t n, bool brief)
{
	*request = (struct reader_request){ .question = READER_DESCRIBE, .n = (uint32_t)n };
	for (size_t i = 0; i < n; i++) {
		request->targets[i].pid = pids[i];
		request->targets[i].brief = brief || r->brief || !allows(r, pids[i]);
	}
}

/* Asks for at most READER_BATCH processes; false: no answer. */
static bool ask_for(
	struct reader *r, const struct reader_request *request, int *tries, struct known *out)
{
	const struct str *reply = NULL;
	uint32_t blamed = 0;
	int rc = reader_process_ask(&r->process, request, &reply, &blamed);
	if (rc == 0 && take_answers(r, request, reply, out)) {
		reader_process_works(&r->process);
		return true;
	}
	if (rc == 0)
		reader_process_refuse(&r->process);
	if (blamed || rc == ERR_BUSY)
		blame(r, blamed);
	*tries -= 1;
	return false;
}

/* Describes at most READER_BATCH processes. *tries is how many more of them may block. */
static void describe_some(
	struct reader *r, const uint32_t *pids, size_t n, int *tries, struct known *out)
{
	struct reader_request request;
	for (bool more = true; more;) {
		more = *tries > 0;
		make_request(r, &request, pids, n, !more);
		if (ask_for(r, &request, tries, out))
			return;
	}
	for (size_t i = 0; i < n; i++) {
		struct reader_answer *a = &out[i].answer;
		describe_directly(r, pids[i], a);
		out[i].brief =
			r->brief ? a->late : !wary_find(&r->wary, pids[i], a->id.start_ticks);
	}
}

static void describe_all(struct reader *r, const uint32_t *pids, size_t n, struct known *out)
{
	int tries = TRIES;
	for (size_t at = 0; at < n; at += READER_BATCH)
		describe_some(r, pids + at, n - at < READER_BATCH ? n - at : READER_BATCH,
			&tries, out + at);
	int64_t now_us = reader_now_us();
	for (size_t i = 0; i < n; i++)
		if (out[i].brief)
			r->again_us = now_us + AGAIN_US;
}

static int by_pid(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static size_t sort_pids(uint32_t *pids, size_t n)
{
	size_t kept = 0;
	qsort(pids, n, sizeof(*pids), by_pid);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || pids[i] != pids[kept - 1])
			pids[kept++] = pids[i];
	return kept;
}

void reader_expect(struct reader *r, uint32_t *pids, size_t n)
{
	r->n_known = 0;
	if (n == 0)
		return;
	n = sort_pids(pids, n);
	if (!array_reserve(&r->known, &r->cap_known, n))
		return;
	memset(r->known, 0, n * sizeof(*r->known));
	describe_all(r, pids, n, r->known);
	r->n_known = n;
}

static int compare_known(const void *key, const void *item)
{
	const struct known *known = item;
	return by_pid(key, &known->answer.id.pid);
}

static struct known *find_known(const struct reader *r, uint32_t pid)
{
	struct known *found = r->n_known ? bsearch(&pid, r->known, r->n_known,
						   sizeof(*r->known), compare_known)
					 : NULL;
	return found && !found->used ? found : NULL;
}

bool reader_knows(const struct reader *r, uint32_t pid)
{
	return find_known(r, pid) != NULL;
}

bool reader_describe(struct reader *r, uint32_t pid, struct process_id *id, bool *brief)
{
	struct known one = { 0 }, *known = find_known(r, pid);
	if (!known) {
		known = &one;
		describe_all(r, &pid, 1, known);
	}
	known->used = true;
	*id = known->answer.id;
	*brief = known->brief;
	return known->answer.there;
}

bool reader_can_improve(struct reader *r, const struct process_id *id)
{
	int64_t now_us = reader_now_us();
	return now_us >= r->again_us && wary_allows(&r->wary, id, now_us) &&
	       reader_process_is_there(&r->process);
}

/* Asks for one file of one process. Returns how many bytes were written to `dst`, or -1 with
 * errno. */
static ssize_t ask_file(struct reader *r, enum reader_question question,
	const struct process_id *id, void *dst, size_t cap)
{
	struct reader_request request = { .question = question, .n = 1 };
	const struct str *reply = NULL;
	uint32_t blamed = 0;
	struct reader_result result = { .why = EBUSY };
	int64_t now_us = reader_now_us();
	request.targets[0].pid = id->pid;
	request.targets[0].start_ticks = id->start_ticks;
	if (now_us < r->wary.calm_us || wary_find(&r->wary, id->pid, id->start_ticks)) {
		errno = EBUSY;
		return -1;
	}
	int rc = reader_process_ask(&r->process, &request, &reply, &blamed);
	if (blamed || rc == ERR_BUSY)
		blame(r, blamed);
	if (rc == 0 && reply->len < sizeof(result)) {
		reader_process_refuse(&r->process);
	} else if (rc == 0) {
		reader_process_works(&r->process);
		memcpy(&result, reply->data, sizeof(result));
	}
	if (result.why || reply->len != sizeof(result) + result.len || result.len > cap) {
		errno = result.why ? result.why : ENODATA;
		return -1;
	}
	memcpy(dst, reply->data + sizeof(result), result.len);
	return (ssize_t)result.len;
}

/* Ends a text that was read. */
static ssize_t ask_text(struct reader *r, enum reader_question question,
	const struct process_id *id, char *dst, size_t cap)
{
	ssize_t n = ask_file(r, question, id, dst, cap - 1);
	dst[n < 0 ? 0 : n] = '\0';
	return n;
}

ssize_t reader_arguments(struct reader *r, const struct process_id *id, char *dst, size_t cap)
{
	return ask_text(r, READER_ARGUMENTS, id, dst, cap);
}

int reader_rollup(struct reader *r, const struct process_id *id, struct proc_rollup *rollup)
{
	return ask_file(r, READER_ROLLUP, id, rollup, sizeof(*rollup)) < 0 ? -1 : 0;
}

int reader_io(struct reader *r, const struct process_id *id, struct proc_io *io)
{
	return ask_file(r, READER_IO, id, io, sizeof(*io)) < 0 ? -1 : 0;
}

void reader_ask_again(struct reader *r)
{
	const struct reader_request request = { .question = READER_ASK_AGAIN };
	const struct str *reply = NULL;
	uint32_t blamed = 0;
	if (r->process.helper)
		reader_process_ask(&r->process, &request, &reply, &blamed);
}

/* Whether its processes fail, and there is no other one yet. */
static bool has_no_process(struct reader *r, char *dst, size_t cap)
{
	if (r->process.n_failed < 2 || reader_process_is_there(&r->process))
		return false;
	snprintf(dst, cap, "processes are described by their names only: %s", r->process.why);
	return true;
}

bool reader_trouble(struct reader *r, char *dst, size_t cap)
{
	const struct process_id *first = NULL;
	size_t n = 0;
	for (size_t i = 0; i < WARY_PROCESSES; i++) {
		struct process_id *id = &r->wary.processes[i];
		if (id->pid && reader_start_ticks(r, id->pid) != id->start_ticks)
			id->pid = 0;
		if (id->pid && !first)
			first = id;
		n += id->pid != 0;
	}
	if (!first)
		return has_no_process(r, dst, cap);
	/* The command is the name in brackets. */
	int name = (int)strcspn(first->command + 1, "]");
	int len = snprintf(dst, cap,
		"process %u (%.*s, user %s) cannot be read: its memory is locked; described by "
		"its name only",
		first->pid, name, first->command + 1, first->user);
	if (n > 1 && len > 0 && (size_t)len < cap)
		snprintf(dst + len, cap - (size_t)len, ", like %zu other%s", n - 1,
			n > 2 ? "s" : "");
	return true;
}

/* Another text is another fault. */
void reader_check(struct reader *r, struct fault *f, int64_t now_ms)
{
	char text[sizeof(f->text)];
	if (!reader_trouble(r, text, sizeof(text))) {
		fault_clear(f, now_ms);
		return;
	}
	if (strcmp(text, f->text) != 0)
		f->on = false;
	fault_raise(f, now_ms, "%s", text);
}
