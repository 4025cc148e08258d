/* The findings about NVIDIA's driver: module, device nodes, library, cards, and how each job
 * is done. */
#include "driver/nvml/nvml.h"

/* What is different in each place, by bit. */
static const struct place {
	const char *name;
	const char *works; /* if the driver answers */
	const char *fails; /* what to do if it does not */
} places[NVML_PLACES] = {
	{ "WSL2: the driver is that of Windows, reached through /dev/dxg",
		"the driver does not report the memory of a process here, so its holders count "
		"as holding; processes of Windows are not listed",
		"install or update NVIDIA's driver in Windows, then run 'wsl --update' there; "
		"install no NVIDIA driver in Linux" },
	{ "Jetson: the GPU is a part of the processor and shares its memory",
		"NVML reports little here: no samples of utilisation and no memory of the "
		"card; the rows below say what this release reports. What is missing is "
		"recorded as unknown",
		"JetPack 6 is the first release with NVML; with an older one gua cannot audit "
		"this board" },
	{ "a container: only the devices that it was given are seen",
		"cards that the container was not given are not audited; record on the host to "
		"see all",
		"start the container with the GPUs (--gpus all, or the CDI device "
		"nvidia.com/gpu=all) and with NVIDIA_DRIVER_CAPABILITIES=utility" },
	{ "a virtual machine with a vGPU: the card belongs to its host",
		"the driver reports no power, energy or temperature in a guest; utilisation is "
		"that of this guest; record on the host to see all guests",
		"" },
};

static void examine_module(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f)
{
	if (site->has_module) {
		finding_add(f, FINDING_OK, "module", "the nvidia kernel module%s%s is loaded",
			site->module_version[0] ? " " : "", site->module_version);
		return;
	}
	/* In these places the driver works although no module can be seen. */
	unsigned without = NVML_PLACE_WSL | NVML_PLACE_JETSON;
	if (d->source)
		without |= NVML_PLACE_CONTAINER;
	if (site->places & without) {
		finding_add(f, FINDING_OK, "module", "%s",
			site->places & NVML_PLACE_WSL	   ? "none: WSL2 needs none"
			: site->places & NVML_PLACE_JETSON ? "none is seen: the driver is a "
							     "part of the kernel"
							   : "none is seen: it is the host's");
		return;
	}
	finding_advise(finding_add(f, d->source ? FINDING_WARNING : FINDING_PROBLEM, "module",
			       "the nvidia kernel module is not loaded"),
		d->source ? "the library works without it: check that it is NVIDIA's own"
			  : "install NVIDIA's driver, or load it with 'modprobe nvidia'");
}

static void add_no_nodes(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f)
{
	bool wsl = site->places & NVML_PLACE_WSL;
	if (site->places & NVML_PLACE_JETSON) {
		finding_add(f, FINDING_OK, "device nodes",
			"none of /dev/nvidia*: a Jetson has others");
		return;
	}
	finding_advise(
		finding_add(f, d->source ? FINDING_WARNING : FINDING_PROBLEM, "device nodes",
			wsl ? "there is no /dev/dxg"
			    : "there is neither /dev/nvidiactl nor /dev/nvidia0"),
		wsl ? "run 'wsl --update' in Windows; in a container, give it /dev/dxg"
		    : "'nvidia-modprobe -c 0' as root makes them; in a container, give it the "
		      "GPUs");
}

static void examine_nodes(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f)
{
	size_t refused = 0;
	for (size_t i = 0; i < site->n_nodes; i++) {
		if (!site->nodes[i].error)
			continue;
		refused++;
		finding_advise(finding_add(f, FINDING_PROBLEM, "device nodes",
				       "/dev/%s may not be opened: %s", site->nodes[i].name,
				       strerror(site->nodes[i].error)),
			"see its owner and mode, and the groups that you are in");
	}
	if (site->n_nodes == 0)
		add_no_nodes(d, site, f);
	else if (!refused)
		finding_add(f, FINDING_OK, "device nodes",
			"%zu in /dev, and all of them may be opened", site->n_nodes);
}

enum { FACILITIES_MAX = 64 };

