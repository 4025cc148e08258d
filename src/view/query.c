/* Prints chosen fields as lines, or as JSON: of cards, of compute processes, and of what else
 * nvidia-smi lists: accounted processes, retired memory pages, remapped memory rows. */
#include "view/query.h"

#include "base/nearest.h"
#include "render/rows.h"
#include "view/format.h"
#include "view/stat.h"

/* The driver's codes that say why a card cannot be asked. */
enum { CODE_NO_PERMISSION = 4, CODE_LOST = 15, CODE_RESET_REQUIRED = 16 };
enum { CELL_CAP = 512, NEAREST = 3, PAGES_MOST = 4096 };

/* One look at the cards, and where the answer goes. */
struct query_answer {
	const struct query *query;
	struct stat_pick picked;
	const struct present *now; /* of the picked cards */
	struct json *json;	   /* NULL: CSV lines to `out` */
	struct str *out;
};

/* Where a cell comes from. */
enum origin {
	OF_CARD,    /* a metric */
	OF_PROCESS, /* a text of struct present_process */
	UNKNOWN,
	/* Texts. */
	PROGRAM,
	INSTANCE,
	TYPE,
	HELD_SINCE,
	IDLE_SINCE,
	CAUSE,
	/* Numbers of a process, which are numbers in JSON too. */
	PID,
	MEMORY,
	GPU_INDEX,
	SM,
	IDLE_FOR,
	/* Numbers of a record of accounting mode. */
	RECORD_PID,
	GPU_USE,
	MEMORY_USE,
	PEAK,
	LENGTH,
};

enum {
	APPS = 1 << QUERY_APPS,
	ACCOUNTED = 1 << QUERY_ACCOUNTED,
	RETIRED = 1 << QUERY_RETIRED,
	REMAPPED = 1 << QUERY_REMAPPED,
	ANY = APPS | ACCOUNTED | RETIRED | REMAPPED,
};

#define TEXT(member) OF_PROCESS, offsetof(struct present_process, member)
#define OF_ENVIRONMENT ": known for your own processes only, and to root for all."

