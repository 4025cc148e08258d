/* The selected cards and their processes, for all views of nvidia-smi; its table, its list of
 * cards and its versions. */
#include "view/smi.h"

#include "view/query.h"

/* The driver's codes for a card that is lost, that needs a reset, that has no such value. */
enum { CODE_NOT_FOUND = 6, CODE_LOST = 15, CODE_RESET_REQUIRED = 16 };

/* Whether nvidia-smi can open the card. One that needs a reset is open, but all calls fail. */
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

int smi_check(const struct stat_pick *s, struct err *e)
{
	for (size_t i = 0; i < s->n_boards; i++) {
		const struct present_board *b = s->boards[i];
		if (is_lost(b))
			return fail_lost(b,
				*b->id.pci ? str_brief("GPU%s", b->id.pci).text
					   : str_brief("GPU%d", b->id.index).text,
				e);
	}
	return 0;
}

int smi_check_live(struct live *l, const struct filter *f, struct err *e)
{
	struct stat_pick s;
	int rc = stat_pick(&s, l, f, e);
	if (rc == 0)
		rc = smi_check(&s, e);
	stat_pick_finish(&s);
	return rc;
}

static bool is_on(
	const struct stat_pick *s, const struct present_card *c, const struct present_board *b)
{
	return !c->gone && &s->now->boards[c->board] == b;
}

const struct present_process *smi_process(
	const struct stat_pick *s, const struct present_board *b, size_t n)
{
	const struct present_card *cards = s->now->cards;
	for (size_t i = 0; i < s->now->n_cards; i++) {
		if (!is_on(s, &cards[i], b))
			continue;
		if (n < cards[i].n_processes)
			return &s->now->processes[cards[i].first_process + n];
		n -= cards[i].n_processes;
	}
	return NULL;
}

const struct present_card *smi_instance(
	const struct stat_pick *s, const struct present_board *b, size_t n)
{
	const struct present_card *cards = s->now->cards;
	for (size_t i = 0; b->mig && i < s->now->n_cards; i++)
		if (is_on(s, &cards[i], b) && cards[i].id.mig_index >= 0 && n-- == 0)
			return &cards[i];
	return NULL;
}

int smi_generation(const struct stat_pick *s)
{
	int generation = atoi(s->now->hosts[0].driver);
	return generation > 0 ? generation : INT_MAX;
}

struct brief smi_type(const struct present_process *p)
{
	bool compute = p->kind & (PROCESS_COMPUTE | PROCESS_MPS);
	return str_brief("%s%s%s%s", p->kind & PROCESS_MPS ? "M+" : "", compute ? "C" : "",
		compute && p->kind & PROCESS_GRAPHICS ? "+" : "",
		p->kind & PROCESS_GRAPHICS ? "G" : "");
}

