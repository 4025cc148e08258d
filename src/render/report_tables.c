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

/* What a row of cards is made of. */
struct card_row {
	struct audit_card card;
	const char *host;
	char label[32];	     /* with a star when it cannot be read now */
	char uuid[UUID_CAP]; /* the short one */
};

static struct cell card_index(const void *row, size_t of)
{
	(void)of;
	return cell_number(((const struct card_row *)row)->card.id.index);
}

static struct cell card_instance(const void *row, size_t of)
{
	(void)of;
	return cell_known(((const struct card_row *)row)->card.id.mig_index);
}

static struct cell card_parent(const void *row, size_t of)
{
	const char *uuid = ((const struct card_row *)row)->card.id.parent_uuid;
	(void)of;
	return cell_text(*uuid ? uuid : NULL);
}

static struct cell card_short_name(const void *row, size_t of)
{
	const char *name = ((const struct card_row *)row)->card.id.name;
	(void)of;
	return cell_text(strncmp(name, "NVIDIA ", 7) == 0 ? name + 7 : name);
}

static struct cell card_ms(const void *row, size_t state)
{
	return cell_number((double)((const struct card_row *)row)->card.ms[state]);
}

/* Of observed time. */
static struct cell card_share(const void *row, size_t state)
{
	const int64_t *ms = ((const struct card_row *)row)->card.ms;
	return cell_number(report_share(ms[state], report_observed_ms(ms)));
}

/* The same, but none is not known: text shows the column when there is some. */
static struct cell card_some_share(const void *row, size_t state)
{
	const int64_t *ms = ((const struct card_row *)row)->card.ms;
	return ms[state] ? card_share(row, state) : cell_number(NAN);
}

static struct cell card_observed(const void *row, size_t of)
{
	const int64_t *ms = ((const struct card_row *)row)->card.ms;
	int64_t observed_ms = report_observed_ms(ms);
	(void)of;
	return cell_number(report_share(observed_ms, observed_ms + ms[CARD_UNOBSERVED]));
}

static struct cell card_uncertainty(const void *row, size_t of)
{
	const struct audit_card *card = &((const struct card_row *)row)->card;
	(void)of;
	return cell_number(report_uncertainty(card->unsure_ms, card->ms));
}

static struct cell card_util(const void *row, size_t of)
{
	(void)of;
	return cell_number(report_util_pct(&((const struct card_row *)row)->card));
}

static struct cell card_sm_active(const void *row, size_t of)
{
	(void)of;
	return cell_number(report_sm_active_pct(&((const struct card_row *)row)->card));
}

static struct cell card_energy(const void *row, size_t state)
{
	const struct audit_card *card = &((const struct card_row *)row)->card;
	return cell_number(report_energy_kwh(
		card->energy_mj, card->energy_known_ms, card->ms, (int)state));
}

/* A column of text or of a number, from a getter. */
#define TEXT(getter, member) .kind = COLUMN_TEXT, .get = getter, .of = member
#define VALUE(unit, getter, which) .kind = COLUMN_##unit, .get = getter, .of = which

#define OF(member) offsetof(struct card_row, member)
static const struct column card_columns[] = {
	{ .key = "host", TEXT(get_string, OF(host)) },
	{ .title = "gpu", TEXT(get_chars, OF(label)) },
	{ .title = "uuid", TEXT(get_chars, OF(uuid)), .width = -8 },
	{ .key = "uuid", TEXT(get_chars, OF(card.id.uuid)) },
	{ .key = "index", VALUE(COUNT, card_index, 0) },
	{ .json = "name", TEXT(get_chars, OF(card.id.name)) },
	{ .key = "mig_index", VALUE(COUNT, card_instance, 0) },
	{ .key = "name", .json = "", TEXT(get_chars, OF(card.id.name)) },
	{ .title = "name", TEXT(card_short_name, 0), .flexible = true },
	{ .json = "parent_uuid", TEXT(card_parent, 0) },
	{ .key = "status", TEXT(get_chars, OF(card.status)) },
	{ .json = "mean_util_pct", VALUE(PCT, card_util, 0) },
	{ .json = "sm_active_pct", VALUE(PCT, card_sm_active, 0) },
	{ .key = "active_gpu_seconds",
		.json = "gpu_seconds.active",
		VALUE(GPU_MS, card_ms, CARD_ACTIVE) },
	{ .key = "idle_held_gpu_seconds",
		.json = "gpu_seconds.idle_held",
		VALUE(GPU_MS, card_ms, CARD_IDLE_HELD) },
	{ .key = "truly_idle_gpu_seconds",
		.json = "gpu_seconds.truly_idle",
		VALUE(GPU_MS, card_ms, CARD_TRULY_IDLE) },
	{ .key = "unobserved_gpu_seconds",
		.json = "gpu_seconds.unobserved",
		VALUE(GPU_MS, card_ms, CARD_UNOBSERVED) },
	{ .json = "gpu_seconds.use_unknown", VALUE(GPU_MS, card_ms, CARD_USE_UNKNOWN) },
	{ .key = "active",
		.json = "",
		.title = "active",
		.width = 6,
		VALUE(SHARE, card_share, CARD_ACTIVE) },
	{ .key = "idle_held",
		.json = "",
		.title = "idle-held",
		.width = 6,
		VALUE(SHARE, card_share, CARD_IDLE_HELD) },
	{ .key = "truly_idle",
		.json = "",
		.title = "truly-idle",
		.width = 6,
		VALUE(SHARE, card_share, CARD_TRULY_IDLE) },
	{ .title = "use?",
		.width = 6,
		.optional = true,
		VALUE(SHARE, card_some_share, CARD_USE_UNKNOWN) },
	{ .key = "mean_util_pct",
		.json = "",
		.title = "util",
		.width = 6,
		VALUE(PCT, card_util, 0) },
	{ .title = "SM", .width = 6, .optional = true, VALUE(PCT, card_sm_active, 0) },
	{ .key = "observed",
		.json = "",
		.title = "observed",
		.width = 6,
		VALUE(SHARE, card_observed, 0) },
	{ .key = "use_unknown_gpu_seconds",
		.json = "",
		VALUE(GPU_MS, card_ms, CARD_USE_UNKNOWN) },
	{ .key = "use_unknown", .json = "", VALUE(SHARE, card_share, CARD_USE_UNKNOWN) },
	{ .key = "idle_held_uncertainty", VALUE(SHARE, card_uncertainty, 0) },
	{ .key = "sm_active_pct", .json = "", VALUE(PCT, card_sm_active, 0) },
	{ .json = "energy_kwh.active", VALUE(KWH, card_energy, CARD_ACTIVE) },
	{ .json = "energy_kwh.idle_held", VALUE(KWH, card_energy, CARD_IDLE_HELD) },
	{ .json = "energy_kwh.truly_idle", VALUE(KWH, card_energy, CARD_TRULY_IDLE) },
	{ .json = "energy_kwh.use_unknown", VALUE(KWH, card_energy, CARD_USE_UNKNOWN) },
};
#undef OF

