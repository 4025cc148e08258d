/* gua lease: adds, ends, lists and checks leases. */
#include "cmd/cmd_lease.h"

#include "cmd/share/configure.h"
#include "cmd/share/hand_over.h"
#include "cmd/share/terminal.h"
#include "proc/proc.h"
#include "render/rows.h"
#include "model/columns.h"

struct lease_options {
	struct lease_file file; /* without times */
	const char *kind, *since, *until;
	const char *leases, *root, *now;
	struct configure_options conf;
	bool json, utc, once;
};

/* A subcommand while it runs. */
struct lease_command {
	const struct command *self;
	struct lease_options *o;
	struct lease_place place;
	enum lease_kind kind;
};

static int read_moment(
	const char *option, const char *text, int64_t now_ms, double *seconds, struct err *e)
{
	int64_t ms = 0;
	if (!text || !*text)
		return 0;
	if (moment_parse(text, now_ms, false, &ms, e) != 0)
		return err_prefix(e, "%s", option);
	*seconds = (double)ms / 1000;
	return 0;
}

static int run_add(struct lease_command *x, struct err *e)
{
	struct lease_file f = x->o->file;
	char card[UUID_CAP];
	const char *cards = f.cards ? f.cards : "";
	if (!f.id || !*f.id || !f.cards)
		return err_set(e, ERR_USAGE, "add needs --id and --cards");
	if ((!f.user || !*f.user) && f.uid < 0)
		return err_set(e, ERR_USAGE, "add needs --user or --uid");
	if (!lease_file_card(&cards, card)) /* a job without a card has no lease */
		return 0;
	f.since_s = (double)x->place.now_ms / 1000;
	int rc = read_moment("--since", x->o->since, x->place.now_ms, &f.since_s, e);
	if (rc == 0)
		rc = read_moment("--until", x->o->until, x->place.now_ms, &f.until_s, e);
	f.boot = x->place.boot;
	return rc ? rc : lease_dir_put(x->place.path, x->kind, &f, x->place.config->private, e);
}

static int run_end(struct lease_command *x, struct err *e)
{
	if (!x->o->file.id)
		return err_set(e, ERR_USAGE, "end needs --id");
	return lease_dir_remove(x->place.path, x->kind, x->o->file.id, e);
}

/* Reads the leases. The caller closes *d. */
static const struct leases *read_leases(
	const struct lease_place *p, struct lease_dir **d, struct err *e)
{
	const struct lease_dir_options o = {
		.path = p->path, .root = p->root, .numbering = p->config->numbering
	};
	return lease_dir_open(d, &o, e) == 0 ? lease_dir_read(*d, p->now_ms) : NULL;
}

/* A row of the list. */
struct line {
	const struct lease *lease;
	const char *kind, *note;
	char *cards;
};

#define OF(member) offsetof(struct line, member)
#define IN_LEASE(member) offsetof(struct lease, member)
static struct cell get_chars(const void *row, size_t of)
{
	struct cell cell = table_get_chars(((const struct line *)row)->lease, of);
	return *cell.text ? cell : table_text(NULL);
}
static struct cell get_known(const void *row, size_t of)
{
	return table_get_known(((const struct line *)row)->lease, of);
}
static struct cell get_share(const void *row, size_t of)
{
	(void)of;
	unsigned share = ((const struct line *)row)->lease->share;
	return table_known(share ? (int64_t)share : -1);
}

static const struct column columns[] = {
	{ "kind", "kind", STRING(kind) },
	{ "id", "id", TEXT(get_chars, IN_LEASE(id)) },
	{ "task", "task", .optional = true, TEXT(get_chars, IN_LEASE(task)) },
	{ "sluid", "sluid", .optional = true, TEXT(get_chars, IN_LEASE(sluid)) },
	{ "owner", "owner", TEXT(get_chars, IN_LEASE(owner)) },
	{ "uid", VALUE(COUNT, get_known, IN_LEASE(uid)) },
	{ "job_name", TEXT(get_chars, IN_LEASE(job_name)) },
	{ "account", TEXT(get_chars, IN_LEASE(account)) },
	{ "share", VALUE(COUNT, get_share, 0) },
	{ "since", "since", VALUE(MOMENT, get_known, IN_LEASE(since_ms)) },
	{ "until", "until", VALUE(MOMENT, get_known, IN_LEASE(until_ms)) },
	{ "unknown_since", VALUE(MOMENT, get_known, IN_LEASE(unknown_since_ms)) },
	{ .title = "", .optional = true, STRING(note) },
	{ "cards", "cards", .flexible = true, STRING(cards) },
};

