/* The list of sessions that are being ended, and the driver's part: looks for confirming that
 * they are idle, and for verifying that the memory is free. */
#include "policy/endings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "policy/endings_private.h"
#include "proc/proc.h"

/* A driver that has not answered a look for this long is silent. */
#define SILENT_US (10 * INT64_C(1000000))
/* How many looks the driver has to notice that processes have ended. */
#define VERIFY_LOOKS 4
#define VERIFY_EVERY_US (1 * INT64_C(1000000))
/* While processes are waited for, without a descriptor that says that they have ended. */
#define ATTEND_MS 100

const char *const ending_how_names[ENDING_HOWS] = { "spared", "ended", "still-held", "failed",
	"computes" };

int endings_new(struct endings **out, const struct endings_options *o, struct err *e)
{
	struct endings *es = calloc(1, sizeof(*es));
	if (!es)
		return err_memory(e);
	es->o = *o;
	es->proc = -1;
	int rc = proc_open(&es->proc, "", e);
	if (rc == 0)
		rc = end_link_new(&es->link, o->program, o->socket, e);
	if (rc) {
		endings_free(es);
		return rc;
	}
	*out = es;
	return 0;
}

int64_t endings_now_us(const struct endings *es)
{
	return clock_now(es->o.clock).mono_us;
}

static void close_live(struct endings *es)
{
	if (es->live)
		es->o.close_live(es->o.context, es->live);
	es->live = NULL;
	es->asked = es->looked = false;
	es->next_look_us = 0;
}

static void clear(struct ending *a)
{
	helper_free(a->manager, 0);
	free(a->gone);
	free(a->sorted);
	*a = (struct ending){ .stage = ENDING_NONE };
}

void endings_free(struct endings *es)
{
	if (!es)
		return;
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		clear(&es->items[i]);
	close_live(es);
	end_link_free(es->link);
	if (es->proc >= 0)
		close(es->proc);
	free(es);
}

int endings_hold(struct endings *es, const struct end_process *p, struct err *e)
{
	struct end_reply reply;
	int rc = end_link_ask(es->link, END_ASK_HOLD, p, &reply, e);
	if (rc)
		return rc;
	if (reply.answer == END_DONE)
		return 0;
	bool ended = reply.answer == END_GONE || reply.answer == END_ANOTHER;
	bool never = reply.answer == END_EXEMPT || reply.answer == END_NOT_HIS;
	return err_set(e,
		ended			   ? ERR_NOTHING
		: never			   ? ERR_USAGE
		: reply.answer == END_FULL ? ERR_BUSY
					   : ERR_WORLD,
		"%s", reply.text);
}

void endings_release(struct endings *es, const struct end_process *p)
{
	struct end_reply reply;
	struct err e = { 0 };
	if (end_link_fd(es->link) >= 0)
		end_link_ask(es->link, END_ASK_RELEASE, p, &reply, &e);
}

int endings_begin(struct endings *es, const struct ending_plan *plan, struct err *e)
{
	struct ending *a = es->items;
	while (a < es->items + ENDINGS_MOST && a->stage != ENDING_NONE)
		a++;
	if (a == es->items + ENDINGS_MOST)
		return err_set(e, ERR_BUSY, "%d sessions are being ended", ENDINGS_MOST);
	*a = (struct ending){
		.stage = ENDING_CONFIRM, .signal = END_ASK_TERM, .plan = *plan, .held_bytes = -1
	};
	a->gone = calloc(plan->n_processes + 1, sizeof(*a->gone));
	a->sorted = calloc(plan->n_processes + 1, sizeof(*a->sorted));
	if (!a->gone || !a->sorted) {
		clear(a);
		return err_memory(e);
	}
	memcpy(a->sorted, plan->processes, plan->n_processes * sizeof(*a->sorted));
	fresh_sort(a->sorted, plan->n_processes);
	return 0;
}

void ending_finish(struct ending *a, enum ending_how how, const char *format, ...)
{
	va_list list;
	a->stage = ENDING_OVER;
	a->outcome = (struct ending_outcome){
		.ticket = a->plan.ticket, .how = how, .freed_bytes = -1
	};
	va_start(list, format);
	vsnprintf(a->outcome.text, sizeof(a->outcome.text), format, list);
	va_end(list);
}

void ending_spare(struct ending *a, const char *why)
{
	const char *name = a->signal == END_ASK_KILL ? "SIGKILL" : "SIGTERM";
	if (a->next)
		ending_finish(a, ENDING_SPARED,
			"%s went to the first %zu of %zu processes, the others are spared: %s",
			name, a->next, a->plan.n_processes, why);
	else if (a->signalled)
		ending_finish(
			a, ENDING_SPARED, "SIGTERM was sent, and SIGKILL is not: %s", why);
	else
		ending_finish(a, ENDING_SPARED, "%s", why);
}

bool endings_next(struct endings *es, struct ending_outcome *o)
{
	for (size_t i = 0; i < ENDINGS_MOST; i++) {
		struct ending *a = &es->items[i];
		if (a->stage != ENDING_OVER)
			continue;
		*o = a->outcome;
		clear(a);
		return true;
	}
	return false;
}

