/* Moves notices from the queue in policy.db to the courier, and results back. */
#include "policy/sender.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/log.h"
#include "store/policy/policy_digest.h"

#define MINUTE_MS INT64_C(60000)
#define LONGEST_MS (60 * MINUTE_MS)

int64_t sender_next_ms(int64_t tries, int64_t failed_ms)
{
	if (tries <= 0)
		return failed_ms;
	int64_t wait_ms = tries > 6 ? LONGEST_MS : MINUTE_MS << (tries - 1);
	return failed_ms + (wait_ms < LONGEST_MS ? wait_ms : LONGEST_MS);
}

enum sender_plan sender_decide(int64_t waiting, int64_t sent, int64_t per_day)
{
	int64_t left = per_day > sent ? per_day - sent : 0;
	if (left == 0 || waiting <= 0)
		return SENDER_WAIT;
	return waiting == 1 || waiting <= left / 2 ? SENDER_EACH : SENDER_DIGEST;
}

/* Moves the times in the text by the delay: the next stage is counted from the delivery, and
 * the text must not name times that have passed. */
static void move_times(struct notice *n, int64_t late_ms)
{
	if (late_ms <= 0)
		return;
	n->made_ms += late_ms;
	n->next_ms += n->next_ms >= 0 ? late_ms : 0;
	n->end_ms += n->end_ms >= 0 ? late_ms : 0;
}

/* Updates how long the session has been seen idle. */
static void renew_idle(const struct sender *s, const char *session, struct notice *n)
{
	struct policy_state state;
	if (policy_file_state(s->file, session, &state, NULL) == 0 &&
		state.idle_since_ms == n->idle_since_ms && state.clock_ms > n->idle_ms)
		n->idle_ms = state.clock_ms;
}

/* Reads the notice of a row and brings it up to date. */
static int read_row(const struct sender *s, const struct policy_notice *row, struct notice *n,
	struct err *e)
{
	int64_t now_ms = s->fixed_ms >= 0 ? s->fixed_ms : clock_wall_ms(s->clock);
	int rc = notice_from_json(n, row->body, strlen(row->body), e);
	if (rc == 0) {
		move_times(n, now_ms - row->queued_ms);
		renew_idle(s, row->session, n);
	}
	return rc;
}

struct digest {
	const struct sender *sender;
	struct notice *notice;
	const struct policy_notice *row; /* the one that is sent; NULL: not one of the parts */
	bool found;			 /* it is one of them */
};

static int add_part(void *context, const struct policy_notice *row)
{
	struct digest *d = context;
	struct notice part;
	struct err e = { 0 };
	/* After the result, earlier notices of the session are no longer true. */
	bool result =
		d->row && row->id != d->row->id && strcmp(row->session, d->row->session) == 0;
	d->found |= d->row && row->id == d->row->id;
	if (!result && read_row(d->sender, row, &part, &e) == 0)
		notice_add_part(d->notice, &part);
	return 0;
}

/* Writes a digest at the time of sending, from the notices that are still true. ERR_NOTHING:
 * none is. */
static int write_digest(const struct sender *s, const struct policy_notice *row,
	struct notice *n, struct err *e)
{
	struct digest d = { .sender = s, .notice = n };
	notice_init(n, NOTICE_DIGEST);
	str_copy(n->session, sizeof(n->session), row->session);
	n->made_ms = clock_wall_ms(s->clock);
	int rc = policy_digest_parts(s->file, row->id, add_part, &d, e);
	return rc ? rc : n->count < 1 ? err_set(e, ERR_NOTHING, "no longer needed") : 0;
}

/* A login shows one text, so it covers all sessions of the user that were warned or ended. */
static int write_login(const struct sender *s, const struct policy_notice *row,
	struct notice *n, struct err *e)
{
	struct notice all;
	struct digest d = { .sender = s, .notice = &all, .row = row };
	notice_init(&all, NOTICE_DIGEST);
	str_copy(all.session, sizeof(all.session), row->session);
	all.made_ms = clock_wall_ms(s->clock);
	int rc = policy_digest_current(s->file, row, add_part, &d, e);
	if (rc == 0)
		rc = read_row(s, row, n, e);
	if (rc == 0 && !d.found) /* an older one */
		notice_add_part(&all, n);
	if (rc == 0 && all.count > 1)
		*n = all;
	return rc;
}

/* Writes the text of a row as of now. */
static int write_notice(const struct sender *s, const struct policy_notice *row,
	struct notice *n, struct err *e)
{
	if (strcmp(row->stage, POLICY_DIGEST_STAGE) == 0)
		return write_digest(s, row, n, e);
	if (strcmp(row->channel, channel_names[CHANNEL_LOGIN]) == 0)
		return write_login(s, row, n, e);
	return read_row(s, row, n, e);
}

/* The channel was removed from the configuration: the notice moves to the other channels.
 * Otherwise it and all later ones would wait for ever. */
static int move(struct sender *s, const struct policy_notice *row, int64_t now_ms)
{
	const struct policy_delivery over = { row->id, now_ms, now_ms, "failed",
		"the channel is not configured any more" };
	int rc = 0;
	s->moved = true;
	for (int c = 0; c < CHANNELS && rc == 0; c++)
		if (channel_configured((enum channel)c, s->config))
			rc = policy_notice_copy(s->file, row->id, channel_names[c],
				channel_counts((enum channel)c), NULL);
	return rc ? rc : policy_notice_done(s->file, &over, NULL);
}