/* Compares the versions of the library and the module, which must be equal. */
static void examine_library(
	const struct nvml_site *site, const struct facility *library, struct findings *f)
{
	const char *module = site->module_version;
	bool differ = module[0] && library->note[0] && strcmp(module, library->note) != 0;
	struct finding *row = finding_add(f, differ ? FINDING_WARNING : FINDING_OK, "library",
		"%s, version %s", library->how, library->note[0] ? library->note : "unknown");
	if (differ)
		finding_advise(row,
			"the module is version %s: reload it or reboot, or the library will "
			"stop answering at its next start",
			module);
}

static void examine_driver(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f)
{
	struct source *s = d->source;
	if (!s) {
		finding_advise(finding_add(f, FINDING_PROBLEM, "driver", "%s", d->why.text),
			d->hangs ? "look for NVRM and Xid in the kernel's log (dmesg); a reset "
				   "of the card or a reboot may be needed"
				 : "gua demo shows what a recording looks like without a "
				   "driver");
		return;
	}
	struct facility rows[FACILITIES_MAX];
	size_t n = s->ops->facilities(s, rows, FACILITIES_MAX);
	for (size_t i = 0; i < n; i++)
		if (strcmp(rows[i].job, "library") == 0)
			examine_library(site, &rows[i], f);
	finding_add(f, FINDING_OK, "driver", "driver %s answers",
		s->driver_version[0] ? s->driver_version : "of an unknown version");
	if (s->n_cards == 0)
		finding_advise(
			finding_add(f, FINDING_PROBLEM, "cards", "the driver has no card"),
			"see 'lspci -d 10de:' and the kernel log");
}

static const struct {
	enum finding_result result;
	const char *advice;
} status_findings[CARD_STATUS_COUNT] = {
	[CARD_STATUS_OK] = { FINDING_OK, "" },
	[CARD_STATUS_LOST] = { FINDING_PROBLEM,
		"see the kernel log for XID lines; it may need a reset or a reboot" },
	[CARD_STATUS_ASLEEP] = { FINDING_WARNING,
		"it is left asleep, and recorded as asleep; a program that uses it wakes it" },
	[CARD_STATUS_DENIED] = { FINDING_PROBLEM,
		"you may not open it: see the device node's mode, or the container's devices" },
};

static void examine_cards(const struct diagnosis *d, struct findings *f)
{
	for (size_t i = 0; d->source && i < d->source->n_cards; i++) {
		const struct card_reading *r = &d->source->cards[i];
		const struct card_id *id = &r->id;
		char check[32], more[64] = "";
		if (id->mig_index >= 0)
			snprintf(check, sizeof(check), "card %d/%d", id->index, id->mig_index);
		else
			snprintf(check, sizeof(check), "card %d", id->index);
		if (r->status == CARD_STATUS_LOST)
			snprintf(more, sizeof(more), ": %s (code %d)",
				nvml_lib_code_text(r->code), r->code);
		finding_advise(finding_add(f, status_findings[r->status].result, check,
				       "%s, %s, %s%s", id->name[0] ? id->name : "unknown model",
				       id->uuid, card_status_names[r->status], more),
			"%s", status_findings[r->status].advice);
	}
}

/* What it means when a job cannot be done, or only in another way. */
static const struct job_meaning {
	const char *job;
	const char *without;  /* when no way works */
	const char *fallback; /* when a way other than the first is used */
} meanings[] = {
	{ "utilisation", "held time of these cards is recorded as use unknown",
		"single readings instead of every sample" },
	{ "process utilisation",
		"which process used a card is not known: its holders share its state, and no "
		"squatter is seen",
		"the same numbers by a newer call" },
	{ "energy", "energy is not recorded", "an estimate; a newer card has a counter" },
	{ "power", "power is not shown", "" },
	{ "SM activity", "the use of MIG instances is not known", "" },
	{ "memory", "the used memory of a card is not known",
		"used memory includes what the driver reserves, or it is the sum of the "
		"processes' memory" },
	{ "compute processes", "holders are not known: idle-held time cannot be measured", "" },
	{ "graphics processes", "processes that draw are not listed", "" },
	{ "MPS processes", "clients of an MPS server are not listed by themselves", "" },
	{ 0 },
};

