/* The tables of processes, of the longest idle spells, and of memory that no living process
 * explains, with the sentences about them. */
#include "audit/audit.h"
#include "report/report_parts.h"

/* Precedes a process that holds no more than a bare context. */
#define CONTEXT_MARK "[ctx] "

/* Where a process belongs, of the texts of a row. */
#define LABEL(name, texts, which) COLUMN(name, STRING(texts[PROCESS_##which]))
#define LABELS(texts)                                                                          \
	LABEL("notebook", texts, NOTEBOOK), LABEL("notebook_path", texts, NOTEBOOK_PATH),      \
		LABEL("job", texts, JOB), LABEL("job_name", texts, JOB_NAME),                  \
		LABEL("account", texts, ACCOUNT), LABEL("container", texts, CONTAINER),        \
		LABEL("pod", texts, POD), LABEL("unit", texts, UNIT),                          \
		LABEL("login", texts, LOGIN), LABEL("session", texts, SESSION)

/* The data of a row. */
struct process_row {
	struct audit_process process;
	struct report_place place;
	const char *user, *shown_user;
	char what[REPORT_WHAT_CAP + sizeof(CONTEXT_MARK)];
	double held, share;
	double money[COSTS + 1]; /* as report_bill_money() */
};

#define OF(member) offsetof(struct process_row, member)
static const struct column process_columns[] = {
	{ "pid", "pid", UINT(process.pid) },
	{ "started", KNOWN(MOMENT, process.started_ms) },
	{ "user", STRING(user) },
	{ .title = "user", STRING(shown_user), .width = -12 },
	{ "command", STRING(process.texts[PROCESS_COMMAND]) },
	{ .title = "what", CHARS(what), .width = 16, .flexible = true },
	PLACE_COLUMNS,
	PLACE_SHOWN,
	{ "gpu_seconds", "held", NUMBER(GPU_MS, held), .width = 6 },
	{ "active_gpu_seconds", KNOWN(GPU_MS, process.sums.ms[HOLDER_ACTIVE]) },
	{ "idle_held_gpu_seconds", "idle", KNOWN(GPU_MS, process.sums.ms[HOLDER_IDLE_HELD]),
		.width = 6 },
	{ "squatting_gpu_seconds", "idle on\nbusy GPU",
		KNOWN(GPU_MS, process.sums.ms[HOLDER_SQUATTING]) },
	{ "truly_idle_gpu_seconds", KNOWN(GPU_MS, process.sums.ms[HOLDER_TRULY_IDLE]) },
	{ "use_unknown_gpu_seconds", KNOWN(GPU_MS, process.sums.ms[HOLDER_USE_UNKNOWN]) },
	{ "share_gpu_seconds", NUMBER(GPU_MS, share) },
	{ "context_only", FLAG(process.context) },
	{ "last_active", "last active", KNOWN(MOMENT, process.sums.last_active_ms) },
	{ "peak_mem_bytes", "peak mem", KNOWN(KIB, process.sums.peak_mem_kib), .width = 8,
		.optional = true },
	LABELS(process.texts),
	{ "parents", STRING(process.texts[PROCESS_PARENTS]) },
	{ "python_env", STRING(process.texts[PROCESS_PYTHON_ENV]) },
	{ "tag", STRING(process.texts[PROCESS_TAG]) },
	HELD_COSTS,
	COST_TOTAL,
	{ "squatting_cost", NUMBER(MONEY, money[COST_SQUATTING]) },
};
#undef OF

void report_processes_add(
	struct report *r, const struct audit *a, const struct report_request *q)
{
	struct table *t = &r->breakdown.table;
	size_t n = q->top && q->top < a->n_processes ? q->top : a->n_processes;
	*t = (struct table)TABLE_OF(process_columns);
	r->breakdown.rows = calloc(n + 1, sizeof(*r->breakdown.rows));
	r->failed |= !r->breakdown.rows;
	for (size_t i = 0; i < n; i++) {
		const struct audit_process *p = &a->processes[i];
		const char *user = a->identities[p->identity].identity;
		struct process_row row = { .process = *p,
			.place = report_place(a, p->card),
			.user = user,
			.shown_user = process_shown_user(user),
			.held = (double)audit_holder_ms(p->sums.ms),
			.share = (double)(p->sums.active_share_ms + p->sums.idle_share_ms) };
		for (size_t part = 0; part <= COSTS; part++)
			row.money[part] = report_bill_money(&p->sums.cost, part);
		row.money[COST_RESERVED] = NAN; /* leases have it */
		str_copy(row.what, sizeof(row.what), p->context ? CONTEXT_MARK : "");
		report_show_what(row.what + strlen(row.what), p->texts);
		table_add(t, &row);
	}
}

/* The data of a row. */
struct spell_row {
	struct audit_spell spell;
	struct report_place place;
	const char *shown_user;
	const char *how, *then; /* how it ended, for programs and for people */
	char what[REPORT_WHAT_CAP];
	int64_t end_ms; /* -1: it goes on */
	double length_ms, idle_ms, unobserved_ms;
	double cost; /* of the card's time, even if other processes were on the card */
};

