/* The selected cards and their processes, for all views of nvidia-smi; its table, its list of
 * cards, its versions and its full report. */
#include "view/smi.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/moment.h"
#include "view/query.h"

int smi_init(struct smi *s, struct live *l, const struct filter *f, struct err *e)
{
	*s = (struct smi){ .live = l, .now = live_present(l) };
	return stat_boards(&s->boards, l, f, e);
}

void smi_finish(struct smi *s)
{
	stat_boards_finish(&s->boards);
}

/* The driver's codes for a card that is lost, that needs a reset, that has no such value. */
enum { CODE_NOT_FOUND = 6, CODE_LOST = 15, CODE_RESET_REQUIRED = 16 };

/* Whether nvidia-smi can open the card. One that needs a reset is open, and no call succeeds.
 */
static bool is_lost(const struct present_board *b)
{
	return b->status == CARD_STATUS_LOST && b->code != CODE_RESET_REQUIRED;
}

int smi_check(const struct smi *s, struct err *e)
{
	for (size_t i = 0; i < s->boards.n; i++) {
		const struct present_board *b = s->boards.all[i];
		int code = b->code > 0 ? b->code : CODE_LOST;
		char where[PCI_CAP];
		if (!is_lost(b))
			continue;
		snprintf(where, sizeof(where), "%d", b->id.index);
		return err_number(e,
			err_set(e, ERR_WORLD,
				"Unable to determine the device handle for GPU%s: %s",
				*b->id.pci ? b->id.pci : where,
				code == CODE_LOST ? "GPU is lost.  Reboot the system to "
						    "recover this GPU"
						  : "Unknown Error"),
			-code);
	}
	return 0;
}

int smi_check_live(struct live *l, const struct filter *f, struct err *e)
{
	struct smi s;
	int rc = smi_init(&s, l, f, e);
	if (rc == 0)
		rc = smi_check(&s, e);
	smi_finish(&s);
	return rc;
}

static bool is_on(
	const struct smi *s, const struct present_card *c, const struct present_board *b)
{
	return !c->gone && &s->now->boards[c->board] == b;
}

/* A process of a board. */
struct smi_process {
	const struct present_card *card;
	const struct present_process *process;
};

/* The n-th process of a board; false: there are fewer. */
static bool find_process(
	const struct smi *s, const struct present_board *b, size_t n, struct smi_process *p)
{
	const struct present_card *cards = s->now->cards;
	for (size_t i = 0; i < s->now->n_cards; i++) {
		if (!is_on(s, &cards[i], b))
			continue;
		if (n < cards[i].n_processes) {
			p->card = &cards[i];
			p->process = &s->now->processes[cards[i].first_process + n];
			return true;
		}
		n -= cards[i].n_processes;
	}
	return false;
}

/* The instance with this number of a board that is divided; NULL: there are fewer. */
static const struct present_card *find_instance(
	const struct smi *s, const struct present_board *b, size_t n)
{
	const struct present_card *cards = s->now->cards;
	for (size_t i = 0; b->mig && i < s->now->n_cards; i++)
		if (is_on(s, &cards[i], b) && cards[i].id.mig_index >= 0 && n-- == 0)
			return &cards[i];
	return NULL;
}

/* "C", "G", "C+G", "M+C". */
static void show_type(char *dst, size_t cap, const struct present_process *p)
{
	bool compute = p->kind & (PROCESS_COMPUTE | PROCESS_MPS);
	snprintf(dst, cap, "%s%s%s%s", p->kind & PROCESS_MPS ? "M+" : "", compute ? "C" : "",
		compute && p->kind & PROCESS_GRAPHICS ? "+" : "",
		p->kind & PROCESS_GRAPHICS ? "G" : "");
}

/* "3" or "N/A" for the id of an instance. */
static void show_id(char *dst, size_t cap, int id)
{
	if (id < 0)
		snprintf(dst, cap, "N/A");
	else
		snprintf(dst, cap, "%d", id);
}

