/* From the audit to its tables: cards, identities, processes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "render/report.h"

#define COUNT(array) (sizeof(array) / sizeof(array[0]))

int64_t report_observed_ms(const int64_t ms[CARD_STATES])
{
	return ms[CARD_ACTIVE] + ms[CARD_IDLE_HELD] + ms[CARD_TRULY_IDLE] +
	       ms[CARD_USE_UNKNOWN];
}

double report_share(int64_t part_ms, int64_t whole_ms)
{
	return whole_ms > 0 ? (double)part_ms / (double)whole_ms : NAN;
}

size_t report_observed_cards(const struct audit *a)
{
	size_t n = 0;
	for (size_t i = 0; i < a->n_cards; i++)
		n += report_observed_ms(a->cards[i].ms) > 0;
	return n;
}

double report_uncertainty(int64_t unsure_ms, const int64_t ms[CARD_STATES])
{
	return report_share(unsure_ms, report_observed_ms(ms));
}

double report_util_pct(const struct audit_card *card)
{
	return report_share(
		card->util_pct_ms, report_observed_ms(card->ms) - card->ms[CARD_USE_UNKNOWN]);
}

double report_sm_active_pct(const struct audit_card *card)
{
	return report_share(card->sm_active_pct_ms, card->sm_active_ms);
}

double report_energy_kwh(const int64_t energy_mj[CARD_STATES],
	const int64_t known_ms[CARD_STATES], const int64_t ms[CARD_STATES], int state)
{
	if (ms[state] > 0 && known_ms[state] == 0)
		return NAN;
	return (double)energy_mj[state] / 3.6e9;
}

bool report_breaks_rule(const struct audit *a)
{
	return report_share(a->ms[CARD_IDLE_HELD], report_observed_ms(a->ms)) > 0.2;
}

/* Eight characters of "GPU-3f2a91c4-...": the first, or the last where the first are not enough
 * to tell the cards apart. */
enum { SHORT_UUID = 8 };

static void short_uuid(char *dst, size_t cap, const char *uuid, bool tail)
{
	const char *dash = strchr(uuid, '-');
	const char *from = dash && dash - uuid <= 4 && dash[1] ? dash + 1 : uuid;
	size_t len = strlen(from);
	snprintf(dst, cap, "%.*s", SHORT_UUID,
		from + (tail && len > SHORT_UUID ? len - SHORT_UUID : 0));
}

/* Cards are sorted by host: each is compared with those of its own. */
static bool heads_are_alike(const struct audit *a, size_t host)
{
	char one[UUID_CAP], other[UUID_CAP];
	for (size_t i = 0; i < a->n_cards; i++) {
		if (host != SIZE_MAX && a->cards[i].host != host)
			continue;
		short_uuid(one, sizeof(one), a->cards[i].id.uuid, false);
		for (size_t k = i; k-- > 0 && a->cards[k].host == a->cards[i].host;) {
			short_uuid(other, sizeof(other), a->cards[k].id.uuid, false);
			if (strcmp(one, other) == 0)
				return true;
		}
	}
	return false;
}

/* Columns of which text shows only what somebody has. */
enum { CARD_COLUMN_UNKNOWN = 16, CARD_COLUMN_SM = 18, IDENTITY_COLUMN_UNKNOWN = 6 };

static const struct column card_columns[] = {
	{ "host", NULL, COLUMN_TEXT, 0, false },
	{ NULL, "gpu", COLUMN_TEXT, 0, false },
	{ NULL, "uuid", COLUMN_TEXT, -8, false },
	{ "uuid", NULL, COLUMN_TEXT, 0, false },
	{ "index", NULL, COLUMN_COUNT, 0, false },
	{ "mig_index", NULL, COLUMN_COUNT, 0, false },
	{ "name", NULL, COLUMN_TEXT, 0, false },
	{ NULL, "name", COLUMN_TEXT, 0, true },
	{ "status", NULL, COLUMN_TEXT, 0, false },
	{ "active_gpu_seconds", NULL, COLUMN_GPU_MS, 0, false },
	{ "idle_held_gpu_seconds", NULL, COLUMN_GPU_MS, 0, false },
	{ "truly_idle_gpu_seconds", NULL, COLUMN_GPU_MS, 0, false },
	{ "unobserved_gpu_seconds", NULL, COLUMN_GPU_MS, 0, false },
	{ "active", "active", COLUMN_SHARE, 6, false },
	{ "idle_held", "idle-held", COLUMN_SHARE, 6, false },
	{ "truly_idle", "truly-idle", COLUMN_SHARE, 6, false },
	[CARD_COLUMN_UNKNOWN] = { NULL, "use?", COLUMN_SHARE, 6, false },
	{ "mean_util_pct", "util", COLUMN_PCT, 6, false },
	[CARD_COLUMN_SM] = { NULL, "SM", COLUMN_PCT, 6, false },
	{ "observed", "observed", COLUMN_SHARE, 6, false },
	{ "use_unknown_gpu_seconds", NULL, COLUMN_GPU_MS, 0, false },
	{ "use_unknown", NULL, COLUMN_SHARE, 0, false },
	{ "idle_held_uncertainty", NULL, COLUMN_SHARE, 0, false },
	{ "sm_active_pct", NULL, COLUMN_PCT, 0, false },
};

