/* The full report of nvidia-smi (-q) as text and as XML, from one table: smi.def. */
#include "render/html.h"
#include "view/query.h"
#include "view/smi.h"

enum { REPORT_CAP = 160, DEPTH_MAX = 8, PROCESS_LABEL_WIDTH = 42 };
#define LABEL_WIDTH(generation) ((generation) >= 580 ? 55 : 42)

/* The words of -d. Rows without such a word are only in the full report. */
/* clang-format off */
#define SECTIONS(X) \
	X(MEMORY) X(UTILIZATION) X(ECC) X(TEMPERATURE) X(POWER) X(CLOCK) X(COMPUTE) \
	X(PIDS) X(PERFORMANCE) X(SUPPORTED_CLOCKS) X(PAGE_RETIREMENT) X(ACCOUNTING) \
	X(ENCODER_STATS) X(SUPPORTED_GPU_TARGET_TEMP) X(VOLTAGE) X(FBC_STATS) \
	X(ROW_REMAPPER) X(RESET_STATUS) X(GSP_FIRMWARE_VERSION) X(POWER_SMOOTHING) \
	X(POWER_PROFILES)
/* clang-format on */

#define SECTION_ID(name) SECTION_##name,
#define SECTION_NAME(name) #name,
enum section { SECTION_ALWAYS, SECTIONS(SECTION_ID) SECTION_COUNT };
static const char *const section_names[] = { "", SECTIONS(SECTION_NAME) };

enum kind {
	GROUP_ROW,
	VALUE_ROW,
	ABSENT_ROW,
	NESTED_ROW,
	BARE_HEX_ROW,
	PAGES_ROW,
	SUPPORT_ROW,
	LINE_OR_GROUP_ROW,
	INSTANCES_ROW,
	PROCESSES_ROW,
	ACCOUNTS_ROW,
};

/* Which cards have a row. Volta and older cards count errors by their width, the others by the
 * memory they are in. Cards that report how far they are from slowing down have limits of that
 * margin, the others limits in degrees. Power is one number, or a mean and a momentary one. */
enum when { WHEN_ALWAYS, WIDTH_COUNTED, PLACE_COUNTED, DEGREES, MARGINS, ONE_DRAW, TWO_DRAWS };

/* Which formats have a row: IF_NAMED is in text only if -d names its section. */
enum only { IN_BOTH, IN_XML, IF_NAMED };

/* clang-format off */
static const struct smi_row {
	enum kind kind;
	int depth; /* nesting below the card */
	enum section section;
	const char *label, *tag;
	enum metric metric;
	const char *suffix; /* replaces the metric's unit; NULL: use that unit */
	int since, until;   /* driver generations; 0: no limit */
	int deprecated;	    /* from this one on, the value is a sentence; 0: never */
	enum when when;
	enum only only;
} rows[] = {
#define ROW(kind_, depth_, section_, label_, tag_, metric_, ...)                               \
	{ .kind = kind_##_ROW, .depth = (depth_), .section = SECTION_##section_,               \
		.label = (label_), .tag = (tag_), .metric = (metric_), __VA_ARGS__ },
#define GROUP(depth, section, label, tag, ...) ROW(GROUP, depth, section, label, tag, 0, __VA_ARGS__)
#define ABSENT(depth, section, label, tag, ...) ROW(ABSENT, depth, section, label, tag, 0, __VA_ARGS__)
#define SPECIAL(section, what, ...) ROW(what, 1, section, "", "", 0, __VA_ARGS__)
#define VALUE(d, s, l, t, m, ...) ROW(VALUE, d, s, l, t, METRIC_##m, __VA_ARGS__)
#define NESTED(d, s, l, t, m, ...) ROW(NESTED, d, s, l, t, METRIC_##m, __VA_ARGS__)
#define BARE_HEX(d, s, l, t, m, ...) ROW(BARE_HEX, d, s, l, t, METRIC_##m, __VA_ARGS__)
#define PAGES(d, s, l, t, m, ...) ROW(PAGES, d, s, l, t, METRIC_##m, __VA_ARGS__)
#define SUPPORT(d, s, l, t, m, ...) ROW(SUPPORT, d, s, l, t, METRIC_##m, __VA_ARGS__)
#define LINE_OR_GROUP(d, s, l, t, m, ...) ROW(LINE_OR_GROUP, d, s, l, t, METRIC_##m, __VA_ARGS__)
#include "view/smi.def"
};
/* clang-format on */
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