enum { TEXT_CAP = 64, NAME_WIDTH = 27, PROCESS_WIDTH = 36 };

static const enum metric shown[] = { METRIC_CUDA_VERSION, METRIC_NVML_VERSION,
	METRIC_PERSISTENCE_MODE, METRIC_DISPLAY_ACTIVE, METRIC_ECC_CURRENT,
	METRIC_ECC_UNCORRECTED_VOLATILE, METRIC_FAN_SPEED, METRIC_TEMPERATURE_GPU,
	METRIC_PSTATE, METRIC_POWER_DRAW, METRIC_POWER_ENFORCED, METRIC_MEMORY_USED,
	METRIC_MEMORY_TOTAL, METRIC_UTILIZATION_GPU, METRIC_COMPUTE_MODE, METRIC_MIG_CURRENT,
	METRIC_MIG_PENDING, METRIC_BAR1_USED, METRIC_BAR1_TOTAL };

void smi_table_wanted(unsigned char *wanted)
{
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		wanted[shown[i]] = 1;
}

/* clang-format off */
#define WIDE_RULE \
"+-----------------------------------------------------------------------------------------+\n"
#define RULE \
"+-----------------------------------------+------------------------+----------------------+\n"
#define MIG_RULE \
"+------------------+----------------------------------+-----------+-----------------------+\n"

static const char table_head[] = RULE
"| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
"| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
"|                                         |                        |               MIG M. |\n"
"|=========================================+========================+======================|\n";

static const char instances_head[] = "\n" WIDE_RULE
"| MIG devices:                                                                            |\n"
MIG_RULE
"| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         |\n"
"|      ID  ID  Dev |                Shared BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |\n"
"|                  |                                  |        ECC|                       |\n"
"|==================+==================================+===========+=======================|\n";

static const char processes_head[] = "\n" WIDE_RULE
"| Processes:                                                                              |\n"
"|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |\n"
"|        ID   ID                                                               Usage      |\n"
"|=========================================================================================|\n";
/* clang-format on */

/* The text for a missing value of a board. */
static const char *missing(const struct present_board *b, enum metric m)
{
	int code = query_missing_code(b, m);
	bool denied = b->status == CARD_STATUS_DENIED;
	return code && code != CODE_NOT_FOUND && !denied ? "ERR!" : "N/A";
}

/* A metric with a unit, or the text for a missing value. */
static const char *value(
	char *dst, const struct present_board *b, enum metric m, const char *unit)
{
	char text[TEXT_CAP / 2];
	metric_show(text, sizeof(text), m, b->codes[m] ? NAN : b->values[m]);
	snprintf(dst, TEXT_CAP, "%s%s", *text ? text : missing(b, m), *text ? unit : "");
	return dst;
}

/* Watts without decimals. */
static const char *watts(char *dst, const struct present_board *b, enum metric m)
{
	if (isnan(b->values[m]))
		return missing(b, m);
	snprintf(dst, TEXT_CAP, "%.0fW", floor(b->values[m]));
	return dst;
}

static const char *on_off(const struct present_board *b, enum metric m)
{
	double v = b->values[m];
	return isnan(v) ? missing(b, m) : v != 0 ? "On" : "Off";
}

/* Truncates a text to `width` columns; a truncated text ends in dots. */
static void cut_end(char *dst, size_t cap, const char *text, size_t width)
{
	if (strlen(text) <= width)
		str_copy(dst, cap, text);
	else
		snprintf(dst, cap, "%.*s...", (int)width - 3, text);
}

