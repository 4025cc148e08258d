/* Writes the sentences about the table of holders. */
#include <string.h>

#include "base/str.h"
#include "report/report_parts.h"
#include "store/crowd.h"

/* What the hours of rows are, by measure. */
static const char *const measure_texts[MEASURES] = {
	[MEASURE_PRESENCE] = "presence, once per GPU and moment",
	[MEASURE_USERS] = "each user's presence, so that two users on a GPU count twice",
	[MEASURE_PROCESSES] = "each process's own, so that two processes on a GPU count twice",
	[MEASURE_CARDS] = "the GPUs' own",
	[MEASURE_SHARES] = "shares of the GPUs' time, which add up to it",
};

static void add_left_out(struct report *r, const struct audit *a)
{
	const struct report_breakdown *b = &r->breakdown;
	bool rest = false;
	for (size_t i = 0; i < b->table.n_rows; i++)
		rest |= b->rows[i].rest;
	if (rest)
		report_say(r, SENTENCE_HOLDERS, NULL, "--top 0 shows all.");
	size_t all = a->n_processes + a->n_processes_left_out;
	if (by_is(&b->by, IDENTITY_PROCESS) && b->table.n_rows < all)
		report_say(r, SENTENCE_HOLDERS, NULL, "%zu more processes: --top 0 shows all",
			all - b->table.n_rows);
}

/* Says what the columns are. */
static void add_measures(struct report *r, const struct audit *a)
{
	const struct report_breakdown *b = &r->breakdown;
	enum measure last = b->measures[b->by.n - 1];
	const struct audit_cost *cost =
		b->measures[0] == MEASURE_CARDS ? &a->cost : &a->held_cost;
	struct str text = { 0 };
	if (last == MEASURE_CARDS)
		return;
	if (by_is(&b->by, IDENTITY_PROCESS))
		str_add(&text, "Hours: the process's own on that GPU, by its own use.");
	else if (b->by.n == 2 && b->measures[0] != last)
		str_addf(&text, "Hours of a %s: %s. Hours of a %s: %s.",
			identity_kinds[b->by.kinds[0]].name, measure_texts[b->measures[0]],
			identity_kinds[b->by.kinds[1]].name, measure_texts[last]);
	else
		str_addf(&text, "Hours: %s.", measure_texts[last]);
	if (last == MEASURE_SHARES)
		str_add(&text, " unused: the idle part.");
	else if (!by_is(&b->by, IDENTITY_PROCESS))
		str_add(&text, " unused: idle, also on a GPU that another user keeps busy.");
	if (last == MEASURE_SHARES)
		str_add(&text, " idle on busy GPU: beside the shares.");
	else if (last != MEASURE_PROCESSES || by_has(&b->by, IDENTITY_USER))
		str_add(&text, " share: a GPU's time, divided among its holders.");
	if (r->bill.currency && cost->priced &&
		b->measures[0] != MEASURE_PROCESSES) /* else no room is left */
		str_addf(&text, " cost: of the share, in %s.", r->bill.currency);
	report_say(r, SENTENCE_HOLDERS, NULL, "%s", str_text(&text));
	r->failed |= text.failed;
	str_finish(&text);
}

/* Names users whose idle time is mostly that of bare contexts, as ending those frees little. */
static void add_contexts(struct report *r, const struct audit *a)
{
	enum { NAMED = 3 };
	struct str text = { 0 };
	size_t n = 0;
	char hours[HOURS_TEXT_CAP];
	for (size_t i = 0; i < a->n_identities; i++) {
		const struct audit_sums *s = &a->identities[i].sums;
		if (s->context_share_ms < LEAST_SHOWN_MS ||
			2 * s->context_share_ms < s->idle_share_ms || n++ >= NAMED)
			continue;
		hours_text(hours, s->context_share_ms);
		str_addf(&text, "%s%s %s", text.len ? ", " : "",
			user_shown(a->identities[i].identity), hours);
	}
	if (n)
		report_say(r, SENTENCE_HOLDERS, NULL,
			"Idle with little more than a CUDA context: %s%s GPU-hours (share). "
			"Ending that frees little memory.",
			str_text(&text), n > NAMED ? ", ..." : "");
	r->failed |= text.failed;
	str_finish(&text);
}

/* Says what the mark of a bare context is, if a process that is shown has it. */
static void add_context_mark(struct report *r, const struct audit *a)
{
	bool some = false;
	for (size_t i = 0; i < r->breakdown.table.n_rows && i < a->n_processes; i++)
		some |= a->processes[i].context;
	if (some)
		report_say(r, SENTENCE_HOLDERS, NULL,
			"[ctx]: never more than about a CUDA context; ending it frees little "
			"memory.");
}

/* Says what a row of a crowd is, if a process that is shown is one. */
static void add_crowd(struct report *r, const struct audit *a)
{
	bool crowd = false;
	for (size_t i = 0; i < r->breakdown.table.n_rows && i < a->n_processes; i++) {
		const struct audit_process *p = &a->processes[i];
		const char *command = p->texts[PROCESS_COMMAND];
		crowd |= p->pid == 0 && command && strcmp(command, CROWD_COMMAND) == 0;
	}
	if (crowd)
		report_say(r, SENTENCE_HOLDERS, NULL,
			CROWD_COMMAND " are a user's processes of less than %d minutes, after "
				      "the first %d of a day: their time is stored as one.",
			CROWD_SHORT_MS / 60000, CROWD_LIVES);
}

void report_add_notes(struct report *r, const struct audit *a, const struct report_request *q)
{
	bool cards = r->breakdown.measures[q->by.n - 1] == MEASURE_CARDS;
	if (by_is(&q->by, IDENTITY_CARD))
		return;
	if (r->breakdown.table.n_rows == 0)
		report_say(r, SENTENCE_HOLDERS, NULL,
			r->fleet && r->fleet->n_partial
				? "Not known: metrics say who used a host, not on which GPU."
				: "Nobody held a GPU.");
	add_left_out(r, a);
	if (by_has(&q->by, IDENTITY_GROUP) && !q->has_groups)
		report_say(r, SENTENCE_HOLDERS, NULL,
			"No groups are defined: [groups] in gua.conf(5) does that.");
	if (r->unattributed_ms >= LEAST_SHOWN_MS && !cards)
		report_say(r, SENTENCE_HOLDERS, NULL,
			"%.2f GPU-hours of active or idle-held time are in nobody's share.",
			(double)r->unattributed_ms / 3600e3);
	if (r->breakdown.table.n_rows)
		add_measures(r, a);
	if (by_is(&q->by, IDENTITY_USER))
		add_contexts(r, a);
	if (by_is(&q->by, IDENTITY_PROCESS)) {
		add_context_mark(r, a);
		add_crowd(r, a);
	}
}
