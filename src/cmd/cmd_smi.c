/* gua smi: stands in for nvidia-smi in scripts: its options, layouts and exit statuses. */
#include "cmd/cmd_dmon.h"
#include "cmd/share/query_rows.h"
#include "view/smi.h"

/* Exit statuses of nvidia-smi; others are the driver's codes. */
enum { STATUS_USAGE = 2, STATUS_UNAVAILABLE = 3, STATUS_NOTHING = 6, STATUS_NO_DRIVER = 9 };
enum { STATUS_NO_LIBRARY = 12, STATUS_MISMATCH = 18, STATUS_OTHER = 255 };
enum { CODE_NO_GPU = 28 };

struct values {
	struct live_values live;
	struct filter_values filter;
	struct query_values query;
	const char *display;
	bool list, report, all, xml, version, dtd, terse;
	bool topology; /* topo -m */
};

#define AT(field) .offset = offsetof(struct values, field)

static const struct option_row options[] = {
	{ OPTION_FLAG, 'L', "list-gpus", .help = "one line per card: index, name, UUID",
		AT(list) },
	{ OPTION_FLAG, 'q', "query", .help = "all that is known of each card", AT(report) },
	{ OPTION_FLAG, 'a', "all", .help = "the same", AT(all), .hidden = true },
	{ OPTION_FLAG, 'x', "xml-format", .help = "with -q: as XML", AT(xml) },
	{ OPTION_FLAG, 0, "dtd", .help = "accepted for compatibility and ignored", AT(dtd),
		.hidden = true },
	{ OPTION_FLAG, 't', "terse", .help = "accepted for compatibility and ignored",
		AT(terse), .hidden = true },
	{ OPTION_TEXT, 'd', "display", "SECTION,...",
		"with -q: only MEMORY, UTILIZATION, ECC, TEMPERATURE, POWER, CLOCK, PIDS ...",
		AT(display), .words = smi_report_section_names },
	{ OPTION_FLAG, 0, "version", .help = "versions of the driver, its library and CUDA",
		AT(version) },
	QUERY_ROWS,
	{ OPTION_TEXT, 0, "format", "FORMAT,...", "of --query-...: csv[,noheader][,nounits]",
		AT(query.format), .words = query_formats },
	QUERY_HELP_ROWS,
	{ OPTION_LIST, 'i', "id", "CARD,...", "only these cards: index, UUID or PCI address",
		AT(filter.ids) },
	QUERY_LOOP_ROWS,
	LIVE_ROWS(struct values, live),
	{ 0 },
};

/* Wrong usage. An option that does not exist has a status of its own in nvidia-smi, and its
 * sentence is on standard output. */
static int fail_usage(const struct command *self, const char *text)
{
	static const char *const unknown[] = { "unknown option ", "unexpected argument '" };
	fprintf(stderr, "usage: %s %s\n", cmd_name(self).text, self->usage);
	const char *no_value = strstr(text, " needs a value");
	if (no_value) {
		printf("ERROR: Option %.*s is missing its value. Please run 'nvidia-smi -h' "
		       "for help.\n\n",
			(int)(no_value - text), text);
		return STATUS_OTHER;
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		size_t len = strlen(unknown[i]);
		if (strncmp(text, unknown[i], len) != 0)
			continue;
		printf("ERROR: Option %.*s is not recognized. Please run 'nvidia-smi -h'.\n\n",
			(int)strcspn(text + len, ";'"), text + len);
		return STATUS_OTHER;
	}
	return STATUS_USAGE;
}

/* Scripts read nvidia-smi's sentence from standard output. Our own sentence, which says more,
 * goes to standard error. */
static int fail(const struct command *self, const struct err *e)
{
	int number = e->number;
	bool driver = e->code == ERR_WORLD && number;
	fprintf(stderr, "%s: %s\n", cmd_name(self).text, e->text);
	if (e->code == ERR_USAGE)
		return fail_usage(self, e->text);
	if (e->code == ERR_NOTHING || (driver && number == CODE_NO_GPU)) {
		puts("No devices were found");
		return STATUS_NOTHING;
	}
	if (!driver)
		return STATUS_OTHER;
	if (number < 0) { /* of one card: smi_check() */
		printf("%s\n\n", e->text);
		return -number < STATUS_OTHER ? -number : STATUS_OTHER;
	}
	if (number == STATUS_NO_DRIVER)
		puts("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
		     "driver. Make sure that the latest NVIDIA driver is installed and "
		     "running.\n");
	else if (number == STATUS_NO_LIBRARY)
		puts("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please "
		     "make sure that the NVIDIA Display Driver is properly installed and "
		     "present in your system.\nPlease also try adding directory that contains "
		     "libnvidia-ml.so to your system PATH.");
	else
		printf("Failed to initialize NVML: %s\n", query_code_words(number));
	/* A second line about a driver that does not match: two of the library's numbers. */
	const char *version = strstr(e->text, "the library (version ");
	if (number == STATUS_MISMATCH && version) {
		version = strchr(version, '(') + strlen("(version ");
		size_t major = strcspn(version, ".)"), minor = 0;
		if (version[major] == '.')
			minor = strcspn(version + major + 1, ".)") + 1;
		if (strspn(version, "0123456789") == major && major)
			printf("NVML library version: %.*s\n", (int)(major + minor), version);
	}
	return number < STATUS_OTHER ? number : STATUS_OTHER;
}