static const struct list_field {
	unsigned lists; /* bits: which lists have it */
	const char *name, *synonym, *unit;
	enum origin origin;
	size_t from; /* OF_CARD: the metric; OF_PROCESS: offset of the text */
	const char *help;
} list_fields[] = {
	{ ANY, "timestamp", "", "", OF_CARD, METRIC_TIMESTAMP,
		"When the line was made, in local time." },
	{ ANY, "gpu_name", "", "", OF_CARD, METRIC_NAME, "The card's product name." },
	{ ANY, "gpu_bus_id", "", "", OF_CARD, METRIC_PCI_BUS_ID, "The card's PCI address." },
	{ ANY, "gpu_serial", "", "", OF_CARD, METRIC_SERIAL, "The card's serial number." },
	{ ANY, "gpu_uuid", "", "", OF_CARD, METRIC_UUID, "The card's unique identity." },
	{ APPS, "pid", "", "", PID, 0, "The process id." },
	{ APPS, "process_name", "name", "", PROGRAM, 0, "The program, as it was called." },
	{ APPS, "used_gpu_memory", "used_memory", "MiB", MEMORY, 0,
		"Memory that the process has on the card." },
	{ APPS, "gua.gpu_index", "", "", GPU_INDEX, 0, "The driver's number of the card." },
	{ APPS, "gua.instance_uuid", "", "", INSTANCE, 0,
		"The unique identity of the MIG instance; unknown on a card without MIG." },
	{ APPS, "gua.type", "", "", TYPE, 0,
		"C compute, G graphics, M client of MPS; or several." },
	{ APPS, "gua.user", "", "", TEXT(id.user), "The user who runs the process." },
	{ APPS, "gua.sm", "", "%", SM, 0,
		"How much of the card it used since the previous look." },
	{ APPS, "gua.command", "", "", TEXT(id.command), "The program and its script." },
	{ APPS, "gua.notebook", "", "", TEXT(id.notebook),
		"The Jupyter kernel, if the process is one." },
	{ APPS, "gua.notebook_path", "", "", TEXT(id.origin.notebook_path),
		"The path of the notebook that it runs" OF_ENVIRONMENT },
	{ APPS, "gua.job", "", "", TEXT(id.job), "The batch job that it belongs to." },
	{ APPS, "gua.container", "", "", TEXT(id.container), "The container that it runs in." },
	{ APPS, "gua.job_name", "", "", TEXT(id.origin.job_name),
		"The name of its Slurm job" OF_ENVIRONMENT },
	{ APPS, "gua.job_task", "", "", TEXT(id.origin.job_task),
		"The number of its task of a Slurm array, slurm:3_2" OF_ENVIRONMENT },
	{ APPS, "gua.account", "", "", TEXT(id.origin.account),
		"The account of its Slurm job" OF_ENVIRONMENT },
	{ APPS, "gua.login", "", "", TEXT(id.origin.login),
		"What started it: ssh, tmux, vscode, jupyter, batch, cron, service ..." },
	{ APPS, "gua.session", "", "", TEXT(id.origin.session),
		"The number of its login session." },
	{ APPS, "gua.parents", "", "", TEXT(id.origin.parents),
		"The names of its parents, from the session leader on." },
	{ APPS, "gua.python_env", "", "", TEXT(id.origin.python_env),
		"Its conda, pixi or venv environment." },
	{ APPS, "gua.tag", "", "", TEXT(id.origin.tag),
		"What its user has declared it to be for (GUA_TAG)" OF_ENVIRONMENT },
	{ APPS, "gua.held_since", "", "", HELD_SINCE, 0,
		"When it was first seen on the card." },
	{ APPS, "gua.idle_since", "", "", IDLE_SINCE, 0,
		"Since when it has not computed, at least; unknown while it computes." },
	{ APPS, "gua.idle_seconds", "gua.idle_for", "s", IDLE_FOR, 0,
		"How long it has not computed, at least." },
	{ ACCOUNTED, "vgpu_instance", "", "", UNKNOWN, 0, "gua does not read it." },
	{ ACCOUNTED, "pid", "", "", RECORD_PID, 0, "The process id." },
	{ ACCOUNTED, "gpu_utilization", "gpu_util", "%", GPU_USE, 0,
		"Mean use of the card while the process was on it." },
	{ ACCOUNTED, "mem_utilization", "mem_util", "%", MEMORY_USE, 0,
		"Mean share of the time in which memory was read or written." },
	{ ACCOUNTED, "max_memory_usage", "", "MiB", PEAK, 0,
		"Most memory that the process had on the card." },
	{ ACCOUNTED, "time", "", "ms", LENGTH, 0,
		"How long the process was on the card; 0 while it is." },
	{ RETIRED, "retired_pages.address", "", "", UNKNOWN, 0, "gua does not read it." },
	{ RETIRED, "retired_pages.timestamp", "", "", UNKNOWN, 0, "gua does not read it." },
	{ RETIRED, "retired_pages.cause", "", "", CAUSE, 0,
		"Single Bit ECC or Double Bit ECC." },
	{ REMAPPED, "remapped_rows.correctable", "remapped_rows.sbe", "", OF_CARD,
		METRIC_REMAPPED_CORRECTABLE, "Memory rows replaced for corrected errors." },
	{ REMAPPED, "remapped_rows.uncorrectable", "remapped_rows.dbe", "", OF_CARD,
		METRIC_REMAPPED_UNCORRECTABLE,
		"Memory rows replaced for errors that could not be corrected." },
	{ REMAPPED, "remapped_rows.pending", "", "", OF_CARD, METRIC_REMAPPED_PENDING,
		"Whether rows will be replaced at a restart." },
	{ REMAPPED, "remapped_rows.failure", "", "", OF_CARD, METRIC_REMAPPED_FAILURE,
		"Whether replacing a row has failed." },
	{ REMAPPED, "remapped_rows.histogram.max", "", "", OF_CARD, METRIC_ROWS_MAX,
		"Memory banks with all their spare rows left." },
	{ REMAPPED, "remapped_rows.histogram.high", "", "", OF_CARD, METRIC_ROWS_HIGH,
		"Memory banks with most of their spare rows left." },
	{ REMAPPED, "remapped_rows.histogram.partial", "", "", OF_CARD, METRIC_ROWS_PARTIAL,
		"Memory banks with some of their spare rows left." },
	{ REMAPPED, "remapped_rows.histogram.low", "", "", OF_CARD, METRIC_ROWS_LOW,
		"Memory banks with few spare rows left." },
	{ REMAPPED, "remapped_rows.histogram.none", "", "", OF_CARD, METRIC_ROWS_NONE,
		"Memory banks with no spare row left." },
};
enum { LIST_FIELDS = sizeof(list_fields) / sizeof(list_fields[0]) };