int smi_report_sections(const char *list, unsigned *sections, struct err *e)
{
	*sections = 0;
	for (const char *at = list; *at;) {
		size_t len = strcspn(at, ", ");
		int found = 0;
		for (int i = 1; i < (int)SECTION_COUNT; i++)
			if (strlen(section_names[i]) == len &&
				strncasecmp(section_names[i], at, len) == 0)
				found = i;
		if (!found)
			return err_set(e, ERR_USAGE,
				"--display takes MEMORY, UTILIZATION, ECC, TEMPERATURE, POWER, "
				"CLOCK, PIDS and others that the manual lists, not '%.*s'",
				(int)len, at);
		*sections |= 1u << found;
		at += len + strspn(at + len, ", ");
	}
	return *sections ? 0 : err_set(e, ERR_USAGE, "--display names nothing");
}

void smi_report_section_names(struct str *out)
{
	for (int i = 1; i < (int)SECTION_COUNT; i++)
		str_addf(out, "%s ", section_names[i]);
}

void smi_report_wanted(unsigned char *wanted)
{
	wanted[METRIC_CUDA_VERSION] = wanted[METRIC_NVML_VERSION] = 1;
	wanted[METRIC_ECC_UNCORRECTED_VOLATILE_SRAM] = 1;
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].kind != GROUP_ROW && rows[i].kind != ABSENT_ROW)
			wanted[rows[i].metric] = 1;
}

/* The state of the writer. */
struct smi_writer {
	const struct stat_pick *smi;
	struct str *out;
	bool xml;
	int generation;		     /* of the driver: 535 */
	unsigned sections;	     /* that -d names; 0: all */
	int depth;		     /* XML: how many elements are open */
	const char *open[DEPTH_MAX]; /* their names */
	int width;		     /* text: width of the labels with their indentation */
};

/* Closes the elements that are deeper than `depth`. */
static void close_to(struct smi_writer *r, int depth)
{
	while (r->depth > depth) {
		r->depth--;
		str_add_repeat(r->out, "\t", (size_t)r->depth);
		str_addf(r->out, "</%s>\n", r->open[r->depth]);
	}
}

/* Opens a block at a depth: below the card's name in text, below its element in XML. */
static void add_group(struct smi_writer *r, int depth, const char *label, const char *tag)
{
	if (!r->xml) {
		str_addf(r->out, "%*s%s\n", 4 * depth, "", label);
		return;
	}
	close_to(r, depth + 1);
	str_add_repeat(r->out, "\t", (size_t)r->depth);
	str_addf(r->out, "<%s>\n", tag);
	r->open[r->depth++] = tag;
}

static void add_line(
	struct smi_writer *r, int depth, const char *label, const char *tag, const char *text)
{
	if (!r->xml) {
		str_addf(r->out, "%*s%-*s: %s\n", 4 * depth, "", r->width - 4 * depth, label,
			text);
		return;
	}
	close_to(r, depth + 1);
	str_add_repeat(r->out, "\t", (size_t)r->depth);
	str_addf(r->out, "<%s>", tag);
	html_text(r->out, text);
	str_addf(r->out, "</%s>\n", tag);
}

/* A number of bytes as nvidia-smi writes it; -1: not known. */
static struct brief mib(int64_t bytes)
{
	return bytes < 0 ? str_brief("N/A") : str_brief("%lld MiB", (long long)bytes >> 20);
}

static void show_value(const struct smi_writer *r, const struct smi_row *row,
	const struct present_board *b, char *dst)
{
	char text[REPORT_CAP / 2];
	const char *unit = metrics[row->metric].unit;
	query_board_text(text, sizeof(text), row->metric, r->smi->now, b);
	const char *from = row->kind == BARE_HEX_ROW && r->xml && text[0] ? text + 2 : text;
	int code = !*text || b->codes[row->metric] ? query_missing_code(b, row->metric) : 0;
	if (!*text || code)
		str_copy(dst, REPORT_CAP, code ? query_code_words(code) : "N/A");
	else if (row->suffix)
		snprintf(dst, REPORT_CAP, "%s%s", from, row->suffix);
	else
		snprintf(dst, REPORT_CAP, "%s%s%s", from, *unit ? " " : "", unit);
}

