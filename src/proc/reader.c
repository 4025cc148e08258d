/* Runs the process that reads what may block for ever, sends it questions, and leaves it behind
 * when it is stuck. */
#include "proc/reader.h"

#include "base/helper.h"
#include "proc/proc.h"
#include "proc/user.h"
#include "proc/wary.h"

/* Processes that one request may ask for. It is small because the answers of a request are lost
 * when a later process of the same request blocks, and because the largest answer stays in the
 * memory of both processes. */
enum { READER_BATCH = 8 };

enum reader_question {
	READER_DESCRIBE,  /* struct reader_answer for each target */
	READER_ARGUMENTS, /* 0 or an errno (int32_t), then the bytes of cmdline */
	READER_ROLLUP,	  /* the same, then a struct proc_rollup */
	READER_MAPPINGS,  /* the same, then rows of struct mapping */
	READER_IO,	  /* the same, then a struct proc_io */
	READER_ASK_AGAIN, /* expires all names of users: 0 */
};

/* A request is one of these. All questions except READER_DESCRIBE have one target, and are
 * answered only for the life with this start time. */
struct reader_request {
	uint32_t question; /* an enum reader_question */
	uint32_t n;
	struct {
		uint64_t start_ticks;
		uint32_t pid;
		uint32_t brief; /* do not read files that may block */
	} targets[READER_BATCH];
};

struct reader_answer {
	struct process_id id;
	uint32_t there; /* 0: there is no such process */
	uint32_t late;	/* the name of its user may become known later */
};

/* The reader's process, and those that were left behind. Zero-initialise, except for `root`. */
struct reader_process {
	const char *root;
	unsigned manner;       /* of enum owners_manner */
	struct owners *owners; /* in the process itself; NULL: cannot be opened */
	struct helper *helper; /* NULL: not started, or it ended */
	struct {
		int pidfd;
		pid_t pid;
	} left[READER_STUCK_MAX]; /* they are stuck */
	size_t n_left;
	int64_t restart_us; /* monotonic: no process is started before this */
	unsigned n_failed;  /* how many have failed since the last answer */
	char why[128];	    /* why the last one failed */
};

static void begin(void *context, struct helper_place *place)
{
	struct reader_process *p = context;
	if (owners_open(&p->owners, p->root, p->manner, NULL) == 0)
		owners_say_where(p->owners, place->text);
}

static void answer_file(struct str *reply, int32_t why, const void *bytes, size_t len)
{
	str_add_bytes(reply, (const char *)&why, sizeof(why));
	if (!why)
		str_add_bytes(reply, bytes, len);
}

/* Reads one file of the process with this handle. */
static void read_one(int handle, enum reader_question question, struct str *reply)
{
	union {
		char arguments[PROC_ARGUMENTS_CAP];
		struct proc_rollup rollup;
		struct mappings mapped; /* its rows come first */
		struct proc_io io;
	} file;
	ssize_t n;
	if (question == READER_ROLLUP)
		n = proc_read_rollup(handle, 0, &file.rollup) ? -1
							      : (ssize_t)sizeof(file.rollup);
	else if (question == READER_MAPPINGS)
		n = mappings_read(handle, 0, &file.mapped)
			    ? -1
			    : (ssize_t)(file.mapped.n * sizeof(file.mapped.rows[0]));
	else if (question == READER_IO)
		n = proc_read_io(handle, 0, &file.io) ? -1 : (ssize_t)sizeof(file.io);
	else
		n = proc_read_arguments(handle, 0, file.arguments, sizeof(file.arguments));
	answer_file(reply, n < 0 ? errno : 0, &file, n < 0 ? 0 : (size_t)n);
}

static void answer_one(
	struct owners *owners, const struct reader_request *request, struct str *reply)
{
	uint32_t pid = request->targets[0].pid;
	uint64_t start_ticks = request->targets[0].start_ticks;
	owners_mark_process(owners, pid);
	int handle = proc_open_process(owners_proc(owners), pid);
	if (handle < 0 || proc_start_ticks(handle, 0) != start_ticks)
		answer_file(reply, ESRCH, NULL, 0);
	else
		read_one(handle, request->question, reply);
	file_close(handle);
}

