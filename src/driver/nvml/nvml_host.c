/* Reads the driver's files in /proc and the kernel's in /sys, up to a limit each. */
#include "driver/nvml/nvml_host.h"

#include "proc/proc.h"

enum { SMALL_FILE = 4096 };

bool nvml_host_has_module(const char *root)
{
	return file_is_below(root, "/sys/module/nvidia") ||
	       file_is_below(root, "/proc/driver/nvidia/version");
}

bool nvml_host_module_version(const char *root, char *dst, size_t cap)
{
	static const char *const paths[] = { "/proc/driver/nvidia/version",
		"/sys/module/nvidia/version" };
	for (size_t i = 0; i < 2; i++) {
		char text[SMALL_FILE], *rest = text;
		if (file_read_below(root, paths[i], text, sizeof(text)) <= 0)
			continue;
		text[strcspn(text, "\n")] = '\0';
		for (char *word; (word = strsep(&rest, " \t")) != NULL;) {
			/* A version is digits with at least one dot between them; the first
			 * such word of the first line counts. */
			size_t digits_and_dots = strspn(word, "0123456789.");
			if (word[digits_and_dots] == '\0' && word[0] != '.' &&
				strchr(word, '.') != NULL)
				return str_copy(dst, cap, word);
		}
	}
	return false;
}

bool nvml_host_asleep(struct nvml_host_power *p, const char *root, const char *pci)
{
	static const char word[] = "suspended";
	char status[32];
	if (!p->known) {
		char path[PATH_MAX];
		p->known = true;
		if (pci[0] && file_path(path, "%s/sys/bus/pci/devices/%s/power/runtime_status",
				      root, pci)) {
			p->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
			p->there = p->fd >= 0;
		}
	}
	ssize_t n = p->there ? pread(p->fd, status, sizeof(status), 0) : -1;
	return n >= (ssize_t)strlen(word) && memcmp(status, word, strlen(word)) == 0;
}

void nvml_host_power_close(struct nvml_host_power *p)
{
	if (p->there)
		close(p->fd);
	*p = (struct nvml_host_power){ 0 };
}

/* The link of a card leads to .../pci0000:00/ROOT_PORT/.../CARD. */
double nvml_host_root_port_gen(const char *root, const char *pci)
{
	char path[PATH_MAX], whole[PATH_MAX], text[64];
	if (!file_path(path, "%s/sys/bus/pci/devices/%s", root, pci) || !realpath(path, whole))
		return NAN;
	char *bus = strstr(whole, "/devices/pci"), *port = bus ? strchr(bus + 12, '/') : NULL;
	char *end = port ? strchr(port + 1, '/') : NULL;
	if (!end)
		return NAN; /* nothing is above the card */
	*end = '\0';
	if (file_read_below(whole, "/max_link_speed", text, sizeof(text)) <= 0)
		return NAN;
	double speed = strtod(text, NULL); /* in GT/s */
	static const double speeds[] = { 2.5, 5, 8, 16, 32, 64, 128 };
	for (int i = 0; i < (int)(sizeof(speeds) / sizeof(speeds[0])); i++)
		if (speed >= speeds[i] - 0.1 && speed <= speeds[i] + 0.1)
			return i + 1;
	return NAN;
}

size_t nvml_host_cards(const char *root, struct proc_card cards[PROC_CARDS_MAX])
{
	int proc = -1;
	if (proc_open(&proc, root, NULL) != 0)
		return 0;
	size_t n = proc_cards_read(proc, cards);
	close(proc);
	return n;
}

const char *const nvml_place_names[NVML_PLACES] = { "wsl", "jetson", "container", "guest" };

/* A file that shows a place: because it exists, or because of a text in it. */
static const struct sign {
	enum nvml_place place;
	const char *path;
	const char *text; /* in upper or lower case; NULL: that the file exists is enough */
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

static bool is_seen(const struct sign *sign, const char *root)
{
	char content[16384];
	if (!sign->text)
		return file_is_below(root, sign->path);
	ssize_t n = file_read_below(root, sign->path, content, sizeof(content));
	/* The list of strings in a device tree's file has a NUL after each. */
	for (ssize_t i = 0; i < n; i++)
		if (!content[i])
			content[i] = '\n';
	return n > 0 && strcasestr(content, sign->text);
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
	DIR *dir = file_path(path, "%s/dev", root) ? opendir(path) : NULL;
	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		struct nvml_node *node = &site->nodes[site->n_nodes];
		if (site->n_nodes == NVML_NODES || !is_node(entry->d_name) ||
			!str_copy(node->name, sizeof(node->name), entry->d_name))
			continue;
		bool may = faccessat(dirfd(dir), entry->d_name, R_OK | W_OK, AT_EACCESS) == 0;
		node->error = may ? 0 : errno;
		site->n_nodes++;
	}
	closedir(dir);
	qsort(site->nodes, site->n_nodes, sizeof(site->nodes[0]), by_name);
}

void nvml_host_read_site(struct nvml_site *site, const char *root)
{
	*site = (struct nvml_site){ .has_module = nvml_host_has_module(root) };
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (is_seen(&signs[i], root))
			site->places |= signs[i].place;
	nvml_host_module_version(root, site->module_version, sizeof(site->module_version));
	read_nodes(site, root);
}