static void add_card(
	struct table *t, const struct audit *a, const struct audit_card *card, bool tail)
{
	char label[32], uuid[UUID_CAP];
	int64_t observed_ms = report_observed_ms(card->ms);
	int64_t whole_ms = observed_ms + card->ms[CARD_UNOBSERVED];
	int64_t unknown_ms = card->ms[CARD_USE_UNKNOWN];
	const char *name = card->id.name;
	card_label(label, sizeof(label) - 1, &card->id);
	if (strcmp(card->status, "ok") != 0)
		strcat(label, "*");
	short_uuid(uuid, sizeof(uuid), card->id.uuid, tail);
	const struct cell cells[COUNT(card_columns)] = {
		cell_text(a->hosts[card->host].hostname),
		cell_text(label),
		cell_text(uuid),
		cell_text(card->id.uuid),
		cell_number(card->id.index),
		cell_known(card->id.mig_index),
		cell_text(name),
		cell_text(strncmp(name, "NVIDIA ", 7) == 0 ? name + 7 : name),
		cell_text(card->status),
		cell_number((double)card->ms[CARD_ACTIVE]),
		cell_number((double)card->ms[CARD_IDLE_HELD]),
		cell_number((double)card->ms[CARD_TRULY_IDLE]),
		cell_number((double)card->ms[CARD_UNOBSERVED]),
		cell_number(report_share(card->ms[CARD_ACTIVE], observed_ms)),
		cell_number(report_share(card->ms[CARD_IDLE_HELD], observed_ms)),
		cell_number(report_share(card->ms[CARD_TRULY_IDLE], observed_ms)),
		cell_number(unknown_ms ? report_share(unknown_ms, observed_ms) : NAN),
		cell_number(report_util_pct(card)),
		cell_number(report_sm_active_pct(card)),
		cell_number(report_share(observed_ms, whole_ms)),
		cell_number((double)unknown_ms),
		cell_number(report_share(unknown_ms, observed_ms)),
		cell_number(report_uncertainty(card->unsure_ms, card->ms)),
		cell_number(report_sm_active_pct(card)),
	};
	table_add(t, cells);
}

void report_cards_table(struct table *t, const struct audit *a, size_t host)
{
	*t = (struct table){ .columns = card_columns,
		.n_columns = COUNT(card_columns),
		.optional = 1ULL << CARD_COLUMN_UNKNOWN | 1ULL << CARD_COLUMN_SM };
	bool tail = heads_are_alike(a, host);
	for (size_t i = 0; i < a->n_cards; i++)
		if (host == SIZE_MAX || a->cards[i].host == host)
			add_card(t, a, &a->cards[i], tail);
}

static int64_t sum_of(const int64_t ms[HOLDER_STATES])
{
	int64_t sum = 0;
	for (int state = 0; state < HOLDER_STATES; state++)
		sum += ms[state];
	return sum;
}

static const struct column identity_columns[] = {
	{ "identity", "identity", COLUMN_TEXT, 10, true },
	{ "gpu_seconds", "GPU-hours", COLUMN_GPU_MS, 0, false },
	{ "idle_held_fraction", "idle-held", COLUMN_SHARE, 0, false },
	{ "active_gpu_seconds", NULL, COLUMN_GPU_MS, 0, false },
	{ "idle_held_gpu_seconds", "held h", COLUMN_GPU_MS, 7, false },
	{ "squatting_gpu_seconds", "squat h", COLUMN_GPU_MS, 7, false },
	[IDENTITY_COLUMN_UNKNOWN] = { NULL, "use? h", COLUMN_GPU_MS, 6, false },
	{ "truly_idle_gpu_seconds", NULL, COLUMN_GPU_MS, 0, false },
	{ "share_gpu_seconds", "share h", COLUMN_GPU_MS, 7, false },
	{ "idle_held_share_gpu_seconds", NULL, COLUMN_GPU_MS, 7, false },
	{ "peak_mem_mb", "peak mem", COLUMN_KIB, 8, false },
	{ "last_active", NULL, COLUMN_MOMENT, 0, false },
	{ "use_unknown_gpu_seconds", NULL, COLUMN_GPU_MS, 0, false },
};