static void add_head(const struct smi *s, struct str *out)
{
	char when[TEXT_CAP], cuda[TEXT_CAP] = "N/A";
	struct tm tm = moment_fields(s->now->now_ms, false);
	const char *driver = *s->now->hosts[0].driver ? s->now->hosts[0].driver : "N/A";
	strftime(when, sizeof(when), "%a %b %e %H:%M:%S %Y", &tm);
	for (size_t i = 0; i < s->boards.n && strcmp(cuda, "N/A") == 0; i++)
		value(cuda, s->boards.all[i], METRIC_CUDA_VERSION, "");
	str_addf(out, "%s       \n" WIDE_RULE, when);
	str_addf(out, "| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-8s |\n", driver,
		driver, strcmp(cuda, "ERR!") == 0 ? "N/A" : cuda);
	str_add(out, table_head);
}

/* The first line of a card: what and where it is. */
static void add_identity(const struct present_board *b, struct str *out)
{
	char name[TEXT_CAP], bus[TEXT_CAP], errors[TEXT_CAP];
	cut_end(name, sizeof(name), b->id.name, NAME_WIDTH);
	query_bus_id(bus, sizeof(bus), b->id.pci);
	value(errors, b, METRIC_ECC_UNCORRECTED_VOLATILE, "");
	if (b->mig || b->values[METRIC_ECC_CURRENT] == 0)
		str_copy(errors, sizeof(errors), on_off(b, METRIC_ECC_CURRENT));
	str_addf(out, "|%4d  %-27s    %-4s|   %-16s%4s |%21s |\n", b->id.index, name,
		on_off(b, METRIC_PERSISTENCE_MODE), *bus ? bus : "N/A",
		on_off(b, METRIC_DISPLAY_ACTIVE), errors);
}

/* The second line: what it does. */
static void add_use(const struct present_board *b, struct str *out)
{
	static const char *const modes[] = { "Default", "E. Thread", "Prohibited",
		"E. Process" };
	char fan[TEXT_CAP], temperature[TEXT_CAP], state[TEXT_CAP], draw[TEXT_CAP],
		limit[TEXT_CAP], used[TEXT_CAP], total[TEXT_CAP], use[TEXT_CAP];
	double mode = b->values[METRIC_COMPUTE_MODE];
	str_addf(out, "|%4s%6s%6s%16s / %5s |", value(fan, b, METRIC_FAN_SPEED, "%"),
		value(temperature, b, METRIC_TEMPERATURE_GPU, "C"),
		value(state, b, METRIC_PSTATE, ""), watts(draw, b, METRIC_POWER_DRAW),
		watts(limit, b, METRIC_POWER_ENFORCED));
	str_addf(out, "%11s / %9s |%8s %12s |\n", value(used, b, METRIC_MEMORY_USED, "MiB"),
		value(total, b, METRIC_MEMORY_TOTAL, "MiB"),
		value(use, b, METRIC_UTILIZATION_GPU, "%"),
		mode >= 0 && mode <= 3 ? modes[(int)mode] : missing(b, METRIC_COMPUTE_MODE));
}

/* The third line: the MIG mode; a star means that it changes at the next reset. */
static void add_mig_mode(const struct present_board *b, struct str *out)
{
	char mode[TEXT_CAP], star[TEXT_CAP + 1];
	double pending = b->values[METRIC_MIG_PENDING];
	value(mode, b, METRIC_MIG_CURRENT, "");
	bool differs = !isnan(pending) && pending != b->values[METRIC_MIG_CURRENT];
	snprintf(star, sizeof(star), "%s%s", mode, differs ? "*" : "");
	str_addf(out, "|%41s|%24s|%21s |\n" RULE, "", "", star);
}