static void serve(void *context, const struct str *bytes, struct str *reply)
{
	struct owners *owners = ((struct reader_process *)context)->owners;
	struct reader_request request;
	if (!owners || bytes->len != sizeof(request))
		return;
	memcpy(&request, bytes->data, sizeof(request));
	if (request.n > READER_BATCH)
		return;
	if (request.question == READER_DESCRIBE) {
		for (uint32_t i = 0; i < request.n; i++) {
			struct reader_answer answer = { .id = { .started_ms = -1, .uid = -1 } };
			answer.there = owners_describe(owners, request.targets[i].pid,
				request.targets[i].brief, &answer.id);
			answer.late = owners_is_late(owners, &answer.id);
			str_add_bytes(reply, (const char *)&answer, sizeof(answer));
		}
	} else if (request.question == READER_ASK_AGAIN) {
		owners_ask_again(owners);
		answer_file(reply, 0, NULL, 0);
	} else {
		answer_one(owners, &request, reply);
	}
}

/* How long the process may stay at one place. Files of a process take microseconds, or a few
 * tenths of a second on a host that swaps. */
#define PROCESS_MS 500
#define NAME_MS (USER_DEADLINE_MS + 500) /* the lookup has a deadline of its own */
#define START_MS 10000
/* How long a request may wait for processes in all: each may be just fast enough, and there may
 * be dozens. */
#define WAIT_MS 1000
/* How long a request may take in all, waiting for a processor included. */
#define REQUEST_MS 20000
/* How often to check the place. */
#define LOOK_MS 50
/* After a failure, the next process is started after a second; after each further failure in a
 * row the delay doubles, up to 64 seconds. */
#define RESTART_DOUBLINGS 6

/* Notes the failure: for some time no process is started. */
static void has_failed(struct reader_process *p, const char *why)
{
	int64_t wait_s = p->n_failed < RESTART_DOUBLINGS ? INT64_C(1) << p->n_failed
							 : INT64_C(1) << RESTART_DOUBLINGS;
	p->n_failed++;
	p->restart_us = clock_monotonic_us() + wait_s * 1000000;
	str_copy(p->why, sizeof(p->why), why);
	log_warning("%s; starting another one in %lld s", why, (long long)wait_s);
}

/* Whether the reader's process runs; starts one if that is possible now. */
static bool reader_process_is_there(struct reader_process *p)
{
	struct err e = { 0 };
	/* The process gets a copy of the context. */
	const struct helper_work work = {
		.name = READER_NAME, .serve = serve, .begin = begin, .context = p
	};
	if (p->helper)
		return true;
	for (size_t i = 0; i < p->n_left;)
		if (helper_is_gone(p->left[i].pidfd))
			p->left[i] = p->left[--p->n_left];
		else
			i++;
	if (p->n_left == READER_STUCK_MAX || clock_monotonic_us() < p->restart_us)
		return false;
	if (helper_new(&p->helper, &work, &e) == 0)
		return true;
	p->helper = NULL;
	has_failed(p, e.text);
	return false;
}

/* Ends the process, or leaves it behind when it cannot be ended. */
static void end_helper(struct reader_process *p)
{
	pid_t pid = helper_pid(p->helper);
	int pidfd = helper_free(p->helper, 0);
	p->helper = NULL;
	if (pidfd < 0)
		return;
	p->left[p->n_left].pidfd = pidfd;
	p->left[p->n_left++].pid = pid;
}

/* Ends the process, because its reply makes no sense. */
static void reader_process_refuse(struct reader_process *p)
{
	end_helper(p);
	has_failed(p, "the process " READER_NAME " sent an invalid answer");
}

/* Whether the process waits for a processor, not for a file: then the host is slow. */
static bool is_runnable(pid_t pid)
{
	int proc = -1;
	struct proc_stat stat = { 0 };
	if (pid <= 0 || proc_open(&proc, "", NULL) != 0)
		return false;
	bool runnable = proc_read_stat(proc, (uint32_t)pid, &stat) == 0 && stat.state == 'R';
	close(proc);
	return runnable;
}

