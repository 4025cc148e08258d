/* Caches user names, and looks them up in threads. */
#include "proc/user.h"

#include <pthread.h>
#include <pwd.h>
#include <signal.h>

#include "base/piece.h"
#include "model/process.h"

enum {
	MAX_USERS = 256, /* cached; a new one replaces the one that expires first */
	MAX_OVERDUE = 8, /* lookups that may hang at the same time; more are not started */
	NAME_CAP = 256,	 /* of a raw name: LOGIN_NAME_MAX */
	BUFFER_START = 16 * 1024,
	BUFFER_MAX = 1024 * 1024,
};

/* One lookup in the user database. The table and its thread own it together. Either may finish
 * first: the thread when the answer is quick, the table when it is closed while a directory
 * server hangs. The last one frees it. */
struct lookup {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	int owners; /* 2 or 1; under the lock, like the next three */
	bool done;
	bool found;
	char name[NAME_CAP];
	user_find *find; /* set before the thread starts */
	void *context;
	uint32_t uid;
};

struct user_entry {
	bool used;
	uint32_t uid;
	int64_t expires_us;	/* when to ask again */
	char name[USER_CAP];	/* escaped; "": the user has no name */
	struct lookup *pending; /* overdue, or NULL */
};

/* Within each such window, all lookups together are waited for no longer than the deadline. */
#define WINDOW_US INT64_C(10000000)

struct user_names {
	user_find *find;
	void *context;
	int deadline_ms;
	int64_t window_us; /* when the current window began */
	int64_t waited_us; /* how long lookups have been waited for in it */
	char *passwd;	   /* bytes of a passwd file, or NULL: ask `find` */
	size_t passwd_len;
	int overdue; /* entries with a pending lookup */
	struct user_entry entries[MAX_USERS];
};

bool user_find_system(void *context, uint32_t uid, char *name, size_t cap)
{
	(void)context;
	bool found = false;
	for (size_t size = BUFFER_START; size <= BUFFER_MAX; size *= 4) {
		char *buffer = malloc(size);
		struct passwd entry, *result = NULL;
		int rc = buffer ? getpwuid_r(uid, &entry, buffer, size, &result) : ENOMEM;
		if (rc == 0 && result && *result->pw_name) {
			str_copy(name, cap, result->pw_name);
			found = true;
		}
		free(buffer);
		if (rc != ERANGE)
			break;
	}
	return found;
}

static void lookup_release(struct lookup *l)
{
	pthread_mutex_lock(&l->lock);
	bool last = --l->owners == 0;
	pthread_mutex_unlock(&l->lock);
	if (!last)
		return;
	pthread_cond_destroy(&l->answered);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void *lookup_thread(void *argument)
{
	struct lookup *l = argument;
	char name[NAME_CAP] = "";
	bool found = l->find(l->context, l->uid, name, sizeof(name));
	pthread_mutex_lock(&l->lock);
	l->done = true;
	l->found = found;
	memcpy(l->name, name, sizeof(name));
	pthread_cond_signal(&l->answered);
	pthread_mutex_unlock(&l->lock);
	lookup_release(l);
	return NULL;
}

static struct lookup *lookup_start(struct user_names *u, uint32_t uid)
{
	struct lookup *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&l->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&l->lock, NULL);
	l->owners = 2;
	l->find = u->find;
	l->context = u->context;
	l->uid = uid;
	/* Starts a detached thread that blocks all signals: the main thread handles them. */
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&thread, &attributes, lookup_thread, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (rc == 0)
		return l;
	l->owners = 1;
	lookup_release(l);
	return NULL;
}

/* Waits at most `ms` for the answer; true when it has arrived. */
static bool lookup_wait(struct lookup *l, int ms)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (ms % 1000) * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	pthread_mutex_lock(&l->lock);
	for (int rc = 0; !l->done && rc == 0;)
		rc = pthread_cond_timedwait(&l->answered, &l->lock, &until);
	bool done = l->done;
	pthread_mutex_unlock(&l->lock);
	return done;
}

static void set_answer(struct user_entry *entry, bool found, const char *name, int64_t now_us)
{
	/* A user that once had a name keeps it: accounts are removed, but their hours stay. */
	if (found)
		str_escape(entry->name, sizeof(entry->name), name, strlen(name));
	entry->expires_us = now_us + (found ? USER_KEEP_US : USER_KEEP_MISSING_US);
}

/* Takes the answer of a lookup that is done. */
static void take_answer(struct user_entry *entry, struct lookup *l, int64_t now_us)
{
	pthread_mutex_lock(&l->lock);
	set_answer(entry, l->found, l->name, now_us);
	pthread_mutex_unlock(&l->lock);
	lookup_release(l);
}

static void forget(struct user_names *u, struct user_entry *entry)
{
	if (entry->pending) {
		lookup_release(entry->pending);
		u->overdue--;
	}
	*entry = (struct user_entry){ 0 };
}

