/* Tells people about their sessions: writes notices into the queue of policy.db, and moves them
 * from there to the courier and the results back. */
#include "policy/tell.h"

#include "model/release.h"
#include "policy/channel.h"

#define MINUTE_MS INT64_C(60000)
/* The longest time between two tries of a delivery. */
#define LONGEST_MS (60 * MINUTE_MS)

static const struct idle_process *first_process(const struct enforcer_step *s)
{
	const struct idle_history *h = &s->now->history;
	for (size_t i = 0; s->session != SIZE_MAX && i < h->n_processes; i++)
		if (h->processes[i].session == s->session && h->processes[i].holds)
			return &h->processes[i];
	return NULL;
}

/* Writes the labels of the cards, and their model if all have the same; returns how many. */
static size_t describe_cards(struct notice *n, const struct enforcer_step *s, double *price)
{
	const struct idle_history *h = &s->now->history;
	struct str cards = { 0 };
	size_t count = 0;
	*price = 0;
	for (size_t i = 0; i < h->n_cards; i++) {
		if (!facts_has_card(&s->facts->cards, i))
			continue;
		str_addf(&cards, "%s%s", count ? ", " : "", card_label(&h->cards[i]).text);
		if (count++ == 0)
			str_copy(n->model, sizeof(n->model), h->cards[i].name);
		else if (strcmp(n->model, h->cards[i].name) != 0)
			n->model[0] = '\0';
		*price += config_price_of(&s->policy->config->prices, h->cards[i].name,
			h->cards[i].mig_index >= 0);
	}
	str_copy(n->cards, sizeof(n->cards), str_text(&cards));
	str_finish(&cards);
	return count;
}

/* The commands for a process or a lease. */
static void offer(struct notice *n, const char *what)
{
	snprintf(n->keep, sizeof(n->keep), "gua keep %s --for 4h --reason TEXT", what);
	snprintf(n->explain, sizeof(n->explain), "gua enforce explain %s", what);
}

static void describe_lease(struct notice *n, const struct idle_session *session)
{
	const char *job = session->texts[PROCESS_JOB];
	const char *task = session->texts[PROCESS_JOB_TASK];
	char name[LABEL_CAP];
	session_shown(n->lease, sizeof(n->lease), session->key, false);
	if (job)
		snprintf(n->lease, sizeof(n->lease), "job %s",
			strchr(task ? task : job, ':') + 1);
	n->idle_below = -1; /* any process on a card is use */
	if (job || session->texts[PROCESS_POD]) {
		release_command(n->release, 0, job, NULL, session->texts[PROCESS_POD]);
		session_shown(name, sizeof(name), session->key, false);
		offer(n, name + strcspn(name, " ") + 1); /* without "lease " */
	}
}

void tell_describe(struct notice *n, const struct enforcer_step *s, enum notice_kind kind)
{
	const struct idle_session *session = s->facts->session;
	const struct idle_process *process = first_process(s);
	double price = 0;
	char pid[16];
	notice_init(n, kind);
	str_copy(n->session, sizeof(n->session), session->key);
	str_copy(n->rule, sizeof(n->rule), s->verdict->state.rule);
	str_copy(n->user, sizeof(n->user), session->user);
	str_copy(n->host, sizeof(n->host), s->now->history.hostname);
	str_copy(n->what, sizeof(n->what), process_label(session->texts));
	if (session->texts[PROCESS_COMMAND])
		str_copy(n->command, sizeof(n->command), session->texts[PROCESS_COMMAND]);
	n->uid = s->facts->uid;
	n->mem_bytes = s->facts->mem_bytes;
	n->made_ms = s->now_ms;
	n->idle_since_ms = s->facts->idle_since_ms;
	n->idle_ms = s->facts->clock_ms;
	n->idle_below = s->facts->idle_below;
	const struct judge_future future =
		judge_foresee(s->policy, s->facts, s->verdict, s->now_ms);
	n->end_ms = future.end_ms;
	if (kind != NOTICE_FINAL) /* another final notice comes only if the end is delayed */
		n->next_ms = future.notice_ms;
	size_t cards = describe_cards(n, s, &price);
	n->idle_gpu_hours = (double)cards * (double)s->facts->clock_ms / 3600e3;
	n->cost = price * (double)s->facts->clock_ms / 3600e3;
	if (isfinite(n->cost))
		str_copy(n->currency, sizeof(n->currency), s->policy->config->currency);
	if (session->kind == SESSION_LEASE)
		describe_lease(n, session);
	if (!process)
		return;
	n->pid = process->pid;
	release_command(n->release, process->pid, session->texts[PROCESS_JOB],
		session->texts[PROCESS_CONTAINER], session->texts[PROCESS_POD]);
	if (session->texts[PROCESS_NOTEBOOK])
		strncat(n->release, ", or in Jupyter: Kernel > Shut Down",
			sizeof(n->release) - strlen(n->release) - 1);
	snprintf(pid, sizeof(pid), "%u", process->pid);
	offer(n, pid);
}

