/* The selected cards and their processes, for all views of nvidia-smi; its table, its list
 * of cards and its versions. */
#include "view/smi.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

bool smi_lost(const struct smi *s)
{
	for (size_t i = 0; i < s->boards.n; i++)
		if (s->boards.all[i]->status == CARD_STATUS_LOST)
			return true;
	return false;
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
static const char *missing(const struct present_board *b)
{
	return b->status == CARD_STATUS_LOST ? "ERR!" : "N/A";
}

/* A metric with a unit, or the text for a missing value. */
static const char *value(
	char *dst, const struct present_board *b, enum metric m, const char *unit)
{
	char text[TEXT_CAP / 2];
	metric_show(text, sizeof(text), m, b->values[m]);
	snprintf(dst, TEXT_CAP, "%s%s", *text ? text : missing(b), *text ? unit : "");
	return dst;
}

/* Watts without decimals. */
static const char *watts(char *dst, const struct present_board *b, enum metric m)
{
	if (isnan(b->values[m]))
		return missing(b);
	snprintf(dst, TEXT_CAP, "%.0fW", floor(b->values[m]));
	return dst;
}

static const char *on_off(const struct present_board *b, enum metric m)
{
	double v = b->values[m];
	return isnan(v) ? missing(b) : v != 0 ? "On" : "Off";
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
	double display = b->values[METRIC_DISPLAY_ACTIVE];
	str_addf(out, "|%4d  %-27s    %-4s|   %-16s %3s |%21s |\n", b->id.index, name,
		on_off(b, METRIC_PERSISTENCE_MODE), *bus ? bus : "N/A",
		isnan(display)	 ? "N/A"
		: display != 0.0 ? "On"
				 : "Off",
		errors);
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
		mode >= 0 && mode <= 3 ? modes[(int)mode] : missing(b));
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
			[METRIC_BAR1_TOTAL] = c->values[METRIC_BAR1_TOTAL] } };
	char used[TEXT_CAP], total[TEXT_CAP], gi[TEXT_CAP], ci[TEXT_CAP];
	smi_id(gi, sizeof(gi), c->id.gpu_instance);
	smi_id(ci, sizeof(ci), c->id.compute_instance);
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
		for (size_t k = 0; (c = smi_instance(s, s->boards.all[i], k)) != NULL; k++) {
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
	smi_id(gi, sizeof(gi), p->card->id.gpu_instance);
	smi_id(ci, sizeof(ci), p->card->id.compute_instance);
	smi_type(type, sizeof(type), p->process);
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
		for (size_t k = 0; smi_process(s, s->boards.all[i], k, &p); k++) {
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