/* What is known about a slow request. */
struct slow {
	char place[HELPER_PLACE_CAP]; /* where the process was last seen */
	int64_t here_ms;    /* how long it has waited there, and not for a processor */
	int64_t waited_ms;  /* the same for all processes that it has read */
	int64_t longest_ms; /* the longest of here_ms */
	uint32_t slowest;   /* the process that it waited for longest, or 0 */
};

/* Returns the pid that is being read at this place, or 0. */
static uint32_t pid_at(const char *place)
{
	uint32_t pid = 0;
	return sscanf(place, "pid %u", &pid) == 1 ? pid : 0;
}

static int64_t limit_ms(const char *place)
{
	if (pid_at(place))
		return PROCESS_MS;
	return strncmp(place, "uid ", 4) == 0 ? NAME_MS : START_MS;
}

/* Checks where the process is. True: it has waited for too long. Time in which it waited for a
 * processor does not count: on a loaded host that may be most of the time. */
static bool look(struct slow *s, const struct helper *h)
{
	char place[HELPER_PLACE_CAP];
	helper_where(h, place, sizeof(place));
	if (strcmp(place, s->place) != 0) {
		memcpy(s->place, place, sizeof(place));
		s->here_ms = 0;
	}
	if (is_runnable(helper_pid(h)))
		return false;
	s->here_ms += LOOK_MS;
	bool late = s->here_ms >= limit_ms(place);
	if (pid_at(place))
		s->waited_ms += LOOK_MS;
	if (pid_at(place) && (late || s->here_ms > s->longest_ms)) {
		s->longest_ms = s->here_ms;
		s->slowest = pid_at(place);
	}
	return late || s->waited_ms >= WAIT_MS;
}

/* Waits for the reply. A process whose place changes makes progress. */
static int wait_for_reply(
	struct helper *h, const struct str **reply, struct slow *s, struct err *e)
{
	int64_t end_us = clock_monotonic_us() + REQUEST_MS * INT64_C(1000);
	for (;;) {
		int rc = helper_receive(h, LOOK_MS, reply, e);
		if (rc != ERR_BUSY || look(s, h) || clock_monotonic_us() >= end_us)
			return rc;
	}
}

/* Returns the process that was being read, if the request asks for it; else 0. `before` is the
 * place at which the last request ended: a helper that is still there has not begun this
 * request. If the helper waited for several processes, the slowest is returned. */
static uint32_t find_blamed(const struct helper *h, const struct reader_request *request,
	const struct slow *s, const char *before)
{
	char place[HELPER_PLACE_CAP];
	helper_where(h, place, sizeof(place));
	uint32_t pid = s->slowest ? s->slowest : pid_at(place);
	if (strcmp(place, before) == 0)
		return 0;
	for (uint32_t i = 0; i < request->n; i++)
		if (request->targets[i].pid == pid && !request->targets[i].brief)
			return pid;
	return 0;
}

/* Sends the request and waits for the reply. ERR_WORLD: there is no process, or it ended;
 * ERR_BUSY: it is stuck. *blamed is then the process that it was reading, or 0. */
static int reader_process_ask(struct reader_process *p, const struct reader_request *request,
	const struct str **reply, uint32_t *blamed)
{
	struct err e = { 0 };
	struct slow slow = { 0 };
	char before[HELPER_PLACE_CAP];
	*blamed = 0;
	if (!reader_process_is_there(p))
		return ERR_WORLD;
	helper_where(p->helper, before, sizeof(before));
	int rc = helper_send(p->helper, request, sizeof(*request), &e);
	if (rc == 0)
		rc = wait_for_reply(p->helper, reply, &slow, &e);
	if (rc == 0)
		return 0;
	if (rc != ERR_BUSY)
		slow.slowest = 0; /* it died at its last place */
	*blamed = find_blamed(p->helper, request, &slow, before);
	end_helper(p);
	if (rc != ERR_BUSY)
		has_failed(p, e.text);
	return rc;
}

