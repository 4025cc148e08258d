/* Lists of events and of what gua enforce did, and a recorder's status, as JSON. */
#include "render/documents.h"

#include "render/rows.h"

void documents_events(struct str *out, const struct event_list *l)
{
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-events-1");
	json_bool(&j, "simulated", l->simulated);
	rows_json_table(&j, "events", &l->table);
	json_close(&j, '}');
}

void documents_policy_log(struct str *out, const struct table *log)
{
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-enforce-log-1");
	rows_json_table(&j, "actions", log);
	json_close(&j, '}');
}

void documents_status(struct str *out, const struct recorder_status *s)
{
	const struct published_fault *f;
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-status-1");
	json_label(&j, "host", s->store.hostname);
	json_moment(&j, "time", s->now_ms);
	const struct published *r = &s->recorder;
	json_bool(&j, "running", r->pid != 0);
	json_number(&j, "pid", r->pid > 0 ? (double)r->pid : NAN, 0);
	json_label(&j, "version", r->pid && r->told ? r->version : s->store.version);
	json_label(&j, "source", s->store.source);
	json_moment(&j, "started", s->started_ms);
	json_moment(&j, "last_tick", s->tick_ms);
	json_number(&j, "interval_seconds",
		s->store.any_run ? (double)s->store.interval_ms / 1000 : NAN, 3);
	json_moment(&j, "ended", r->pid || !s->store.any_run ? -1 : s->store.ended_ms);
	json_label(&j, "how_ended", recorder_status_end(s));
	bool read = s->unreadable.code == 0, now = read && !r->unread;
	char path[PATH_MAX];
	str_escape(path, sizeof(path), s->db, strlen(s->db));
	json_open(&j, "store", '{');
	json_text(&j, "path", path);
	json_number(&j, "bytes", read ? (double)s->store.file_bytes : NAN, 0);
	json_number(&j, "wal_bytes", read ? (double)s->store.wal_bytes : NAN, 0);
	json_label(&j, "error", s->unreadable.text);
	json_close(&j, '}');
	json_open(&j, "cards", '{');
	for (size_t i = 0; i < CARD_STATUS_COUNT; i++)
		json_number(&j, card_status_names[i], now ? (double)s->store.cards[i] : NAN, 0);
	json_close(&j, '}');
	json_open(&j, "faults", '[');
	for (size_t i = 0; (f = recorder_status_fault(s, i)); i++) {
		json_open(&j, NULL, '{');
		json_moment(&j, "since", f->since_ms);
		json_text(&j, "text", f->text);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}
