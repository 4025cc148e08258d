/* The findings about NVIDIA's driver that do not need its library: the place, the kernel module
 * and the device nodes. */
#include <string.h>

#include "driver/nvml/nvml_diagnose.h"

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
		"card; "
		"the rows below say what this release reports. What is missing is "
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

void nvml_diagnose_places(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f)
{
	for (size_t i = 0; i < NVML_PLACES; i++)
		if (site->places & 1U << i)
			finding_advise(
				finding_add(f, FINDING_OK, "place", "%s", places[i].name), "%s",
				d->source ? places[i].works : places[i].fails);
}

/* Whether the driver works in this place without a module that can be seen. */
static bool needs_no_module(const struct diagnosis *d, const struct nvml_site *site)
{
	unsigned without = NVML_PLACE_WSL | NVML_PLACE_JETSON;
	if (d->source)
		without |= NVML_PLACE_CONTAINER;
	return site->places & without;
}

void nvml_diagnose_module(
	const struct diagnosis *d, const struct nvml_site *site, struct findings *f)
{
	if (site->has_module) {
		finding_add(f, FINDING_OK, "module", "the nvidia kernel module%s%s is loaded",
			site->module_version[0] ? " " : "", site->module_version);
		return;
	}
	if (needs_no_module(d, site)) {
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

void nvml_diagnose_nodes(
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
