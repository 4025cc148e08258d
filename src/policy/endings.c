/* The list of sessions that are being ended, the processes that are held, and the looks at the
 * driver, which confirm that sessions are idle and verify that memory is free. */
#include "policy/endings.h"

#include "audit/idle_history.h"
#include "driver/source.h"
#include "policy/ending.h"
#include "policy/tell.h"
#include "proc/proc.h"

/* A driver that has not answered for this long counts as silent. */
enum { SILENT_MS = 10000 };
#define VERIFY_EVERY_US (1 * INT64_C(1000000))
/* How often to look for processes that no pidfd reports when they end. */
#define ATTEND_MS 100
/* How often storing a result is tried again. */
enum { RETRY_MS = 2000 };
/* Largest number of processes of one user that are held between two passes. */
enum { HELD_OF_USER = 256 };

int endings_new(struct endings **out, const struct endings_options *o, struct err *e)
{
	struct endings *es = calloc(1, sizeof(*es));
	if (!es)
		return err_memory(e);
	es->o = *o;
	es->enforcer = o->enforcer;
	es->proc = -1;
	if (proc_open(&es->proc, "", e) || end_link_new(&es->link, o->program, o->socket, e)) {
		endings_free(es);
		return e->code;
	}
	*out = es;
	return 0;
}

/* Opens the live view; the driver is asked only while a session is being ended. */
static int open_live(struct endings *es, struct err *e)
{
	const struct live_options o = { .source = { .name = SOURCE_AUTO,
						.nvml_path = es->o.nvml,
						.root = "",
						.clock = es->o.look_clock },
		.rules = RULES_DEFAULT,
		.deadline_ms = es->enforcer->policy.config->driver_timeout_ms };
	return live_open(&es->live, &o, e);
}

static void close_live(struct endings *es)
{
	live_close(es->live);
	es->live = NULL;
	es->looked = false;
	es->next_look_us = 0;
}

void endings_free(struct endings *es)
{
	if (!es)
		return;
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		ending_clear(&es->items[i]);
	close_live(es);
	end_link_free(es->link);
	free(es->held);
	file_close(es->proc);
	free(es);
}

static struct proc_life process_of(const struct idle_process *p)
{
	return (struct proc_life){ p->pid, p->start_ticks, p->uid };
}

static bool is_held(const struct endings *es, const struct proc_life *p)
{
	for (size_t i = 0; i < es->n_held; i++)
		if (es->held[i].process.pid == p->pid &&
			es->held[i].process.start_ticks == p->start_ticks)
			return true;
	return false;
}

static void hold(struct endings *es, const struct enforcer_step *s)
{
	const struct idle_history *h = &s->now->history;
	const struct idle_session *session = s->facts->session;
	size_t n = 0;
	for (size_t i = 0; i < es->n_held; i++)
		n += strcmp(es->held[i].user, session->user) == 0;
	for (size_t i = 0; s->session != SIZE_MAX && i < h->n_processes; i++) {
		struct proc_life p = process_of(&h->processes[i]);
		if (h->processes[i].session != s->session || !h->processes[i].holds ||
			is_held(es, &p))
			continue;
		if (n++ >= HELD_OF_USER || es->unreachable)
			return;
		/* A process for which there is no place is checked in the same way when it is
		 * signalled. */
		struct err e = { 0 };
		if (!array_one_more(&es->held, es->n_held))
			return;
		int rc = ending_hold(es, &p, &e);
		es->unreachable |= rc == ERR_WORLD;
		if ((rc == ERR_WORLD || rc == ERR_USAGE) && es->n_refused++ == 0)
			snprintf(es->refused, sizeof(es->refused), "process %u: %.200s",
				(unsigned)p.pid, e.text);
		if (rc == ERR_WORLD || rc == ERR_BUSY)
			continue; /* tried again in the next pass */
		struct ending_held *kept = &es->held[es->n_held++];
		*kept = (struct ending_held){ .process = p };
		str_copy(kept->key, sizeof(kept->key), session->key);
		str_copy(kept->user, sizeof(kept->user), session->user);
	}
}

void endings_passed(struct endings *es)
{
	if (es->n_refused)
		log_warning("%zu processes that a rule would end will not be ended, or cannot "
			    "be held now: %s",
			es->n_refused, es->refused);
	es->n_refused = 0;
	es->unreachable = false;
}

static void release(struct endings *es, const char *key)
{
	struct err e = { 0 };
	for (size_t i = es->n_held; i-- > 0;) {
		if (strcmp(es->held[i].key, key) != 0)
			continue;
		struct end_reply reply;
		if (end_link_fd(es->link) >= 0)
			end_link_ask(
				es->link, END_ASK_RELEASE, &es->held[i].process, &reply, &e);
		es->held[i] = es->held[--es->n_held];
	}
}

/* Youngest first: workers are signalled before the process that started them. */
static int by_age(const void *a, const void *b)
{
	const struct proc_life *one = a, *other = b;
	return (one->start_ticks < other->start_ticks) -
	       (one->start_ticks > other->start_ticks);
}