static void add_instance(const struct present_card *c, struct str *out)
{
	const struct present_board b = { .status = c->status,
		.values = { [METRIC_MEMORY_USED] = c->values[METRIC_MEMORY_USED],
			[METRIC_MEMORY_TOTAL] = c->values[METRIC_MEMORY_TOTAL],
			[METRIC_BAR1_USED] = c->values[METRIC_BAR1_USED],
			[METRIC_BAR1_TOTAL] = c->values[METRIC_BAR1_TOTAL] },
		.codes = { [METRIC_MEMORY_USED] = c->codes[METRIC_MEMORY_USED],
			[METRIC_MEMORY_TOTAL] = c->codes[METRIC_MEMORY_TOTAL] } };
	char used[TEXT_CAP], total[TEXT_CAP], gi[TEXT_CAP], ci[TEXT_CAP];
	show_id(gi, sizeof(gi), c->id.gpu_instance);
	show_id(ci, sizeof(ci), c->id.compute_instance);
	str_addf(out, "|%3d %4s %3s %3d  |%19s / %-11s |%3s    %3s |%3s %3s  %3s  %3s  %3s |\n",
		c->id.index, gi, ci, c->id.mig_index,
		value(used, &b, METRIC_MEMORY_USED, "MiB"),
		value(total, &b, METRIC_MEMORY_TOTAL, "MiB"), "N/A", "N/A", "N/A", "N/A", "N/A",
		"N/A", "N/A");
	str_addf(out, "|%18s|%19s / %-11s |%11s|%23s|\n" MIG_RULE, "",
		value(used, &b, METRIC_BAR1_USED, "MiB"),
		value(total, &b, METRIC_BAR1_TOTAL, "MiB"), "", "");
}

static void add_instances(const struct smi *s, struct str *out)
{
	bool begun = false;
	for (size_t i = 0; i < s->boards.n; i++) {
		const struct present_card *c;
		for (size_t k = 0; (c = find_instance(s, s->boards.all[i], k)) != NULL; k++) {
			if (!begun)
				str_add(out, instances_head);
			begun = true;
			add_instance(c, out);
		}
	}
}

static void add_process(const struct smi *s, const struct smi_process *p, struct str *out)
{
	char gi[TEXT_CAP], ci[TEXT_CAP], type[TEXT_CAP], memory[TEXT_CAP] = "N/A";
	char name[COMMAND_CAP];
	show_id(gi, sizeof(gi), p->card->id.gpu_instance);
	show_id(ci, sizeof(ci), p->card->id.compute_instance);
	show_type(type, sizeof(type), p->process);
	if (p->process->mem_bytes >= 0)
		snprintf(memory, sizeof(memory), "%lldMiB",
			(long long)(p->process->mem_bytes >> 20));
	query_process_name(name, sizeof(name), s->live, p->process);
	size_t len = strlen(name);
	bool cut = len > PROCESS_WIDTH;
	str_addf(out, "|%5d %5s %4s %15u %6s   %s%s", p->card->id.index, gi, ci,
		p->process->id.pid, type, cut ? "..." : "",
		cut ? name + len - (PROCESS_WIDTH - 3) : name);
	str_addf(out, "%*s%10s |\n", cut ? 0 : (int)(PROCESS_WIDTH - len), "", memory);
}

static void add_processes(const struct smi *s, struct str *out)
{
	struct smi_process p;
	bool any = false;
	str_add(out, processes_head);
	for (size_t i = 0; i < s->boards.n; i++)
		for (size_t k = 0; find_process(s, s->boards.all[i], k, &p); k++) {
			add_process(s, &p, out);
			any = true;
		}
	if (!any)
		str_addf(out, "|  %-87s|\n", "No running processes found");
	str_add(out, WIDE_RULE);
}

void smi_table(const struct smi *s, struct str *out)
{
	add_head(s, out);
	for (size_t i = 0; i < s->boards.n; i++) {
		add_identity(s->boards.all[i], out);
		add_use(s->boards.all[i], out);
		add_mig_mode(s->boards.all[i], out);
	}
	add_instances(s, out);
	add_processes(s, out);
}

/* The profile of an instance: "3g.20gb" of "... MIG 3g.20gb". */
static const char *profile_of(const struct present_card *c)
{
	const char *word = strstr(c->id.name, "MIG ");
	return word ? word + strlen("MIG ") : c->id.name;
}

