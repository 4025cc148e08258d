/* What the driver library itself takes: opens it, makes the calls that the recorder makes, and
 * says how much the resident memory of this otherwise empty program grew. The bench subtracts
 * it.
 *
 * usage: drive LIBRARY   prints KiB */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 65536, ENTRIES = 1024, GPU_UTILIZATION_SAMPLES = 1 };

/* The calls that the recorder makes, as declared in nvml.h. */
struct driver {
	int (*init)(void);
	int (*count)(unsigned *);
	int (*handle)(unsigned, void **);
	int (*samples)(void *, int, unsigned long long, int *, unsigned *, void *);
	int (*use)(void *, void *, unsigned *, unsigned long long);
	int (*processes)(void *, unsigned *, void *);
	int (*energy)(void *, unsigned long long *);
};

static long resident_kib(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f && fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* dlsym() gives a data pointer; C has no cast from that to a function. */
static bool find(void *library, const char *name, void *function)
{
	void *symbol = dlsym(library, name);
	memcpy(function, &symbol, sizeof(symbol));
	if (!symbol)
		fprintf(stderr, "drive: there is no %s\n", name);
	return symbol != NULL;
}

static bool find_all(void *library, struct driver *d)
{
	return find(library, "nvmlInit_v2", &d->init) &&
	       find(library, "nvmlDeviceGetCount_v2", &d->count) &&
	       find(library, "nvmlDeviceGetHandleByIndex_v2", &d->handle) &&
	       find(library, "nvmlDeviceGetSamples", &d->samples) &&
	       find(library, "nvmlDeviceGetProcessUtilization", &d->use) &&
	       find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &d->processes) &&
	       find(library, "nvmlDeviceGetTotalEnergyConsumption", &d->energy);
}

static int drive(void *library, char *buffer)
{
	struct driver d;
	unsigned cards = 0;
	unsigned long long energy;
	if (!find_all(library, &d) || d.init() != 0 || d.count(&cards) != 0 || cards == 0)
		return 1;
	for (unsigned i = 0; i < cards; i++) {
		void *device = NULL;
		unsigned n = ENTRIES;
		int type;
		if (d.handle(i, &device) != 0)
			return 1;
		d.samples(device, GPU_UTILIZATION_SAMPLES, 0, &type, &n, buffer);
		n = ENTRIES;
		d.use(device, buffer, &n, 0);
		n = ENTRIES;
		d.processes(device, &n, buffer);
		d.energy(device, &energy);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static char buffer[BUFFER];
	memset(buffer, 1, sizeof(buffer)); /* resident before the first look */
	resident_kib();			   /* and so is stdio */
	long before = resident_kib();
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!library || drive(library, buffer) != 0) {
		fputs("drive: the library does not work\n", stderr);
		return 1;
	}
	printf("%ld\n", resident_kib() - before);
	return 0;
}