#define OF(member) offsetof(struct spell_row, member)
static const struct column spell_columns[] = {
	{ "user", STRING(spell.user) },
	{ .title = "user", STRING(shown_user), .width = -12 },
	{ .title = "what", CHARS(what), .width = 10, .flexible = true },
	{ "pid", UINT(spell.pid) },
	{ "started", KNOWN(MOMENT, spell.started_ms) },
	PLACE_COLUMNS,
	PLACE_SHOWN,
	{ "peak_mem_bytes", "memory", KNOWN(KIB, spell.spell.mem_peak_kib) },
	{ "begin", "idle since", KNOWN(MOMENT, spell.spell.begin_ms) },
	{ "end", KNOWN(MOMENT, end_ms) },
	{ "seconds", "length", NUMBER(LENGTH, length_ms) },
	{ "idle_seconds", NUMBER(MS, idle_ms) },
	{ "squatting_seconds", KNOWN(MS, spell.spell.squatting_ms) },
	{ "unobserved_seconds", NUMBER(MS, unobserved_ms) },
	{ "gpu_seconds", "GPU-h", KNOWN(GPU_MS, spell.window_ms) },
	{ "idle_cost", "cost", NUMBER(MONEY, cost), .optional = true },
	{ "energy_joules", KNOWN(MJ, spell.spell.energy_mj) },
	{ "how_ended", STRING(how) },
	{ .title = "then", STRING(then), .optional = true },
	{ "command", STRING(spell.texts[PROCESS_COMMAND]) },
	LABELS(spell.texts),
	{ "tag", STRING(spell.texts[PROCESS_TAG]) },
};
#undef OF

void report_processes_add_spells(struct table *t, const struct audit *a)
{
	static const char *const fates[] = { [SPELL_ACTIVE] = "used",
		[SPELL_RELEASED] = "released",
		[SPELL_EXITED] = "exited",
		[SPELL_STOPPED] = "not seen",
		[SPELL_GONE] = "released",
		[SPELL_OPEN] = "goes on" };
	*t = (struct table)TABLE_OF(spell_columns);
	for (size_t i = 0; i < a->spells.n; i++) {
		const struct audit_spell *s = &a->spells.items[i];
		const struct spell *spell = &s->spell;
		struct spell_row row = { .spell = *s,
			.place = report_place(a, s->card),
			.shown_user = process_shown_user(s->user),
			.how = spell->how < SPELL_ENDS ? spell_end_names[spell->how] : NULL,
			.then = fates[spell->how],
			.end_ms = spell->how == SPELL_OPEN ? -1 : spell->end_ms,
			.length_ms = (double)(spell->end_ms - spell->begin_ms),
			.idle_ms = (double)spell_idle_ms(spell),
			.unobserved_ms = (double)spell_unobserved_ms(spell),
			.cost = a->cards[s->card].price * (double)s->window_ms / 3600e3 };
		/* A notebook is shown by the name of its file: space is short, and all
		 * notebooks have the same command. */
		const char *path = s->texts[PROCESS_NOTEBOOK_PATH];
		const char *slash = path ? strrchr(path, '/') : NULL;
		if (path && *path)
			str_copy(row.what, sizeof(row.what),
				slash && slash[1] ? slash + 1 : path);
		else
			report_show_what(row.what, s->texts);
		table_add(t, &row);
	}
}

void report_processes_say_spells(struct report *r, const struct audit *a)
{
	bool cut = false, gaps = false;
	size_t stopped = 0;
	r->n_spells_left = a->spells.n_left_out;
	for (size_t i = 0; i < a->spells.n; i++) {
		const struct audit_spell *s = &a->spells.items[i];
		gaps |= spell_unobserved_ms(&s->spell) > 60000;
		cut |= s->window_ms < spell_idle_ms(&s->spell);
		stopped += s->spell.how == SPELL_STOPPED;
	}
	if (a->spells.n && r->bill.currency)
		report_say(r, SENTENCE_SPELL, NULL,
			"cost is GPU-h at the price of the GPU, in %s. It is not a share: who "
			"else was on the GPU does not matter.",
			r->bill.currency);
	if (a->spells.n_left_out)
		report_say(r, SENTENCE_SPELLS, NULL, "%zu more: --longest N shows N of them.",
			a->spells.n_left_out);
	if (cut || gaps)
		report_say(r, SENTENCE_SPELL, NULL,
			"The length is that of the whole spell%s; GPU-h is the idle time %s.",
			gaps ? ", with the time without readings in it" : "",
			cut ? "within the window" : "that was seen");
	if (stopped)
		report_say(r, SENTENCE_SPELL, NULL,
			"How %zu of them ended was not seen, because the recorder stopped.",
			stopped);
}

struct lease_row {
	struct audit_lease lease;
	struct report_place place;
	const char *kind;
	char what[3 * LABEL_CAP];
	double length_ms, cost;
};