static const char *const titles[] = { [QUERY_GPU] = "gpu",
	[QUERY_APPS] = "compute-apps",
	[QUERY_ACCOUNTED] = "accounted-apps",
	[QUERY_RETIRED] = "retired-pages",
	[QUERY_REMAPPED] = "remapped-rows" };

static int find_list_field(enum query_list list, const char *name, size_t len)
{
	for (int i = 0; i < (int)LIST_FIELDS; i++) {
		const char *const names[] = { list_fields[i].name, list_fields[i].synonym };
		for (size_t k = 0; k < 2 && list_fields[i].lists & 1u << list; k++)
			if (strlen(names[k]) == len && strncasecmp(names[k], name, len) == 0)
				return i;
	}
	return -1;
}

/* As metric_nearest(), of compute processes. */
static size_t nearest_fields(const char *name, size_t len, int *found, size_t max)
{
	size_t distances[LIST_FIELDS];
	for (int i = 0; i < (int)LIST_FIELDS; i++) {
		const struct list_field *f = &list_fields[i];
		size_t a = nearest_distance(f->name, strlen(f->name), name, len);
		size_t b = nearest_distance(f->synonym, strlen(f->synonym), name, len);
		distances[i] = !(f->lists & APPS) ? NEAREST_NEVER : a < b ? a : b;
	}
	return nearest_few(distances, LIST_FIELDS, len, found, max);
}

static int unknown_field(const struct query *q, const char *name, size_t len, struct err *e)
{
	bool apps = q->list == QUERY_APPS;
	int near[NEAREST];
	char text[200] = "";
	size_t n = apps			  ? nearest_fields(name, len, near, NEAREST)
		   : q->list == QUERY_GPU ? metric_nearest(name, len, near, NEAREST)
					  : 0;
	for (size_t i = 0, at = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s",
			i == 0 ? "; the nearest: " : ", ",
			apps ? list_fields[near[i]].name : metrics[near[i]].name);
	return err_set(e, ERR_USAGE, "there is no field '%.*s'%s; --help-query-%s lists all",
		(int)(len < 100 ? len : 100), name, text, titles[q->list]);
}

int query_fields(struct query *q, const char *list, struct err *e)
{
	for (const char *at = list; *at;) {
		at += strspn(at, ", ");
		size_t len = strcspn(at, ", ");
		if (len == 0)
			break;
		int field = q->list ? find_list_field(q->list, at, len) : metric_find(at, len);
		if (field < 0) {
			q->wrong = at;
			return unknown_field(q, at, len, e);
		}
		if (q->n == QUERY_FIELDS_MAX)
			return err_set(e, ERR_USAGE, "more than %d fields", QUERY_FIELDS_MAX);
		q->fields[q->n++] = field;
		at += len;
	}
	return q->n ? 0 : err_set(e, ERR_USAGE, "no field is named");
}

static const struct format_word format_words[] = {
	{ "csv", offsetof(struct query, csv) },
	{ "noheader", offsetof(struct query, no_header) },
	{ "nounits", offsetof(struct query, no_units) },
	{ "json", offsetof(struct query, json) },
	{ 0 },
};

int query_format(struct query *q, const char *text, struct err *e)
{
	if (!format_take(format_words, q, text))
		return err_set(e, ERR_USAGE,
			"--format takes csv[,noheader][,nounits] or json, not '%s'", text);
	if (q->csv == q->json)
		return err_set(e, ERR_USAGE, "--format wants either csv or json");
	return 0;
}

void query_formats(struct str *out)
{
	format_list(format_words, out);
}

void query_gpu_fields(struct str *out)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		str_addf(out, "%s %s%s", metrics[i].name, metrics[i].synonyms,
			*metrics[i].synonyms ? " " : "");
}

static void add_words(enum query_list list, struct str *out)
{
	for (int i = 0; i < (int)LIST_FIELDS; i++)
		if (list_fields[i].lists & 1u << list)
			str_addf(out, "%s %s%s", list_fields[i].name, list_fields[i].synonym,
				*list_fields[i].synonym ? " " : "");
}