void report_identities_table(struct table *t, const struct audit *a, size_t top)
{
	*t = (struct table){ .columns = identity_columns,
		.n_columns = COUNT(identity_columns),
		.optional = 1ULL << IDENTITY_COLUMN_UNKNOWN };
	for (size_t i = 0; i < a->n_identities && (top == 0 || i < top); i++) {
		const struct audit_identity *who = &a->identities[i];
		const int64_t *ms = who->presence_ms, unknown_ms = ms[HOLDER_USE_UNKNOWN];
		const struct cell cells[COUNT(identity_columns)] = {
			cell_text(who->identity),
			cell_number((double)sum_of(ms)),
			cell_number(report_share(ms[HOLDER_IDLE_HELD], sum_of(ms))),
			cell_number((double)ms[HOLDER_ACTIVE]),
			cell_number((double)ms[HOLDER_IDLE_HELD]),
			cell_number((double)ms[HOLDER_SQUATTING]),
			cell_number(unknown_ms ? (double)unknown_ms : NAN),
			cell_number((double)ms[HOLDER_TRULY_IDLE]),
			cell_number((double)(who->active_share_ms + who->idle_share_ms)),
			cell_number((double)who->idle_share_ms),
			cell_known(who->peak_mem_kib),
			cell_known(who->last_active_ms),
			cell_number((double)unknown_ms),
		};
		table_add(t, cells);
	}
}

static const struct column process_columns[] = {
	{ "pid", "pid", COLUMN_COUNT, 0, false },
	{ "started", NULL, COLUMN_MOMENT, 0, false },
	{ "user", "user", COLUMN_TEXT, -12, false },
	{ "command", "command", COLUMN_TEXT, 0, true },
	{ "host", NULL, COLUMN_TEXT, 0, false },
	{ "gpu", NULL, COLUMN_TEXT, 0, false },
	{ "gpu_index", NULL, COLUMN_COUNT, 0, false },
	{ NULL, "gpu", COLUMN_TEXT, -14, false },
	{ "gpu_seconds", "hours", COLUMN_GPU_MS, 6, false },
	{ "idle_held_gpu_seconds", "held h", COLUMN_GPU_MS, 6, false },
	{ "squatting_gpu_seconds", NULL, COLUMN_GPU_MS, 6, false },
	{ "peak_mem_mb", "peak", COLUMN_KIB, 7, false },
	{ "last_active", "last active", COLUMN_MOMENT, 0, false },
	{ "notebook", NULL, COLUMN_TEXT, 0, false },
	{ "job", NULL, COLUMN_TEXT, 0, false },
	{ "container", NULL, COLUMN_TEXT, 0, false },
	{ "pod", NULL, COLUMN_TEXT, 0, false },
	{ "unit", NULL, COLUMN_TEXT, 0, false },
	{ "use_unknown_gpu_seconds", NULL, COLUMN_GPU_MS, 0, false },
};

static void add_process(struct table *t, const struct audit *a, const struct audit_process *p)
{
	const struct audit_card *card = &a->cards[p->card];
	char label[32], where[192];
	card_label(label, sizeof(label), &card->id);
	snprintf(where, sizeof(where), a->n_hosts > 1 ? "%s %s" : "%s%s",
		a->n_hosts > 1 ? a->hosts[p->host].hostname : "", label);
	const struct cell cells[COUNT(process_columns)] = {
		cell_number(p->pid),
		cell_known(p->started_ms),
		cell_text(a->identities[p->identity].identity),
		cell_text(p->command),
		cell_text(a->hosts[p->host].hostname),
		cell_text(card->id.uuid),
		cell_number(card->id.index),
		cell_text(where),
		cell_number((double)sum_of(p->ms)),
		cell_number((double)p->ms[HOLDER_IDLE_HELD]),
		cell_number((double)p->ms[HOLDER_SQUATTING]),
		cell_known(p->peak_mem_kib),
		cell_known(p->last_active_ms),
		cell_text(p->notebook),
		cell_text(p->job),
		cell_text(p->container),
		cell_text(p->pod),
		cell_text(p->unit),
		cell_number((double)p->ms[HOLDER_USE_UNKNOWN]),
	};
	table_add(t, cells);
}

void report_processes_table(struct table *t, const struct audit *a, size_t top)
{
	*t = (struct table){ .columns = process_columns, .n_columns = COUNT(process_columns) };
	for (size_t i = 0; i < a->n_processes && (top == 0 || i < top); i++)
		add_process(t, a, &a->processes[i]);
}