void report_cards_table(struct table *t, const struct audit *a, size_t host)
{
	*t = (struct table){ .columns = card_columns, .n_columns = COUNT(card_columns) };
	bool tail = heads_are_alike(a, host);
	for (size_t i = 0; i < a->n_cards; i++) {
		const struct audit_card *card = &a->cards[i];
		struct card_row row = { .card = *card, .host = a->hosts[card->host].hostname };
		if (host != SIZE_MAX && card->host != host)
			continue;
		card_label(row.label, sizeof(row.label) - 1, &card->id);
		if (strcmp(card->status, "ok") != 0)
			strcat(row.label, "*");
		short_uuid(row.uuid, sizeof(row.uuid), card->id.uuid, tail);
		table_add(t, &row);
	}
}

static int64_t sum_of(const int64_t ms[HOLDER_STATES])
{
	int64_t sum = 0;
	for (int state = 0; state < HOLDER_STATES; state++)
		sum += ms[state];
	return sum;
}

/* The rows of identities are struct audit_identity itself. */
static struct cell identity_ms(const void *row, size_t state)
{
	return cell_number((double)((const struct audit_identity *)row)->presence_ms[state]);
}

static struct cell identity_some_ms(const void *row, size_t state)
{
	const struct audit_identity *who = row;
	return who->presence_ms[state] ? identity_ms(row, state) : cell_number(NAN);
}

static struct cell identity_sum(const void *row, size_t of)
{
	(void)of;
	return cell_number((double)sum_of(((const struct audit_identity *)row)->presence_ms));
}

static struct cell identity_fraction(const void *row, size_t state)
{
	const int64_t *ms = ((const struct audit_identity *)row)->presence_ms;
	return cell_number(report_share(ms[state], sum_of(ms)));
}

static struct cell identity_share(const void *row, size_t of)
{
	const struct audit_identity *who = row;
	(void)of;
	return cell_number((double)(who->active_share_ms + who->idle_share_ms));
}

static struct cell identity_idle_share(const void *row, size_t of)
{
	(void)of;
	return cell_number((double)((const struct audit_identity *)row)->idle_share_ms);
}