/* What the report has of a MIG instance, below its ids. */
static const struct instance_row {
	int depth; /* below the instance */
	const char *label, *tag;
	int metric; /* -1: a group */
} instance_rows[] = {
	{ 1, "Device Attributes", "device_attributes", -1 },
	{ 2, "Shared", "shared", -1 },
	{ 3, "Multiprocessor count", "multiprocessor_count", METRIC_INSTANCE_SMS },
	{ 3, "Copy Engine count", "copy_engine_count", METRIC_INSTANCE_COPIERS },
	{ 3, "Encoder count", "encoder_count", METRIC_INSTANCE_ENCODERS },
	{ 3, "Decoder count", "decoder_count", METRIC_INSTANCE_DECODERS },
	{ 3, "OFA count", "ofa_count", METRIC_INSTANCE_OFAS },
	{ 3, "JPG count", "jpg_count", METRIC_INSTANCE_JPEGS },
	{ 1, "ECC Errors", "ecc_error_count", -1 },
	{ 2, "Volatile", "volatile_count", -1 },
	{ 3, "SRAM Uncorrectable", "sram_uncorrectable", METRIC_ECC_UNCORRECTED_VOLATILE_SRAM },
	{ 1, "FB Memory Usage", "fb_memory_usage", -1 },
	{ 2, "Total", "total", METRIC_MEMORY_TOTAL },
	{ 2, "Reserved", "reserved", METRIC_MEMORY_RESERVED },
	{ 2, "Used", "used", METRIC_MEMORY_USED },
	{ 2, "Free", "free", METRIC_MEMORY_FREE },
	{ 1, "BAR1 Memory", "bar1_memory_usage", -1 },
	{ 2, "Total", "total", METRIC_BAR1_TOTAL },
	{ 2, "Used", "used", METRIC_BAR1_USED },
	{ 2, "Free", "free", METRIC_BAR1_FREE },
};

static void report_instance(struct smi_writer *r, const struct present_card *c)
{
	int depth = r->xml ? 2 : 1;
	char number[REPORT_CAP / 2], text[REPORT_CAP];
	add_group(r, depth, "MIG Device", "mig_device");
	add_line(r, depth + 1, "Index", "index", smi_id(c->id.mig_index).text);
	add_line(r, depth + 1, "GPU Instance ID", "gpu_instance_id",
		smi_id(c->id.gpu_instance).text);
	add_line(r, depth + 1, "Compute Instance ID", "compute_instance_id",
		smi_id(c->id.compute_instance).text);
	for (size_t i = 0; i < sizeof(instance_rows) / sizeof(instance_rows[0]); i++) {
		const struct instance_row *row = &instance_rows[i];
		if (row->metric < 0) {
			add_group(r, depth + row->depth, row->label, row->tag);
			continue;
		}
		const char *unit = metrics[row->metric].unit;
		metric_show(number, sizeof(number), (enum metric)row->metric,
			c->values[row->metric]);
		snprintf(text, sizeof(text), "%s%s%s", number, *unit ? " " : "", unit);
		add_line(r, depth + row->depth, row->label, row->tag, *number ? text : "N/A");
	}
}

static void report_processes(struct smi_writer *r, const struct present_board *b)
{
	const struct present_process *p = smi_process(r->smi, b, 0);
	if (!p && !r->xml) {
		add_line(r, 1, "Processes", "", "None");
		return;
	}
	add_group(r, 1, "Processes", "processes");
	r->width = PROCESS_LABEL_WIDTH;
	for (size_t k = 0; (p = smi_process(r->smi, b, k)); k++) {
		char name[COMMAND_CAP];
		const struct card_id *card = &r->smi->now->cards[p->card].id;
		int depth = r->xml ? 3 : 2;
		query_process_name(name, sizeof(name), r->smi->live, p);
		if (r->xml)
			add_group(r, 2, "", "process_info");
		add_line(r, depth, "GPU instance ID", "gpu_instance_id",
			smi_id(card->gpu_instance).text);
		add_line(r, depth, "Compute instance ID", "compute_instance_id",
			smi_id(card->compute_instance).text);
		add_line(r, depth, "Process ID", "pid", str_whole(p->id.pid, "").text);
		add_line(r, 3, "Type", "type", smi_type(p).text);
		add_line(r, 3, "Name", "process_name", name);
		add_line(r, 3, "Used GPU Memory", "used_memory", mib(p->mem_bytes).text);
	}
	r->width = LABEL_WIDTH(r->generation);
}