static void examine_accounting(const struct facility *row, struct findings *f)
{
	bool off = strcmp(row->how, "accounting mode is off") == 0;
	struct finding *found =
		finding_add(f, FINDING_OK, "ended processes", "%s (%s)", row->how, row->note);
	if (off)
		finding_advise(found, "with 'nvidia-smi -am 1' (as root) the driver keeps "
				      "records of processes that end between two looks");
}

static void examine_job(const struct facility *row, struct findings *f)
{
	const struct job_meaning *meaning = meanings;
	while (meaning->job && strcmp(meaning->job, row->job) != 0)
		meaning++;
	if (!meaning->job)
		return;
	bool vital = strcmp(row->job, "compute processes") == 0;
	enum finding_result result = row->works ? row->fallback ? FINDING_WARNING : FINDING_OK
				     : vital	? FINDING_PROBLEM
						: FINDING_WARNING;
	struct finding *found = finding_add(f, result, row->job, "%s%s%s%s%s",
		row->works ? "by " : "none: ", row->how, row->note[0] ? " (" : "", row->note,
		row->note[0] ? ")" : "");
	if (!row->works)
		finding_advise(found, "%s", meaning->without);
	else if (row->fallback)
		finding_advise(found, "%s", meaning->fallback);
}

/* Whether the driver says that a card is a vGPU (nvmlDeviceGetVirtualizationMode). */
static bool is_guest(const struct diagnosis *d)
{
	enum { VGPU = 2 };
	struct source *s = d->source;
	unsigned char wanted[METRIC_COUNT] = { [METRIC_VIRTUALIZATION] = 1 };
	for (size_t i = 0; s && s->ops->metrics && i < s->n_cards; i++) {
		double values[METRIC_COUNT];
		metric_texts texts = { "" };
		const struct metric_request request = {
			.card = i, .board = true, .wanted = wanted
		};
		values[METRIC_VIRTUALIZATION] = NAN;
		if (s->cards[i].status == CARD_STATUS_OK)
			s->ops->metrics(s, &request, values, texts);
		if (values[METRIC_VIRTUALIZATION] == VGPU)
			return true;
	}
	return false;
}

void nvml_diagnose_at(
	const struct diagnosis *d, const struct nvml_site *read, struct findings *f)
{
	struct nvml_site site = *read;
	if (is_guest(d))
		site.places |= NVML_PLACE_GUEST;
	for (size_t i = 0; i < NVML_PLACES; i++)
		if (site.places & 1U << i)
			finding_advise(
				finding_add(f, FINDING_OK, "place", "%s", places[i].name), "%s",
				d->source ? places[i].works : places[i].fails);
	examine_module(d, &site, f);
	examine_nodes(d, &site, f);
	examine_driver(d, &site, f);
	examine_cards(d, f);
	struct facility rows[FACILITIES_MAX];
	size_t n = d->source ? d->source->ops->facilities(d->source, rows, FACILITIES_MAX) : 0;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(rows[i].job, "persistence mode") == 0) {
			const struct facility *row = &rows[i];
			bool off = strcmp(row->how, "off") == 0;
			struct finding *found = finding_add(f,
				off ? FINDING_WARNING : FINDING_OK, "persistence",
				"persistence mode is %s (%s)", row->how, row->note);
			if (off)
				finding_advise(found, "a resident recorder keeps the cards "
						      "initialised; without one, 'nvidia-smi "
						      "-pm 1' or nvidia-persistenced does");
		} else if (strcmp(rows[i].job, "ended processes") == 0)
			examine_accounting(&rows[i], f);
		else
			examine_job(&rows[i], f);
	}
}

void *nvml_diagnose_before(const char *root)
{
	struct nvml_site *site = malloc(sizeof(*site));
	if (site)
		nvml_host_read_site(site, root);
	return site;
}

void nvml_diagnose(const struct diagnosis *d, struct findings *f)
{
	struct nvml_site site;
	if (!d->before)
		nvml_host_read_site(&site, d->root);
	nvml_diagnose_at(d, d->before ? d->before : &site, f);
}