#define OF(member) offsetof(struct audit_identity, member)
static const struct column identity_columns[] = {
	{ .key = "identity",
		.title = "identity",
		.width = 10,
		.flexible = true,
		TEXT(get_chars, OF(identity)) },
	{ .key = "gpu_seconds", .title = "GPU-hours", VALUE(GPU_MS, identity_sum, 0) },
	{ .key = "idle_held_fraction",
		.title = "idle-held",
		VALUE(SHARE, identity_fraction, HOLDER_IDLE_HELD) },
	{ .key = "active_gpu_seconds", VALUE(GPU_MS, identity_ms, HOLDER_ACTIVE) },
	{ .key = "idle_held_gpu_seconds",
		.title = "held h",
		.width = 7,
		VALUE(GPU_MS, identity_ms, HOLDER_IDLE_HELD) },
	{ .key = "squatting_gpu_seconds",
		.title = "squat h",
		.width = 7,
		VALUE(GPU_MS, identity_ms, HOLDER_SQUATTING) },
	{ .title = "use? h",
		.width = 6,
		.optional = true,
		VALUE(GPU_MS, identity_some_ms, HOLDER_USE_UNKNOWN) },
	{ .key = "truly_idle_gpu_seconds", VALUE(GPU_MS, identity_ms, HOLDER_TRULY_IDLE) },
	{ .key = "share_gpu_seconds",
		.title = "share h",
		.width = 7,
		VALUE(GPU_MS, identity_share, 0) },
	{ .key = "idle_held_share_gpu_seconds", VALUE(GPU_MS, identity_idle_share, 0) },
	{ .key = "peak_mem_mb",
		.title = "peak mem",
		.width = 8,
		VALUE(KIB, get_known, OF(peak_mem_kib)) },
	{ .key = "last_active", VALUE(MOMENT, get_known, OF(last_active_ms)) },
	{ .key = "use_unknown_gpu_seconds", VALUE(GPU_MS, identity_ms, HOLDER_USE_UNKNOWN) },
};
#undef OF

void report_identities_table(struct table *t, const struct audit *a, size_t top)
{
	*t = (struct table){ .columns = identity_columns,
		.n_columns = COUNT(identity_columns) };
	for (size_t i = 0; i < a->n_identities && (top == 0 || i < top); i++)
		table_add(t, &a->identities[i]);
}

/* What a row of processes is made of. */
struct process_row {
	struct audit_process process;
	const char *host, *user, *uuid;
	int card_index;
	char where[192]; /* the card, with its host where there are several */
};

static struct cell process_pid(const void *row, size_t of)
{
	(void)of;
	return cell_number(((const struct process_row *)row)->process.pid);
}

static struct cell process_card_index(const void *row, size_t of)
{
	(void)of;
	return cell_number(((const struct process_row *)row)->card_index);
}

static struct cell process_ms(const void *row, size_t state)
{
	return cell_number((double)((const struct process_row *)row)->process.ms[state]);
}

static struct cell process_sum(const void *row, size_t of)
{
	(void)of;
	return cell_number((double)sum_of(((const struct process_row *)row)->process.ms));
}

#define OF(member) offsetof(struct process_row, member)
static const struct column process_columns[] = {
	{ .key = "pid", .title = "pid", VALUE(COUNT, process_pid, 0) },
	{ .key = "started", VALUE(MOMENT, get_known, OF(process.started_ms)) },
	{ .key = "user", .title = "user", .width = -12, TEXT(get_string, OF(user)) },
	{ .key = "command",
		.title = "command",
		.flexible = true,
		TEXT(get_string, OF(process.command)) },
	{ .key = "host", TEXT(get_string, OF(host)) },
	{ .key = "gpu", TEXT(get_string, OF(uuid)) },
	{ .key = "gpu_index", VALUE(COUNT, process_card_index, 0) },
	{ .title = "gpu", .width = -14, TEXT(get_chars, OF(where)) },
	{ .key = "gpu_seconds", .title = "hours", .width = 6, VALUE(GPU_MS, process_sum, 0) },
	{ .key = "idle_held_gpu_seconds",
		.title = "held h",
		.width = 6,
		VALUE(GPU_MS, process_ms, HOLDER_IDLE_HELD) },
	{ .key = "squatting_gpu_seconds", VALUE(GPU_MS, process_ms, HOLDER_SQUATTING) },
	{ .key = "peak_mem_mb",
		.title = "peak",
		.width = 7,
		VALUE(KIB, get_known, OF(process.peak_mem_kib)) },
	{ .key = "last_active",
		.title = "last active",
		VALUE(MOMENT, get_known, OF(process.last_active_ms)) },
	{ .key = "notebook", TEXT(get_string, OF(process.notebook)) },
	{ .key = "job", TEXT(get_string, OF(process.job)) },
	{ .key = "container", TEXT(get_string, OF(process.container)) },
	{ .key = "pod", TEXT(get_string, OF(process.pod)) },
	{ .key = "unit", TEXT(get_string, OF(process.unit)) },
	{ .key = "use_unknown_gpu_seconds", VALUE(GPU_MS, process_ms, HOLDER_USE_UNKNOWN) },
};
#undef OF

void report_processes_table(struct table *t, const struct audit *a, size_t top)
{
	*t = (struct table){ .columns = process_columns, .n_columns = COUNT(process_columns) };
	for (size_t i = 0; i < a->n_processes && (top == 0 || i < top); i++) {
		const struct audit_process *p = &a->processes[i];
		const struct audit_card *card = &a->cards[p->card];
		struct process_row row = { .process = *p,
			.host = a->hosts[p->host].hostname,
			.user = a->identities[p->identity].identity,
			.uuid = card->id.uuid,
			.card_index = card->id.index };
		char label[32];
		card_label(label, sizeof(label), &card->id);
		snprintf(row.where, sizeof(row.where), "%s%s%s", a->n_hosts > 1 ? row.host : "",
			a->n_hosts > 1 ? " " : "", label);
		table_add(t, &row);
	}
}