/* Whether memory is in use on the session's cards that no process explains. */
static int64_t unexplained(const struct ending *a, const struct fresh_look *look)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < a->plan.n_cards; i++)
		for (size_t k = 0; k < look->n_cards; k++)
			if (strcmp(a->plan.cards[i].uuid, look->cards[k].id.uuid) == 0)
				bytes += look->cards[k].unexplained_bytes;
	return bytes;
}

static void verify(struct ending *a, const struct fresh_look *look)
{
	struct fresh_result r;
	char size[SIZE_TEXT_CAP];
	fresh_judge(&r, look, a->sorted, a->plan.n_processes);
	int64_t left = r.verdict == FRESH_RELEASED ? unexplained(a, look) : r.held_bytes;
	bool held = r.verdict != FRESH_RELEASED || left >= ORPHAN_LEAST_BYTES;
	if (held && ++a->verified < VERIFY_LOOKS)
		return;
	size_text(size, (double)(held ? left : a->held_bytes));
	if (held) {
		ending_finish(a, ENDING_STILL_HELD,
			"its processes have ended, and %s are still in use; no signal can free "
			"them, an administrator must look",
			size);
		return;
	}
	ending_finish(a, ENDING_ENDED, "its processes have ended; %s given back (%s)", size,
		a->evidence);
	a->outcome.freed_bytes = a->held_bytes;
}

static bool needs_looks(const struct ending *a)
{
	return a->stage == ENDING_CONFIRM || a->stage == ENDING_VERIFY;
}

static void use_look(struct endings *es)
{
	const struct present *now = live_present(es->live);
	struct fresh_look look = { .cards = now->cards,
		.n_cards = now->n_cards,
		.processes = now->processes,
		.n_processes = now->n_processes,
		.first = !es->looked };
	es->looked = true;
	for (size_t i = 0; i < ENDINGS_MOST; i++) {
		look.idle_below = (double)es->items[i].plan.idle_below;
		if (es->items[i].stage == ENDING_CONFIRM)
			ending_confirm(es, &es->items[i], &look);
		else if (es->items[i].stage == ENDING_VERIFY)
			verify(&es->items[i], &look);
	}
}

/* The driver is silent or gone: what is not known is not idle. */
static void no_look(struct endings *es, const char *why)
{
	char text[ENDING_TEXT_CAP];
	snprintf(text, sizeof(text), "it cannot be confirmed that it is idle: %.180s", why);
	for (size_t i = 0; i < ENDINGS_MOST; i++) {
		struct ending *a = &es->items[i];
		if (a->stage == ENDING_CONFIRM)
			ending_spare(a, text);
		else if (a->stage == ENDING_VERIFY)
			ending_finish(a, ENDING_ENDED,
				"its processes have ended; whether the memory is free is not "
				"known: %s",
				why);
	}
	close_live(es);
}

static bool is_verifying(const struct endings *es)
{
	for (size_t i = 0; i < ENDINGS_MOST; i++)
		if (es->items[i].stage == ENDING_VERIFY)
			return true;
	return false;
}

static void look(struct endings *es)
{
	struct err e = { 0 };
	int64_t now_us = endings_now_us(es);
	if (!es->live && es->o.open_live(es->o.context, &es->live, &e) != 0) {
		no_look(es, e.text);
		return;
	}
	if (!es->asked && now_us >= es->next_look_us) {
		live_ask(es->live);
		es->asked = true;
		es->asked_us = now_us;
	}
	if (!es->asked)
		return;
	int rc = live_take(es->live, 0, &e);
	if (rc == ERR_BUSY && now_us - es->asked_us < SILENT_US)
		return;
	es->asked = false;
	int64_t every_us = es->o.config->sample_ms * 1000;
	if (is_verifying(es) && every_us > VERIFY_EVERY_US)
		every_us = VERIFY_EVERY_US;
	es->next_look_us = now_us + every_us;
	if (rc)
		no_look(es, rc == ERR_BUSY ? "the driver does not answer" : e.text);
	else
		use_look(es);
}

static void note_ended(struct endings *es)
{
	struct end_process p;
	while (end_link_ended(es->link, &p))
		for (size_t i = 0; i < ENDINGS_MOST; i++)
			for (size_t k = 0; k < es->items[i].plan.n_processes; k++) {
				const struct end_process *own = &es->items[i].plan.processes[k];
				if (own->pid == p.pid && own->start_ticks == p.start_ticks)
					es->items[i].gone[k] = true;
			}
}

void endings_step(struct endings *es)
{
	bool looks = false;
	note_ended(es);
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
	if (es->live && es->asked && live_fd(es->live) >= 0)
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
	return es->live && es->asked;
}

int64_t endings_wait_ms(const struct endings *es)
{
	int64_t least_ms = -1, now_us = endings_now_us(es);
	for (size_t i = 0; i < ENDINGS_MOST; i++) {
		const struct ending *a = &es->items[i];
		int64_t ms = ATTEND_MS;
		if (a->stage == ENDING_NONE)
			continue;
		if (a->stage == ENDING_OVER || (needs_looks(a) && !es->live))
			ms = 0;
		else if (needs_looks(a) && !es->asked && es->next_look_us > now_us)
			ms = (es->next_look_us - now_us) / 1000 + 1;
		least_ms = least_ms < 0 || ms < least_ms ? ms : least_ms;
	}
	return least_ms;
}