/* What nvidia-smi can do, and gua cannot or may not do. */
static const char *const refused[] = { "topo", "drain", "nvlink", "c2c", "clocks",
	"encodersessions", "fbcsessions", "vgpu", "mig", "compute-policy", "boost-slider",
	"power-hint", "base-clocks", "event-log", "cper", "conf-compute", "gpm", "pci",
	"power-smoothing", "power-profiles", "rusd", "prm", "soc", "daemon", "replay",
	"--query-supported-clocks", "-pm", "--persistence-mode", "-e", "--ecc-config", "-p",
	"--reset-ecc-errors", "-c", "--compute-mode", "--gom", "-r", "--gpu-reset", "-vm",
	"--virt-mode", "-lgc", "--lock-gpu-clocks", "-rgc", "--reset-gpu-clocks", "-lmc",
	"--lock-memory-clocks", "-rmc", "--reset-memory-clocks", "-lmcd", "-rmcd", "-ac",
	"--applications-clocks", "-rac", "--reset-applications-clocks", "-pl", "--power-limit",
	"-sc", "-cc", "--cuda-clocks", "-am", "--accounting-mode", "-caa",
	"--clear-accounted-apps", "--auto-boost-default", "--auto-boost-permission", "-mig",
	"--multi-instance-gpu", "-gtt", "--gpu-target-temp", "-den", "--dram-encryption", "-u",
	"--unit", "-B", "--list-excluded-gpus", "--set-hostname", "-col", "--columns", NULL };

/* The first argument that is one of these; NULL: none. */
static const char *find_refused(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		for (size_t k = 0; refused[k]; k++) {
			size_t len = strlen(refused[k]);
			bool word = refused[k][0] != '-';
			if (strncmp(argv[i], refused[k], len) == 0 &&
				(argv[i][len] == '\0' || argv[i][len] == '=') &&
				(!word || i == 1))
				return refused[k];
		}
	return NULL;
}

/* dmon and pmon: gua dmon with the name and the statuses of gua smi. pmon shows no memory
 * unless it is asked for. */
static int monitor(const struct command *self, int argc, char **argv)
{
	static const struct dmon_values dmon = { .live.only_named = true };
	static const struct dmon_values pmon = {
		.live.only_named = true, .processes = true, .select = "u"
	};
	struct command own = cmd_dmon;
	struct brief name = str_brief("%s %s", cmd_name(self).text, argv[0]);
	own.called = name.text;
	own.fail = fail;
	own.initial = strcmp(argv[0], "pmon") == 0 ? &pmon : &dmon;
	return cmd_run(&own, argc, argv);
}

/* Runs gua query in the same way. Before that, checks for an unknown field, because scripts
 * recognise that by nvidia-smi's sentence. */
static int query(const struct call *call, struct err *e)
{
	const struct values *v = call->values;
	struct query_command asked = { v->live, v->filter, v->query, .t = v->terse };
	struct query q = { .list = QUERY_GPU };
	struct command own = cmd_query;
	const char *other = v->list	  ? "-L"
			    : v->report	  ? "-q"
			    : v->all	  ? "-a"
			    : v->xml	  ? "-x"
			    : v->display  ? "-d"
			    : v->version  ? "--version"
			    : v->topology ? "-m"
					  : NULL;
	if (other) /* nvidia-smi does not know it beside a query either */
		return err_set(e, ERR_USAGE,
			"unknown option %s; it cannot be combined with --query-...", other);
	while (q.list < QUERY_REMAPPED && !v->query.lists[q.list])
		q.list++;
	const char *list = v->query.lists[q.list];
	if (list && query_fields(&q, list, NULL) != 0 && q.wrong) {
		char safe[128];
		str_escape(safe, sizeof(safe), q.wrong, strcspn(q.wrong, ", "));
		printf("Field \"%s\" is not a valid field to query.\n\n", safe);
		fflush(stdout);
	}
	struct brief name = cmd_name(call->self);
	own.called = name.text;
	own.fail = fail;
	asked.live.only_named = true;
	int rc = own.run(&(struct call){ .self = &own, .values = &asked }, e);
	return rc < 0 ? cmd_fail(&own, e) : rc;
}

/* How the cards are shown. */
struct show {
	const struct values *v;
	struct filter filter;
	unsigned sections;
	int status; /* of the last look, if a card could not be opened; else 0 */
};