void query_list_app_fields(struct str *out)
{
	add_words(QUERY_APPS, out);
}

void query_list_accounted_fields(struct str *out)
{
	add_words(QUERY_ACCOUNTED, out);
}

void query_list_retired_fields(struct str *out)
{
	add_words(QUERY_RETIRED, out);
}

void query_list_remapped_fields(struct str *out)
{
	add_words(QUERY_REMAPPED, out);
}

void query_wanted(const struct query *q, unsigned char *wanted)
{
	for (size_t i = 0; i < q->n; i++) {
		const struct list_field *field = q->list ? &list_fields[q->fields[i]] : NULL;
		if (!field)
			wanted[q->fields[i]] = 1;
		else if (field->origin == OF_CARD)
			wanted[field->from] = 1;
	}
	if (q->list == QUERY_ACCOUNTED)
		wanted[METRIC_ACCOUNTING_MODE] = 1;
	if (q->list == QUERY_RETIRED)
		wanted[METRIC_RETIRED_SBE] = wanted[METRIC_RETIRED_DBE] = 1;
}

void query_header(const struct query *q, struct str *out)
{
	for (size_t i = 0; i < q->n; i++) {
		int field = q->fields[i];
		const char *name = q->list ? list_fields[field].name : metrics[field].name;
		const char *unit = q->list ? list_fields[field].unit : metrics[field].unit;
		str_addf(out, "%s%s", i ? ", " : "", name);
		if (*unit)
			str_addf(out, " [%s]", unit);
	}
	str_add(out, "\n");
}

