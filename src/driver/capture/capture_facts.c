/* Writes what /proc, /sys and /dev show of the driver as lines of a capture. */
#include "driver/capture/capture_facts.h"

#include <string.h>

#include "driver/nvml/nvml_host.h"
#include "driver/nvml/nvml_site.h"

static bool is_asleep(const char *root, const char *pci)
{
	struct nvml_host_power power = { 0 };
	bool asleep = nvml_host_asleep(&power, root, pci);
	nvml_host_power_close(&power);
	return asleep;
}

static void add_gpus(const char *root, struct nvml_secrets *secrets, struct str *out)
{
	struct nvml_host_gpu gpus[NVML_HOST_GPUS];
	size_t n = nvml_host_gpus(root, gpus, NVML_HOST_GPUS);
	for (size_t i = 0; i < n; i++) {
		char name[CARD_NAME_CAP], uuid[UUID_CAP + 2] = "\"";
		text_copy(name, sizeof(name), gpus[i].name);
		for (char *quote; (quote = strchr(name, '"')) != NULL;)
			*quote = '\'';
		text_copy(uuid + 1, UUID_CAP, gpus[i].uuid);
		strcat(uuid, "\"");
		str_addf(out, "gpu %s %s \"%s\" ", gpus[i].pci,
			is_asleep(root, gpus[i].pci) ? "asleep" : "awake", name);
		nvml_secrets_replace(secrets, NVML_SECRET_UUID, uuid, out);
		str_add(out, "\n");
	}
}

void nvml_capture_facts(const char *root, struct nvml_secrets *secrets, struct str *out)
{
	struct nvml_site site;
	nvml_site_read(&site, root);
	for (size_t i = 0; i < NVML_PLACES; i++)
		if (site.places & 1U << i)
			str_addf(out, "place %s\n", nvml_place_names[i]);
	str_addf(out, "module %s\n",
		!site.has_module	 ? "none"
		: site.module_version[0] ? site.module_version
					 : "unknown");
	for (size_t i = 0; i < site.n_nodes; i++)
		str_addf(out, "node %s %d\n", site.nodes[i].name, site.nodes[i].error);
	add_gpus(root, secrets, out);
}

void nvml_capture_asleep(const char *root, unsigned n, bool *asleep)
{
	struct nvml_host_gpu gpus[NVML_HOST_GPUS];
	bool same = nvml_host_gpus(root, gpus, NVML_HOST_GPUS) == n;
	for (unsigned i = 0; i < n; i++)
		asleep[i] = same && is_asleep(root, gpus[i].pci);
}
