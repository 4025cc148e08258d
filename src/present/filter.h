/* The filter options of the views: --user, --pid, --job, --id, --min-mem, --state, --compute.
 * They mean the same in every view. Of the values of one option, one must match; all given
 * options must match. --id and --state select cards. --compute selects processes. The others
 * select processes and the cards that have such a process. */
#pragma once

#include "base/options.h"
#include "model/present.h"

/* The values of the options; zero-initialise. */
struct filter_values {
	struct text_list users, pids, jobs, ids,
		states; /* each may be a comma-separated list */
	const char *min_mem;
	bool compute;
};

/* The option rows, for a table of values with a struct filter_values `member`. A letter is 0 if
 * the view uses it for something else. */
#define FILTER_ROWS(type, member, letter_user, letter_pid, letter_id)                          \
	{ OPTION_LIST, letter_user, "user", "USER,...", "only processes of these users",       \
		.offset = offsetof(type, member.users) },                                      \
		{ OPTION_LIST, letter_pid, "pid", "N,...", "only these processes",             \
			.offset = offsetof(type, member.pids) },                               \
		{ OPTION_LIST, 0, "job", "JOB,...",                                            \
			"only processes of these batch jobs: 123 or slurm:123",                \
			.offset = offsetof(type, member.jobs) },                               \
		{ OPTION_LIST, letter_id, "id", "CARD,...",                                    \
			"only these cards: index, index:instance, UUID (or its beginning) or " \
			"PCI address",                                                         \
			.offset = offsetof(type, member.ids) },                                \
		{ OPTION_TEXT, 0, "min-mem", "SIZE",                                           \
			"only processes with at least this much memory on the card: 500M, 2G", \
			.offset = offsetof(type, member.min_mem) },                            \
		{ OPTION_FLAG, 0, "compute",                                                   \
			.help = "leave out processes that only draw, such as Xorg",            \
			.offset = offsetof(type, member.compute) },                            \
	{                                                                                      \
		OPTION_LIST, 0, "state", "STATE,...",                                          \
			"only cards that are active, idle-held, reserved, truly-idle, "        \
			"use-unknown, unobserved, suspect, lost, asleep or denied",            \
			.offset = offsetof(type, member.states), .words = filter_states        \
	}

struct filter {
	const struct filter_values *values; /* borrowed */
	int64_t min_mem_bytes;		    /* -1: any */
	unsigned states;		    /* bits 1 << enum card_state; 0: any */
	unsigned statuses; /* bits 1 << enum card_status that are not ok; 0: any */
	bool by_index;	   /* cards by index also with --id, as in nvidia-smi */
};

/* Appends the words of --state, each followed by a space. */
void filter_states(struct str *out);

/* Checks the values; ERR_USAGE. `v` must outlive the filter. */
int filter_init(struct filter *f, const struct filter_values *v, struct err *e);

/* Fills `picked` (with room for all cards) with the cards that match: in the order of --id if
 * it was given, unless by_index, else by index. Returns how many, or ERR_NOTHING if an --id
 * matches no card. */
int filter_cards(
	const struct filter *f, const struct present *now, size_t *picked, struct err *e);
/* Whether a card matches --id and --state. */
bool filter_card(const struct filter *f, const struct present_card *card);
/* Whether a process matches --user, --pid, --min-mem and --compute. */
bool filter_process(const struct filter *f, const struct present_process *p);
/* Whether --user, --pid or --min-mem was given. */
bool filter_has_process(const struct filter *f);
/* Whether a card matches these three: it has a process that matches, or none of them was given.
 */
bool filter_on_card(const struct filter *f, const struct present *now, size_t card);