struct brief query_bus_id(const char *pci)
{
	unsigned domain, bus, device, function;
	if (sscanf(pci, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return (struct brief){ "" };
	return str_brief("%08X:%02X:%02X.%X", domain, bus, device, function);
}

/* One line: a card, or a board. */
struct query_line {
	const struct card_id *id;
	const char *state; /* "": a divided board has none */
	const double *values;
	const metric_texts *texts;
	int code; /* why it cannot be asked; 0: it can */
	const short *codes;
};

/* Why a card cannot be asked, as the driver would say it; 0: it can, or it is asleep. */
static int status_code(enum card_status status, int code)
{
	if (status == CARD_STATUS_DENIED)
		return CODE_NO_PERMISSION;
	if (status != CARD_STATUS_LOST)
		return 0;
	return code == CODE_RESET_REQUIRED ? code : CODE_LOST;
}

static struct query_line card_line(const struct present_card *c)
{
	return (struct query_line){ &c->id, stat_state(c), c->values,
		(const metric_texts *)&c->texts, status_code(c->status, c->code), c->codes };
}

static struct query_line board_line(
	const struct present_board *b, const struct present_card *cards)
{
	struct query_line line = card_line(&cards[b->first_card]);
	line.id = &b->id;
	line.code = status_code(b->status, b->code);
	line.codes = b->codes;
	line.values = b->values;
	line.texts = (const metric_texts *)&b->texts;
	if (b->mig && b->status == CARD_STATUS_OK)
		line.state = "";
	return line;
}

void query_process_name(char *dst, size_t cap, struct live *l, const struct present_process *p)
{
	struct str arguments = { 0 };
	live_process_arguments(l, p, &arguments);
	if (arguments.len)
		str_copy(dst, cap, arguments.data);
	else
		str_copy(dst, cap, p->id.command[0] ? p->id.command : "[Not Found]");
	str_finish(&arguments);
}

static bool is_text(enum metric m)
{
	return metrics[m].form == METRIC_FORM_DRIVER_TEXT ||
	       metrics[m].form == METRIC_FORM_CARD_TEXT;
}

/* A field as text without its unit; "" unknown. */
static void show(char *dst, size_t cap, enum metric m, const struct present *now,
	const struct query_line *line)
{
	if (is_text(m)) {
		dst[0] = '\0';
		if (metrics[m].form == METRIC_FORM_DRIVER_TEXT)
			str_copy(dst, cap, (*line->texts)[m]);
		else if (m == METRIC_TIMESTAMP) {
			struct tm tm = moment_fields(now->now_ms, false);
			snprintf(dst, cap, "%04d/%02d/%02d %02d:%02d:%02d.%03d",
				tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
				tm.tm_min, tm.tm_sec, (int)(now->now_ms % 1000));
		} else if (m == METRIC_DRIVER_VERSION || m == METRIC_KMD_VERSION)
			str_copy(dst, cap, now->hosts[0].driver);
		else if (m == METRIC_NAME)
			str_copy(dst, cap, line->id->name);
		else if (m == METRIC_UUID)
			str_copy(dst, cap, card_has_uuid(line->id) ? line->id->uuid : "");
		else if (m == METRIC_PCI_BUS_ID)
			str_copy(dst, cap, query_bus_id(line->id->pci).text);
		else if (m == METRIC_GUA_STATE)
			str_copy(dst, cap, line->state);
	} else
		metric_show(dst, cap, m, line->values[m]);
}

void query_board_text(char *dst, size_t cap, enum metric m, const struct present *now,
	const struct present_board *b)
{
	struct query_line line = board_line(b, now->cards);
	show(dst, cap, m, now, &line);
}

const char *query_code_words(int code)
{
	static const struct {
		int code;
		const char *words;
	} known[] = {
		{ 1, "Uninitialized" },
		{ 4, "Insufficient Permissions" },
		{ 6, "Not Found" },
		{ 7, "Insufficient Size" },
		{ 8, "Insufficient External Power" },
		{ 9, "Driver Not Loaded" },
		{ 10, "Timeout" },
		{ 11, "Interrupt Request Issue" },
		{ 14, "Corrupted infoROM" },
		{ 15, "GPU is lost" },
		{ 16, "GPU requires reset" },
		{ 17, "GPU access blocked by the operating system" },
		{ 18, "Driver/library version mismatch" },
		{ 19, "In use by another client" },
		{ 20, "Insufficient Memory" },
		{ 23, "Insufficient Resources" },
		{ 27, "System is not in ready state" },
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].code == code)
			return known[i].words;
	return "Unknown Error";
}

int query_missing_code(const struct present_board *b, enum metric m)
{
	return b->codes[m] ? b->codes[m] : status_code(b->status, b->code);
}

/* The text of a cell in CSV, with its unit, or why there is none. A value that is known
 * although its call failed is a failure here: scripts look for it. */
static void csv_text(
	char *dst, const struct query_answer *a, enum metric m, const struct query_line *line)
{
	char text[CELL_CAP / 2];
	const char *unit = a->query->no_units ? "" : metrics[m].unit;
	show(text, sizeof(text), m, a->now, line);
	int code = line->codes[m] ? line->codes[m] : *text ? 0 : line->code;
	if (*text && (m == METRIC_REMAPPED_PENDING || m == METRIC_REMAPPED_FAILURE))
		str_copy(text, sizeof(text), line->values[m] != 0 ? "1" : "0");
	if (code)
		snprintf(dst, CELL_CAP, "[%s]", query_code_words(code));
	else if (*text)
		snprintf(dst, CELL_CAP, "%s%s%s", text, *unit ? " " : "", unit);
	else /* nvidia-smi writes this one without brackets */
		str_copy(dst, CELL_CAP, m == METRIC_TEMPERATURE_MEMORY ? "N/A" : "[N/A]");
}

static void add_cell(const struct query_answer *a, enum metric m, const struct query_line *line)
{
	const struct metric_info *info = &metrics[m];
	char text[CELL_CAP];
	double value = line->values[m] / info->scale;
	if (!a->json) {
		csv_text(text, a, m, line);
		(is_text(m) ? rows_text : rows_own_text)(a->out, text);
	} else if (info->form == METRIC_FORM_NUMBER) {
		json_number(
			a->json, info->name, info->detail ? value : floor(value), info->detail);
	} else {
		show(text, sizeof(text), m, a->now, line);
		json_label(a->json, info->name, text);
	}
}

/* One line: a card, and a process, a record or a page of it. */
struct list_row {
	const struct present_card *card; /* of a process: its instance */
	const struct present_board *board;
	const struct present_process *process;
	const struct process_account *record;
	const char *cause;
};

/* A cell that is a number; NAN if unknown. */
static double cell_number(
	const struct present *now, enum origin origin, const struct list_row *r)
{
	const struct present_process *p = r->process;
	const struct process_account *a = r->record;
	if (origin <= IDLE_FOR ? !p : !a)
		return NAN;
	switch (origin) {
	case PID:
		return p->id.pid;
	case MEMORY:
		return p->mem_bytes < 0 ? NAN : (double)(p->mem_bytes >> 20);
	case GPU_INDEX:
		return r->card->id.index;
	case SM:
		return p->sm_pct;
	case IDLE_FOR:
		return p->idle_since_ms < 0
			       ? NAN
			       : floor((double)(now->now_ms - p->idle_since_ms) / 1000);
	case RECORD_PID:
		return a->pid;
	case GPU_USE:
		return a->gpu_pct;
	case MEMORY_USE:
		return a->memory_pct;
	case PEAK:
		return a->mem_peak_bytes < 0 ? NAN : (double)(a->mem_peak_bytes >> 20);
	default:
		return (double)a->time_ms;
	}
}

/* A cell that is a text; "" if unknown. */
static void cell_text(char *dst, const struct query_answer *to, const struct list_field *field,
	const struct list_row *r)
{
	const struct present_process *p = r->process;
	int64_t since_ms = -1;
	dst[0] = '\0';
	if (field->origin == OF_CARD)
		query_board_text(dst, CELL_CAP, (enum metric)field->from, to->now, r->board);
	else if (field->origin == OF_PROCESS)
		str_copy(dst, CELL_CAP, (const char *)p + field->from);
	else if (field->origin == PROGRAM)
		query_process_name(dst, CELL_CAP, to->picked.live, p);
	else if (field->origin == INSTANCE && r->card->id.mig_index >= 0)
		str_copy(dst, CELL_CAP, r->card->id.uuid);
	else if (field->origin == TYPE)
		snprintf(dst, CELL_CAP, "%s%s%s", p->kind & PROCESS_COMPUTE ? "C" : "",
			p->kind & PROCESS_GRAPHICS ? "G" : "",
			p->kind & PROCESS_MPS ? "M" : "");
	else if (field->origin == CAUSE)
		str_copy(dst, CELL_CAP, r->cause);
	if (field->origin == HELD_SINCE || field->origin == IDLE_SINCE)
		since_ms = field->origin == HELD_SINCE ? p->held_since_ms : p->idle_since_ms;
	if (since_ms >= 0)
		str_copy(dst, CELL_CAP, moment_iso(since_ms).text);
}

static void add_list_cell(
	const struct query_answer *to, const struct list_field *field, const struct list_row *r)
{
	char text[CELL_CAP];
	double number = NAN;
	bool is_number = field->origin >= PID;
	if (!to->json && field->origin == OF_CARD) {
		struct query_line line = board_line(r->board, to->now->cards);
		add_cell(to, (enum metric)field->from, &line);
		return;
	}
	if (is_number) {
		number = cell_number(to->now, field->origin, r);
		json_number_text(text, sizeof(text), number, 0);
	} else {
		cell_text(text, to, field, r);
	}
	if (to->json && is_number && r->process) {
		json_number(to->json, field->name, number, 0);
	} else if (to->json) {
		json_label(to->json, field->name, text);
	} else {
		(is_number ? rows_own_text : rows_text)(to->out, *text ? text : "[N/A]");
		if (*text && *field->unit && !to->query->no_units)
			str_addf(to->out, " %s", field->unit);
	}
}

/* Adds a line of --query-gpu, or a row of another list. */
static void add_row(
	const struct query_answer *to, const struct query_line *line, const struct list_row *r)
{
	const struct query *q = to->query;
	if (to->json)
		json_open(to->json, NULL, '{');
	for (size_t i = 0; i < q->n; i++) {
		if (!to->json && i)
			str_add(to->out, ", ");
		if (line)
			add_cell(to, (enum metric)q->fields[i], line);
		else
			add_list_cell(to, &list_fields[q->fields[i]], r);
	}
	if (to->json)
		json_close(to->json, '}');
	else
		str_add(to->out, "\n");
}

/* The processes of a card that match. */
static void add_processes(const struct query_answer *to, const struct present_card *c)
{
	const struct present_process *all = &to->now->processes[c->first_process];
	struct list_row r = { .card = c, .board = &to->now->boards[c->board] };
	for (size_t k = 0; k < c->n_processes; k++) {
		r.process = &all[k];
		if (all[k].holder && filter_process(to->picked.filter, &all[k]))
			add_row(to, NULL, &r);
	}
}

/* The lines of a board. */
static void add_board(const struct query_answer *to, const struct present_board *b)
{
	static const struct {
		enum metric count;
		const char *cause;
	} pages[] = { { METRIC_RETIRED_SBE, "Single Bit ECC" },
		{ METRIC_RETIRED_DBE, "Double Bit ECC" } };
	struct list_row r = { .board = b };
	struct query_line line = board_line(b, to->now->cards);
	if (to->query->list == QUERY_GPU)
		add_row(to, &line, NULL);
	else if (to->query->list == QUERY_ACCOUNTED) {
		const struct present *now = to->now;
		for (size_t i = 0; i < now->n_accounts; i++) {
			size_t card = now->accounts[i].card;
			if (card >= now->n_cards ||
				&now->boards[now->cards[card].board] != r.board)
				continue;
			r.record = &now->accounts[i].record;
			add_row(to, NULL, &r);
		}
		/* While accounting is off, nvidia-smi prints one line without values. */
		if (!r.record && !to->json && r.board->values[METRIC_ACCOUNTING_MODE] != 1)
			add_row(to, NULL, &r);
	} else if (to->query->list == QUERY_REMAPPED)
		add_row(to, NULL, &r);
	/* A line for each page; one line if the card does not count them. */
	for (size_t k = 0; to->query->list == QUERY_RETIRED && k < 2; k++) {
		double count = b->values[pages[k].count];
		r.cause = pages[k].cause;
		for (int i = 0; i < (isnan(count) ? 1 : fmin(count, PAGES_MOST)); i++)
			add_row(to, NULL, &r);
	}
}

int query_look(const struct query *q, struct live *l, const struct filter *f, struct str *out,
	struct err *e)
{
	struct json json = { .out = out, .lines = q->lines };
	struct json *to = q->json ? &json : NULL;
	struct query_answer a = { .query = q, .now = live_present(l), .json = to, .out = out };
	if (to) {
		json_open(to, NULL, '{');
		json_text(to, "schema", "gua-query-1");
		json_moment(to, "time", a.now->now_ms);
		json_text(to, "host", a.now->hosts[0].hostname);
		json_open(to,
			q->list == QUERY_GPU	? "gpus"
			: q->list == QUERY_APPS ? "processes"
						: "rows",
			'[');
	}
	int rc = stat_pick(&a.picked, l, f, e);
	bool by_card = q->list == QUERY_APPS || (q->list == QUERY_GPU && q->instances);
	for (size_t i = 0; rc == 0 && i < (by_card ? a.picked.n : a.picked.n_boards); i++) {
		const struct present_card *c = &a.now->cards[a.picked.cards[i]];
		struct query_line line = card_line(c);
		if (!by_card)
			add_board(&a, a.picked.boards[i]);
		else if (q->list == QUERY_APPS)
			add_processes(&a, c);
		else
			add_row(&a, &line, NULL);
	}
	stat_pick_finish(&a.picked);
	if (to) {
		json_close(to, ']');
		json_close(to, '}');
	}
	return rc;
}

/* Names and descriptions are within 80 columns. An empty line comes before each: programs that
 * read nvidia-smi's list use it to find the next name. */
void query_help(enum query_list list, struct str *out)
{
	const struct text_style style = { .columns = 80, .ascii = true };
	if (list) {
		str_addf(out, "Fields of --query-%s:\n", titles[list]);
		for (int i = 0; i < (int)LIST_FIELDS; i++) {
			if (!(list_fields[i].lists & 1u << list))
				continue;
			str_addf(out, "\n\"%s\"", list_fields[i].name);
			if (*list_fields[i].synonym)
				str_addf(out, " or \"%s\"", list_fields[i].synonym);
			str_addf(out, "\n    %s\n", list_fields[i].help);
		}
		return;
	}
	str_add(out, "Fields of --query-gpu, with the names that mean the same:\n");
	for (const struct metric_info *m = metrics; m < metrics + METRIC_COUNT; m++) {
		str_addf(out, "\n\"%s\"", m->name);
		for (const char *at = m->synonyms; *at;) {
			size_t len = strcspn(at, " ");
			str_addf(out, " or \"%.*s\"", (int)len, at);
			at += len + (at[len] == ' ');
		}
		str_add(out, "\n    ");
		text_add_wrapped(out, m->help, 4, 4, &style);
	}
}