static void add_accounts(struct smi_writer *r, const struct present_board *b)
{
	const struct present *now = r->smi->now;
	const struct present_account *all = now->accounts;
	bool begun = r->xml;
	if (r->xml)
		add_group(r, 1, "", "accounted_processes");
	for (size_t i = 0; i < now->n_accounts; i++) {
		if (all[i].card >= now->n_cards ||
			&now->boards[now->cards[all[i].card].board] != b)
			continue;
		if (!begun)
			add_group(r, 1, "Accounted Processes", "");
		begun = true;
		const struct process_account *a = &all[i].record;
		if (r->xml)
			add_group(r, 2, "", "accounted_process_info");
		add_line(r, r->xml ? 3 : 2, "Process ID", "pid", str_whole(a->pid, "").text);
		add_line(r, 3, "GPU Utilization", "gpu_util",
			str_brief("%.0f %%", a->gpu_pct).text);
		add_line(r, 3, "Memory Utilization", "memory_util",
			str_brief("%.0f %%", a->memory_pct).text);
		add_line(r, 3, "Max memory usage", "max_memory_usage",
			mib(a->mem_peak_bytes).text);
		add_line(r, 3, "Time", "time", str_whole(a->time_ms, " ms").text);
		add_line(r, 3, "Is Running", "is_running", a->time_ms ? "0" : "1");
	}
	bool on = b->values[METRIC_ACCOUNTING_MODE] > 0;
	if (!begun)
		add_line(r, 1, "Accounted Processes", "", on ? "None" : "N/A");
}

static bool has_row(
	const struct smi_writer *r, const struct smi_row *row, const struct present_board *b)
{
	enum { VOLTA = 5 };
	bool old = !(b->values[METRIC_ARCHITECTURE] > VOLTA);
	bool margin = !isnan(b->values[METRIC_TEMPERATURE_MARGIN]) && r->generation >= 535;
	/* Power is two numbers since 570, and in the last releases of 550, of which
	 * 550.127 has one and 550.163 two. */
	int minor = 0;
	sscanf(r->smi->now->hosts[0].driver, "%*d.%d", &minor);
	bool two_draws = r->generation >= 570 || (r->generation == 550 && minor >= 163);
	const bool by_card[] = { [WHEN_ALWAYS] = true,
		[WIDTH_COUNTED] = old,
		[PLACE_COUNTED] = !old,
		[DEGREES] = !margin,
		[MARGINS] = margin,
		[ONE_DRAW] = !two_draws,
		[TWO_DRAWS] = two_draws };
	const bool by_format[] = {
		[IN_BOTH] = true, [IN_XML] = r->xml, [IF_NAMED] = r->xml || r->sections
	};
	return (!r->sections || r->sections & 1u << row->section) &&
	       r->generation >= row->since && (!row->until || r->generation < row->until) &&
	       by_card[row->when] && by_format[row->only];
}

/* Before 535 the reasons for clocks had another name. That of a group lives on. */
static const char *name_of(const struct smi_writer *r, const struct smi_row *row, char *dst)
{
	static const char event[] = "clocks_event_reason";
	size_t len = strlen(event);
	if (r->generation >= 535 || strncmp(row->tag, event, len) != 0)
		return r->xml ? row->tag : row->label;
	if (row->kind == GROUP_ROW)
		return r->xml ? "clocks_throttle_reasons" : "Clocks Throttle Reasons";
	snprintf(dst, REPORT_CAP, "clocks_throttle_reason%s", row->tag + len);
	return r->xml ? dst : row->label;
}