/* Sends one notice that is due; its texts are valid during the query. */
static int send_one(void *context, const struct policy_notice *row)
{
	struct sender *s = context;
	int64_t now_ms = clock_wall_ms(s->clock);
	struct notice n;
	struct err e = { 0 };
	int channel = 0;
	while (channel < CHANNELS && strcmp(channel_names[channel], row->channel) != 0)
		channel++;
	if (channel == CHANNELS || !channel_configured((enum channel)channel, s->config))
		return move(s, row, now_ms);
	struct policy_delivery done = { row->id, now_ms, now_ms, "failed", e.text };
	int rc = write_notice(s, row, &n, &e);
	if (rc)
		return policy_notice_done(s->file, &done, NULL);
	rc = courier_send(s->courier, row->id, (enum channel)channel, &n, &e);
	if (rc == 0) { /* not sent again while it is being delivered */
		done.state = "waiting";
		done.result = "";
		done.due_ms = now_ms + 2 * s->config->timeout_ms;
		rc = policy_notice_done(s->file, &done, &e);
	}
	return rc; /* busy: the rest waits */
}

/* Users with waiting notices. */
struct plan {
	struct policy_waiting *users;
	size_t n;
	struct arena texts;
};

static int take_user(void *context, const struct policy_waiting *w)
{
	struct plan *p = context;
	if (!array_one_more(&p->users, p->n))
		return ERR_WORLD;
	p->users[p->n] = *w;
	p->users[p->n++].user = arena_text(&p->texts, w->user);
	return p->texts.failed ? ERR_WORLD : 0;
}

static int admit(
	struct sender *s, const struct policy_waiting *w, int64_t now_ms, struct err *e)
{
	int64_t sent = 0;
	int rc = policy_digest_sent(s->file, w->user, now_ms, &sent, e);
	enum sender_plan plan = sender_decide(w->messages, sent, s->config->per_day);
	if (rc == 0 && plan == SENDER_EACH)
		rc = policy_digest_admit(s->file, w->user, e);
	else if (rc == 0 && plan == SENDER_DIGEST)
		rc = policy_digest_make(s->file, w->user, now_ms, NOTICE_PARTS_MOST, e);
	return rc;
}

/* Decides what may be sent within the daily limit. */
static int admit_all(struct sender *s, int64_t now_ms, struct err *e)
{
	struct plan p = { 0 };
	int rc = policy_digest_drop_stale(s->file, now_ms, e);
	if (rc == 0)
		rc = policy_digest_waiting(s->file, take_user, &p, e);
	for (size_t i = 0; i < p.n && rc == 0; i++)
		rc = admit(s, &p.users[i], now_ms, e);
	free(p.users);
	arena_finish(&p.texts);
	return rc;
}

void sender_send(struct sender *s)
{
	struct err e = { 0 };
	int64_t now_ms = clock_wall_ms(s->clock);
	int rc = 0;
	do {
		s->moved = false;
		rc = admit_all(s, now_ms, &e);
		if (rc == 0)
			rc = policy_notice_due(s->file, now_ms, send_one, s, &e);
	} while (rc == 0 && s->moved);
	if (rc && rc != ERR_BUSY && *e.text)
		log_warning("%s", e.text);
}

void sender_take_results(struct sender *s)
{
	struct courier_result r;
	struct err e = { 0 };
	while (courier_next(s->courier, &r)) {
		int64_t now_ms = clock_wall_ms(s->clock), tries = 0;
		bool delivered = r.delivery == DELIVERY_DONE;
		policy_notice_tries(s->file, r.ticket, &tries, &e);
		struct policy_delivery done = { r.ticket, now_ms, sender_next_ms(tries, now_ms),
			delivered ? "delivered" : "waiting", r.text };
		if (policy_notice_done(s->file, &done, &e) != 0)
			log_warning("%s", e.text);
		if (!delivered)
			log_notice("notice by %s: %s", channel_names[r.channel], r.text);
	}
}

/* Another session of the same user that was warned. */
struct others {
	const char *key, *user;
	char other[SESSION_KEY_CAP]; /* "": there is none */
};

static int take_other(
	void *context, const char *key, const char *user, const struct policy_state *state)
{
	struct others *o = context;
	if (state->stage != STAGE_NONE && strcmp(user, o->user) == 0 &&
		strcmp(key, o->key) != 0)
		str_copy(o->other, sizeof(o->other), key);
	return 0;
}

void sender_clear_login(const struct config_notices *config, struct policy_file *f,
	const char *key, const char *user)
{
	struct others others = { key, user, "" };
	struct err e = { 0 };
	if (!channel_configured(CHANNEL_LOGIN, config) ||
		policy_file_sessions(f, take_other, &others, &e) != 0)
		return;
	int rc = *others.other ? policy_digest_renew(
					 f, others.other, channel_names[CHANNEL_LOGIN], &e)
			       : channel_login_clear(config->login_directory, user, &e);
	if (rc)
		log_warning("%s", e.text);
}