void smi_list(const struct smi *s, struct str *out)
{
	for (size_t i = 0; i < s->boards.n; i++) {
		const struct present_board *b = s->boards.all[i];
		const struct present_card *c;
		struct err e = { 0 };
		if (is_lost(b) && smi_check(s, &e)) {
			str_addf(out, "%s\n\n", e.text);
			return;
		}
		str_addf(out, "GPU %d: %s (UUID: %s)\n", b->id.index,
			*b->id.name ? b->id.name : "N/A",
			card_has_uuid(&b->id) ? b->id.uuid : "N/A");
		for (size_t k = 0; (c = find_instance(s, b, k)) != NULL; k++)
			str_addf(out, "  MIG %-11s Device %2d: (UUID: %s)\n", profile_of(c),
				c->id.mig_index, c->id.uuid);
	}
}

void smi_versions(const struct smi *s, struct str *out)
{
	char cuda[TEXT_CAP] = "", library[TEXT_CAP] = "";
	const char *driver = *s->now->hosts[0].driver ? s->now->hosts[0].driver : "N/A";
	for (size_t i = 0; i < s->boards.n && !*cuda; i++) {
		const struct present_board *b = s->boards.all[i];
		metric_show(cuda, sizeof(cuda), METRIC_CUDA_VERSION,
			b->values[METRIC_CUDA_VERSION]);
		str_copy(library, sizeof(library), b->texts[METRIC_NVML_VERSION]);
	}
	/* nvidia-smi writes two of the three numbers of the library. */
	char *dot = strchr(library, '.'), *second = dot ? strchr(dot + 1, '.') : NULL;
	if (second)
		*second = '\0';
	str_addf(out,
		"NVIDIA-SMI version  : %s\nNVML version        : %s\n"
		"DRIVER version      : %s\nCUDA Version        : %s\n",
		driver, *library ? library : "N/A", driver, *cuda ? cuda : "N/A");
}

/* The full report (-q) as text and as XML, from one table. */

enum { REPORT_CAP = 160, DEPTH_MAX = 8, LABEL_WIDTH = 55, PROCESS_LABEL_WIDTH = 42 };

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
	BAR1_FREE_ROW,
	PAGES_ROW,
	INSTANCES_ROW,
	PROCESSES_ROW,
	ACCOUNTS_ROW,
};

/* clang-format off */
static const struct smi_row {
	enum kind kind;
	int depth; /* nesting below the card */
	enum section section;
	const char *label, *tag;
	enum metric metric;
	const char *suffix; /* replaces the metric's unit; NULL: use that unit */
} rows[] = {
#define ROW(kind_, depth_, section_, label_, tag_, metric_, suffix_)                           \
	{ kind_##_ROW, depth_, SECTION_##section_, label_, tag_, metric_, suffix_ },
#define GROUP(depth, section, label, tag) ROW(GROUP, depth, section, label, tag, 0, NULL)
#define ABSENT(depth, section, label, tag) ROW(ABSENT, depth, section, label, tag, 0, NULL)
#define SPECIAL(section, what) ROW(what, 1, section, "", "", 0, NULL)
#define VALUE(d, s, l, t, m, x) ROW(VALUE, d, s, l, t, METRIC_##m, x)
#define NESTED(d, s, l, t, m, x) ROW(NESTED, d, s, l, t, METRIC_##m, x)
#define BARE_HEX(d, s, l, t, m, x) ROW(BARE_HEX, d, s, l, t, METRIC_##m, x)
#define BAR1_FREE(d, s, l, t, m, x) ROW(BAR1_FREE, d, s, l, t, METRIC_##m, x)
#define PAGES(d, s, l, t, m, x) ROW(PAGES, d, s, l, t, METRIC_##m, x)
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
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].kind != GROUP_ROW && rows[i].kind != ABSENT_ROW)
			wanted[rows[i].metric] = 1;
}