/* Whether the daily limit applies. It never applies to results, alarms and repeated final
 * notices: promises to users must not wait, and no later stage could be delayed instead. */
static bool is_limited(const struct notice *n, const struct policy_state *state)
{
	return n->kind == NOTICE_WARNING || n->kind == NOTICE_AGAIN ||
	       (n->kind == NOTICE_FINAL && state->round == 0);
}

int tell_make(struct arena *texts, const struct tell_queue *q, const struct notice *n,
	struct policy_record *r, struct err *e)
{
	struct str json = { 0 };
	struct policy_notice *rows = arena_take(texts, CHANNELS * sizeof(*rows));
	int rc = notice_to_json(n, NULL, &json, e);
	const char *body = arena_text(texts, str_text(&json));
	const char *user = arena_text(texts, n->user);
	str_finish(&json);
	if (rc || texts->failed)
		return rc ? rc : err_memory(e);
	r->notices = rows;
	for (int c = 0; c < CHANNELS; c++) {
		bool counts = channel_kinds[c].counts;
		bool reaches = n->kind != NOTICE_ALARM || channel_kinds[c].alarms;
		if (!reaches || !channel_configured((enum channel)c, q->config))
			continue;
		rows[r->n_notices++] = (struct policy_notice){ .session = q->key,
			.stage = q->stage,
			.channel = channel_kinds[c].name,
			.user = user,
			.body = body,
			.uid = n->uid,
			.idle_since_ms = q->state->idle_since_ms,
			.round = q->state->round,
			.queued_ms = q->now_ms,
			.due_ms = q->now_ms,
			.counts = counts,
			.admitted = !is_limited(n, q->state) || !counts };
	}
	return 0;
}

int tell_alarm(struct arena *texts, const struct enforcer_step *s, const char *text,
	struct policy_record *r, struct err *e)
{
	const struct policy_state state = { .idle_since_ms = s->now_ms };
	const struct tell_queue q = { &s->policy->config->notices, "alarm",
		notice_kind_names[NOTICE_ALARM], &state, s->now_ms };
	struct notice n;
	notice_init(&n, NOTICE_ALARM);
	str_copy(n.session, sizeof(n.session), "alarm");
	str_copy(n.user, sizeof(n.user), "root");
	if (gethostname(n.host, sizeof(n.host) - 1) != 0)
		str_copy(n.host, sizeof(n.host), "this host");
	str_copy(n.result, sizeof(n.result), text);
	n.made_ms = s->now_ms;
	return tell_make(texts, &q, &n, r, e);
}

int tell_step(struct arena *texts, const struct enforcer_step *s, struct policy_record *r,
	struct err *e)
{
	static const enum notice_kind kinds[POLICY_STAGES] = {
		[STAGE_WARN] = NOTICE_WARNING,
		[STAGE_AGAIN] = NOTICE_AGAIN,
		[STAGE_FINAL] = NOTICE_FINAL,
	};
	enum policy_stage stage = s->verdict->state.stage;
	const struct tell_queue q = { &s->policy->config->notices, s->facts->session->key,
		policy_stage_names[stage], &s->verdict->state, s->now_ms };
	struct notice n;
	r->cancels = s->verdict->step != STEP_WARN;
	if (r->cancels)
		return 0;
	tell_describe(&n, s, kinds[stage]);
	const struct policy_keep *last = NULL;
	int64_t count = 0;
	for (const struct policy_keep *k = s->keeps; k; k = k->next)
		if (strcmp(k->session, s->facts->session->key) == 0) {
			last = k;
			count++;
		}
	if (last) {
		struct brief until = moment_text(last->until_ms, false);
		if (count == 1)
			snprintf(n.kept, sizeof(n.kept), "until %s (%.160s)", until.text,
				last->reason);
		else
			snprintf(n.kept, sizeof(n.kept), "%lld times, last until %s (%.160s)",
				(long long)count, until.text, last->reason);
	}
	return tell_make(texts, &q, &n, r, e);
}

