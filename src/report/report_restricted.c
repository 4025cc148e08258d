/* Writes the sentences of a report that is restricted to some users or cards. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "report/report_parts.h"
#include "audit/restriction.h"

static void add_only(struct report *r, const struct restriction *only)
{
	struct str text = { 0 };
	for (size_t i = 0; i < RESTRICTIONS; i++) {
		struct restriction_word word = { 0 };
		for (size_t n = 0; restriction_next(only, (enum restriction_kind)i, &word); n++)
			if (n)
				str_addf(&text, ", %s", word.safe);
			else
				str_addf(&text, "%s%s %s", text.len ? "; " : "",
					restriction_names[i], word.safe);
	}
	if (text.len)
		report_say(r, SENTENCE_RESTRICTED, NULL, "Only %s", str_text(&text));
	r->failed |= text.failed;
	str_finish(&text);
}

/* The users in words. */
static const char *people(const struct audit *a)
{
	return a->n_identities == 1 ? user_shown(a->identities[0].identity) : "these users";
}

/* What the headline is about, and how much of the cards' time that is. */
static void add_held(struct report *r, const struct audit *a)
{
	char held[HOURS_TEXT_CAP], observed[HOURS_TEXT_CAP];
	hours_text(held, r->held_ms);
	hours_text(observed, r->observed_ms);
	const char *measure = r->fleet		     ? "shares of the GPUs' time"
			      : a->n_identities == 1 ? "presence, once per GPU and moment"
						     : "presence of each, added up";
	report_say(r, SENTENCE_OBSERVED, NULL,
		"of %s GPU-hours that %s held (%s): %.1f%% of the %s GPU-hours "
		"observed on %zu GPU%s",
		held, people(a), measure, 100 * part_of(r->held_ms, r->observed_ms), observed,
		r->observed_cards, plural(r->observed_cards));
}

static void add_unused(struct report *r, const struct audit *a)
{
	char unused[HOURS_TEXT_CAP], held[HOURS_TEXT_CAP], idle[HOURS_TEXT_CAP];
	char squatting[HOURS_TEXT_CAP], of[USER_CAP + 64];
	hours_text(unused, audit_waste(&r->held));
	hours_text(held, r->held_ms);
	hours_text(idle, r->held.ms[HOLDER_IDLE_HELD]);
	hours_text(squatting, r->held.ms[HOLDER_SQUATTING]);
	report_say(r, SENTENCE_WASTE, "unused",
		"%s of %s GPU-hours: %s idle, %s idle on a GPU that another user kept busy",
		unused, held, idle, squatting);
	snprintf(of, sizeof(of), "the share of %s in idle-held time", people(a));
	if (r->waste.currency)
		report_add_cost(r, a, of);
}

void report_add_restriction(
	struct report *r, const struct audit *a, const struct report_request *q)
{
	if (q->only)
		add_only(r, q->only);
	if (!r->of_users)
		return;
	if (r->held_ms == 0) {
		report_say(r, SENTENCE_OBSERVED, NULL, "Nothing was held in this window.");
		return;
	}
	add_held(r, a);
	add_unused(r, a);
}