static void add_line(struct table *t, const struct leases *all, const struct lease *lease)
{
	struct str cards = { 0 };
	for (size_t i = 0; i < lease->n_cards; i++) {
		const char *uuid = all->cards[lease->first_card + i].uuid;
		str_addf(&cards, "%s%s", i ? "," : "", *uuid ? uuid : "?");
	}
	const struct line line = { .lease = lease,
		.kind = lease_kind_names[lease->kind],
		.note = lease->unknown_since_ms < 0 ? NULL : "unknown",
		.cards = cards.data };
	table_add(t, &line);
	t->failed |= cards.failed;
	str_finish(&cards);
}

static int run_list(struct lease_command *x, struct err *e)
{
	struct lease_dir *d = NULL;
	struct table t = { .columns = columns,
		.n_columns = sizeof(columns) / sizeof(*columns) };
	struct str out = { 0 };
	struct json j = { .out = &out, .lines = 2 };
	const struct leases *all = read_leases(&x->place, &d, e);
	const struct text_style style = terminal_style(false, x->o->utc);
	for (size_t i = 0; all && i < all->n; i++)
		add_line(&t, all, &all->v[i]);
	if (all && x->o->json) {
		json_open(&j, NULL, '{');
		json_text(&j, "schema", "gua-lease-list-1");
		json_bool(&j, "has_source", all->has_source);
		json_number(&j, "not_readable", (double)lease_dir_hidden(d), 0);
		rows_json_table(&j, "leases", &t);
		json_close(&j, '}');
	} else if (all && t.n_rows) {
		text_add_table(&out, &t, &style);
	} else if (all) {
		str_addf(&out, "%s\n",
			all->has_source ? "no lease" : "no scheduler writes leases here");
	}
	if (all && lease_dir_hidden(d))
		fprintf(stderr, "gua lease: leases that this user may not read: %zu\n",
			lease_dir_hidden(d));
	out.failed |= t.failed;
	table_finish(&t);
	lease_dir_close(d);
	return all ? cmd_print(x->self, &out) : e->code;
}

static void examine_read(struct findings *f, const struct lease_place *p, struct lease_dir *d,
	const struct leases *all)
{
	size_t no_card = 0, unknown = 0;
	const char *problems = lease_dir_problems(d);
	for (size_t i = 0; i < all->n; i++) {
		no_card += !lease_knows_cards(all, &all->v[i]);
		unknown += all->v[i].unknown_since_ms >= 0;
	}
	if (all->has_source)
		finding_add(f, FINDING_OK, "leases", "%zu now", all->n);
	else if (file_is_below(p->root, "/etc/slurm/slurm.conf"))
		finding_advise(
			finding_add(f, FINDING_WARNING, "leases",
				"Slurm is here, and nobody says which cards it has given "
				"away: cards of jobs that do not touch them look free"),
			"see man gua-slurm");
	for (const char *at = problems; *at; at += strcspn(at, "\n"), at += *at == '\n')
		finding_add(f, FINDING_WARNING, "leases", "left out: %.*s",
			(int)strcspn(at, "\n"), at);
	const char *why = no_card ? lease_dir_numbering_problem(d) : NULL;
	if (no_card)
		finding_add(f, FINDING_WARNING, "leases",
			"%zu with a card that is not known: %s", no_card,
			why ? why : "there is no card with that number");
	if (unknown)
		finding_advise(finding_add(f, FINDING_WARNING, "leases",
				       "%zu may have ended: their watcher is silent", unknown),
			"look at systemctl status 'gua-lease@*'");
}

