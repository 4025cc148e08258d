/* gua status: shows whether the recorder is running, and its problems. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/size.h"
#include "base/timetext.h"
#include "cmd/choose_db.h"
#include "cmd/cmd.h"
#include "query/status.h"
#include "render/json.h"
#include "source/kind.h"
#include "store/statusfile.h"

/* A tick that is late by this much, and by one interval, is a fault. */
#define LATE_MS 10000

struct values {
	const char *db;
	bool json;
};

static const struct option_row options[] = {
	{ OPTION_TEXT, 0, "db", "PATH", "the store (default: see FILES in man gua)",
		.offset = offsetof(struct values, db) },
	{ OPTION_FLAG, 0, "json", .help = "print JSON",
		.offset = offsetof(struct values, json) },
	{ 0 },
};

/* What is known: from the recorder's status file, and from the store. */
struct state {
	const char *db;
	int64_t now_ms;
	struct published recorder;
	struct store_status store;
	struct err unreadable;	       /* why the store could not be read; code 0: it was */
	int64_t started_ms, tick_ms;   /* of the recorder, or of the last run; -1: none */
	struct published_fault own[2]; /* found here, not by the recorder */
	size_t n_own;
};

static void add_own_fault(struct state *s, int64_t since_ms, const char *text)
{
	struct published_fault *f = &s->own[s->n_own++];
	f->since_ms = since_ms;
	snprintf(f->text, sizeof(f->text), "%s", text);
}

/* What a recorder cannot say: that it hangs or is stopped, or cannot write its status file. */
static void find_own_faults(struct state *s)
{
	char text[120], due[40];
	const struct published *r = &s->recorder;
	int64_t age_ms = s->now_ms - s->tick_ms;
	if (!r->pid)
		return;
	if (!r->told)
		add_own_fault(
			s, s->now_ms, "the recorder cannot write its status file; see its log");
	if (r->n_faults || s->tick_ms < 0 || !s->store.any_run ||
		age_ms <= 2 * s->store.interval_ms + LATE_MS)
		return;
	duration_text(due, sizeof(due), s->store.interval_ms);
	snprintf(text, sizeof(text), "no tick was stored; one is due every %s", due);
	add_own_fault(s, s->tick_ms, text);
}

/* Fails when there is neither a recorder nor a store that can be read. */
static int gather(struct state *s, struct err *e)
{
	struct published *r = &s->recorder;
	int rc = published_read(r, s->db, &s->unreadable);
	if (rc == 0)
		rc = status_read(&s->store, s->db, &s->unreadable);
	if (rc && !r->pid) {
		*e = s->unreadable;
		return rc;
	}
	s->started_ms = s->store.any_run ? s->store.started_ms : -1;
	s->tick_ms = s->store.any_run ? s->store.last_tick_ms : -1;
	if (r->pid && r->told) {
		s->started_ms = status_bound(r->started_ms, STATUS_LAST_MS);
		s->tick_ms =
			r->tick_ms < 0 ? s->tick_ms : status_bound(r->tick_ms, STATUS_LAST_MS);
	}
	for (size_t i = 0; i < r->n_faults; i++)
		r->faults[i].since_ms = status_bound(r->faults[i].since_ms, STATUS_LAST_MS);
	find_own_faults(s);
	return 0;
}

static const struct published_fault *fault_at(const struct state *s, size_t i)
{
	size_t published = s->recorder.pid ? s->recorder.n_faults : 0;
	if (i < s->n_own)
		return &s->own[i];
	return i - s->n_own < published ? &s->recorder.faults[i - s->n_own] : NULL;
}

/* How the last run ended; "": it did not, or there was none. */
static const char *how_ended(const struct state *s)
{
	if (s->recorder.pid || !s->store.any_run)
		return "";
	/* The next recorder will store this. */
	return s->store.ended_ms < 0 ? "killed" : s->store.how_ended;
}

static void add_age(struct str *out, const char *label, int64_t at_ms, int64_t now_ms)
{
	char when[40], age[40];
	if (at_ms < 0)
		return;
	moment_text(when, sizeof(when), at_ms, false);
	duration_text(age, sizeof(age), now_ms > at_ms ? now_ms - at_ms : 0);
	str_addf(out, "%-11s%s (%s ago)\n", label, when, age);
}