struct brief smi_id(int id)
{
	return id < 0 ? str_brief("N/A") : str_brief("%d", id);
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
	const struct stat_pick *smi;
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
static struct brief value(const struct present_board *b, enum metric m, const char *unit)
{
	char text[TEXT_CAP / 2];
	metric_show(text, sizeof(text), m, b->codes[m] ? NAN : b->values[m]);
	return str_brief("%s%s", *text ? text : missing(b, m), *text ? unit : "");
}

/* Watts without decimals. */
static struct brief watts(const struct present_board *b, enum metric m)
{
	return isnan(b->values[m]) ? str_brief("%s", missing(b, m))
				   : str_brief("%.0fW", floor(b->values[m]));
}

static const char *on_off(const struct present_board *b, enum metric m)
{
	double v = b->values[m];
	return isnan(v) ? missing(b, m) : v != 0 ? "On" : "Off";
}

static void add_head(const struct smi_table *t)
{
	const struct stat_pick *s = t->smi;
	struct str *out = t->out;
	struct brief cuda = { "N/A" };
	const char *driver = *s->now->hosts[0].driver ? s->now->hosts[0].driver : "N/A";
	for (size_t i = 0; i < s->n_boards && strcmp(cuda.text, "N/A") == 0; i++)
		cuda = value(s->boards[i], METRIC_CUDA_VERSION, "");
	str_addf(out, "%s       \n",
		moment_format("%a %b %e %H:%M:%S %Y", s->now->now_ms, false).text);
	add_fixed(t, WIDE_RULE);
	str_addf(out, "| NVIDIA-SMI %-22s Driver Version: %-*s CUDA Version: %-8s |\n", driver,
		12 + t->wider, driver, strcmp(cuda.text, "ERR!") == 0 ? "N/A" : cuda.text);
	add_fixed(t, first_rules[t->generation >= NEW_HEADS_SINCE]);
	add_fixed(t, table_head);
}

/* The second line: what it does. */
static void add_use(const struct smi_table *t, const struct present_board *b)
{
	static const char *const modes[] = { "Default", "E. Thread", "Prohibited",
		"E. Process" };
	double mode = b->values[METRIC_COMPUTE_MODE];
	int more = t->wider / 2;
	str_addf(t->out, "|%4s%6s%6s%*s / %*s |", value(b, METRIC_FAN_SPEED, "%").text,
		value(b, METRIC_TEMPERATURE_GPU, "C").text, value(b, METRIC_PSTATE, "").text,
		17 - more, watts(b, METRIC_POWER_DRAW).text, 4 + more,
		watts(b, METRIC_POWER_ENFORCED).text);
	str_addf(t->out, "%*s / %*s |%8s %12s |\n", 10 + more,
		value(b, METRIC_MEMORY_USED, "MiB").text, 8 + more,
		value(b, METRIC_MEMORY_TOTAL, "MiB").text,
		value(b, METRIC_UTILIZATION_GPU, "%").text,
		mode >= 0 && mode <= 3 ? modes[(int)mode] : missing(b, METRIC_COMPUTE_MODE));
}

/* A count of an instance, or "N/A". */
static struct brief count(const struct present_card *c, enum metric m)
{
	struct brief b = { "" };
	metric_show(b.text, sizeof(b.text), m, c->values[m]);
	return *b.text ? b : str_brief("N/A");
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
	/* Until 580, BAR1 memory is two columns beside the other. */
	int beside = t->generation >= NEW_HEADS_SINCE ? 0 : t->wider;
	str_addf(t->out, "|%3d %4s %3s %3d  |%19s / %8s%*s|%3s%7s |%3s %3s  %3s  %3s  %3s |\n",
		c->id.index, smi_id(c->id.gpu_instance).text,
		smi_id(c->id.compute_instance).text, c->id.mig_index,
		value(&b, METRIC_MEMORY_USED, "MiB").text,
		value(&b, METRIC_MEMORY_TOTAL, "MiB").text, 2 + t->wider, "",
		count(c, METRIC_INSTANCE_SMS).text,
		count(c, METRIC_ECC_UNCORRECTED_VOLATILE_SRAM).text,
		count(c, METRIC_INSTANCE_COPIERS).text, count(c, METRIC_INSTANCE_ENCODERS).text,
		count(c, METRIC_INSTANCE_DECODERS).text, count(c, METRIC_INSTANCE_OFAS).text,
		count(c, METRIC_INSTANCE_JPEGS).text);
	str_addf(t->out, "|%18s|%*s / %8s%*s|%11s|%23s|\n", "", 19 + beside,
		value(&b, METRIC_BAR1_USED, "MiB").text,
		value(&b, METRIC_BAR1_TOTAL, "MiB").text, 2 + t->wider - beside, "", "", "");
	add_fixed(t, MIG_RULE);
}

static void add_process(const struct smi_table *t, const struct present_process *p)
{
	char name[COMMAND_CAP];
	const struct card_id *card = &t->smi->now->cards[p->card].id;
	int pids = t->generation >= PIDS_SINCE ? 15 : 9;
	size_t width = (size_t)(49 + t->wider - pids);
	query_process_name(name, sizeof(name), t->smi->live, p);
	size_t len = strlen(name);
	bool cut = len > width;
	str_addf(t->out, "|%5d %5s %4s %*u %6s   %s%s", card->index,
		smi_id(card->gpu_instance).text, smi_id(card->compute_instance).text, pids,
		p->id.pid, smi_type(p).text, cut ? "..." : "",
		cut ? name + len - (width - 3) : name);
	str_addf(t->out, "%*s%10s |\n", cut ? 0 : (int)(width - len), "",
		p->mem_bytes < 0 ? "N/A" : str_whole(p->mem_bytes >> 20, "MiB").text);
}

static void add_processes(const struct smi_table *t)
{
	const struct present_process *p;
	bool any = false;
	str_addf(t->out, "%*s\n", t->generation >= NEW_HEADS_SINCE ? 0 : 89, "");
	add_fixed(t, processes_title);
	add_fixed(t, processes_heads[t->generation >= PIDS_SINCE]);
	add_fixed(t, processes_rule);
	for (size_t i = 0; i < t->smi->n_boards; i++)
		for (size_t k = 0; (p = smi_process(t->smi, t->smi->boards[i], k)); k++) {
			add_process(t, p);
			any = true;
		}
	if (!any)
		str_addf(t->out, "|  %-*s|\n", 85 + t->wider, "No running processes found");
	add_fixed(t, WIDE_RULE);
}

void smi_table(const struct stat_pick *s, struct str *out)
{
	int generation = smi_generation(s);
	const struct smi_table t = { s, out, generation, generation >= WIDER_SINCE ? 2 : 0 };
	add_head(&t);
	for (size_t i = 0; i < s->n_boards; i++) {
		const struct present_board *b = s->boards[i];
		const char *name = b->id.name;
		struct brief bus = query_bus_id(b->id.pci);
		bool uncounted = b->mig || b->values[METRIC_ECC_CURRENT] == 0;
		/* A name that is too long ends in dots. */
		struct brief cut = str_brief("%.*s...", NAME_WIDTH - 3, name);
		str_addf(t.out, "|%4d  %-27s    %-4s|%*s%-16s%4s |%21s |\n", b->id.index,
			strlen(name) > NAME_WIDTH ? cut.text : name,
			on_off(b, METRIC_PERSISTENCE_MODE), 1 + t.wider, "",
			*bus.text ? bus.text : "N/A", on_off(b, METRIC_DISPLAY_ACTIVE),
			uncounted ? on_off(b, METRIC_ECC_CURRENT)
				  : value(b, METRIC_ECC_UNCORRECTED_VOLATILE, "").text);
		add_use(&t, b);
		/* The third line: MIG mode; a star means that it changes at the next reset. */
		double pending = b->values[METRIC_MIG_PENDING];
		bool differs = !isnan(pending) && pending != b->values[METRIC_MIG_CURRENT];
		struct brief mode = value(b, METRIC_MIG_CURRENT, differs ? "*" : "");
		str_addf(t.out, "|%41s|%*s|%21s |\n", "", 22 + t.wider, "", mode.text);
		add_fixed(&t, "+" RULE);
	}
	bool begun = false;
	for (size_t i = 0; i < t.smi->n_boards; i++) {
		const struct present_card *c;
		for (size_t k = 0; (c = smi_instance(t.smi, t.smi->boards[i], k)) != NULL;
			k++) {
			if (!begun) {
				add_fixed(&t, instances_title);
				add_fixed(&t, instances_heads[t.generation >= NEW_HEADS_SINCE]);
				add_fixed(&t, instances_rule);
			}
			begun = true;
			add_instance(&t, c);
		}
	}
	add_processes(&t);
}

void smi_list(const struct stat_pick *s, struct str *out)
{
	for (size_t i = 0; i < s->n_boards; i++) {
		const struct present_board *b = s->boards[i];
		const struct present_card *c;
		struct err e = { 0 };
		if (is_lost(b)) {
			fail_lost(b, str_brief("gpu %d", b->id.index).text, &e);
			str_addf(out, "%s\n\n", e.text);
			continue;
		}
		str_addf(out, "GPU %d: %s (UUID: %s)\n", b->id.index,
			*b->id.name ? b->id.name : "N/A",
			card_has_uuid(&b->id) ? b->id.uuid : "N/A");
		for (size_t k = 0; (c = smi_instance(s, b, k)) != NULL; k++) {
			/* The profile: "3g.20gb" of "... MIG 3g.20gb". */
			const char *word = strstr(c->id.name, "MIG ");
			str_addf(out, "  MIG %-11s Device %2d: (UUID: %s)\n",
				word ? word + strlen("MIG ") : c->id.name, c->id.mig_index,
				c->id.uuid);
		}
	}
}

void smi_versions(const struct stat_pick *s, struct str *out)
{
	char cuda[TEXT_CAP] = "", library[TEXT_CAP] = "";
	const char *driver = *s->now->hosts[0].driver ? s->now->hosts[0].driver : "N/A";
	for (size_t i = 0; i < s->n_boards && !*cuda; i++) {
		const struct present_board *b = s->boards[i];
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

/* How near cards are to each other and to processors, from sysfs. */

/* Where a card is. */
struct smi_place {
	char path[PATH_MAX]; /* its directory below /sys/devices; "" unknown */
	char cpus[256];	     /* the processors that are near, "0-31"; "" unknown */
	int node;	     /* NUMA node; -1: unknown, or the host has only one */
};

/* The first line of a file of the card; "" if there is none. */
static void read_line(const char *path, const char *name, char *dst, size_t cap)
{
	char text[256];
	ssize_t len = file_read_below(path, name, text, sizeof(text));
	size_t end = len > 0 ? strcspn(text, "\n") : 0;
	str_escape(dst, cap, text, end);
}

static void find_place(struct smi_place *p, const char *root, const char *pci)
{
	char link[PATH_MAX], whole[PATH_MAX], node[32];
	*p = (struct smi_place){ .node = -1 };
	if (!*pci || !file_path(link, "%s/sys/bus/pci/devices/%s", root, pci) ||
		!realpath(link, whole))
		return;
	read_line(whole, "/local_cpulist", p->cpus, sizeof(p->cpus));
	read_line(whole, "/numa_node", node, sizeof(node));
	p->node = *node ? atoi(node) : -1;
	const char *below = strstr(whole, "/devices/pci");
	str_copy(p->path, sizeof(p->path), below ? below + strlen("/devices/") : "");
}

/* The paths are HOST_BRIDGE/BRIDGE/.../CARD. Two cards behind one switch have a bridge each
 * below the last one that they share. */
static const char *nearness(const struct smi_place *a, const struct smi_place *b)
{
	size_t shared = 0, end = 0;
	if (!*a->path || !*b->path)
		return "N/A";
	for (size_t i = 0; a->path[i] && a->path[i] == b->path[i]; i++)
		if (a->path[i] == '/') {
			shared++;
			end = i + 1;
		}
	if (shared == 0)
		return a->node == b->node ? "NODE" : "SYS";
	if (shared == 1)
		return "PHB";
	const char *one = strchr(a->path + end, '/'), *two = strchr(b->path + end, '/');
	bool deep = (one && strchr(one + 1, '/')) || (two && strchr(two + 1, '/'));
	return deep ? "PXB" : "PIX";
}

static void add_place(
	const struct stat_pick *s, const struct smi_place *places, size_t row, struct str *out)
{
	const struct smi_place *own = &places[row];
	str_addf(out, "GPU%d", s->boards[row]->id.index);
	for (size_t i = 0; i < s->n_boards; i++)
		str_addf(out, "\t%s", i == row ? " X " : nearness(own, &places[i]));
	str_addf(out, "\t%s\t", *own->cpus ? own->cpus : "N/A");
	if (own->node < 0)
		str_add(out, "N/A\t\tN/A\n");
	else
		str_addf(out, "%d\t\tN/A\n", own->node);
}

void smi_topology(const struct stat_pick *s, const char *root, struct str *out)
{
	struct smi_place *places = calloc(s->n_boards + 1, sizeof(*places));
	out->failed |= !places;
	if (!places)
		return;
	for (size_t i = 0; i < s->n_boards; i++) {
		find_place(&places[i], root, s->boards[i]->id.pci);
		str_addf(out, "\tGPU%d", s->boards[i]->id.index);
	}
	str_add(out, "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n");
	for (size_t i = 0; i < s->n_boards; i++)
		add_place(s, places, i, out);
	str_add(out, "\nLegend:\n\n"
		     "  X    = the card itself\n"
		     "  SYS  = through PCIe and the link between NUMA nodes\n"
		     "  NODE = through PCIe and between host bridges of one NUMA node\n"
		     "  PHB  = through PCIe and a host bridge\n"
		     "  PXB  = through several PCIe switches\n"
		     "  PIX  = through one PCIe switch at most\n");
	free(places);
}