static int look(struct live_session *s, void *context, struct str *out, struct err *e)
{
	struct stat_pick smi;
	struct show *show = context;
	const struct values *v = show->v;
	struct err lost = { 0 };
	int rc = stat_pick(&smi, s->live, &show->filter, e);
	bool whole = rc || v->version || smi_check(&smi, &lost) == 0;
	show->status = -lost.number < STATUS_OTHER ? -lost.number : STATUS_OTHER;
	/* Scripts look for the sentence; it would break XML. */
	if (!whole && !v->list && !v->xml)
		str_addf(out, "%s\n\n", lost.text);
	if (rc == 0 && v->version)
		smi_versions(&smi, out);
	else if (rc == 0 && v->topology)
		smi_topology(&smi, v->live.o.source.root, out);
	else if (rc == 0 && v->list)
		smi_list(&smi, out);
	else if (rc == 0 && (v->xml || v->report || v->all))
		smi_report(&smi, v->xml, v->xml ? 0 : show->sections, out);
	else if (rc == 0)
		smi_table(&smi, out);
	stat_pick_finish(&smi);
	return rc;
}

/* Shows the cards as the options say, if they are not a query. */
static int show_as(const struct values *v, struct err *e)
{
	struct show show = { .v = v };
	struct live_lines lines = { .path = v->query.file, .look = look, .context = &show };
	unsigned char wanted[METRIC_COUNT] = { 0 };
	struct live_values live = v->live;
	bool report = v->report || v->all || v->xml;
	/* Options that would be ignored together. */
	if (v->list && (report || v->display || v->query.format))
		return err_set(
			e, ERR_USAGE, "-L cannot be combined with -q, -x, -d or --format");
	if (v->query.format)
		return err_set(
			e, ERR_USAGE, "--format is for --query-gpu and the other queries");
	if (v->display && v->xml)
		return err_set(
			e, ERR_USAGE, "-d cannot be combined with -x: XML has all sections");
	if (v->display && !report)
		return err_set(e, ERR_USAGE, "-d needs -q");
	if (cmd_live_loop(v->query.loop, v->query.loop_ms, &lines.every_ms, e) ||
		(v->display && smi_report_sections(v->display, &show.sections, e)) ||
		filter_init(&show.filter, &v->filter, e))
		return e->code;
	show.filter.by_index = true;
	live.no_store = true; /* nothing of the past is shown */
	live.o.accounts = report;
	live.o.once = !lines.every_ms;
	live.o.cards_only = v->list || v->version || v->topology;
	smi_table_wanted(wanted);
	if (report)
		smi_report_wanted(wanted);
	int rc = cmd_live_print(&cmd_smi, &live, wanted, &lines, e);
	return rc ? rc : show.status;
}

static int run(const struct call *call, struct err *e)
{
	const struct values *v = call->values;
	for (size_t i = 0; i < QUERY_LISTS; i++)
		if (v->query.lists[i] || v->query.helps[i])
			return query(call, e);
	int rc = show_as(v, e);
	bool none =
		e->code == ERR_NOTHING || (e->code == ERR_WORLD && e->number == CODE_NO_GPU);
	if (!none || !v->list || v->filter.ids.n)
		return rc;
	puts("No devices found."); /* a list without cards is no failure */
	return 0;
}

static int start(const struct command *self, int argc, char **argv)
{
	static const struct values topology = { .topology = true };
	static char loop_ms[] = "--loop-ms";
	struct command own = *self;
	own.fail = fail;
	own.operands = NULL; /* they are taken here */
	/* nvidia-smi takes -lms, and -i=0 for -i 0. getopt would read these as other options.
	 */
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		char *arg = argv[i];
		if (strcmp(arg, "-lms") == 0)
			argv[i] = loop_ms;
		else if (arg[0] == '-' && arg[1] && arg[1] != '-' && arg[2] == '=')
			memmove(arg + 2, arg + 3, strlen(arg + 3) + 1);
	}
	if (argc > 2 && strcmp(argv[1], "topo") == 0 &&
		(strcmp(argv[2], "-m") == 0 || strcmp(argv[2], "--matrix") == 0)) {
		own.initial = &topology;
		argv[2] = argv[0];
		argv += 2;
		argc -= 2;
	}
	const char *no = find_refused(argc, argv);
	if (argc > 1 && (strcmp(argv[1], "dmon") == 0 || strcmp(argv[1], "pmon") == 0))
		return monitor(self, argc - 1, argv + 1);
	if (!no)
		return cmd_call(&own, argc, argv);
	fprintf(stderr, "%s: there is no '%s'%s; use NVIDIA's own nvidia-smi for that\n",
		cmd_name(self).text, no,
		strcmp(no, "topo") == 0 ? " other than 'topo -m'" : "");
	return STATUS_UNAVAILABLE;
}

const struct command cmd_smi = {
	.name = "smi",
	.summary = "stand in for nvidia-smi in scripts: table, -L, -q, queries, dmon",
	.usage = "[-L | -q [-x | -d SECTION,...] | --query-gpu=FIELD,... | dmon | pmon | "
		 "topo -m] [OPTIONS]",
	.details = "Options, layouts and exit statuses are those of nvidia-smi. Nothing on a "
		   "card is\nchanged.",
	.options = options,
	.values_size = sizeof(struct values),
	.operands = "dmon|pmon|topo",
	.start = start,
	.run = run,
};

int cmd_smi_main(const char *called, int argc, char **argv)
{
	struct command smi = cmd_smi;
	smi.called = called;
	return cmd_run(&smi, argc, argv);
}
