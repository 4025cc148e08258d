/* The verdict of a report: the 20 % rule, and what a reader should look at next. Where too
 * little was observed to judge, it says what is missing instead. */
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "base/timetext.h"
#include "base/words.h"
#include "report/report_parts.h"

/* Idle-held time above this share of observed time, and squatting above this share of the time
 * that users held cards, are matters of policy. */
#define RULE_SHARE 0.2
/* A smaller part of it says nothing about who should change something. */
#define LEAST_NAMED 0.1
/* A verdict needs at least this part of the window ... */
#define LEAST_OBSERVED 0.5
/* ... and an hour. The default window is one, of which the last tick may be missing. */
#define LEAST_MS (55 * 60000)

static const char *const verdict_names[VERDICTS] = {
	[VERDICT_NONE] = NULL,
	[VERDICT_LITTLE_OBSERVED] = "too_little_observed",
	[VERDICT_TOO_SHORT] = "too_short",
	[VERDICT_POLICY] = "allocation_policy",
	[VERDICT_SQUATTING] = "squatting",
	[VERDICT_WITHIN] = "within_rule",
};

/* The share of squatting in the time that users held cards, of what is known. */
static double squatting_share(const struct report *r)
{
	return part_of(
		r->held.ms[HOLDER_SQUATTING], r->held_ms - r->held.ms[HOLDER_USE_UNKNOWN]);
}

/* The observed time of the card that was observed longest. */
static int64_t longest_ms(const struct audit *a)
{
	int64_t most_ms = 0;
	for (size_t i = 0; i < a->n_cards; i++) {
		int64_t ms = observed_ms(a->cards[i].ms);
		most_ms = ms > most_ms ? ms : most_ms;
	}
	return most_ms;
}

static enum report_verdict judge(const struct report *r, const struct audit *a)
{
	if (r->of_users || r->observed_ms == 0)
		return VERDICT_NONE;
	if (r->observed < LEAST_OBSERVED)
		return VERDICT_LITTLE_OBSERVED;
	if (longest_ms(a) < LEAST_MS)
		return VERDICT_TOO_SHORT;
	if (r->share[CARD_IDLE_HELD] > RULE_SHARE)
		return VERDICT_POLICY;
	return squatting_share(r) > RULE_SHARE ? VERDICT_SQUATTING : VERDICT_WITHIN;
}

void report_judge(struct report *r, const struct audit *a)
{
	r->waste.judged = judge(r, a);
	r->waste.verdict = verdict_names[r->waste.judged];
}

/* What a user has of the time that a verdict is about. Bare contexts are left out of idle-held
 * time: ending them frees little. */
static int64_t part_of_user(const struct audit_sums *s, enum report_verdict verdict)
{
	return verdict == VERDICT_SQUATTING ? s->ms[HOLDER_SQUATTING]
					    : s->idle_share_ms - s->context_share_ms;
}

static const struct audit_identity *largest(const struct audit *a, enum report_verdict verdict)
{
	const struct audit_identity *most = NULL;
	for (size_t i = 0; i < a->n_identities; i++) {
		const struct audit_identity *who = &a->identities[i];
		if (!most ||
			part_of_user(&who->sums, verdict) > part_of_user(&most->sums, verdict))
			most = who;
	}
	return most && part_of_user(&most->sums, verdict) > 0 ? most : NULL;
}

/* Names the user with the largest part, and the command that shows what it was. */
static void add_largest(struct report *r, const struct audit *a, const struct report_request *q)
{
	enum report_verdict verdict = r->waste.judged;
	bool squatting = verdict == VERDICT_SQUATTING;
	const struct audit_identity *who = largest(a, verdict);
	struct str next = { 0 };
	char mine[HOURS_TEXT_CAP], all[HOURS_TEXT_CAP];
	int64_t all_ms = squatting ? r->held.ms[HOLDER_SQUATTING] : r->ms[CARD_IDLE_HELD];
	if (!who || part_of(part_of_user(&who->sums, verdict), all_ms) < LEAST_NAMED)
		return;
	hours_text(mine, part_of_user(&who->sums, verdict));
	hours_text(all, all_ms);
	if (q->command) {
		str_addf(&next, " Next: %s --%s ", q->command,
			a->fleet.asked ? "by user,host" : "user");
		if (!a->fleet.asked)
			words_quote(&next, who->identity);
		str_add(&next, q->same_db ? " (with the same --db)" : "");
	}
	bool apart = !squatting && r->held.context_share_ms >= LEAST_SHOWN_MS;
	report_say(r, SENTENCE_VERDICT, "",
		"%s%s has the largest part: %s of %s GPU-hours%s.%s",
		apart ? "Apart from contexts, " : "", user_shown(who->identity), mine, all,
		squatting ? "" : " (share)", str_text(&next));
	r->failed |= next.failed;
	str_finish(&next);
}

