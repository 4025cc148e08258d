/* /proc/PID/cgroup. */
#include "fuzz.h"

#include <stdlib.h>

#include "proc/cgroup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cgroup_labels labels;
	cgroup_parse((const char *)data, size, &labels);
	check_safe(labels.job);
	check_safe(labels.container);
	check_safe(labels.pod);
	check_safe(labels.unit);
	if (labels.slice_uid < -1 || labels.slice_uid >= UINT32_MAX)
		abort();
	return 0;
}