#define OF(member) offsetof(struct lease_row, member)
static const struct column lease_columns[] = {
	{ "user", "user", STRING(lease.owner), .width = -12 },
	{ .title = "lease", CHARS(what), .width = 10, .flexible = true },
	{ "kind", STRING(kind) },
	{ "id", STRING(lease.name) },
	{ "job_name", STRING(lease.job_name) },
	{ "task", STRING(lease.task) },
	{ "account", STRING(lease.account) },
	PLACE_COLUMNS,
	PLACE_SHOWN,
	{ "since", "since", KNOWN(MOMENT, lease.since_ms) },
	{ "ended", KNOWN(MOMENT, lease.ended_ms) },
	{ "seconds", "length", NUMBER(LENGTH, length_ms) },
	{ "reserved_gpu_seconds", "reserved", KNOWN(GPU_MS, lease.reserved_ms) },
	{ "used_gpu_seconds", "touched", KNOWN(GPU_MS, lease.used_ms) },
	{ "reserved_cost", "cost", NUMBER(MONEY, cost), .optional = true },
};
#undef OF

/* Says which lease has had its card for how long and did not touch it, as far as that was seen:
 * a lease may be older than the recorder. */
static void say_unused(struct report *r, const struct audit *a, const struct lease_row *row)
{
	const struct audit_lease *l = &row->lease;
	int64_t to_ms = l->ended_ms < 0 ? a->until_ms : clock_earlier(l->ended_ms, a->until_ms);
	int64_t in_window_ms = to_ms - clock_later(l->since_ms, a->since_ms);
	bool seen = l->untouched_ms >= in_window_ms - in_window_ms / 10 && !l->by_nobody;
	report_say(r, SENTENCE_LEASE, NULL, "%s of %s %s GPU %s for %s and %s%s.", row->what,
		l->owner, l->ended_ms < 0 ? "has had" : "had", row->place.where,
		duration_text((int64_t)row->length_ms).text,
		l->by_nobody
			? "was not seen to use it, but the driver did not always list who did"
		: !seen			     ? "was not seen to use it, in "
		: l->since_ms >= a->since_ms ? "never used it"
					     : "did not use it in this window",
		seen || l->by_nobody ? ""
				     : str_brief("%s that were observed",
					       duration_text(l->untouched_ms).text)
					       .text);
}

void report_processes_add_leases(struct report *r, const struct audit *a)
{
	r->leases = (struct table)TABLE_OF(lease_columns);
	r->leases.minutes = r->minutes;
	for (size_t i = 0; i < a->leases.n; i++) {
		const struct audit_lease *l = &a->leases.items[i];
		int64_t to_ms = l->ended_ms < 0 ? a->until_ms : l->ended_ms;
		struct lease_row row = { .lease = *l,
			.place = report_place(a, l->card),
			.kind = lease_kind_names[l->kind],
			.length_ms = (double)(to_ms - l->since_ms),
			.cost = a->cards[l->card].price * (double)l->reserved_ms / 3600e3 };
		bool named = l->job_name && *l->job_name;
		snprintf(row.what, sizeof(row.what), "%s %s%s%s%s",
			l->kind == LEASE_SLURM ? "job" : row.kind, l->task ? l->task : l->name,
			named ? " (" : "", named ? l->job_name : "", named ? ")" : "");
		table_add(&r->leases, &row);
		if (l->used_ms == 0)
			say_unused(r, a, &row);
	}
	if (a->leases.n_left_out)
		report_say(r, SENTENCE_LEASES, NULL, "%zu more: --longest N shows N of them.",
			a->leases.n_left_out);
}

struct orphan_row {
	struct report_place place;
	int64_t pid, mem_kib, since_ms; /* -1 unknown */
};

#define OF(member) offsetof(struct orphan_row, member)
static const struct column orphan_columns[] = {
	PLACE_COLUMNS,
	{ "pid", KNOWN(COUNT, pid) },
	{ "mem_bytes", KNOWN(KIB, mem_kib) },
	{ "since", KNOWN(MOMENT, since_ms) },
};
#undef OF

void report_processes_add_orphans(struct report *r, const struct audit *a)
{
	r->orphans = (struct table)TABLE_OF(orphan_columns);
	for (size_t i = 0; i < a->orphans.n; i++) {
		const struct audit_orphan *o = &a->orphans.items[i];
		table_add(&r->orphans,
			&(struct orphan_row){ .place = report_place(a, o->card),
				.pid = o->pid ? (int64_t)o->pid : -1,
				.mem_kib = o->mem_bytes < 0 ? -1 : o->mem_bytes / 1024,
				.since_ms = o->since_ms });
		if (!a->of_users) {
			char what[64] = "no process that the driver lists";
			struct brief since = moment_text(o->since_ms, r->utc);
			if (o->pid)
				snprintf(what, sizeof(what),
					"a process that has ended (pid %u)", o->pid);
			report_say(r, SENTENCE_CARD, NULL,
				"%s: %s held by %s, since %s. gua-memory(7) says how to free "
				"it.",
				report_gpu(r, o->card, " on "),
				o->mem_bytes >= 0 ? size_text((double)o->mem_bytes).text
						  : "Memory",
				what, since.text);
		}
	}
}
