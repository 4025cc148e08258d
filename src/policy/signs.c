/* Signs of life of a session on its cards, in the driver's newest samples. */
#include "policy/signs.h"

#include "model/session.h"

/* Orders processes by pid and start time. A user may have thousands of processes on a card, so
 * they are looked up by binary search. */
static int compare(const void *a, const void *b)
{
	const struct proc_life *x = a, *y = b;
	int by_pid = array_compare(x->pid, y->pid);
	return by_pid ? by_pid
		      : array_compare((int64_t)x->start_ticks, (int64_t)y->start_ticks);
}

void signs_sort(struct proc_life *processes, size_t n)
{
	array_sort(processes, n, compare);
}

static bool is_same(const char *own, const char *label)
{
	return *label && strcmp(own, label) == 0;
}

static bool is_one_of(
	const struct present_process *p, const struct proc_life *processes, size_t n)
{
	const struct proc_life key = { .pid = p->id.pid, .start_ticks = p->id.start_ticks };
	return n && bsearch(&key, processes, n, sizeof(*processes), compare);
}

/* The names of the session: two if the name of its user became known in between. */
struct session_names {
	char (*keys)[SESSION_KEY_CAP];
	size_t n;
};

static bool has_name(const struct session_names *names, const char *key)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->keys[i], key) == 0)
			return true;
	return false;
}

/* Collects the names of the sessions of the processes on a card. False: out of memory. */
static bool read_names(struct session_names *names, const struct signs_look *look,
	const struct proc_life *processes, size_t n)
{
	char key[SESSION_KEY_CAP];
	for (size_t i = 0; i < look->now->n_processes; i++) {
		if (!is_one_of(&look->now->processes[i], processes, n))
			continue;
		session_key_of(key, &look->now->processes[i].id, "");
		if (has_name(names, key))
			continue;
		if (!array_one_more(&names->keys, names->n))
			return false;
		memcpy(names->keys[names->n++], key, sizeof(key));
	}
	return true;
}

static bool is_alone(
	const struct signs_look *look, size_t card, const struct proc_life *processes, size_t n)
{
	for (size_t i = 0; i < look->now->n_processes; i++) {
		const struct present_process *p = &look->now->processes[i];
		if (p->card == card && p->holder && !is_one_of(p, processes, n))
			return false;
	}
	return true;
}

__attribute__((format(printf, 3, 4))) static void say(
	struct signs_result *r, enum signs_verdict verdict, const char *format, ...)
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

/* `used_pct` is the sum over the session's processes that were seen. */
static void judge_process(struct signs_result *r, const struct signs_look *look,
	const struct present_process *p, double *used_pct, bool alone)
{
	*used_pct += p->sm_pct > 0 ? p->sm_pct : 0;
	const struct present_card *card = &look->now->cards[p->card];
	struct brief label = card_label(&card->id);
	if (card->status != CARD_STATUS_OK)
		say(r, SIGNS_UNKNOWN, "card %s does not answer", label.text);
	else if (*used_pct >= look->idle_below)
		say(r, SIGNS_ACTIVE,
			"it used card %s: %.0f %% of the multiprocessors (the limit is %.0f "
			"%%)",
			label.text, *used_pct, look->idle_below);
	else if (reading_most_engine(p->engine_pct) > 0)
		say(r, SIGNS_ACTIVE, "it used another engine of card %s: %.0f %%", label.text,
			reading_most_engine(p->engine_pct));
	else if (isnan(p->sm_pct) && !look->first &&
		 !(alone && is_unused(card, look->idle_below)))
		say(r, SIGNS_UNKNOWN, "its use of card %s is not known", label.text);
}

/* A process of the session that is not in its list. One that has taken memory since the
 * decision is a sign of life by itself; one that only draws may have been there before. */
static void judge_newcomer(struct signs_result *r, const struct signs_look *look,
	const struct present_process *p, const struct session_names *names, double *used_pct)
{
	char key[SESSION_KEY_CAP];
	session_key_of(key, &p->id, "");
	if (!has_name(names, key))
		return;
	judge_process(r, look, p, used_pct, true);
	if (r->verdict == SIGNS_IDLE && p->holder)
		say(r, SIGNS_ACTIVE, "process %u of the session has appeared on a card",
			(unsigned)p->id.pid);
}

void signs_judge(struct signs_result *r, const struct signs_look *look,
	const struct proc_life *processes, size_t n)
{
	bool found = false, known = true;
	struct session_names names = { 0 };
	*r = (struct signs_result){ .verdict = SIGNS_IDLE };
	double *used_pct = calloc(look->now->n_cards + 1, sizeof(*used_pct)); /* by card */
	if (!used_pct || !read_names(&names, look, processes, n))
		say(r, SIGNS_UNKNOWN, ERR_MEMORY_TEXT);
	for (size_t i = 0; i < look->now->n_processes && r->verdict == SIGNS_IDLE; i++) {
		const struct present_process *p = &look->now->processes[i];
		if (!is_one_of(p, processes, n)) {
			judge_newcomer(r, look, p, &names, &used_pct[p->card]);
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
	if (!found && r->verdict == SIGNS_IDLE)
		say(r, SIGNS_RELEASED, "it no longer holds a card");
}

double signs_power_w(const struct signs_look *look, const char *uuid,
	const struct proc_life *processes, size_t n, double *limit_w)
{
	bool holds = false;
	size_t card = 0;
	*limit_w = (double)NAN;
	while (card < look->now->n_cards && strcmp(look->now->cards[card].id.uuid, uuid) != 0)
		card++;
	if (card == look->now->n_cards || !is_alone(look, card, processes, n))
		return NAN;
	for (size_t i = 0; i < look->now->n_processes; i++)
		holds |= look->now->processes[i].card == card &&
			 is_one_of(&look->now->processes[i], processes, n);
	/* The power of a MIG instance is that of its whole card. */
	if (!holds || look->now->cards[card].id.mig_index >= 0)
		return NAN;
	*limit_w = look->now->cards[card].values[METRIC_POWER_ENFORCED];
	return look->now->cards[card].values[METRIC_POWER_DRAW];
}

const struct present_process *signs_companion(
	const struct signs_look *look, const struct activity_group *session)
{
	for (size_t i = 0; i < look->now->n_processes; i++) {
		const struct present_process *p = &look->now->processes[i];
		if (!is_one_of(p, session->processes, session->n) &&
			(is_same(p->id.job, session->job) || is_same(p->id.pod, session->pod) ||
				is_same(p->id.container, session->container)))
			return p;
	}
	return NULL;
}
