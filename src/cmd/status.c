/* gua status: shows whether the recorder is running, and its problems. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "base/timetext.h"
#include "cmd/cmd.h"
#include "query/status.h"
#include "source/kind.h"
#include "store/lock.h"

/* A tick that is late by this much, and by one interval, is a fault. */
#define LATE_MS 10000

struct values {
	const char *db;
};

static const struct option_row options[] = {
	{ OPTION_TEXT, 0, "db", "PATH", "the store (default: see FILES in man gua)",
		.offset = offsetof(struct values, db) },
	{ 0 },
};

static void add_age(struct str *out, const char *label, int64_t at_ms, int64_t now_ms)
{
	char when[40], age[40];
	moment_text(when, sizeof(when), at_ms, false);
	duration_text(age, sizeof(age), now_ms > at_ms ? now_ms - at_ms : 0);
	str_addf(out, "%-11s%s (%s ago)\n", label, when, age);
}

static void add_recorder(struct str *out, const struct store_status *s, pid_t pid)
{
	if (pid == LOCK_ELSEWHERE)
		str_addf(out, "%-11srunning, outside of this container\n", "recorder");
	else if (pid)
		str_addf(out, "%-11srunning (pid %d)\n", "recorder", (int)pid);
	else if (s->any_run && s->ended_ms < 0) /* the next recorder will store this */
		str_addf(out, "%-11snot running; killed\n", "recorder");
	else
		str_addf(out, "%-11snot running%s%s\n", "recorder", s->how_ended[0] ? "; " : "",
			s->how_ended);
}

static void add_cards(struct str *out, const struct store_status *s)
{
	int64_t all = 0;
	for (size_t i = 0; i < CARD_STATUS_COUNT; i++)
		all += s->cards[i];
	str_addf(out, "%-11s%lld", "cards", (long long)all);
	const char *separator = ": ";
	for (size_t i = 0; i < CARD_STATUS_COUNT; i++) {
		if (!s->cards[i])
			continue;
		str_addf(out, "%s%lld %s", separator, (long long)s->cards[i],
			card_status_names[i]);
		separator = ", ";
	}
	str_add(out, "\n");
}

/* Appends the faults: the lines "SINCE_MS TEXT" that the recorder published, and a late tick.
 * (A recorder that hangs or is stopped cannot publish anything.) */
static void add_faults(
	struct str *out, const struct store_status *s, char *published, int64_t now_ms)
{
	int64_t age_ms = now_ms - s->last_tick_ms;
	if (!*published && s->any_run && age_ms > 2 * s->interval_ms + LATE_MS) {
		char age[40], due[40];
		duration_text(age, sizeof(age), age_ms);
		duration_text(due, sizeof(due), s->interval_ms);
		str_addf(out, "%-11sfor %s: no tick was stored; one is due every %s\n", "fault",
			age, due);
	} else if (!*published) {
		str_addf(out, "%-11snone\n", "faults");
	}
	for (char *line = strtok(published, "\n"); line; line = strtok(NULL, "\n")) {
		char *text = NULL, age[40], safe[400];
		int64_t since_ms = strtoll(line, &text, 10);
		duration_text(age, sizeof(age), now_ms > since_ms ? now_ms - since_ms : 0);
		text_escape(safe, sizeof(safe), text, strlen(text));
		str_addf(out, "%-11sfor %s:%s\n", "fault", age, safe);
	}
}

static void add_store(struct str *out, const char *path, const struct store_status *s)
{
	char safe[PATH_MAX], size[SIZE_TEXT_CAP];
	text_escape(safe, sizeof(safe), path, strlen(path));
	size_text(size, (double)s->file_bytes);
	str_addf(out, "%-11s%s, %s", "store", safe, size);
	size_text(size, (double)s->wal_bytes);
	if (s->wal_bytes)
		str_addf(out, " + %s not checkpointed", size);
	str_add(out, "\n");
	if (source_is_invented(s->source))
		str_addf(out, "%-11ssimulated: the data is invented\n", "source");
}

static int run(const struct command *self, int argc, char **argv)
{
	int status = 0;
	struct err e = { 0 };
	struct values v = { 0 };
	char path[PATH_MAX], published[LOCK_TEXT_CAP];
	struct store_status s;
	pid_t pid = 0;
	if (cmd_options_only(self, argc, argv, &v, &status))
		return status;
	if (!v.db && cmd_readable_db(path, sizeof(path), &e))
		return cmd_fail(self, &e);
	const char *db = v.db ? v.db : path;
	if (lock_holder(db, &pid, published, &e) || status_read(&s, db, &e))
		return cmd_fail(self, &e);
	struct clock clock;
	clock_init_real(&clock);
	int64_t now_ms = clock_wall_ms(&clock);
	struct str out = { 0 };
	add_recorder(&out, &s, pid);
	if (s.any_run) {
		add_age(&out, pid ? "since" : "started", s.started_ms, now_ms);
		add_age(&out, "last tick", s.last_tick_ms, now_ms);
		add_cards(&out, &s);
	}
	add_store(&out, db, &s);
	if (pid)
		add_faults(&out, &s, published, now_ms);
	status = cmd_print(self, &out);
	return status ? status : pid ? 0 : 1;
}

const struct command cmd_status = {
	.name = "status",
	.summary = "show whether the recorder is running, and its problems",
	.usage = "[--db PATH]",
	.details = "The exit status is 0 if a recorder is running, 1 if none is.",
	.options = options,
	.run = run,
};
