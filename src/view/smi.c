/* The selected cards and their processes, for all views of nvidia-smi; its table, its list of
 * cards and its versions. */
#include "view/smi.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

/* nvidia-smi's sentence about a lost card, which it calls `name`. */
static int fail_lost(const struct present_board *b, const char *name, struct err *e)
{
	int code = b->code > 0 ? b->code : CODE_LOST;
	return err_number(e,
		err_set(e, ERR_WORLD, "Unable to determine the device handle for %s: %s", name,
			code == CODE_LOST
				? "GPU is lost.  Reboot the system to recover this GPU"
				: "Unknown Error"),
		-code);
}

int smi_check(const struct smi *s, struct err *e)
{
	for (size_t i = 0; i < s->boards.n; i++) {
		const struct present_board *b = s->boards.all[i];
		char name[PCI_CAP + 16];
		if (!is_lost(b))
			continue;
		snprintf(name, sizeof(name), "GPU%d", b->id.index);
		if (*b->id.pci)
			snprintf(name, sizeof(name), "GPU%s", b->id.pci);
		return fail_lost(b, name, e);
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

bool smi_process(
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

const struct present_card *smi_instance(
	const struct smi *s, const struct present_board *b, size_t n)
{
	const struct present_card *cards = s->now->cards;
	for (size_t i = 0; b->mig && i < s->now->n_cards; i++)
		if (is_on(s, &cards[i], b) && cards[i].id.mig_index >= 0 && n-- == 0)
			return &cards[i];
	return NULL;
}

int smi_generation(const struct smi *s)
{
	int generation = atoi(s->now->hosts[0].driver);
	return generation > 0 ? generation : INT_MAX;
}

void smi_type(char *dst, size_t cap, const struct present_process *p)
{
	bool compute = p->kind & (PROCESS_COMPUTE | PROCESS_MPS);
	snprintf(dst, cap, "%s%s%s%s", p->kind & PROCESS_MPS ? "M+" : "", compute ? "C" : "",
		compute && p->kind & PROCESS_GRAPHICS ? "+" : "",
		p->kind & PROCESS_GRAPHICS ? "G" : "");
}

void smi_id(char *dst, size_t cap, int id)
{
	if (id < 0)
		snprintf(dst, cap, "N/A");
	else
		snprintf(dst, cap, "%d", id);
}

enum { TEXT_CAP = 64, NAME_WIDTH = 27 };

static const enum metric shown[] = { METRIC_CUDA_VERSION, METRIC_NVML_VERSION,
	METRIC_PERSISTENCE_MODE, METRIC_DISPLAY_ACTIVE, METRIC_ECC_CURRENT,
	METRIC_ECC_UNCORRECTED_VOLATILE, METRIC_FAN_SPEED, METRIC_TEMPERATURE_GPU,
	METRIC_PSTATE, METRIC_POWER_DRAW, METRIC_POWER_ENFORCED, METRIC_MEMORY_USED,
	METRIC_MEMORY_TOTAL, METRIC_UTILIZATION_GPU, METRIC_COMPUTE_MODE, METRIC_MIG_CURRENT,
	METRIC_MIG_PENDING, METRIC_BAR1_USED, METRIC_BAR1_TOTAL, METRIC_INSTANCE_SMS,
	METRIC_INSTANCE_COPIERS, METRIC_INSTANCE_DECODERS, METRIC_INSTANCE_ENCODERS,
	METRIC_INSTANCE_JPEGS, METRIC_INSTANCE_OFAS, METRIC_ECC_UNCORRECTED_VOLATILE_SRAM };

void smi_table_wanted(unsigned char *wanted)
{
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		wanted[shown[i]] = 1;
}

/* The table as it grows, and how wide the driver's generation makes it: from 550 on, two
 * columns wider, and from 570 on with room for larger pids. */
struct smi_table {
	const struct smi *smi;
	struct str *out;
	int generation, wider;
};
enum { WIDER_SINCE = 550, PIDS_SINCE = 570, NEW_HEADS_SINCE = 580 };

/* clang-format off */
#define WIDE_RULE \
"+-----------------------------------------------------------------------------------------+\n"
#define RULE \
"-----------------------------------------+------------------------+----------------------+\n"
#define MIG_RULE \
"+------------------+----------------------------------+-----------+-----------------------+\n"

static const char *const first_rules[] = { "|" RULE, "+" RULE };
static const char table_head[] =
"| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
"| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
"|                                         |                        |               MIG M. |\n"
"|=========================================+========================+======================|\n";

static const char instances_title[] = "\n" WIDE_RULE
"| MIG devices:                                                                            |\n"
MIG_RULE;
static const char *const instances_heads[] = {
"| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|      Shared           |\n"
"|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC DEC OFA JPG    |\n",
"| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         |\n"
"|      ID  ID  Dev |                Shared BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |\n" };
static const char instances_rule[] =
"|                  |                                  |        ECC|                       |\n"
"|==================+==================================+===========+=======================|\n";

static const char processes_title[] = WIDE_RULE
"| Processes:                                                                              |\n";
static const char *const processes_heads[] = {
"|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |\n",
"|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |\n" };
static const char processes_rule[] =
"|        ID   ID                                                               Usage      |\n"
"|=========================================================================================|\n";
/* clang-format on */

/* Appends lines of the wide table; in a narrow one, each lacks two columns of the middle. */
static void add_fixed(const struct smi_table *t, const char *lines)
{
	enum { MIDDLE = 52 };
	for (const char *line = lines; *line; line += strcspn(line, "\n") + 1) {
		size_t len = strcspn(line, "\n") + 1, at = MIDDLE;
		if (t->wider || len <= at) {
			str_add_bytes(t->out, line, len);
			continue;
		}
		while (line[at - 1] != line[at - 2] || !strchr(" -=", line[at - 1]))
			at--;
		str_add_bytes(t->out, line, at - 2);
		str_add_bytes(t->out, line + at, len - at);
	}
}

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

static void add_head(const struct smi_table *t)
{
	const struct smi *s = t->smi;
	struct str *out = t->out;
	char when[TEXT_CAP], cuda[TEXT_CAP] = "N/A";
	struct tm tm = moment_fields(s->now->now_ms, false);
	const char *driver = *s->now->hosts[0].driver ? s->now->hosts[0].driver : "N/A";
	strftime(when, sizeof(when), "%a %b %e %H:%M:%S %Y", &tm);
	for (size_t i = 0; i < s->boards.n && strcmp(cuda, "N/A") == 0; i++)
		value(cuda, s->boards.all[i], METRIC_CUDA_VERSION, "");
	str_addf(out, "%s       \n", when);
	add_fixed(t, WIDE_RULE);
	str_addf(out, "| NVIDIA-SMI %-22s Driver Version: %-*s CUDA Version: %-8s |\n", driver,
		12 + t->wider, driver, strcmp(cuda, "ERR!") == 0 ? "N/A" : cuda);
	add_fixed(t, first_rules[t->generation >= NEW_HEADS_SINCE]);
	add_fixed(t, table_head);
}

/* The second line: what it does. */
static void add_use(const struct smi_table *t, const struct present_board *b)
{
	static const char *const modes[] = { "Default", "E. Thread", "Prohibited",
		"E. Process" };
	char fan[TEXT_CAP], temperature[TEXT_CAP], state[TEXT_CAP], draw[TEXT_CAP],
		limit[TEXT_CAP], used[TEXT_CAP], total[TEXT_CAP], use[TEXT_CAP];
	double mode = b->values[METRIC_COMPUTE_MODE];
	int more = t->wider / 2;
	str_addf(t->out, "|%4s%6s%6s%*s / %*s |", value(fan, b, METRIC_FAN_SPEED, "%"),
		value(temperature, b, METRIC_TEMPERATURE_GPU, "C"),
		value(state, b, METRIC_PSTATE, ""), 17 - more,
		watts(draw, b, METRIC_POWER_DRAW), 4 + more,
		watts(limit, b, METRIC_POWER_ENFORCED));
	str_addf(t->out, "%*s / %*s |%8s %12s |\n", 10 + more,
		value(used, b, METRIC_MEMORY_USED, "MiB"), 8 + more,
		value(total, b, METRIC_MEMORY_TOTAL, "MiB"),
		value(use, b, METRIC_UTILIZATION_GPU, "%"),
		mode >= 0 && mode <= 3 ? modes[(int)mode] : missing(b, METRIC_COMPUTE_MODE));
}

/* A count of an instance, or "N/A". */
static const char *count(char *dst, const struct present_card *c, enum metric m)
{
	metric_show(dst, TEXT_CAP, m, c->values[m]);
	return *dst ? dst : "N/A";
}

static void add_instance(const struct smi_table *t, const struct present_card *c)
{
	const struct present_board b = { .status = c->status,
		.values = { [METRIC_MEMORY_USED] = c->values[METRIC_MEMORY_USED],
			[METRIC_MEMORY_TOTAL] = c->values[METRIC_MEMORY_TOTAL],
			[METRIC_BAR1_USED] = c->values[METRIC_BAR1_USED],
			[METRIC_BAR1_TOTAL] = c->values[METRIC_BAR1_TOTAL] },
		.codes = { [METRIC_MEMORY_USED] = c->codes[METRIC_MEMORY_USED],
			[METRIC_MEMORY_TOTAL] = c->codes[METRIC_MEMORY_TOTAL] } };
	char used[TEXT_CAP], total[TEXT_CAP], gi[TEXT_CAP], ci[TEXT_CAP], counts[7][TEXT_CAP];
	/* Until 580, BAR1 memory is two columns beside the other. */
	int beside = t->generation >= NEW_HEADS_SINCE ? 0 : t->wider;
	smi_id(gi, sizeof(gi), c->id.gpu_instance);
	smi_id(ci, sizeof(ci), c->id.compute_instance);
	str_addf(t->out, "|%3d %4s %3s %3d  |%19s / %8s%*s|%3s%7s |%3s %3s  %3s  %3s  %3s |\n",
		c->id.index, gi, ci, c->id.mig_index,
		value(used, &b, METRIC_MEMORY_USED, "MiB"),
		value(total, &b, METRIC_MEMORY_TOTAL, "MiB"), 2 + t->wider, "",
		count(counts[0], c, METRIC_INSTANCE_SMS),
		count(counts[1], c, METRIC_ECC_UNCORRECTED_VOLATILE_SRAM),
		count(counts[2], c, METRIC_INSTANCE_COPIERS),
		count(counts[3], c, METRIC_INSTANCE_ENCODERS),
		count(counts[4], c, METRIC_INSTANCE_DECODERS),
		count(counts[5], c, METRIC_INSTANCE_OFAS),
		count(counts[6], c, METRIC_INSTANCE_JPEGS));
	str_addf(t->out, "|%18s|%*s / %8s%*s|%11s|%23s|\n", "", 19 + beside,
		value(used, &b, METRIC_BAR1_USED, "MiB"),
		value(total, &b, METRIC_BAR1_TOTAL, "MiB"), 2 + t->wider - beside, "", "", "");
	add_fixed(t, MIG_RULE);
}

static void add_instances(const struct smi_table *t)
{
	bool begun = false;
	for (size_t i = 0; i < t->smi->boards.n; i++) {
		const struct present_card *c;
		for (size_t k = 0; (c = smi_instance(t->smi, t->smi->boards.all[i], k)) != NULL;
			k++) {
			if (!begun) {
				add_fixed(t, instances_title);
				add_fixed(t, instances_heads[t->generation >= NEW_HEADS_SINCE]);
				add_fixed(t, instances_rule);
			}
			begun = true;
			add_instance(t, c);
		}
	}
}

static void add_process(const struct smi_table *t, const struct smi_process *p)
{
	char gi[TEXT_CAP], ci[TEXT_CAP], type[TEXT_CAP], memory[TEXT_CAP] = "N/A";
	char name[COMMAND_CAP];
	int pids = t->generation >= PIDS_SINCE ? 15 : 9;
	size_t width = (size_t)(49 + t->wider - pids);
	smi_id(gi, sizeof(gi), p->card->id.gpu_instance);
	smi_id(ci, sizeof(ci), p->card->id.compute_instance);
	smi_type(type, sizeof(type), p->process);
	if (p->process->mem_bytes >= 0)
		snprintf(memory, sizeof(memory), "%lldMiB",
			(long long)(p->process->mem_bytes >> 20));
	query_process_name(name, sizeof(name), t->smi->live, p->process);
	size_t len = strlen(name);
	bool cut = len > width;
	str_addf(t->out, "|%5d %5s %4s %*u %6s   %s%s", p->card->id.index, gi, ci, pids,
		p->process->id.pid, type, cut ? "..." : "",
		cut ? name + len - (width - 3) : name);
	str_addf(t->out, "%*s%10s |\n", cut ? 0 : (int)(width - len), "", memory);
}

static void add_processes(const struct smi_table *t)
{
	struct smi_process p;
	bool any = false;
	str_addf(t->out, "%*s\n", t->generation >= NEW_HEADS_SINCE ? 0 : 89, "");
	add_fixed(t, processes_title);
	add_fixed(t, processes_heads[t->generation >= PIDS_SINCE]);
	add_fixed(t, processes_rule);
	for (size_t i = 0; i < t->smi->boards.n; i++)
		for (size_t k = 0; smi_process(t->smi, t->smi->boards.all[i], k, &p); k++) {
			add_process(t, &p);
			any = true;
		}
	if (!any)
		str_addf(t->out, "|  %-*s|\n", 85 + t->wider, "No running processes found");
	add_fixed(t, WIDE_RULE);
}

void smi_table(const struct smi *s, struct str *out)
{
	int generation = smi_generation(s);
	const struct smi_table t = { s, out, generation, generation >= WIDER_SINCE ? 2 : 0 };
	add_head(&t);
	for (size_t i = 0; i < s->boards.n; i++) {
		const struct present_board *b = s->boards.all[i];
		char name[TEXT_CAP], bus[TEXT_CAP], errors[TEXT_CAP];
		cut_end(name, sizeof(name), b->id.name, NAME_WIDTH);
		query_bus_id(bus, sizeof(bus), b->id.pci);
		value(errors, b, METRIC_ECC_UNCORRECTED_VOLATILE, "");
		if (b->mig || b->values[METRIC_ECC_CURRENT] == 0)
			str_copy(errors, sizeof(errors), on_off(b, METRIC_ECC_CURRENT));
		str_addf(t.out, "|%4d  %-27s    %-4s|%*s%-16s%4s |%21s |\n", b->id.index, name,
			on_off(b, METRIC_PERSISTENCE_MODE), 1 + t.wider, "", *bus ? bus : "N/A",
			on_off(b, METRIC_DISPLAY_ACTIVE), errors);
		add_use(&t, b);
		/* The third line: the MIG mode; a star means that it changes at the next reset.
		 */
		char mode[TEXT_CAP], star[TEXT_CAP + 1];
		double pending = b->values[METRIC_MIG_PENDING];
		value(mode, b, METRIC_MIG_CURRENT, "");
		bool differs = !isnan(pending) && pending != b->values[METRIC_MIG_CURRENT];
		snprintf(star, sizeof(star), "%s%s", mode, differs ? "*" : "");
		str_addf(t.out, "|%41s|%*s|%21s |\n", "", 22 + t.wider, "", star);
		add_fixed(&t, "+" RULE);
	}
	add_instances(&t);
	add_processes(&t);
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
		if (is_lost(b)) {
			char name[32];
			snprintf(name, sizeof(name), "gpu %d", b->id.index);
			fail_lost(b, name, &e);
			str_addf(out, "%s\n\n", e.text);
			continue;
		}
		str_addf(out, "GPU %d: %s (UUID: %s)\n", b->id.index,
			*b->id.name ? b->id.name : "N/A",
			card_has_uuid(&b->id) ? b->id.uuid : "N/A");
		for (size_t k = 0; (c = smi_instance(s, b, k)) != NULL; k++)
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