/* The state of the writer. */
struct smi_writer {
	const struct smi *smi;
	struct str *out;
	bool xml;
	int depth;		     /* XML: how many elements are open */
	const char *open[DEPTH_MAX]; /* their names */
	int width;		     /* text: width of the labels with their indentation */
};

static void add_escaped(struct str *out, const char *text)
{
	for (; *text; text++) {
		const char *name = *text == '&'	   ? "&amp;"
				   : *text == '<'  ? "&lt;"
				   : *text == '>'  ? "&gt;"
				   : *text == '"'  ? "&quot;"
				   : *text == '\'' ? "&apos;"
						   : NULL;
		if (name)
			str_add(out, name);
		else
			str_add_bytes(out, text, 1);
	}
}

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

static void add_line(struct smi_writer *r, int depth, const char *name, const char *text)
{
	if (!r->xml) {
		str_addf(r->out, "%*s%-*s: %s\n", 4 * depth, "", r->width - 4 * depth, name,
			text);
		return;
	}
	close_to(r, depth + 1);
	str_add_repeat(r->out, "\t", (size_t)r->depth);
	str_addf(r->out, "<%s>", name);
	add_escaped(r->out, text);
	str_addf(r->out, "</%s>\n", name);
}

/* A number of bytes as nvidia-smi writes it. */
static void show_mib(char *dst, size_t cap, double bytes)
{
	if (isnan(bytes))
		str_copy(dst, cap, "N/A");
	else
		snprintf(dst, cap, "%.0f MiB", floor(bytes / 1048576));
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

/* Writes the memory of an instance, or of its window. */
static void add_memory(struct smi_writer *r, int depth, const double *numbers, size_t n)
{
	static const char *const labels[][2] = { { "Total", "total" },
		{ "Reserved", "reserved" }, { "Used", "used" }, { "Free", "free" } };
	for (size_t i = 0, k = 0; i < 4; i++) {
		char text[REPORT_CAP];
		if (n == 3 && i == 1)
			continue;
		show_mib(text, sizeof(text), numbers[k++]);
		add_line(r, depth, labels[i][r->xml], text);
	}
}

static void report_instance(struct smi_writer *r, const struct present_card *c)
{
	int depth = r->xml ? 2 : 1;
	char text[REPORT_CAP];
	const double *v = c->values;
	const double memory[] = { v[METRIC_MEMORY_TOTAL], v[METRIC_MEMORY_RESERVED],
		v[METRIC_MEMORY_USED], v[METRIC_MEMORY_FREE] };
	const double window[] = { v[METRIC_BAR1_TOTAL], v[METRIC_BAR1_USED],
		v[METRIC_BAR1_TOTAL] - v[METRIC_BAR1_USED] };
	add_group(r, depth, "MIG Device", "mig_device");
	snprintf(text, sizeof(text), "%d", c->id.mig_index);
	add_line(r, depth + 1, r->xml ? "index" : "Index", text);
	show_id(text, sizeof(text), c->id.gpu_instance);
	add_line(r, depth + 1, r->xml ? "gpu_instance_id" : "GPU Instance ID", text);
	show_id(text, sizeof(text), c->id.compute_instance);
	add_line(r, depth + 1, r->xml ? "compute_instance_id" : "Compute Instance ID", text);
	add_group(r, depth + 1, "FB Memory Usage", "fb_memory_usage");
	add_memory(r, depth + 2, memory, 4);
	add_group(r, depth + 1, "BAR1 Memory Usage", "bar1_memory_usage");
	add_memory(r, depth + 2, window, 3);
}

static void report_instances(struct smi_writer *r, const struct present_board *b)
{
	const struct present_card *c = find_instance(r->smi, b, 0);
	if (r->xml)
		add_group(r, 1, "", "mig_devices");
	if (r->xml && !c)
		str_add(r->out, "\t\t\tNone\n");
	for (size_t k = 0; (c = find_instance(r->smi, b, k)) != NULL; k++)
		report_instance(r, c);
}

static void report_process(struct smi_writer *r, const struct smi_process *p)
{
	static const char *const names[][2] = { { "GPU instance ID", "gpu_instance_id" },
		{ "Compute instance ID", "compute_instance_id" }, { "Process ID", "pid" },
		{ "Type", "type" }, { "Name", "process_name" },
		{ "Used GPU Memory", "used_memory" } };
	char texts[6][COMMAND_CAP];
	int depth = r->xml ? 3 : 2;
	show_id(texts[0], sizeof(texts[0]), p->card->id.gpu_instance);
	show_id(texts[1], sizeof(texts[1]), p->card->id.compute_instance);
	snprintf(texts[2], sizeof(texts[2]), "%u", p->process->id.pid);
	show_type(texts[3], sizeof(texts[3]), p->process);
	query_process_name(texts[4], sizeof(texts[4]), r->smi->live, p->process);
	show_mib(texts[5], sizeof(texts[5]),
		p->process->mem_bytes < 0 ? NAN : (double)p->process->mem_bytes);
	if (r->xml)
		add_group(r, 2, "", "process_info");
	for (size_t i = 0; i < 6; i++)
		add_line(r, depth + (i > 2 && !r->xml), names[i][r->xml], texts[i]);
}

static void report_processes(struct smi_writer *r, const struct present_board *b)
{
	struct smi_process p;
	bool any = find_process(r->smi, b, 0, &p);
	if (!any && !r->xml) {
		add_line(r, 1, "Processes", "None");
		return;
	}
	add_group(r, 1, "Processes", "processes");
	r->width = PROCESS_LABEL_WIDTH;
	for (size_t k = 0; find_process(r->smi, b, k, &p); k++)
		report_process(r, &p);
	r->width = LABEL_WIDTH;
}

static void add_account(struct smi_writer *r, const struct process_account *a)
{
	static const char *const names[][2] = { { "Process ID", "pid" },
		{ "GPU Utilization", "gpu_util" }, { "Memory Utilization", "memory_util" },
		{ "Max memory usage", "max_memory_usage" }, { "Time", "time" } };
	char texts[5][REPORT_CAP];
	snprintf(texts[0], REPORT_CAP, "%u", a->pid);
	snprintf(texts[1], REPORT_CAP, "%.0f %%", a->gpu_pct);
	snprintf(texts[2], REPORT_CAP, "%.0f %%", a->memory_pct);
	show_mib(texts[3], REPORT_CAP, a->mem_peak_bytes < 0 ? NAN : (double)a->mem_peak_bytes);
	snprintf(texts[4], REPORT_CAP, "%lld ms", (long long)a->time_ms);
	if (r->xml)
		add_group(r, 2, "", "accounted_process_info");
	for (size_t i = 0; i < 5; i++)
		add_line(r, r->xml ? 3 : 2 + (i > 0), names[i][r->xml], texts[i]);
}

static void add_accounts(struct smi_writer *r, const struct present_board *b)
{
	const struct present *now = r->smi->now;
	const struct present_account *all = now->accounts;
	if (r->xml || now->n_accounts)
		add_group(r, 1, "Accounted Processes", "accounted_processes");
	for (size_t i = 0; i < now->n_accounts; i++)
		if (all[i].card < now->n_cards &&
			&now->boards[now->cards[all[i].card].board] == b)
			add_account(r, &all[i].record);
}

/* In XML the pages are a block of their own. */
static void add_pages(struct smi_writer *r, const struct smi_row *row, const char *text)
{
	if (!r->xml) {
		add_line(r, row->depth, row->label, text);
		return;
	}
	add_group(r, row->depth, "", row->tag);
	add_line(r, row->depth + 1, "retired_count", text);
	add_line(r, row->depth + 1, "retired_pagelist", "N/A");
}

static void add_row(
	struct smi_writer *r, const struct smi_row *row, const struct present_board *b)
{
	char text[REPORT_CAP] = "N/A";
	const char *name = r->xml ? row->tag : row->label;
	switch (row->kind) {
	case GROUP_ROW:
		add_group(r, row->depth, row->label, row->tag);
		return;
	case INSTANCES_ROW:
		report_instances(r, b);
		return;
	case PROCESSES_ROW:
		report_processes(r, b);
		return;
	case ACCOUNTS_ROW:
		add_accounts(r, b);
		return;
	case BAR1_FREE_ROW:
		show_mib(text, sizeof(text),
			b->values[METRIC_BAR1_TOTAL] - b->values[METRIC_BAR1_USED]);
		break;
	case ABSENT_ROW:
		break;
	default:
		show_value(r, row, b, text);
		break;
	}
	if (row->kind == PAGES_ROW)
		add_pages(r, row, text);
	else
		add_line(r, row->depth + (row->kind == NESTED_ROW && !r->xml), name, text);
}

static void add_board(struct smi_writer *r, const struct present_board *b, unsigned sections)
{
	char bus[REPORT_CAP];
	query_bus_id(bus, sizeof(bus), b->id.pci);
	if (r->xml) {
		str_addf(r->out, "\t<gpu id=\"%s\">\n", *bus ? bus : "N/A");
		r->open[r->depth++] = "gpu";
	} else {
		str_addf(r->out, "GPU %s\n", *bus ? bus : "N/A");
	}
	for (size_t i = 0; i < ROWS; i++)
		if (!sections || sections & 1u << rows[i].section)
			add_row(r, &rows[i], b);
	close_to(r, 1);
	if (!r->xml)
		str_add(r->out, "\n");
}

/* The lines above the first card. */
static void report_head(struct smi_writer *r)
{
	char when[REPORT_CAP], cuda[REPORT_CAP] = "", count[REPORT_CAP];
	const struct present *now = r->smi->now;
	struct tm tm = moment_fields(now->now_ms, false);
	const char *driver = now->hosts[0].driver;
	strftime(when, sizeof(when), "%a %b %e %H:%M:%S %Y", &tm);
	for (size_t i = 0; i < now->n_boards && !*cuda; i++)
		metric_show(cuda, sizeof(cuda), METRIC_CUDA_VERSION,
			now->boards[i].values[METRIC_CUDA_VERSION]);
	snprintf(count, sizeof(count), "%zu", now->n_boards);
	add_line(r, 0, r->xml ? "timestamp" : "Timestamp", when);
	add_line(r, 0, r->xml ? "driver_version" : "Driver Version", *driver ? driver : "N/A");
	add_line(r, 0, r->xml ? "cuda_version" : "CUDA Version", *cuda ? cuda : "N/A");
	if (!r->xml)
		str_add(r->out, "\n");
	add_line(r, 0, r->xml ? "attached_gpus" : "Attached GPUs", count);
}

void smi_report(const struct smi *s, unsigned sections, struct str *out)
{
	struct smi_writer r = { .smi = s, .out = out, .width = LABEL_WIDTH };
	str_add(out, "\n==============NVSMI LOG==============\n\n");
	report_head(&r);
	for (size_t i = 0; i < s->boards.n; i++)
		add_board(&r, s->boards.all[i], sections);
}

void smi_report_xml(const struct smi *s, struct str *out)
{
	struct smi_writer r = { .smi = s, .out = out, .xml = true };
	str_add(out, "<?xml version=\"1.0\" ?>\n"
		     "<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n"
		     "<nvidia_smi_log>\n");
	r.open[r.depth++] = "nvidia_smi_log";
	report_head(&r);
	for (size_t i = 0; i < s->boards.n; i++)
		add_board(&r, s->boards.all[i], 0);
	close_to(&r, 0);
}