/* Adds all processes of the session. False: there are none, or out of memory. */
static bool add_processes(struct ending *a, const struct enforcer_step *s)
{
	const struct idle_history *h = &s->now->history;
	a->processes = arena_take(&a->texts, (h->n_processes + 1) * sizeof(*a->processes));
	for (size_t i = 0; a->processes && s->session != SIZE_MAX && i < h->n_processes; i++)
		if (h->processes[i].session == s->session && h->processes[i].holds)
			a->processes[a->n_processes++] = process_of(&h->processes[i]);
	array_sort(a->processes, a->n_processes, by_age);
	return a->n_processes > 0;
}

static const char *label_of(
	struct arena *texts, const struct idle_session *s, enum process_text label)
{
	return s->texts[label] ? arena_text(texts, s->texts[label]) : "";
}

/* False: out of memory. The next pass then spares the session: see endings_left(). */
static bool describe(const struct endings *es, struct ending *a, const struct enforcer_step *s)
{
	const struct idle_session *session = s->facts->session;
	const struct verdict *v = s->verdict;
	*a = (struct ending){ .kind = session->kind,
		.idle_below = s->facts->idle_below,
		.final_ms = v->rule ? v->rule->final_ms : 0,
		.kill = v->rule && v->rule->kill_after_term,
		.notice_ms = v->state.delivered_ms,
		.state = v->state };
	a->group.job = label_of(&a->texts, session, PROCESS_JOB);
	a->group.container = label_of(&a->texts, session, PROCESS_CONTAINER);
	a->group.pod = label_of(&a->texts, session, PROCESS_POD);
	tell_describe(&a->notice, s, NOTICE_ENDED);
	return enforcer_row(&a->row, &a->texts, es->enforcer, s);
}

static void store(struct endings *es, struct ending *a)
{
	struct err e = { 0 };
	char name[SESSION_KEY_CAP];
	session_shown(name, sizeof(name), a->row.session, true);
	if (a->retry_us == 0) {
		static const char *const words[ENDING_HOWS] = {
			[ENDING_SPARED] = "spared",
			[ENDING_ENDED] = "ended",
			[ENDING_STILL_HELD] = "ended",
			[ENDING_FAILED] = "could not end",
			[ENDING_COMPUTES] = "spared",
		};
		struct brief freed = size_text((double)a->freed_bytes);
		if (a->how == ENDING_ENDED && a->freed_bytes >= 0)
			log_notice("ended %s: %s freed", name, freed.text);
		else
			log_notice("%s %s: %s", words[a->how], name, a->text);
	}
	int rc = ending_store(es, a, &e);
	if (rc && !es->failing)
		log_error("cannot record the result of ending %s: %s; trying again", name,
			e.text);
	if (!rc && es->failing)
		log_notice("results are recorded again");
	es->failing = rc != 0;
	a->retry_us = ending_now_us(es) + RETRY_MS * 1000;
	if (rc)
		return;
	if (a->how != ENDING_SPARED && a->how != ENDING_COMPUTES)
		release(es, a->row.session);
	ending_clear(a);
}

static void begin(struct endings *es, const struct enforcer_step *s)
{
	struct ending *a = es->items, other = { .stage = ENDING_NONE };
	while (a < es->items + ENDINGS_MOST && a->stage != ENDING_NONE)
		a++;
	bool full = a == es->items + ENDINGS_MOST;
	a = full ? &other : a;
	if (!describe(es, a, s)) {
		ending_clear(a);
		return;
	}
	if (full) {
		ending_spare(a, "too many sessions are being ended already");
		store(es, a);
		ending_clear(a);
		return;
	}
	const struct idle_history *h = &s->now->history;
	for (size_t i = 0; i < h->n_cards; i++) {
		if (!facts_has_card(&s->facts->cards, i) || a->n_cards == ENDING_CARDS)
			continue;
		struct ending_card *card = &a->cards[a->n_cards++];
		str_copy(card->uuid, sizeof(card->uuid), h->cards[i].uuid);
		card->idle_power_w = idle_history_power(h, card->uuid, s->now_ms);
	}
	bool any = a->kind == SESSION_LEASE || add_processes(a, s);
	if (!any || !ending_begin(a))
		ending_spare(a, "its processes cannot be listed");
}

void endings_follow(struct endings *es, const struct enforcer_step *s)
{
	const struct verdict *v = s->verdict;
	const struct idle_session *session = s->facts->session;
	bool ends = es->enforcer->policy.enforce && v->state.level == LEVEL_END && !v->would;
	if (v->state.stage == STAGE_NONE) {
		release(es, session->key);
		tell_clear_login(&es->enforcer->policy.config->notices, es->enforcer->file,
			session->key, session->user);
	} else if (ends && session->kind != SESSION_POD) {
		hold(es, s);
	}
	if (v->step == STEP_END && ends)
		begin(es, s);
}

static bool needs_looks(const struct ending *a)
{
	return a->stage == ENDING_CONFIRM || a->stage == ENDING_VERIFY;
}

/* Whether the answer of the driver to a look is outstanding. */
static bool is_looking(const struct endings *es)
{
	return es->live && live_silent_ms(es->live) >= 0;
}

