/* Writes notices: describes a session for the people who use it. */
#include "policy/tell.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/moment.h"
#include "model/release.h"
#include "policy/channel.h"
#include "policy/notice.h"
#include "store/policy/policy_notice.h"

#define KEEPS_MS (INT64_C(28) * 86400000)

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
	for (size_t i = 0; i < h->n_cards && i < CARD_WORDS * 64; i++) {
		char label[CARD_LABEL_CAP];
		if (!(s->facts->cards.bits[i / 64] >> i % 64 & 1))
			continue;
		card_label(label, sizeof(label), &h->cards[i]);
		str_addf(&cards, "%s%s", count ? ", " : "", label);
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

/* When the next stage and the end come, if the session stays idle and the notice is
 * delivered at once. */
static void describe_future(struct notice *n, const struct enforcer_step *s)
{
	const struct rules_times *t = &s->verdict->times;
	int64_t now = s->verdict->state.stage == STAGE_WARN    ? t->warn_ms
		      : s->verdict->state.stage == STAGE_AGAIN ? t->again_ms
							       : t->final_ms;
	bool ends = s->verdict->state.level == LEVEL_END && t->end_ms != AT_NEVER;
	if (s->verdict->state.stage == STAGE_WARN && t->again_ms != AT_NEVER)
		n->next_ms = s->now_ms + t->again_ms - now;
	else if (s->verdict->state.stage != STAGE_FINAL && ends)
		n->next_ms = s->now_ms + t->final_ms - now;
	if (ends)
		n->end_ms = s->now_ms + t->end_ms - now;
}

void tell_describe(struct notice *n, const struct enforcer_step *s, enum notice_kind kind)
{
	const struct idle_session *session = s->facts->session;
	const struct idle_process *process = first_process(s);
	const char *path = session->texts[PROCESS_NOTEBOOK_PATH];
	double price = 0;
	notice_init(n, kind);
	str_copy(n->session, sizeof(n->session), session->key);
	str_copy(n->rule, sizeof(n->rule), s->verdict->state.rule);
	str_copy(n->user, sizeof(n->user), session->user);
	str_copy(n->host, sizeof(n->host), s->now->history.hostname);
	str_copy(n->what, sizeof(n->what),
		path ? path
		     : process_label(session->texts[PROCESS_NOTEBOOK],
			       session->texts[PROCESS_JOB], session->texts[PROCESS_CONTAINER],
			       session->texts[PROCESS_POD]));
	if (session->texts[PROCESS_COMMAND])
		str_copy(n->command, sizeof(n->command), session->texts[PROCESS_COMMAND]);
	n->uid = s->facts->uid;
	n->mem_bytes = s->facts->mem_bytes;
	n->made_ms = s->now_ms;
	n->idle_since_ms = s->facts->idle_since_ms;
	n->idle_ms = s->facts->clock_ms;
	n->idle_below = s->facts->idle_below;
	size_t cards = describe_cards(n, s, &price);
	n->idle_gpu_hours = (double)cards * (double)s->facts->clock_ms / 3600e3;
	n->cost = price * (double)s->facts->clock_ms / 3600e3;
	if (isfinite(n->cost))
		str_copy(n->currency, sizeof(n->currency), s->policy->config->currency);
	describe_future(n, s);
	if (!process)
		return;
	n->pid = process->pid;
	release_command(n->release, process->pid, session->texts[PROCESS_JOB],
		session->texts[PROCESS_CONTAINER]);
	if (session->texts[PROCESS_NOTEBOOK])
		strncat(n->release, ", or in Jupyter: Kernel > Shut Down",
			sizeof(n->release) - strlen(n->release) - 1);
	snprintf(n->keep, sizeof(n->keep), "gua keep %u --for 4h --reason TEXT", process->pid);
}

/* The earlier keeps of a session. */
struct keeps {
	const char *session;
	int64_t n, until_ms;
	char reason[NOTICE_TEXT_CAP];
};

static int take_keep(void *context, const struct policy_keep *k)
{
	struct keeps *keeps = context;
	if (strcmp(k->session, keeps->session) != 0)
		return 0;
	keeps->n++;
	keeps->until_ms = k->until_ms;
	str_copy(keeps->reason, sizeof(keeps->reason), k->reason);
	return 0;
}

/* Describes the keeps of the last four weeks. */
static int describe_keeps(
	struct notice *n, struct policy_file *f, const struct enforcer_step *s, struct err *e)
{
	struct keeps keeps = { .session = s->facts->session->key };
	const struct policy_span span = { s->now_ms - KEEPS_MS, s->now_ms + 1 };
	char until[48];
	int rc = policy_file_keeps(f, span, take_keep, &keeps, e);
	if (rc || !keeps.n)
		return rc;
	moment_text(until, sizeof(until), keeps.until_ms, false);
	if (keeps.n == 1)
		snprintf(n->kept, sizeof(n->kept), "until %s (%.160s)", until, keeps.reason);
	else
		snprintf(n->kept, sizeof(n->kept), "%lld times, last until %s (%.160s)",
			(long long)keeps.n, until, keeps.reason);
	return 0;
}

/* Whether the daily limit applies. It never applies to results, alarms and repeated final
 * notices: what a user was promised must not wait, and no later stage could be delayed
 * instead. */
static bool is_limited(const struct notice *n, const struct policy_state *state)
{
	return n->kind == NOTICE_WARNING || n->kind == NOTICE_AGAIN ||
	       (n->kind == NOTICE_FINAL && state->round == 0);
}

int tell_add(struct policy_file *f, const struct tell_queue *q, const struct notice *n,
	const char *stage, struct err *e)
{
	struct str body = { 0 };
	int rc = notice_to_json(n, &body, e);
	for (int c = 0; c < CHANNELS && rc == 0; c++) {
		struct policy_notice row = { .session = q->key,
			.stage = stage,
			.channel = channel_names[c],
			.user = n->user,
			.body = str_text(&body),
			.uid = n->uid,
			.idle_since_ms = q->state->idle_since_ms,
			.round = q->state->round,
			.queued_ms = q->now_ms,
			.due_ms = q->now_ms,
			.counts = channel_counts((enum channel)c),
			.admitted =
				!is_limited(n, q->state) || !channel_counts((enum channel)c) };
		if (channel_configured((enum channel)c, q->config))
			rc = policy_notice_add(f, &row, e);
	}
	str_finish(&body);
	return rc;
}

int tell_alarm(struct policy_file *f, const struct config_notices *config, const char *text,
	int64_t now_ms, struct err *e)
{
	static const enum channel channels[] = { CHANNEL_MAIL, CHANNEL_WEBHOOK,
		CHANNEL_COMMAND };
	struct config_notices some = *config;
	const struct policy_state state = { .idle_since_ms = now_ms };
	const struct tell_queue q = { &some, "alarm", &state, now_ms };
	struct notice n;
	int rc = 0;
	notice_init(&n, NOTICE_ALARM);
	str_copy(n.session, sizeof(n.session), "alarm");
	str_copy(n.user, sizeof(n.user), "root");
	if (gethostname(n.host, sizeof(n.host) - 1) != 0)
		str_copy(n.host, sizeof(n.host), "this host");
	str_copy(n.result, sizeof(n.result), text);
	n.made_ms = now_ms;
	for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]) && rc == 0; i++) {
		some.channels = channel_names[channels[i]];
		if (channel_configured(channels[i], config))
			rc = tell_add(f, &q, &n, notice_kind_names[NOTICE_ALARM], e);
	}
	return rc;
}

int tell_step(struct policy_file *f, const struct enforcer_step *s, struct err *e)
{
	static const enum notice_kind kinds[POLICY_STAGES] = {
		[STAGE_WARN] = NOTICE_WARNING,
		[STAGE_AGAIN] = NOTICE_AGAIN,
		[STAGE_FINAL] = NOTICE_FINAL,
	};
	struct notice n;
	enum policy_stage stage = s->verdict->state.stage;
	if (s->verdict->step != STEP_WARN)
		return policy_notice_cancel(f, s->facts->session->key, s->now_ms, e);
	const struct tell_queue q = { &s->policy->config->notices, s->facts->session->key,
		&s->verdict->state, s->now_ms };
	tell_describe(&n, s, kinds[stage]);
	int rc = describe_keeps(&n, f, s, e);
	return rc ? rc : tell_add(f, &q, &n, policy_stage_names[stage], e);
}