/* Says why there is no verdict, and what to do about it. */
static void add_missing(struct report *r, const struct audit *a, const struct report_request *q)
{
	char seen[48], rest[48];
	bool recording = false;
	int64_t seen_ms = longest_ms(a);
	for (size_t i = 0; i < a->n_hosts; i++)
		recording |= a->hosts[i].recording;
	if (r->waste.judged == VERDICT_LITTLE_OBSERVED) {
		report_say(r, SENTENCE_VERDICT, "20% rule",
			"No verdict: %.1f%% of the window was observed, and a verdict needs "
			"half of it. 'gua status' says whether the recorder runs, and 'gua "
			"events' what was missed.",
			100 * r->shown_observed);
		return;
	}
	duration_text(seen, sizeof(seen), seen_ms);
	duration_text(rest, sizeof(rest), LEAST_MS - seen_ms);
	struct str next = { 0 };
	if (a->oldest_ms >= 0 && a->oldest_ms < a->since_ms)
		str_addf(&next, " A longer window has more%s.",
			q->command ? ": --since 1d" : "");
	else if (recording)
		str_addf(&next, " Ask again in %s.", rest);
	report_say(r, SENTENCE_VERDICT, "20% rule",
		"No verdict yet: %s were observed, and a verdict needs an hour.%s", seen,
		str_text(&next));
	r->failed |= next.failed;
	str_finish(&next);
}

/* A share above the rule that is 20.0 % as printed would seem to contradict it. */
static const char *how_far_above(double percent)
{
	return percent < 100 * RULE_SHARE + 0.05 ? "just above" : "above";
}

/* The rule itself. */
static void add_rule(struct report *r)
{
	double held = 100 * r->shown[CARD_IDLE_HELD];
	double squatting = 100 * squatting_share(r);
	if (r->waste.judged == VERDICT_POLICY)
		report_say(r, SENTENCE_VERDICT, "20% rule",
			"Idle-held is %.1f%% of observed time, %s 20%%: the problem is the "
			"allocation policy, not the hardware.",
			held, how_far_above(held));
	else if (r->waste.judged == VERDICT_WITHIN)
		report_say(r, SENTENCE_VERDICT, "20% rule",
			"Idle-held is %.1f%% of observed time, not above 20%%: the allocation "
			"policy is not the problem.",
			held);
	else
		report_say(r, SENTENCE_VERDICT, "20% rule",
			"Idle-held is %.1f%% of observed time, not above 20%%. But of the time "
			"that users held GPUs, %.1f%% was idle on a GPU that another user kept "
			"busy, %s 20%%: the problem is the allocation policy, not the "
			"hardware.",
			held, squatting, how_far_above(squatting));
}

/* Cards on which nobody has more than a context are nearly free. */
static void add_without_contexts(struct report *r)
{
	double without =
		part_of(r->ms[CARD_IDLE_HELD] - r->held.context_share_ms, r->observed_ms);
	if (r->held.context_share_ms >= LEAST_SHOWN_MS && without <= RULE_SHARE)
		report_say(r, SENTENCE_VERDICT, "",
			"Without contexts it would be %.1f%%, not above 20%%: those cards are "
			"nearly free.",
			100 * fmax(without, 0));
}

void report_add_verdict(struct report *r, const struct audit *a, const struct report_request *q)
{
	enum report_verdict verdict = r->waste.judged;
	if (verdict == VERDICT_LITTLE_OBSERVED || verdict == VERDICT_TOO_SHORT) {
		add_missing(r, a, q);
		return;
	}
	add_rule(r);
	if (verdict == VERDICT_POLICY)
		add_without_contexts(r);
	if (verdict != VERDICT_WITHIN)
		add_largest(r, a, q);
	if (r->ms[CARD_USE_UNKNOWN] > 0)
		report_say(r, SENTENCE_VERDICT, "",
			"Time held with use unknown (%.1f%% of observed time) does not count "
			"as idle-held.",
			100 * r->shown[CARD_USE_UNKNOWN]);
}