int64_t tell_next_ms(int64_t tries, int64_t failed_ms)
{
	if (tries <= 0)
		return failed_ms;
	int64_t wait_ms = tries > 6 ? LONGEST_MS : MINUTE_MS << (tries - 1);
	return failed_ms + (wait_ms < LONGEST_MS ? wait_ms : LONGEST_MS);
}

enum tell_plan tell_decide(int64_t waiting, int64_t sent, int64_t per_day)
{
	int64_t left = per_day > sent ? per_day - sent : 0;
	if (left == 0 || waiting <= 0)
		return TELL_WAIT;
	return waiting == 1 || waiting <= left / 2 ? TELL_EACH : TELL_DIGEST;
}

static const struct config_notices *notices_of(const struct sender *s)
{
	return &s->enforcer->policy.config->notices;
}

/* How much later than its rule says a warning was made, in idle time. */
static int64_t overdue_ms(const struct sender *s, const struct notice *n)
{
	const struct config_rule *rule = NULL;
	for (size_t i = rules_count(&s->enforcer->policy); i-- > 0;)
		if (strcmp(rules_get(&s->enforcer->policy, i)->name, n->rule) == 0)
			rule = rules_get(&s->enforcer->policy, i);
	if (!rule || (n->kind != NOTICE_WARNING && n->kind != NOTICE_AGAIN))
		return 0;
	return clock_later(
		n->idle_ms - (n->kind == NOTICE_AGAIN ? rule->again_ms : rule->warn_ms), 0);
}

/* Moves the times that a notice names by the delay of its delivery: the next stage counts from
 * the delivery, except after a warning that is at most two passes late. */
static void postpone(const struct sender *s, struct notice *n, int64_t late_ms)
{
	if (n->kind != NOTICE_FINAL) {
		late_ms += overdue_ms(s, n);
		if (late_ms <= 2 * s->enforcer->policy.config->policy.interval_ms)
			return;
	}
	if (n->next_ms >= 0)
		n->next_ms = rules_after_quiet(&s->enforcer->policy, n->next_ms + late_ms);
	if (n->end_ms >= 0)
		n->end_ms = rules_after_quiet(&s->enforcer->policy, n->end_ms + late_ms);
}