static void add_recorder(struct str *out, const struct state *s)
{
	pid_t pid = s->recorder.pid;
	const char *how = how_ended(s);
	if (pid == RECORDER_ELSEWHERE)
		str_addf(out, "%-11srunning, outside of this container\n", "recorder");
	else if (pid)
		str_addf(out, "%-11srunning (pid %d)\n", "recorder", (int)pid);
	else
		str_addf(out, "%-11snot running%s%s\n", "recorder", *how ? "; " : "", how);
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

static void add_store(struct str *out, const struct state *s)
{
	char safe[PATH_MAX], size[SIZE_TEXT_CAP];
	text_escape(safe, sizeof(safe), s->db, strlen(s->db));
	if (s->unreadable.code) {
		str_addf(out, "%-11s%s\n", "store", s->unreadable.text);
		return;
	}
	size_text(size, (double)s->store.file_bytes);
	str_addf(out, "%-11s%s, %s", "store", safe, size);
	size_text(size, (double)s->store.wal_bytes);
	if (s->store.wal_bytes)
		str_addf(out, " + %s not checkpointed", size);
	str_add(out, "\n");
	if (source_is_invented(s->store.source))
		str_addf(out, "%-11ssimulated: the data is invented\n", "source");
}

static void add_faults(struct str *out, const struct state *s)
{
	const struct published_fault *f;
	if (s->recorder.pid && !fault_at(s, 0))
		str_addf(out, "%-11snone\n", "faults");
	for (size_t i = 0; (f = fault_at(s, i)); i++) {
		char age[40];
		duration_text(age, sizeof(age),
			s->now_ms > f->since_ms ? s->now_ms - f->since_ms : 0);
		str_addf(out, "%-11sfor %s: %s\n", "fault", age, f->text);
	}
}

static void print_text(struct str *out, const struct state *s)
{
	add_recorder(out, s);
	add_age(out, s->recorder.pid ? "since" : "started", s->started_ms, s->now_ms);
	add_age(out, "last tick", s->tick_ms, s->now_ms);
	if (s->store.any_run)
		add_cards(out, &s->store);
	add_store(out, s);
	add_faults(out, s);
}

static void add_label(struct json *j, const char *key, const char *text)
{
	json_text(j, key, *text ? text : NULL);
}

static void json_recorder(struct json *j, const struct state *s)
{
	const struct published *r = &s->recorder;
	json_bool(j, "running", r->pid != 0);
	json_number(j, "pid", r->pid > 0 ? (double)r->pid : NAN, 0);
	add_label(j, "version", r->pid && r->told ? r->version : s->store.version);
	add_label(j, "source", s->store.source);
	json_moment(j, "started", s->started_ms);
	json_moment(j, "last_tick", s->tick_ms);
	json_number(j, "interval_seconds",
		s->store.any_run ? (double)s->store.interval_ms / 1000 : NAN, 3);
	json_moment(j, "ended", r->pid || !s->store.any_run ? -1 : s->store.ended_ms);
	add_label(j, "how_ended", how_ended(s));
}

static void json_store(struct json *j, const struct state *s)
{
	bool read = s->unreadable.code == 0;
	char path[PATH_MAX];
	text_escape(path, sizeof(path), s->db, strlen(s->db));
	json_open(j, "store", '{');
	json_text(j, "path", path);
	json_number(j, "bytes", read ? (double)s->store.file_bytes : NAN, 0);
	json_number(j, "wal_bytes", read ? (double)s->store.wal_bytes : NAN, 0);
	add_label(j, "error", s->unreadable.text);
	json_close(j, '}');
	json_open(j, "cards", '{');
	for (size_t i = 0; i < CARD_STATUS_COUNT; i++)
		json_number(j, card_status_names[i], read ? (double)s->store.cards[i] : NAN, 0);
	json_close(j, '}');
}

static void print_json(struct str *out, const struct state *s)
{
	const struct published_fault *f;
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-status-1");
	add_label(&j, "host", s->store.hostname);
	json_moment(&j, "time", s->now_ms);
	json_recorder(&j, s);
	json_store(&j, s);
	json_open(&j, "faults", '[');
	for (size_t i = 0; (f = fault_at(s, i)); i++) {
		json_open(&j, NULL, '{');
		json_moment(&j, "since", f->since_ms);
		json_text(&j, "text", f->text);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

static int run(const struct command *self, int argc, char **argv)
{
	int status = 0;
	struct err e = { 0 };
	struct values v = { 0 };
	struct chosen_db chosen = { 0 };
	struct state s = { .started_ms = -1, .tick_ms = -1 };
	struct str out = { 0 };
	if (cmd_options_only(self, argc, argv, &v, &status))
		return status;
	if (!v.db && choose_db_to_read(&chosen, &e))
		return cmd_fail(self, &e);
	if (*chosen.note)
		log_notice("%s", chosen.note);
	struct clock clock;
	clock_init_real(&clock);
	s.db = v.db ? v.db : chosen.path;
	s.now_ms = clock_wall_ms(&clock);
	int rc = gather(&s, &e);
	if (rc && !v.json)
		return cmd_fail(self, &e);
	if (v.json)
		print_json(&out, &s);
	else
		print_text(&out, &s);
	status = cmd_print(self, &out);
	if (rc)
		return cmd_fail(self, &e);
	return status ? status : s.recorder.pid ? 0 : 1;
}

const struct command cmd_status = {
	.name = "status",
	.summary = "show whether the recorder is running, and its problems",
	.usage = "[--db PATH] [--json]",
	.details = "The exit status is 0 if a recorder is running, 1 if none is.",
	.options = options,
	.run = run,
};