/* Writes a row; false: without what is below it. */
static bool add_row(
	struct smi_writer *r, const struct smi_row *row, const struct present_board *b)
{
	char text[REPORT_CAP] = "N/A", older[REPORT_CAP];
	const char *name = name_of(r, row, older);
	const struct present_card *c;
	switch (row->kind) {
	case GROUP_ROW:
		add_group(r, row->depth, name, name);
		return true;
	case LINE_OR_GROUP_ROW:
		if (isnan(b->values[row->metric]) && !query_missing_code(b, row->metric))
			break;
		add_group(r, row->depth, name, name);
		return true;
	case INSTANCES_ROW:
		c = smi_instance(r->smi, b, 0);
		if (r->xml)
			add_group(r, 1, "", "mig_devices");
		if (r->xml && !c)
			str_add(r->out, "\t\t\tNone\n");
		for (size_t k = 0; (c = smi_instance(r->smi, b, k)) != NULL; k++)
			report_instance(r, c);
		return true;
	case PROCESSES_ROW:
		report_processes(r, b);
		return true;
	case ACCOUNTS_ROW:
		add_accounts(r, b);
		return true;
	case SUPPORT_ROW:
		if (!isnan(b->values[row->metric]))
			str_copy(text, sizeof(text), "Supported");
		break;
	case ABSENT_ROW:
		break;
	default:
		show_value(r, row, b, text);
		break;
	}
	if (row->deprecated && r->generation >= row->deprecated)
		str_copy(text, sizeof(text), "Requested functionality has been deprecated");
	if (row->kind == PAGES_ROW && r->xml) { /* a block of its own */
		add_group(r, row->depth, "", row->tag);
		add_line(r, row->depth + 1, "", "retired_count", text);
		add_line(r, row->depth + 1, "", "retired_pagelist", "N/A");
	} else
		add_line(
			r, row->depth + (row->kind == NESTED_ROW && !r->xml), name, name, text);
	return row->kind != LINE_OR_GROUP_ROW;
}

static void add_board(struct smi_writer *r, const struct present_board *b)
{
	struct brief bus = query_bus_id(b->id.pci);
	str_addf(r->out, r->xml ? "\t<gpu id=\"%s\">\n" : "GPU %s\n",
		*bus.text ? bus.text : "N/A");
	if (r->xml)
		r->open[r->depth++] = "gpu";
	for (size_t i = 0; i < ROWS; i++) {
		int depth = rows[i].depth;
		if (has_row(r, &rows[i], b) && add_row(r, &rows[i], b))
			continue;
		while (i + 1 < ROWS && rows[i + 1].depth > depth)
			i++;
	}
	close_to(r, 1);
	str_add(r->out, "\n");
}

/* The lines above the first card. */
static void report_head(struct smi_writer *r)
{
	char cuda[REPORT_CAP] = "";
	const struct present *now = r->smi->now;
	const char *driver = now->hosts[0].driver;
	for (size_t i = 0; i < now->n_boards && !*cuda; i++)
		metric_show(cuda, sizeof(cuda), METRIC_CUDA_VERSION,
			now->boards[i].values[METRIC_CUDA_VERSION]);
	add_line(r, 0, "Timestamp", "timestamp",
		moment_format("%a %b %e %H:%M:%S %Y", now->now_ms, false).text);
	add_line(r, 0, "Driver Version", "driver_version", *driver ? driver : "N/A");
	add_line(r, 0, "CUDA Version", "cuda_version", *cuda ? cuda : "N/A");
	if (!r->xml)
		str_add(r->out, "\n");
	add_line(r, 0, "Attached GPUs", "attached_gpus", str_brief("%zu", now->n_boards).text);
}

void smi_report(const struct stat_pick *s, bool xml, unsigned sections, struct str *out)
{
	int generation = smi_generation(s);
	struct smi_writer r = { .smi = s,
		.out = out,
		.xml = xml,
		.sections = sections,
		.generation = generation,
		.width = LABEL_WIDTH(generation) };
	if (xml) {
		str_addf(out,
			"<?xml version=\"1.0\" ?>\n"
			"<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v%d.dtd\">\n"
			"<nvidia_smi_log>\n",
			generation >= 590 ? 13 : 12);
		r.open[r.depth++] = "nvidia_smi_log";
	} else
		str_add(out, "\n==============NVSMI LOG==============\n\n");
	report_head(&r);
	for (size_t i = 0; i < s->n_boards; i++)
		add_board(&r, s->boards[i]);
	close_to(&r, 0);
}
