/* gua status: shows whether the recorder is running, and its problems. */
#include "cmd/share/choose_db.h"
#include "cmd/cmd.h"
#include "store/recorder_status.h"
#include "render/documents.h"
#include "driver/source.h"

struct values {
	const char *db;
	bool json;
};

#define AT(member) .offset = offsetof(struct values, member)
static const struct option_row options[] = {
	{ OPTION_TEXT, 0, "db", "PATH", "the store (default: see FILES in man gua)", AT(db) },
	{ OPTION_FLAG, 0, "json", .help = "print JSON", AT(json) },
	{ 0 },
};

static void add_age(struct str *out, const char *label, int64_t at_ms, int64_t now_ms)
{
	if (at_ms < 0)
		return;
	str_addf(out, "%-11s%s (%s ago)\n", label, moment_text(at_ms, false).text,
		duration_text(now_ms > at_ms ? now_ms - at_ms : 0).text);
}

static void add_store(struct str *out, const struct recorder_status *s)
{
	char safe[PATH_MAX];
	str_escape(safe, sizeof(safe), s->db, strlen(s->db));
	if (s->unreadable.code) {
		str_addf(out, "%-11s%s\n", "store", s->unreadable.text);
		return;
	}
	str_addf(
		out, "%-11s%s, %s", "store", safe, size_text((double)s->store.file_bytes).text);
	if (s->store.wal_bytes)
		str_addf(out, " + %s not checkpointed",
			size_text((double)s->store.wal_bytes).text);
	str_add(out, "\n");
	if (source_is_captured(s->store.source))
		str_addf(out,
			"%-11scaptured: the data was played from a capture of another host\n",
			"source");
	else if (source_is_invented(s->store.source))
		str_addf(out, "%-11ssimulated: the data is invented\n", "source");
}

static void print_text(struct str *out, const struct recorder_status *s)
{
	const struct published_fault *f;
	pid_t pid = s->recorder.pid;
	const char *how = recorder_status_end(s);
	if (pid == RECORDER_ELSEWHERE)
		str_addf(out, "%-11srunning, outside of this container\n", "recorder");
	else if (pid)
		str_addf(out, "%-11srunning (pid %d)\n", "recorder", (int)pid);
	else
		str_addf(out, "%-11snot running%s%s\n", "recorder", *how ? "; " : "", how);
	add_age(out, pid ? "since" : "started", s->started_ms, s->now_ms);
	add_age(out, "last tick", s->tick_ms, s->now_ms);
	if (s->store.any_run) {
		int64_t all = 0;
		const char *separator = ": ";
		for (size_t i = 0; i < CARD_STATUS_COUNT; i++)
			all += s->store.cards[i];
		str_addf(out, "%-11s%lld", "cards", (long long)all);
		for (size_t i = 0; i < CARD_STATUS_COUNT; i++) {
			if (!s->store.cards[i])
				continue;
			str_addf(out, "%s%lld %s", separator, (long long)s->store.cards[i],
				card_status_names[i]);
			separator = ", ";
		}
		str_add(out, s->recorder.unread ? " when last read\n" : "\n");
	}
	add_store(out, s);
	if (pid && !recorder_status_fault(s, 0))
		str_addf(out, "%-11snone\n", "faults");
	for (size_t i = 0; (f = recorder_status_fault(s, i)); i++) {
		int64_t age_ms = s->now_ms > f->since_ms ? s->now_ms - f->since_ms : 0;
		str_addf(
			out, "%-11sfor %s: %s\n", "fault", duration_text(age_ms).text, f->text);
	}
}

static int run(const struct call *call, struct err *e)
{
	const struct values *v = call->values;
	struct chosen_db chosen = { 0 };
	struct recorder_status s;
	struct str out = { 0 };
	if (!v->db && choose_db_to_read(&chosen, e))
		return e->code;
	if (*chosen.note)
		log_notice("%s", chosen.note);
	int64_t now_ms = 0;
	cmd_now(NULL, &now_ms, e);
	int rc = recorder_status_read(&s, v->db ? v->db : chosen.path, now_ms, e);
	if (rc && !v->json)
		return rc;
	if (v->json)
		documents_status(&out, &s);
	else
		print_text(&out, &s);
	int status = cmd_print(call->self, &out);
	return rc ? rc : status ? status : !s.recorder.pid;
}

const struct command cmd_status = {
	.name = "status",
	.summary = "show whether the recorder is running, and its problems",
	.usage = "[--db PATH] [--json]",
	.details = "The exit status is 0 if a recorder is running, 1 if none is.",
	.options = options,
	.values_size = sizeof(struct values),
	.run = run,
};