static void use_look(struct endings *es)
{
	struct signs_look look = { .now = live_present(es->live), .first = !es->looked };
	es->looked = true;
	for (size_t i = 0; i < ENDINGS_MOST; i++) {
		look.idle_below = (double)es->items[i].idle_below;
		if (es->items[i].stage == ENDING_CONFIRM && es->items[i].kind == SESSION_LEASE)
			ending_confirm_lease(es, &es->items[i], &look);
		else if (es->items[i].stage == ENDING_CONFIRM)
			ending_confirm(es, &es->items[i], &look);
		else if (es->items[i].stage == ENDING_VERIFY)
			ending_verify(&es->items[i], &look);
	}
}

/* There is no look, because the driver does not answer or cannot be opened. */
static void no_look(struct endings *es, const char *why)
{
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		ending_miss_look(&es->items[i], why);
	close_live(es);
}

static void look(struct endings *es)
{
	struct err e = { 0 };
	int64_t now_us = ending_now_us(es);
	if (!es->live && open_live(es, &e) != 0) {
		no_look(es, e.text);
		return;
	}
	if (now_us < es->next_look_us && !is_looking(es))
		return;
	live_ask(es->live);
	int rc = live_take(es->live, 0, &e);
	if (rc == ERR_BUSY && live_silent_ms(es->live) < SILENT_MS)
		return;
	int64_t every_us = es->enforcer->policy.config->end.sample_ms * 1000;
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		if (es->items[i].stage == ENDING_VERIFY && every_us > VERIFY_EVERY_US)
			every_us = VERIFY_EVERY_US;
	es->next_look_us = now_us + every_us;
	if (rc)
		no_look(es, rc == ERR_BUSY ? "the driver does not answer" : e.text);
	else
		use_look(es);
}

void endings_step(struct endings *es)
{
	bool looks = false;
	struct proc_life p;
	while (end_link_ended(es->link, &p))
		for (size_t i = 0; i < ENDINGS_MOST; i++)
			for (size_t k = 0; k < es->items[i].n_processes; k++) {
				const struct proc_life *own = &es->items[i].processes[k];
				if (own->pid == p.pid && own->start_ticks == p.start_ticks)
					es->items[i].gone[k] = true;
			}
	for (size_t i = 0; i < ENDINGS_MOST; i++) {
		ending_attend(es, &es->items[i]);
		looks |= needs_looks(&es->items[i]);
	}
	if (looks)
		look(es);
	else
		close_live(es);
}

size_t endings_fds(const struct endings *es, struct pollfd *fds)
{
	size_t n = 0;
	if (end_link_fd(es->link) >= 0)
		fds[n++] = (struct pollfd){ .fd = end_link_fd(es->link), .events = POLLIN };
	if (is_looking(es))
		fds[n++] = (struct pollfd){ .fd = live_fd(es->live), .events = POLLIN };
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		if (es->items[i].stage == ENDING_MANAGER)
			fds[n++] = (struct pollfd){ .fd = helper_fd(es->items[i].manager),
				.events = POLLIN };
	return n;
}

bool endings_is_asking(const struct endings *es)
{
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		if (es->items[i].stage == ENDING_MANAGER)
			return true;
	return is_looking(es);
}

int64_t endings_wait_ms(const struct endings *es)
{
	int64_t least_ms = -1, now_us = ending_now_us(es);
	for (size_t i = 0; i < ENDINGS_MOST; i++) {
		const struct ending *a = &es->items[i];
		int64_t ms = ATTEND_MS;
		if (a->stage == ENDING_NONE)
			continue;
		if (a->stage == ENDING_OVER)
			ms = a->retry_us > now_us ? (a->retry_us - now_us) / 1000 + 1 : 0;
		else if (needs_looks(a) && !es->live)
			ms = 0;
		else if (needs_looks(a) && !is_looking(es) && es->next_look_us > now_us)
			ms = (es->next_look_us - now_us) / 1000 + 1;
		least_ms = least_ms < 0 || ms < least_ms ? ms : least_ms;
	}
	return least_ms;
}

void endings_store(struct endings *es)
{
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		if (es->items[i].stage == ENDING_OVER &&
			ending_now_us(es) >= es->items[i].retry_us)
			store(es, &es->items[i]);
}

int endings_left(struct endings *es, const char *key, const char *user,
	struct policy_state *state, struct err *e)
{
	struct ending a = { .row = { .uid = -1,
				    .held_bytes = -1,
				    .idle_since_ms = state->idle_since_ms,
				    .idle_ms = state->clock_ms,
				    .given_back_ms = -1,
				    .rule = state->rule,
				    .session = key,
				    .kind = session_kind_names[SESSION_PROCESS],
				    .user = user,
				    .actor = "gua-enforce" },
		.state = *state };
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		if (es->items[i].stage != ENDING_NONE &&
			strcmp(es->items[i].row.session, key) == 0)
			return 0;
	int rc = ending_store_left(es, &a, e);
	if (rc == 0)
		*state = a.state;
	return rc;
}
