/* Steps of gua enforce as rows of a table. */
#include "report/policy_log.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/size.h"
#include "base/str.h"
#include "base/timetext.h"
#include "model/session.h"
#include "base/names.h"
#include "report/report_parts.h"

#define OF(member) offsetof(struct policy_log_line, member)
static const struct column log_columns[] = {
	{ .key = "at", .title = "time", VALUE(MOMENT, get_known, OF(at_ms)) },
	{ .key = "step", TEXT(get_string, OF(step)) },
	{ .title = "step", TEXT(get_chars, OF(what)) },
	{ .key = "stage", TEXT(get_string, OF(stage)) },
	{ .key = "mode", TEXT(get_string, OF(mode)) },
	{ .key = "rule", TEXT(get_string, OF(rule)) },
	{ .key = "user", .title = "user", TEXT(get_string, OF(user)) },
	{ .key = "uid", VALUE(COUNT, get_known, OF(uid)) },
	{ .key = "session", TEXT(get_string, OF(session)) },
	{ .title = "session", .width = -24, TEXT(get_chars, OF(shown)) },
	{ .title = "gpu", TEXT(get_string, OF(gpus)) },
	{ .key = "kind", TEXT(get_string, OF(kind)) },
	{ .key = "pids", TEXT(get_string, OF(pids)) },
	{ .key = "cards", TEXT(get_string, OF(cards)) },
	{ .key = "held_bytes", VALUE(KIB, get_known, OF(held_kib)) },
	{ .key = "idle_since", VALUE(MOMENT, get_known, OF(idle_since_ms)) },
	{ .key = "idle_seconds", VALUE(LENGTH, get_double, OF(idle_ms)) },
	{ .key = "given_back_gpu_seconds", VALUE(GPU_MS, get_double, OF(given_ms)) },
	{ .key = "evidence", TEXT(get_string, OF(evidence)) },
	{ .key = "result", TEXT(get_string, OF(result)) },
	{ .key = "config", TEXT(get_string, OF(config)) },
	{ .key = "actor", TEXT(get_string, OF(actor)) },
	{ .key = "command", TEXT(get_string, OF(command)) },
	{ .key = "gpus", TEXT(get_string, OF(gpus)) },
	{ .title = "what", .flexible = true, .wraps = true, TEXT(get_chars, OF(said)) },
};
#undef OF

static double known(int64_t ms)
{
	return ms < 0 ? NAN : (double)ms;
}

/* What a step says to people, after the command of the session. */
static void say(char *dst, size_t cap, const struct policy_action *a)
{
	struct str out = { 0 };
	bool notice = a->step == STEP_WARN || a->step == STEP_END;
	char held[SIZE_TEXT_CAP], idle[48];
	size_text(held, (double)a->held_bytes);
	duration_text(idle, sizeof(idle), a->idle_ms);
	if (*a->command)
		str_addf(&out, "%s: ", a->command);
	if (notice && a->idle_ms >= 0)
		str_addf(&out, "%s%sidle for %s", a->held_bytes < 0 ? "" : held,
			a->held_bytes < 0 ? "" : " held, ", idle);
	else if (*a->result)
		str_addf(&out, "%s%s%s%s", a->result, *a->evidence ? " (" : "", a->evidence,
			*a->evidence ? ")" : "");
	else
		str_add(&out, a->evidence);
	if (notice && *a->rule)
		str_addf(&out, "; rule %s", a->rule);
	if (*a->actor && strcmp(a->actor, "gua-enforce") != 0)
		str_addf(&out, "; by %s", a->actor);
	text_copy(dst, cap, str_text(&out));
	str_finish(&out);
}

static int add_action(void *context, const struct policy_action *a)
{
	struct policy_log_line line = { .step = a->step_name,
		.stage = a->stage_name,
		.mode = a->would ? "observe" : "enforce",
		.rule = a->rule,
		.session = a->session,
		.kind = a->kind,
		.user = a->user,
		.pids = a->pids,
		.cards = a->cards,
		.evidence = a->evidence,
		.result = a->result,
		.config = a->config,
		.actor = a->actor,
		.command = a->command,
		.gpus = a->gpus,
		.at_ms = a->at_ms,
		.uid = a->uid,
		.held_kib = a->held_bytes < 0 ? -1 : a->held_bytes / 1024,
		.idle_since_ms = a->idle_since_ms,
		.idle_ms = known(a->idle_ms),
		.given_ms = known(a->given_back_ms) };
	bool step = a->step == STEP_WARN || a->step == STEP_END;
	snprintf(line.what, sizeof(line.what), "%s%s", a->would && step ? "would " : "",
		a->step == STEP_WARN ? a->stage_name : a->step_name);
	session_shown(line.shown, sizeof(line.shown), a->session, false);
	say(line.said, sizeof(line.said), a);
	table_add(context, &line);
	return 0;
}

int policy_log_window(struct policy_span *span, const struct window_words *words,
	int64_t now_ms, bool utc, struct err *e)
{
	struct window window = { .until_ms = now_ms + 1 };
	struct window_words asked = *words;
	if (!asked.since && !asked.last)
		asked.last = "30d";
	int rc = window_parse(&window, &asked, now_ms, utc, e);
	*span = (struct policy_span){ window.since_ms, window.until_ms };
	return rc;
}

struct table policy_log_table(void)
{
	return (struct table)TABLE_OF(log_columns);
}

int policy_log_add(
	struct table *t, struct policy_file *f, struct policy_span span, struct err *e)
{
	return policy_file_actions(f, span, add_action, t, e);
}

/* Whether the file exists and is not among those that were seen. One that cannot be looked at
 * is new: to open it says why. */
static int is_new(struct names *seen, const char *path, bool *new, struct err *e)
{
	char key[PATH_MAX];
	struct stat st;
	*new = false;
	text_copy(key, sizeof(key), path);
	if (stat(path, &st) == 0)
		snprintf(key, sizeof(key), "%llx %llx", (unsigned long long)st.st_dev,
			(unsigned long long)st.st_ino);
	else if (errno == ENOENT)
		return 0;
	*new = !names_has(seen, 0, key);
	return names_find(seen, 0, key, e) == IDMAP_NONE ? ERR_WORLD : 0;
}

int policy_log_each(
	const struct policy_logs *l, const char *const *paths, size_t n, struct err *e)
{
	struct names seen = { 0 };
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		char path[PATH_MAX];
		bool new = false;
		policy_file_path(path, sizeof(path), paths[i]);
		rc = is_new(&seen, path, &new, e);
		if (rc == 0 && new)
			rc = l->take(l->context, paths[i], path, e);
	}
	if (rc == 0 && seen.n == 0)
		rc = err_set(e, ERR_NOTHING,
			"gua enforce has not run here: there is no policy.db beside the store");
	names_finish(&seen);
	return rc;
}
