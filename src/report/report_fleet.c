/* Writes the foot of a report over a fleet, or over stores: where it comes from, and what is
 * missing in it. */
#include <stdio.h>

#include "base/timetext.h"
#include "report/report_parts.h"

static void add_hosts(struct report *r, const struct audit_fleet *f)
{
	char expected[64] = "", silent[96] = "", late[96] = "";
	if (f->n_expected >= 0)
		snprintf(expected, sizeof(expected), " of %lld expected",
			(long long)f->n_expected);
	if (f->n_late)
		snprintf(late, sizeof(late), ", %zu first seen within the window", f->n_late);
	if (f->n_silent)
		snprintf(silent, sizeof(silent), ", %zu not seen at its end", f->n_silent);
	report_say(r, SENTENCE_FLEET, NULL, "Hosts: %zu seen%s%s%s.", f->n_seen, expected, late,
		silent);
	if (f->n_missing)
		report_say(r, SENTENCE_FLEET, NULL, "Expected and not seen: %s.", f->missing);
}

static void add_coverage(struct report *r, const struct audit *a)
{
	char since[48], until[48];
	moment_text(since, sizeof(since), a->since_ms, r->utc);
	moment_text(until, sizeof(until), a->until_ms, r->utc);
	report_say(r, SENTENCE_FLEET, NULL,
		"Window covered: %s to %s, %.1f%% of the GPUs' time in it. Counter resets: %zu "
		"host%s lost %s store.",
		since, until, 100 * r->shown_observed, a->fleet.n_resets,
		plural(a->fleet.n_resets), a->fleet.n_resets == 1 ? "its" : "their");
}

static void add_cautions(struct report *r, const struct audit_fleet *f)
{
	if (f->n_twice)
		report_say(r, SENTENCE_FLEET, NULL,
			"%zu GPU%s reported by two hosts at the same time and counted twice: "
			"--match can choose one of two ways in which a host is scraped.",
			f->n_twice, f->n_twice == 1 ? " is" : "s are");
	if (f->n_partial)
		report_say(r, SENTENCE_FLEET, NULL,
			"Users are left out: %zu of these hosts %s other GPUs too, and metrics "
			"say who used a host, not on which GPU.",
			f->n_partial, f->n_partial == 1 ? "has" : "have");
	if (f->n_assumed)
		report_say(r, SENTENCE_FLEET, NULL,
			"%zu users of hosts first seen within the window are taken to have "
			"begun at 0 in it: to ask for each would be too much for one query.",
			f->n_assumed);
	if (f->n_not_finite)
		report_say(r, SENTENCE_FLEET, NULL,
			"%zu values of the engine are not numbers and are left out.",
			f->n_not_finite);
	for (size_t i = 0; i < f->n_warnings; i++)
		report_say(r, SENTENCE_FLEET, NULL, "The engine warns: %s", f->warnings[i]);
}

/* Which hosts are not in it, of those that were to be. */
static void add_asked(struct report *r, const struct asked_hosts *asked)
{
	enum { NAMED = 5 };
	report_say(r, SENTENCE_FLEET, NULL, "Hosts asked by ssh: %zu; %zu answered.",
		asked->n_asked, asked->n_answered);
	for (size_t i = 0; i < asked->n_failed && i < NAMED; i++)
		report_say(r, SENTENCE_FLEET, NULL, "Not in this report: %s (%s).",
			asked->failed[i].host, asked->failed[i].why);
	if (asked->n_failed > NAMED)
		report_say(r, SENTENCE_FLEET, NULL, "Not in this report: %zu more.",
			asked->n_failed - NAMED);
}

/* So many stores that could not be read are named; JSON has all. */
enum { UNREAD_NAMED = 10 };

static void add_unread(struct report *r, const struct audit_stores *s)
{
	size_t more = s->n_unread > UNREAD_NAMED ? s->n_unread - UNREAD_NAMED : 0;
	if (!s->n_unread)
		return;
	report_say(r, SENTENCE_FLEET, NULL,
		"%zu of %zu stores could not be read; nothing of %s is in this report:",
		s->n_unread, s->n, s->n_unread == 1 ? "it" : "them");
	for (size_t i = 0; i < s->n_unread - more; i++)
		report_say(r, SENTENCE_FLEET, NULL, "- %s", s->unread[i]);
	if (more)
		report_say(r, SENTENCE_FLEET, NULL,
			"- and %zu more: --format json names all of them", more);
}

void report_add_fleet(struct report *r, const struct audit *a)
{
	const struct audit_fleet *f = &a->fleet;
	if (r->asked)
		add_asked(r, r->asked);
	if (!f->asked) {
		add_unread(r, &a->stores);
		return;
	}
	report_say(r, SENTENCE_FLEET, NULL, "From %s: %s.", f->url, f->engine);
	add_hosts(r, f);
	add_coverage(r, a);
	add_cautions(r, f);
	report_say(r, SENTENCE_FLEET, NULL,
		"Metrics have no processes, idle spells, events, mean utilisation or memory "
		"peaks, and name users by their shares: the stores of the hosts have the "
		"rest.");
}