enum {
	NAMES = 256, /* names of users, kept for when there is no process to ask */
	TRIES = 2,   /* how many processes that block one call of reader_expect() accepts */
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
	bool brief;	  /* of the manner READER_BRIEF */
	int64_t again_us; /* brief descriptions are not repeated before this */
};

int reader_open(struct reader **out, const char *root, unsigned manner, struct err *e)
{
	struct reader *r = calloc(1, sizeof(*r));
	if (r)
		r->root = strdup(root);
	int rc = r && r->root ? owners_open(&r->direct, root, OWNERS_NAMELESS, e)
			      : err_memory(e);
	if (rc) {
		reader_close(r);
		return rc;
	}
	r->process.root = r->root;
	r->process.manner = manner & OWNERS_BY_UID;
	r->brief = manner & READER_BRIEF;
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
	if (r->process.helper)
		end_helper(&r->process);
	for (size_t i = 0; i < r->process.n_left; i++)
		close(r->process.left[i].pidfd);
	owners_close(r->direct);
	free(r->known);
	free(r->root);
	free(r);
}

void reader_start(struct reader *r)
{
	reader_process_is_there(&r->process);
}

struct owners *reader_owners(const struct reader *r)
{
	return r->direct;
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

/* Describes a process without the reader's process, from the files that do not block. */
static void describe_directly(struct reader *r, uint32_t pid, struct reader_answer *a)
{
	a->there = owners_describe(r->direct, pid, true, &a->id);
	const struct known_name *name =
		a->id.owner_uid >= 0 ? find_name(r, a->id.owner_uid) : NULL;
	if (name)
		memcpy(a->id.user, name->name, sizeof(a->id.user));
	a->late = a->id.owner_uid >= 0 && !name;
}

/* Notes that the reader's process was stuck, or died, while it read `pid`; 0: it was not
 * reading a process. */
static void blame(struct reader *r, uint32_t pid)
{
	struct reader_answer a = { 0 };
	if (pid)
		describe_directly(r, pid, &a);
	wary_add(&r->wary, a.there ? &a.id : NULL, clock_monotonic_us());
}

/* Whether the full description of a process may be read. Reads nothing if none has blocked. */
static bool allows(struct reader *r, uint32_t pid)
{
	struct process_id id;
	if (wary_is_calm(&r->wary))
		return true;
	owners_describe(r->direct, pid, true, &id);
	return wary_allows(&r->wary, &id, clock_monotonic_us());
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
		/* These bytes come from another process: texts must end. */
		a->id.user[sizeof(a->id.user) - 1] = '\0';
		for (size_t k = 0; k < PROCESS_TEXTS; k++) {
			const struct process_field *field = &process_fields[k];
			((char *)&a->id)[field->offset + field->cap - 1] = '\0';
		}
		if (a->id.owner_uid >= 0 && strncmp(a->id.user, "uid:", 4) != 0) {
			struct known_name *name = find_name(r, a->id.owner_uid);
			if (!name) {
				name = &r->names[r->next_name];
				r->next_name = (r->next_name + 1) % NAMES;
			}
			name->uid = a->id.owner_uid;
			memcpy(name->name, a->id.user, sizeof(name->name));
		}
		struct process_id *blocked = wary_find(&r->wary, a->id.pid, a->id.start_ticks);
		if (blocked)
			memcpy(blocked->user, a->id.user, sizeof(blocked->user));
		out[i].brief = a->late || (request->targets[i].brief && !blocked && !r->brief);
	}
	return true;
}