void cmd_lease_examine(struct findings *f, const struct lease_place *p)
{
	struct lease_dir *d = NULL;
	struct err e = { 0 };
	const struct leases *all = read_leases(p, &d, &e);
	if (all)
		examine_read(f, p, d, all);
	else
		finding_add(f, FINDING_WARNING, "leases", "%s", e.text);
	lease_dir_close(d);
}

static int run_check(struct lease_command *x, struct err *e)
{
	struct findings *f = calloc(1, sizeof(*f));
	struct str out = { 0 };
	if (!f)
		return err_memory(e);
	cmd_lease_examine(f, &x->place);
	if (!f->n)
		str_add(&out, "no scheduler writes leases here\n");
	for (size_t i = 0; i < f->n; i++)
		str_addf(&out, "%s%s%s%s%s\n",
			f->rows[i].result == FINDING_OK ? "leases: " : "", f->rows[i].text,
			*f->rows[i].advice ? " (" : "", f->rows[i].advice,
			*f->rows[i].advice ? ")" : "");
	bool fine = f->count[FINDING_WARNING] == 0;
	free(f);
	return cmd_print(x->self, &out) || !fine;
}

static int run_watch(struct lease_command *x, struct err *e)
{
	const struct lease_parts *parts = x->self->parts;
	return parts->watch(&x->place, x->kind, e);
}

#define AT(member) .offset = offsetof(struct lease_options, member)
static const struct option_row rows[] = {
	{ OPTION_CHOICE, 0, "kind", "KIND", "the scheduler (default slurm)",
		.choices = "slurm|pod", AT(kind) },
	{ OPTION_TEXT, 0, "id", "ID", "the job's number, or namespace/pod", AT(file.id) },
	{ OPTION_TEXT, 0, "user", "NAME", "add: who got the cards: user or namespace",
		AT(file.user) },
	{ OPTION_COUNT, 0, "uid", "N", "add: the number of this user", AT(file.uid),
		.max = UINT32_MAX },
	{ OPTION_TEXT, 0, "cards", "CARD,...",
		"add: UUIDs, or numbers; without a card nothing is added", AT(file.cards) },
	{ OPTION_CHOICE, 0, "numbering", "HOW",
		"add: what numbers mean (default: as gua.conf says)",
		.choices = LEASE_NUMBERINGS, AT(file.numbering) },
	{ OPTION_COUNT, 0, "share", "N",
		"add: one of N equal parts of each card; 0: a part of unknown size (default 1)",
		AT(file.share), .max = 1000 },
	{ OPTION_TEXT, 0, "since", "TIME", "add: when it began: @UNIXSECONDS (default now)",
		AT(since) },
	{ OPTION_TEXT, 0, "until", "TIME", "add: when it must end: @UNIXSECONDS", AT(until) },
	{ OPTION_TEXT, 0, "name", "NAME", "add: name of the job", AT(file.name) },
	{ OPTION_TEXT, 0, "account", "NAME", "add: account of the job", AT(file.account) },
	{ OPTION_TEXT, 0, "task", "ARRAY_TASK", "add: number of a task of an array: 3_2",
		AT(file.task) },
	{ OPTION_TEXT, 0, "sluid", "SLUID", "add: Slurm's unique id of the job",
		AT(file.sluid) },
	{ OPTION_TEXT, 0, "leases", "DIR", "the directory (default " LEASE_DIR_PATH ")",
		AT(leases) },
	{ OPTION_FLAG, 0, "json", .help = "list: print JSON", AT(json) },
	{ OPTION_FLAG, 0, "utc", .help = "list: times in UTC instead of local time", AT(utc) },
	{ OPTION_FLAG, 0, "once", .help = "watch: ask once, then exit", AT(once) },
	CONFIGURE_ROWS(struct lease_options, conf),
	NOW_OPTION(struct lease_options, now),
	{ OPTION_TEXT, 0, "root", "DIR", "look for files of the host below DIR", AT(root),
		.hidden = true },
	{ 0 },
};

