/* What policy costs, and the long run of its property test: bench_policy N [SEED] checks N
 * random histories; bench_policy judge judges 1,000 sessions and prints the CPU microseconds of
 * the fastest of several passes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policy/judge.h"
#include "policy_fixture.h"

enum { SESSIONS = 1000, CARDS = 8, MARKS = 4, PASSES = 20 };
#define NOW INT64_C(1794528000000)
#define HOUR_MS INT64_C(3600000)

static int64_t cpu_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

struct world {
	struct idle_history h;
	struct idle_session sessions[SESSIONS];
	struct idle_process processes[SESSIONS];
	struct idle_span spans[SESSIONS];
	struct idle_mark marks[SESSIONS * MARKS];
	struct card_id cards[CARDS];
	char keys[SESSIONS][32];
	struct session_facts facts[SESSIONS];
	struct policy_state states[SESSIONS];
	struct verdict verdicts[SESSIONS];
};

/* Sessions that have been idle for up to a day, each with some earlier use. */
static void make(struct world *w)
{
	static const char *const users[] = { "alice", "bob", "carol", "dave", "erin" };
	w->h = (struct idle_history){ .present = true,
		.last_tick_ms = NOW,
		.interval_ms = 30000,
		.limits = { 5 },
		.n_limits = 1,
		.cards = w->cards,
		.n_cards = CARDS,
		.sessions = w->sessions,
		.n_sessions = SESSIONS,
		.processes = w->processes,
		.n_processes = SESSIONS,
		.spans = w->spans,
		.n_spans = SESSIONS,
		.marks = w->marks,
		.n_marks = SESSIONS * MARKS };
	for (uint32_t i = 0; i < SESSIONS; i++) {
		int64_t begin_ms = NOW - HOUR_MS * (i % 24) - i * 1000;
		snprintf(w->keys[i], sizeof(w->keys[i]), "process %u", i);
		w->sessions[i] = (struct idle_session){ .key = w->keys[i],
			.user = users[i % 5],
			.use = (enum session_use)(i % SESSION_USES),
			.holds = true,
			.marks = { { i * MARKS, MARKS } } };
		w->processes[i] = (struct idle_process){ .session = i, .uid = 1000 };
		w->spans[i] = (struct idle_span){ .session = i,
			.process = i,
			.card = i % CARDS,
			.begin_ms = begin_ms,
			.end_ms = NOW,
			.mem_kib = 4 << 20,
			.held_since_ms = begin_ms,
			.open = true };
		for (uint32_t k = 0; k < MARKS; k++)
			w->marks[i * MARKS + k] = (struct idle_mark){ .session = i,
				.card = i % CARDS,
				.from_ms = begin_ms - (MARKS - k) * HOUR_MS,
				.until_ms = begin_ms - (MARKS - k) * HOUR_MS };
	}
}

static int64_t count(void *context)
{
	(void)context;
	return SESSIONS;
}

static int64_t judge_all(struct world *w, const struct config *config)
{
	struct policy policy = { .config = config, .history = &w->h };
	int64_t began_us = cpu_us();
	for (uint32_t i = 0; i < SESSIONS; i++) {
		w->states[i] = POLICY_STATE_NONE;
		w->facts[i] = (struct session_facts){ .kept_until_ms = -1, .delivered_ms = -1 };
		facts_at(&policy, &w->facts[i], &w->sessions[i], (struct open_spans){ &i, 1 },
			NOW);
	}
	struct pass pass = { .policy = &policy,
		.now_ms = NOW,
		.facts = w->facts,
		.states = w->states,
		.verdicts = w->verdicts,
		.n = SESSIONS,
		.count_sessions = count };
	if (!judge_pass(&pass))
		abort();
	return cpu_us() - began_us;
}

static int judge_sessions(void)
{
	static struct world w;
	static struct config_rule rules[20];
	struct config config = { .policy = { .ends_per_hour = 2, .breaker_pct = 30 },
		.policy_rules = { rules, 20 } };
	int64_t best = INT64_MAX;
	const char *nobody[] = { "nobody" };
	/* Twenty rules of which none matches, before the built-in one. */
	for (size_t i = 0; i < 20; i++)
		rules[i] = (struct config_rule){
			.name = "x", .level = "end", .match.users = { nobody, 1 }
		};
	make(&w);
	for (int i = 0; i < PASSES; i++) {
		int64_t us = judge_all(&w, &config);
		best = us < best ? us : best;
	}
	size_t steps = 0;
	for (size_t i = 0; i < SESSIONS; i++)
		steps += w.verdicts[i].step != STEP_NONE;
	printf("%lld %zu\n", (long long)best, steps);
	return 0;
}

int main(int argc, char **argv)
{
	struct policy_checked sum = { 0 };
	if (argc > 1 && strcmp(argv[1], "judge") == 0)
		return judge_sessions();
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	for (uint64_t seed = first; seed < first + n; seed++) {
		const char *wrong = policy_check_random(seed, &sum);
		if (wrong) {
			fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, wrong);
			return 1;
		}
	}
	printf("%zu %zu %zu\n", sum.histories, sum.ends, sum.would_ends);
	return 0;
}
