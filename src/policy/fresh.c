/* Judges one look at the cards of a session. */
#include "policy/fresh.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/session.h"
#include "driver/use.h"

/* Orders processes by pid and start time. A user may have thousands of processes on a card, so
 * they are looked up by binary search. */
static int compare(const void *a, const void *b)
{
	const struct end_process *x = a, *y = b;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->start_ticks > y->start_ticks) - (x->start_ticks < y->start_ticks);
}

void fresh_sort(struct end_process *processes, size_t n)
{
	if (n)
		qsort(processes, n, sizeof(*processes), compare);
}

static bool is_one_of(
	const struct present_process *p, const struct end_process *processes, size_t n)
{
	const struct end_process key = { .pid = p->id.pid, .start_ticks = p->id.start_ticks };
	return n && bsearch(&key, processes, n, sizeof(*processes), compare);
}

/* The names of the session: two if the name of its user became known in between. */
struct names {
	char (*keys)[SESSION_KEY_CAP];
	size_t n;
};

static bool has_name(const struct names *names, const char *key)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->keys[i], key) == 0)
			return true;
	return false;
}

/* Collects the names of the sessions of the processes on a card. False: out of memory. */
static bool read_names(struct names *names, const struct fresh_look *look,
	const struct end_process *processes, size_t n)
{
	char key[SESSION_KEY_CAP];
	for (size_t i = 0; i < look->n_processes; i++) {
		if (!is_one_of(&look->processes[i], processes, n))
			continue;
		session_key_of(key, &look->processes[i].id, "");
		if (has_name(names, key))
			continue;
		if (!array_one_more(&names->keys, names->n))
			return false;
		memcpy(names->keys[names->n++], key, sizeof(key));
	}
	return true;
}

/* Whether a process that is not in the list belongs to the session. */
static bool is_newcomer(const struct names *names, const struct present_process *p)
{
	char key[SESSION_KEY_CAP];
	session_key_of(key, &p->id, "");
	return has_name(names, key);
}

static bool is_alone(const struct fresh_look *look, size_t card,
	const struct end_process *processes, size_t n)
{
	for (size_t i = 0; i < look->n_processes; i++) {
		const struct present_process *p = &look->processes[i];
		if (p->card == card && p->holder && !is_one_of(p, processes, n))
			return false;
	}
	return true;
}

__attribute__((format(printf, 3, 4))) static void say(
	struct fresh_result *r, enum fresh_verdict verdict, const char *format, ...)
{
	va_list list;
	r->verdict = verdict;
	va_start(list, format);
	vsnprintf(r->why, sizeof(r->why), format, list);
	va_end(list);
}

/* Whether the card as a whole is as idle as a session must be. */
static bool is_unused(const struct present_card *card, double idle_below)
{
	return card->values[METRIC_UTILIZATION_GPU] < idle_below &&
	       !(card->values[METRIC_UTILIZATION_ENCODER] > 0) &&
	       !(card->values[METRIC_UTILIZATION_DECODER] > 0);
}

/* `used_pct`: what the session's processes used of the card, as far as they were seen. */
static void judge_process(struct fresh_result *r, const struct fresh_look *look,
	const struct present_process *p, double *used_pct, bool alone)
{
	*used_pct += p->sm_pct > 0 ? p->sm_pct : 0;
	const struct present_card *card = &look->cards[p->card];
	char label[CARD_LABEL_CAP];
	card_label(label, sizeof(label), &card->id);
	if (card->status != CARD_STATUS_OK)
		say(r, FRESH_UNKNOWN, "card %s does not answer", label);
	else if (*used_pct >= look->idle_below)
		say(r, FRESH_ACTIVE,
			"it used card %s: %.0f %% of the multiprocessors (the limit is %.0f "
			"%%)",
			label, *used_pct, look->idle_below);
	else if (use_most_engine(p->engine_pct) > 0)
		say(r, FRESH_ACTIVE, "it used another engine of card %s: %.0f %%", label,
			use_most_engine(p->engine_pct));
	else if (isnan(p->sm_pct) && !look->first &&
		 !(alone && is_unused(card, look->idle_below)))
		say(r, FRESH_UNKNOWN, "its use of card %s is not known", label);
}

/* A process that has taken memory since the decision is a sign of life by itself; one that
 * only draws may have been there before. */
static void judge_newcomer(struct fresh_result *r, const struct fresh_look *look,
	const struct present_process *p, double *used_pct)
{
	judge_process(r, look, p, used_pct, true);
	if (r->verdict == FRESH_IDLE && p->holder)
		say(r, FRESH_ACTIVE, "process %u of the session has come to a card",
			(unsigned)p->id.pid);
}

void fresh_judge(struct fresh_result *r, const struct fresh_look *look,
	const struct end_process *processes, size_t n)
{
	bool found = false, known = true;
	struct names names = { 0 };
	*r = (struct fresh_result){ .verdict = FRESH_IDLE };
	double *used_pct = calloc(look->n_cards + 1, sizeof(*used_pct)); /* by card */
	if (!used_pct || !read_names(&names, look, processes, n))
		say(r, FRESH_UNKNOWN, ERR_MEMORY_TEXT);
	for (size_t i = 0; i < look->n_processes && r->verdict == FRESH_IDLE; i++) {
		const struct present_process *p = &look->processes[i];
		if (!is_one_of(p, processes, n)) {
			if (is_newcomer(&names, p))
				judge_newcomer(r, look, p, &used_pct[p->card]);
			continue;
		}
		found = true;
		known = known && p->mem_bytes >= 0;
		r->held_bytes += p->mem_bytes > 0 ? p->mem_bytes : 0;
		judge_process(r, look, p, &used_pct[p->card],
			isnan(p->sm_pct) && is_alone(look, p->card, processes, n));
	}
	free(names.keys);
	free(used_pct);
	if (!known)
		r->held_bytes = -1;
	if (!found && r->verdict == FRESH_IDLE)
		say(r, FRESH_RELEASED, "it holds no card any more");
}

double fresh_power_w(const struct fresh_look *look, const char *uuid,
	const struct end_process *processes, size_t n, double *limit_w)
{
	bool holds = false;
	size_t card = 0;
	*limit_w = (double)NAN;
	while (card < look->n_cards && strcmp(look->cards[card].id.uuid, uuid) != 0)
		card++;
	if (card == look->n_cards || !is_alone(look, card, processes, n))
		return NAN;
	for (size_t i = 0; i < look->n_processes; i++)
		holds |= look->processes[i].card == card &&
			 is_one_of(&look->processes[i], processes, n);
	/* The power of a MIG instance is that of its whole card. */
	if (!holds || look->cards[card].id.mig_index >= 0)
		return NAN;
	*limit_w = look->cards[card].values[METRIC_POWER_ENFORCED];
	return look->cards[card].values[METRIC_POWER_DRAW];
}

static bool is_same(const char *own, const char *label)
{
	return *label && strcmp(own, label) == 0;
}

const struct present_process *fresh_companion(
	const struct fresh_look *look, const struct signs_session *session)
{
	for (size_t i = 0; i < look->n_processes; i++) {
		const struct present_process *p = &look->processes[i];
		if (!is_one_of(p, session->processes, session->n) &&
			(is_same(p->id.job, session->job) ||
				is_same(p->id.container, session->container)))
			return p;
	}
	return NULL;
}
