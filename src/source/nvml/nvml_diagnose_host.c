/* The findings about NVIDIA's driver that do not need its library: the kernel module and the
 * device nodes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "source/nvml/nvml_diagnose.h"
#include "source/nvml/nvml_host.h"

void nvml_diagnose_module(const struct diagnosis *d, struct findings *f)
{
	char version[VERSION_CAP];
	if (nvml_host_module_version(d->root, version, sizeof(version))) {
		finding_add(f, FINDING_OK, "module", "the nvidia kernel module %s is loaded",
			version);
		return;
	}
	if (nvml_host_has_module(d->root)) {
		finding_add(f, FINDING_OK, "module", "the nvidia kernel module is loaded");
		return;
	}
	finding_advise(finding_add(f, d->source ? FINDING_WARNING : FINDING_PROBLEM, "module",
			       "the nvidia kernel module is not loaded"),
		d->source ? "the library works without it: this is normal on WSL2; elsewhere, "
			    "check that the library is NVIDIA's own"
			  : "install NVIDIA's driver, or load it with 'modprobe nvidia'");
}

static bool is_card_node(const char *name)
{
	size_t digits = strspn(name + 6, "0123456789");
	return strncmp(name, "nvidia", 6) == 0 && digits > 0 && name[6 + digits] == '\0';
}

void nvml_diagnose_nodes(const struct diagnosis *d, struct findings *f)
{
	char path[PATH_MAX];
	size_t n = 0, refused = 0;
	int len = snprintf(path, sizeof(path), "%s/dev", d->root);
	DIR *dir = len > 0 && (size_t)len < sizeof(path) ? opendir(path) : NULL;
	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		if (strncmp(entry->d_name, "nvidia", 6) != 0)
			continue;
		if (strcmp(entry->d_name, "nvidiactl") != 0 && !is_card_node(entry->d_name))
			continue;
		n++;
		if (faccessat(dirfd(dir), entry->d_name, R_OK | W_OK, AT_EACCESS) == 0)
			continue;
		refused++;
		finding_advise(finding_add(f, FINDING_PROBLEM, "device nodes",
				       "/dev/%s may not be opened: %s", entry->d_name,
				       strerror(errno)),
			"see its owner and mode, and the groups that you are in");
	}
	if (dir)
		closedir(dir);
	if (n && !refused)
		finding_add(f, FINDING_OK, "device nodes",
			"%zu in /dev, and all of them may be opened", n);
	if (n == 0)
		finding_advise(finding_add(f, d->source ? FINDING_WARNING : FINDING_PROBLEM,
				       "device nodes",
				       "there is neither /dev/nvidiactl nor /dev/nvidia0"),
			"'nvidia-modprobe -c 0' as root makes them; in a container, give it "
			"the "
			"GPUs");
}