/* Asks for at most READER_BATCH processes; false: no answer. */
static bool ask_for(
	struct reader *r, const struct reader_request *request, int *tries, struct known *out)
{
	const struct str *reply = NULL;
	uint32_t blamed = 0;
	int rc = reader_process_ask(&r->process, request, &reply, &blamed);
	if (rc == 0 && take_answers(r, request, reply, out)) {
		r->process.n_failed = 0;
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
	for (bool more = true; more;) {
		struct reader_request request = { .question = READER_DESCRIBE,
			.n = (uint32_t)n };
		more = *tries > 0;
		for (size_t i = 0; i < n; i++) {
			request.targets[i].pid = pids[i];
			request.targets[i].brief = !more || r->brief || !allows(r, pids[i]);
		}
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
	int64_t now_us = clock_monotonic_us();
	for (size_t i = 0; i < n; i++)
		if (out[i].brief)
			r->again_us = now_us + AGAIN_US;
}

static int by_pid(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

void reader_expect(struct reader *r, uint32_t *pids, size_t n)
{
	size_t kept = 0;
	r->n_known = 0;
	if (n == 0) { /* as usual: the answers of the first look are large */
		free(r->known);
		r->known = NULL;
		r->cap_known = 0;
		return;
	}
	qsort(pids, n, sizeof(*pids), by_pid);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || pids[i] != pids[kept - 1])
			pids[kept++] = pids[i];
	if (!array_reserve(&r->known, &r->cap_known, kept))
		return;
	memset(r->known, 0, kept * sizeof(*r->known));
	describe_all(r, pids, kept, r->known);
	r->n_known = kept;
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
	int64_t now_us = clock_monotonic_us();
	return now_us >= r->again_us && wary_allows(&r->wary, id, now_us) &&
	       reader_process_is_there(&r->process);
}

/* Asks for a file of a process. Returns how many bytes are in `dst`, or -1 with errno. */
static ssize_t ask_file(struct reader *r, enum reader_question question,
	const struct process_id *id, void *dst, size_t cap)
{
	struct reader_request request = { .question = question, .n = 1 };
	const struct str *reply = NULL;
	uint32_t blamed = 0;
	int32_t why = EBUSY;
	int64_t now_us = clock_monotonic_us();
	request.targets[0].pid = id->pid;
	request.targets[0].start_ticks = id->start_ticks;
	if (now_us < r->wary.calm_us || wary_find(&r->wary, id->pid, id->start_ticks)) {
		errno = EBUSY;
		return -1;
	}
	int rc = reader_process_ask(&r->process, &request, &reply, &blamed);
	if (blamed || rc == ERR_BUSY)
		blame(r, blamed);
	if (rc == 0 && reply->len < sizeof(why)) {
		reader_process_refuse(&r->process);
	} else if (rc == 0) {
		r->process.n_failed = 0;
		memcpy(&why, reply->data, sizeof(why));
	}
	if (why || reply->len - sizeof(why) > cap) {
		errno = why ? why : ENODATA;
		return -1;
	}
	memcpy(dst, reply->data + sizeof(why), reply->len - sizeof(why));
	return (ssize_t)(reply->len - sizeof(why));
}

ssize_t reader_arguments(struct reader *r, const struct process_id *id, char *dst, size_t cap)
{
	ssize_t n = ask_file(r, READER_ARGUMENTS, id, dst, cap - 1);
	dst[n < 0 ? 0 : n] = '\0';
	return n;
}

int reader_rollup(struct reader *r, const struct process_id *id, struct proc_rollup *rollup)
{
	return ask_file(r, READER_ROLLUP, id, rollup, sizeof(*rollup)) < 0 ? -1 : 0;
}

int reader_mappings(struct reader *r, const struct process_id *id, struct mappings *found)
{
	ssize_t n = ask_file(r, READER_MAPPINGS, id, found->rows, sizeof(found->rows));
	found->n = n < 0 ? 0 : (size_t)n / sizeof(found->rows[0]);
	return n < 0 ? -1 : 0;
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

bool reader_trouble(struct reader *r, char *dst, size_t cap)
{
	const struct process_id *first = NULL;
	size_t n = 0;
	for (size_t i = 0; i < WARY_PROCESSES; i++) {
		struct process_id *id = &r->wary.processes[i];
		if (id->pid && owners_start_ticks(r->direct, id->pid) != id->start_ticks)
			id->pid = 0;
		if (id->pid && !first)
			first = id;
		n += id->pid != 0;
	}
	if (!first) {
		/* The reader's processes keep failing, and no new one has been started yet. */
		if (r->process.n_failed < 2 || reader_process_is_there(&r->process))
			return false;
		snprintf(dst, cap, "processes are described by their names only: %s",
			r->process.why);
		return true;
	}
	/* The command of a brief description is the name in brackets. */
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

/* A different text is a different fault. */
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
