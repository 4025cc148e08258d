/* gua enforce explain: what happens to the session of a process, and why. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/enforce.h"
#include "policy/explain.h"
#include "policy/user_talk.h"

static int parse_pid(const char *text, uint32_t *pid, struct err *e)
{
	char *end = NULL;
	unsigned long long number = text ? strtoull(text, &end, 10) : 0;
	if (!text)
		return err_set(e, ERR_USAGE, "explain needs a pid");
	if (!number || *end || number > INT32_MAX || *text == '-')
		return err_set(e, ERR_USAGE, "'%s' is not a pid", text);
	*pid = (uint32_t)number;
	return 0;
}

/* Without the right to read the store: the service explains what is one's own. */
static int ask_service(const struct enforce *x, uint32_t pid)
{
	const struct user_request r = {
		.ask = USER_ASK_EXPLAIN, .pid = pid, .json = x->o->json, .utc = x->o->utc
	};
	char path[PATH_MAX];
	struct err e = { 0 };
	struct str out = { 0 };
	struct user_answer answer = { 0 };
	int rc = enforce_socket(path, &x->conf.values.policy, x->o->db, &e);
	if (rc == 0)
		rc = user_talk_ask(path, &r, &answer, &e);
	if (rc == 0)
		str_add(&out, str_text(&answer.text));
	user_talk_finish_answer(&answer);
	return rc ? cmd_fail(x->self, &e) : cmd_print(x->self, &out);
}

int enforce_explain(struct enforce *x)
{
	struct err e = { 0 };
	struct str out = { 0 };
	struct facts_now now = { .db = x->db,
		.root = x->o->root ? x->o->root : "",
		.now_ms = x->now_ms,
		.policy = &x->policy };
	struct explain_question q = { .now = &now,
		.policy = x->policy,
		.settings = &x->conf.settings,
		.db = x->db,
		.now_ms = x->now_ms,
		.json = x->o->json,
		.utc = x->o->utc };
	int rc = parse_pid(x->operand, &q.pid, &e);
	if (rc)
		return cmd_fail(x->self, &e);
	if (access(x->db, R_OK) != 0 && errno == EACCES)
		return ask_service(x, q.pid);
	rc = facts_now_read(&now, &e);
	policy_file_open(&q.file, x->policy_db, false, NULL);
	if (rc == 0)
		rc = explain(&q, &out, &e);
	policy_file_close(q.file);
	facts_now_finish(&now);
	return rc ? cmd_fail(x->self, &e) : cmd_print(x->self, &out);
}
