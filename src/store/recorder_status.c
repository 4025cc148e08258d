/* Finds out how a recorder is: from what it publishes and from what it has stored. */
#include "store/recorder_status.h"

#include <stdio.h>

#include "base/duration.h"

/* A tick that is late by this much, and by one interval, is a fault. */
#define LATE_MS 10000

static void add_own_fault(struct recorder_status *s, int64_t since_ms, const char *text)
{
	struct published_fault *f = &s->own[s->n_own++];
	f->since_ms = since_ms;
	snprintf(f->text, sizeof(f->text), "%s", text);
}

/* What a recorder cannot say: that it hangs or is stopped, or cannot write its status file. */
static void find_own_faults(struct recorder_status *s)
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

int recorder_status_read(
	struct recorder_status *s, const char *db, int64_t now_ms, struct err *e)
{
	struct published *r = &s->recorder;
	*s = (struct recorder_status){
		.db = db, .now_ms = now_ms, .started_ms = -1, .tick_ms = -1
	};
	int rc = statusfile_read(r, s->db, &s->unreadable);
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

const struct published_fault *recorder_status_fault(const struct recorder_status *s, size_t i)
{
	size_t published = s->recorder.pid ? s->recorder.n_faults : 0;
	if (i < s->n_own)
		return &s->own[i];
	return i - s->n_own < published ? &s->recorder.faults[i - s->n_own] : NULL;
}

const char *recorder_status_end(const struct recorder_status *s)
{
	if (s->recorder.pid || !s->store.any_run)
		return "";
	/* The next recorder will store this. */
	return s->store.ended_ms < 0 ? "killed" : s->store.how_ended;
}