/* Returns the uid's entry, or a new one that is already expired. */
static struct user_entry *find_entry(struct user_names *u, uint32_t uid, int64_t now_us)
{
	struct user_entry *free_one = &u->entries[0];
	for (size_t i = 0; i < MAX_USERS; i++) {
		struct user_entry *entry = &u->entries[i];
		if (entry->used && entry->uid == uid)
			return entry;
		if (free_one->used &&
			(!entry->used || entry->expires_us < free_one->expires_us))
			free_one = entry;
	}
	forget(u, free_one);
	*free_one = (struct user_entry){ .used = true, .uid = uid, .expires_us = now_us };
	return free_one;
}

/* Waits for the answer, if no other lookup is overdue and the window has time left: a directory
 * server that hangs, or that takes a second for each user, costs one deadline in all. */
static bool wait_within_window(struct user_names *u, struct lookup *l, int64_t now_us)
{
	if (now_us < u->window_us || now_us - u->window_us >= WINDOW_US) {
		u->window_us = now_us;
		u->waited_us = 0;
	}
	int64_t left_ms = u->deadline_ms - u->waited_us / 1000;
	int64_t begun_us = clock_monotonic_us();
	bool done = lookup_wait(l, u->overdue || left_ms < 0 ? 0 : (int)left_ms);
	u->waited_us += clock_monotonic_us() - begun_us;
	return done;
}

/* Asks in a thread. */
static void ask(struct user_names *u, struct user_entry *entry, int64_t now_us)
{
	struct lookup *l = u->overdue < MAX_OVERDUE ? lookup_start(u, entry->uid) : NULL;
	if (!l)
		return; /* the entry stays expired and is asked for again next time */
	if (wait_within_window(u, l, now_us)) {
		take_answer(entry, l, now_us);
		return;
	}
	entry->pending = l;
	u->overdue++;
}

static void refresh(struct user_names *u, struct user_entry *entry, int64_t now_us)
{
	if (entry->pending && lookup_wait(entry->pending, 0)) {
		take_answer(entry, entry->pending, now_us);
		entry->pending = NULL;
		u->overdue--;
	}
	if (entry->pending || now_us < entry->expires_us)
		return;
	if (!u->passwd) {
		ask(u, entry, now_us);
		return;
	}
	char name[NAME_CAP];
	bool found =
		user_find_in_passwd(u->passwd, u->passwd_len, entry->uid, name, sizeof(name));
	set_answer(entry, found, name, now_us);
}

bool user_names_get(struct user_names *u, uint32_t uid, int64_t now_us, char *dst, size_t cap)
{
	struct user_entry *entry = find_entry(u, uid, now_us);
	refresh(u, entry, now_us);
	if (entry->name[0])
		str_copy(dst, cap, entry->name);
	else
		snprintf(dst, cap, "uid:%u", uid);
	return entry->name[0] != '\0';
}

bool user_names_are_late(const struct user_names *u)
{
	return u->overdue > 0;
}

void user_names_expire(struct user_names *u)
{
	for (size_t i = 0; i < MAX_USERS; i++)
		u->entries[i].expires_us = INT64_MIN;
}

int user_names_new(
	struct user_names **u, user_find *find, void *context, int deadline_ms, struct err *e)
{
	*u = calloc(1, sizeof(**u));
	if (!*u)
		return err_memory(e);
	(*u)->find = find;
	(*u)->context = context;
	(*u)->deadline_ms = deadline_ms;
	return 0;
}

int user_names_new_file(struct user_names **u, char *bytes, size_t len, struct err *e)
{
	int rc = user_names_new(u, NULL, NULL, 0, e);
	if (rc)
		return rc;
	(*u)->passwd = bytes;
	(*u)->passwd_len = len;
	return 0;
}

void user_names_free(struct user_names *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < MAX_USERS; i++)
		forget(u, &u->entries[i]);
	free(u->passwd);
	free(u);
}

/* "NAME:PASSWORD:UID:GID:..."; a line that starts with + or - is for NIS, not a user. */
static bool line_is_user(struct piece line, uint32_t uid, struct piece *name)
{
	char digits[16];
	*name = piece_cut(&line, ':');
	piece_cut(&line, ':');
	struct piece number = piece_cut(&line, ':');
	snprintf(digits, sizeof(digits), "%u", uid);
	return name->len && !memchr("+-#", *name->at, 3) && line.at &&
	       piece_is_like(number, digits);
}

bool user_find_in_passwd(const char *bytes, size_t len, uint32_t uid, char *name, size_t cap)
{
	for (struct piece rest = { bytes, len }; rest.len;) {
		struct piece found, line = piece_cut(&rest, '\n');
		if (line_is_user(line, uid, &found)) {
			size_t keep = found.len < cap ? found.len : cap - 1;
			memcpy(name, found.at, keep);
			name[keep] = '\0';
			return true;
		}
	}
	return false;
}
