/* Finds how near cards are to each other and to processors, from sysfs, and prints the matrix.
 */
#include "view/topology.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* Where a card is. */
struct topology_place {
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

static void find_place(struct topology_place *p, const char *root, const char *pci)
{
	char link[PATH_MAX], whole[PATH_MAX], node[32];
	*p = (struct topology_place){ .node = -1 };
	if (!*pci || !file_path(link, "%s/sys/bus/pci/devices/%s", root, pci) ||
		!realpath(link, whole))
		return;
	read_line(whole, "/local_cpulist", p->cpus, sizeof(p->cpus));
	read_line(whole, "/numa_node", node, sizeof(node));
	p->node = *node ? atoi(node) : -1;
	const char *below = strstr(whole, "/devices/pci");
	str_copy(p->path, sizeof(p->path), below ? below + strlen("/devices/") : "");
}

static size_t count_slashes(const char *path)
{
	size_t n = 0;
	for (; *path; path++)
		n += *path == '/';
	return n;
}

/* The paths are HOST_BRIDGE/BRIDGE/.../CARD. Two cards behind one switch have a bridge each
 * below the last one that they share. */
static const char *nearness(const struct topology_place *a, const struct topology_place *b)
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
	size_t below_a = count_slashes(a->path + end), below_b = count_slashes(b->path + end);
	return below_a <= 1 && below_b <= 1 ? "PIX" : "PXB";
}

static void add_row(
	const struct smi *s, const struct topology_place *places, size_t row, struct str *out)
{
	const struct topology_place *own = &places[row];
	str_addf(out, "GPU%d", s->boards.all[row]->id.index);
	for (size_t i = 0; i < s->boards.n; i++)
		str_addf(out, "\t%s", i == row ? " X " : nearness(own, &places[i]));
	str_addf(out, "\t%s\t", *own->cpus ? own->cpus : "N/A");
	if (own->node < 0)
		str_add(out, "N/A\t\tN/A\n");
	else
		str_addf(out, "%d\t\tN/A\n", own->node);
}

void topology_matrix(const struct smi *s, const char *root, struct str *out)
{
	struct topology_place *places = calloc(s->boards.n + 1, sizeof(*places));
	out->failed |= !places;
	if (!places)
		return;
	for (size_t i = 0; i < s->boards.n; i++) {
		find_place(&places[i], root, s->boards.all[i]->id.pci);
		str_addf(out, "\tGPU%d", s->boards.all[i]->id.index);
	}
	str_add(out, "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n");
	for (size_t i = 0; i < s->boards.n; i++)
		add_row(s, places, i, out);
	str_add(out, "\nLegend:\n\n"
		     "  X    = the card itself\n"
		     "  SYS  = through PCIe and the link between NUMA nodes\n"
		     "  NODE = through PCIe and between host bridges of one NUMA node\n"
		     "  PHB  = through PCIe and a host bridge\n"
		     "  PXB  = through several PCIe switches\n"
		     "  PIX  = through one PCIe switch at most\n");
	free(places);
}