static int read_row(const struct sender *s, const struct policy_notice *row, struct notice *n,
	struct err *e)
{
	int64_t now_ms = s->fixed_ms >= 0 ? s->fixed_ms : clock_wall_ms(s->enforcer->clock);
	int64_t late_ms = clock_later(now_ms - row->queued_ms, 0);
	struct policy_state state;
	bool known = policy_file_state(s->enforcer->file, row->session, &state, NULL) == 0;
	if (notice_from_json(n, row->body, strlen(row->body), e))
		return e->code;
	n->made_ms += late_ms;
	postpone(s, n, late_ms);
	/* How long the session has been seen idle by now. */
	if (known && state.idle_since_ms == n->idle_since_ms && state.clock_ms > n->idle_ms)
		n->idle_ms = state.clock_ms;
	return 0;
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

/* Writes a digest when it is sent, from the notices that are still true. ERR_NOTHING: none. */
static int write_digest(const struct sender *s, const struct policy_notice *row,
	struct notice *n, struct err *e)
{
	struct digest d = { .sender = s, .notice = n };
	notice_init(n, NOTICE_DIGEST);
	str_copy(n->session, sizeof(n->session), row->session);
	n->made_ms = clock_wall_ms(s->enforcer->clock);
	int rc = policy_notice_parts(s->enforcer->file, row->id, add_part, &d, e);
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
	all.made_ms = clock_wall_ms(s->enforcer->clock);
	int rc = policy_notice_current(s->enforcer->file, row, add_part, &d, e);
	if (rc == 0)
		rc = read_row(s, row, n, e);
	if (rc == 0 && !d.found) /* an older one */
		notice_add_part(&all, n);
	if (rc == 0 && all.count > 1)
		*n = all;
	return rc;
}

/* The channel was removed from the configuration: the notice moves to the other channels.
 * Otherwise it and all later ones would wait for ever. */
static int move_to_other_channels(
	struct sender *s, const struct policy_notice *row, int64_t now_ms)
{
	const struct policy_delivery over = { row->id, now_ms, now_ms, "failed",
		"the channel is no longer configured" };
	int rc = 0;
	s->moved = true;
	for (int c = 0; c < CHANNELS && rc == 0; c++)
		if (channel_configured((enum channel)c, notices_of(s)))
			rc = policy_notice_copy(s->enforcer->file, row->id,
				channel_kinds[c].name, channel_kinds[c].counts, NULL);
	return rc ? rc : policy_notice_done(s->enforcer->file, &over, NULL);
}

/* Sends one notice that is due; its texts are valid during the query. */
static int send_one(void *context, const struct policy_notice *row)
{
	struct sender *s = context;
	int64_t now_ms = clock_wall_ms(s->enforcer->clock);
	struct notice n;
	struct err e = { 0 };
	int channel = 0;
	while (channel < CHANNELS && strcmp(channel_kinds[channel].name, row->channel) != 0)
		channel++;
	if (channel == CHANNELS || !channel_configured((enum channel)channel, notices_of(s)))
		return move_to_other_channels(s, row, now_ms);
	struct policy_delivery done = { row->id, now_ms, now_ms, "failed", e.text };
	bool login = channel == CHANNEL_LOGIN;
	int rc = strcmp(row->stage, POLICY_NOTICE_DIGEST) == 0 ? write_digest(s, row, &n, &e)
		 : login				       ? write_login(s, row, &n, &e)
							       : read_row(s, row, &n, &e);
	if (rc)
		return policy_notice_done(s->enforcer->file, &done, NULL);
	rc = courier_send(s->courier, row->id, (enum channel)channel, &n, &e);
	if (rc == 0) { /* not sent again while it is being delivered */
		done.state = "waiting";
		done.result = "";
		done.due_ms = now_ms + 2 * notices_of(s)->timeout_ms;
		rc = policy_notice_done(s->enforcer->file, &done, &e);
	}
	return rc; /* busy: the rest waits */
}

/* Decides what may be sent within the daily limit. */
static int admit_all(struct sender *s, int64_t now_ms, struct err *e)
{
	struct arena texts = { 0 };
	struct policy_waiting *w = NULL;
	int rc = policy_notice_drop_stale(s->enforcer->file, now_ms, e);
	if (rc == 0)
		rc = policy_notice_users(s->enforcer->file, now_ms, &texts, &w, e);
	for (; w && rc == 0; w = w->next) {
		enum tell_plan plan = tell_decide(w->messages, w->sent, notices_of(s)->per_day);
		if (plan == TELL_EACH)
			rc = policy_notice_admit(s->enforcer->file, w->user, e);
		else if (plan == TELL_DIGEST)
			rc = policy_notice_make_digest(
				s->enforcer->file, w->user, now_ms, NOTICE_PARTS_MOST, e);
	}
	arena_finish(&texts);
	return rc;
}

void tell_send(struct sender *s)
{
	struct err e = { 0 };
	int64_t now_ms = clock_wall_ms(s->enforcer->clock);
	int rc = 0;
	do {
		s->moved = false;
		rc = admit_all(s, now_ms, &e);
		if (rc == 0)
			rc = policy_notice_due(s->enforcer->file, now_ms, send_one, s, &e);
	} while (rc == 0 && s->moved);
	if (rc && rc != ERR_BUSY && *e.text)
		log_warning("%s", e.text);
}

void tell_take_results(struct sender *s)
{
	struct courier_result r;
	struct err e = { 0 };
	while (courier_next(s->courier, &r)) {
		int64_t now_ms = clock_wall_ms(s->enforcer->clock), tries = 0;
		bool delivered = r.delivery == DELIVERY_DONE;
		policy_notice_tries(s->enforcer->file, r.ticket, &tries, &e);
		struct policy_delivery done = { r.ticket, now_ms, tell_next_ms(tries, now_ms),
			delivered ? "delivered" : "waiting", r.text };
		if (policy_notice_done(s->enforcer->file, &done, &e) != 0)
			log_warning("%s", e.text);
		if (!delivered)
			log_notice("notice by %s: %s", channel_kinds[r.channel].name, r.text);
	}
}

void tell_clear_login(const struct config_notices *config, struct policy_file *f,
	const char *key, const char *user)
{
	struct arena texts = { 0 };
	struct policy_session *s = NULL;
	const char *other = NULL; /* another session of the user that was warned */
	struct err e = { 0 };
	if (!channel_configured(CHANNEL_LOGIN, config))
		return;
	bool read = policy_file_sessions(f, &texts, &s, &e) == 0;
	for (; s; s = s->next)
		if (s->state.stage != STAGE_NONE && strcmp(s->user, user) == 0 &&
			strcmp(s->key, key) != 0)
			other = s->key;
	int rc = !read	 ? 0
		 : other ? policy_notice_renew(f, other, channel_kinds[CHANNEL_LOGIN].name, &e)
			 : channel_login_clear(config->login_directory, user, &e);
	if (rc)
		log_warning("%s", e.text);
	arena_finish(&texts);
}