static const struct subcommand {
	const char *name;
	int (*run)(struct lease_command *x, struct err *e);
} subcommands[] = {
	{ "add", run_add },
	{ "end", run_end },
	{ "list", run_list },
	{ "check", run_check },
	{ "watch", run_watch },
};
#define SUBCOMMANDS "add|end|list|check|watch"

/* Reads the subcommand and the scheduler that is watched. */
static const struct subcommand *find(struct lease_command *x, char **words, struct err *e)
{
	const struct subcommand *sub = NULL;
	for (size_t i = 0; words[0] && i < sizeof(subcommands) / sizeof(*subcommands); i++)
		if (strcmp(words[0], subcommands[i].name) == 0)
			sub = &subcommands[i];
	bool watches = sub && sub->run == run_watch;
	const char *kind = watches ? words[1] : x->o->kind;
	if (!sub)
		err_set(e, ERR_USAGE, "say what to do: " SUBCOMMANDS);
	else if (words[1] && (!watches || words[2]))
		err_set(e, ERR_USAGE, "unexpected argument '%s'",
			watches ? words[2] : words[1]);
	bool kubelet = watches && kind && strcmp(kind, "kubelet") == 0;
	if (!e->code && watches && !kubelet && (!kind || strcmp(kind, "slurm") != 0))
		err_set(e, ERR_USAGE, "say which scheduler to watch: slurm or kubelet");
	x->kind = kubelet ? LEASE_POD
			  : (enum lease_kind)str_place(
				    lease_kind_names, LEASE_KINDS, kind ? kind : "slurm");
	return e->code ? NULL : sub;
}

static int run(const struct call *call, struct err *e)
{
	const struct command *self = call->self;
	struct lease_options *o = call->values;
	struct lease_command x = { .self = self, .o = o };
	char dir[PATH_MAX], boot[BOOT_ID_CAP];
	int proc = -1, status = 0;
	const struct subcommand *sub = find(&x, call->operands, e);
	if (!sub || cmd_now(o->now, &x.place.now_ms, e) != 0 ||
		proc_open(&proc, o->root, e) != 0)
		return e->code;
	proc_read_boot_id(proc, boot, sizeof(boot));
	close(proc);
	if (!file_path(dir, "%s%s", o->leases ? "" : o->root,
		    o->leases ? o->leases : LEASE_DIR_PATH))
		return err_set(e, ERR_USAGE, "the path of the leases is too long");
	if (sub->run == run_watch && !self->parts)
		return hand_over(self->name, call->argv, e);
	call->conf->root = o->root;
	/* What writes leases goes on with what is right in a file, as the recorder does. */
	if (sub->run != run_list && sub->run != run_check) {
		if (configure_leniently(call->conf, &o->conf, NULL, e) != 0)
			return e->code;
	} else if (configure(self, call->conf, &o->conf, &status)) {
		return status;
	}
	x.place.path = dir;
	x.place.boot = boot;
	x.place.root = o->root;
	x.place.once = o->once;
	x.place.config = &call->conf->values.leases;
	return sub->run(&x, e);
}

const struct command cmd_lease = {
	.name = "lease",
	.summary = "say and list which cards a scheduler has given to whom",
	.usage = "add --id ID --user NAME --cards CARD,... | end --id ID |\n"
		 "       list | check | watch slurm|kubelet [OPTIONS]",
	.details = "add     for prologs: a scheduler has given cards away\n"
		   "end     for epilogs: it has them back\n"
		   "list    the leases that are known now\n"
		   "check   what is wrong with them; the exit status is 1 if anything is\n"
		   "watch   the service: asks the scheduler and writes its leases",
	.options = rows,
	.values_size = sizeof(struct lease_options),
	.initial = &(const struct lease_options){ .file = LEASE_FILE_NONE, .root = "" },
	.operands = SUBCOMMANDS,
	.run = run,
};
