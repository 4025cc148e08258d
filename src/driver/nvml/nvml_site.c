/* Recognises WSL2, Jetson boards and containers by their files, and lists the device nodes. */
#include "driver/nvml/nvml_site.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "driver/nvml/nvml_host.h"

const char *const nvml_place_names[NVML_PLACES] = { "wsl", "jetson", "container", "guest" };

/* A file that shows a place: by being there, or by a text in it. */
static const struct sign {
	enum nvml_place place;
	const char *path;
	const char *text; /* in any case; NULL: the file is enough */
} signs[] = {
	{ NVML_PLACE_WSL, "/dev/dxg", NULL },
	{ NVML_PLACE_WSL, "/proc/sys/kernel/osrelease", "microsoft" },
	{ NVML_PLACE_JETSON, "/etc/nv_tegra_release", NULL },
	{ NVML_PLACE_JETSON, "/proc/device-tree/compatible", "nvidia,tegra" },
	{ NVML_PLACE_JETSON, "/proc/sys/kernel/osrelease", "-tegra" },
	{ NVML_PLACE_CONTAINER, "/.dockerenv", NULL },
	{ NVML_PLACE_CONTAINER, "/run/.containerenv", NULL },
	{ NVML_PLACE_CONTAINER, "/proc/1/cgroup", "kubepods" },
	{ NVML_PLACE_CONTAINER, "/proc/1/cgroup", "/docker/" },
	{ NVML_PLACE_CONTAINER, "/proc/1/cgroup", "/lxc" },
	/* The toolkit mounts the host's library. */
	{ NVML_PLACE_CONTAINER, "/proc/self/mountinfo", "/libnvidia-ml.so." },
};

/* The list of strings in a device tree's file has a NUL after each. */
static bool holds(const char *path, const char *text)
{
	char content[16384];
	ssize_t n = file_read_at(AT_FDCWD, path, content, sizeof(content));
	for (ssize_t i = 0; i < n; i++)
		if (!content[i])
			content[i] = '\n';
	return n > 0 && strcasestr(content, text);
}

static bool is_seen(const struct sign *sign, const char *root)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%s", root, sign->path);
	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	return sign->text ? holds(path, sign->text) : access(path, F_OK) == 0;
}

static bool is_node(const char *name)
{
	size_t digits = strspn(name + (strncmp(name, "nvidia", 6) == 0 ? 6 : 0), "0123456789");
	bool card = strncmp(name, "nvidia", 6) == 0 && digits > 0 && !name[6 + digits];
	return card || strcmp(name, "nvidiactl") == 0 || strcmp(name, "dxg") == 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct nvml_node *)a)->name, ((const struct nvml_node *)b)->name);
}

static void read_nodes(struct nvml_site *site, const char *root)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/dev", root);
	DIR *dir = len > 0 && (size_t)len < sizeof(path) ? opendir(path) : NULL;
	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		struct nvml_node *node = &site->nodes[site->n_nodes];
		if (site->n_nodes == NVML_NODES || !is_node(entry->d_name) ||
			!text_copy(node->name, sizeof(node->name), entry->d_name))
			continue;
		bool may = faccessat(dirfd(dir), entry->d_name, R_OK | W_OK, AT_EACCESS) == 0;
		node->error = may ? 0 : errno;
		site->n_nodes++;
	}
	closedir(dir);
	qsort(site->nodes, site->n_nodes, sizeof(site->nodes[0]), by_name);
}

void nvml_site_read(struct nvml_site *site, const char *root)
{
	*site = (struct nvml_site){ .has_module = nvml_host_has_module(root) };
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (is_seen(&signs[i], root))
			site->places |= signs[i].place;
	nvml_host_module_version(root, site->module_version, sizeof(site->module_version));
	read_nodes(site, root);
}
