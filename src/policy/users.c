/* Answers users about their own sessions. */
#include "policy/users.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "policy/explain.h"
#include "policy/keep_limits.h"

struct users {
	struct enforcer *enforcer;
	const struct settings *settings;
	struct user_socket *socket;
	char path[PATH_MAX];
	int64_t now_ms;
	/* The sessions, read for one request and reused for the next ones. */
	struct sessions_now present;
	bool read;
	int64_t until_us; /* until then it counts as fresh */
};

/* Reading the store for users takes at most 1/PART of the time, however many requests come. */
enum { PART = 20 };

static void forget_present(struct users *u)
{
	if (u->read)
		sessions_now_finish(&u->present);
	u->read = false;
}

static int read_present(struct users *u, struct err *e)
{
	int64_t begin_us = clock_monotonic_us();
	if (u->read && begin_us < u->until_us)
		return 0;
	forget_present(u);
	u->present = (struct sessions_now){ .db = u->enforcer->db,
		.root = u->enforcer->root,
		.now_ms = u->now_ms,
		.policy = &u->enforcer->policy };
	u->read = true;
	int rc = sessions_now_read(&u->present, e);
	int64_t now_us = clock_monotonic_us();
	u->until_us = now_us + (now_us - begin_us) * PART;
	if (rc)
		forget_present(u);
	return rc;
}

struct listing {
	struct user_answer *answer;
	uint32_t uid;
};

static int take_keep(void *context, const struct policy_keep *k)
{
	struct listing *l = context;
	if (k->uid == l->uid)
		user_talk_add_kept(l->answer, k->pid, k->until_ms, k->reason);
	return 0;
}

static int answer_keep(struct users *u, const struct user_request *r, uint32_t uid,
	struct user_answer *answer, struct err *e)
{
	struct keep_answer what;
	int rc = read_present(u, e);
	const struct keep_limits limits = { u->enforcer, &u->present, u->now_ms };
	if (rc == 0)
		rc = keep_limits_apply(&limits, r, uid, &what, e);
	if (rc)
		return rc;
	str_copy(answer->why, sizeof(answer->why), what.why);
	answer->ok = what.done;
	if (what.done && r->ask == USER_ASK_KEEP)
		user_talk_add_kept(answer, r->pid, what.until_ms, r->reason);
	return 0;
}

static int answer_explain(struct users *u, const struct user_request *r, uint32_t uid,
	struct user_answer *answer, struct err *e)
{
	int rc = read_present(u, e);
	struct explain_question q = { .now = &u->present,
		.policy = u->enforcer->policy,
		.settings = u->settings,
		.db = u->enforcer->db,
		.file = u->enforcer->file,
		.now_ms = u->present.now_ms,
		.pid = r->pid,
		.json = r->json,
		.utc = r->utc };
	if (rc == 0)
		rc = explain_to(&q, uid, &answer->text, e);
	answer->ok = rc == 0;
	return rc;
}

static int answer_to(struct users *u, const struct user_request *r, uint32_t uid,
	struct user_answer *answer, struct err *e)
{
	struct listing listing = { answer, uid };
	const struct policy_span now = { u->now_ms, u->now_ms + 1 };
	if (!u->enforcer->file)
		return err_set(e, ERR_WORLD, "gua enforce cannot use its file now");
	if (r->ask == USER_ASK_EXPLAIN)
		return answer_explain(u, r, uid, answer, e);
	if (r->ask != USER_ASK_LIST)
		return answer_keep(u, r, uid, answer, e);
	answer->ok = true;
	return policy_file_keeps(u->enforcer->file, now, take_keep, &listing, e);
}

static void fill_answer(
	void *context, const struct user_request *r, uint32_t uid, struct user_answer *answer)
{
	struct err e = { 0 };
	if (answer_to(context, r, uid, answer, &e) == 0)
		return;
	answer->ok = false;
	str_copy(answer->why, sizeof(answer->why), e.text);
}

int users_open(struct users **out, struct enforcer *enforcer, const struct settings *settings,
	struct err *e)
{
	struct users *u = calloc(1, sizeof(*u));
	if (!u)
		return err_memory(e);
	u->enforcer = enforcer;
	u->settings = settings;
	user_talk_path(
		u->path, sizeof(u->path), enforcer->policy.config->policy.socket, enforcer->db);
	int rc = user_socket_open(&u->socket, u->path, e);
	if (rc)
		free(u);
	else
		*out = u;
	return rc;
}

void users_close(struct users *u)
{
	if (!u)
		return;
	user_socket_close(u->socket);
	forget_present(u);
	free(u);
}

void users_step(struct users *u, int64_t now_ms)
{
	if (!u)
		return;
	u->now_ms = now_ms;
	user_socket_step(u->socket, fill_answer, u);
}

size_t users_fds(const struct users *u, struct pollfd *fds)
{
	return u ? user_socket_fds(u->socket, fds) : 0;
}

int64_t users_wait_ms(const struct users *u)
{
	return u ? user_socket_wait_ms(u->socket) : -1;
}
