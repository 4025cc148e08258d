/* The words for a process that people read. */
#include "model/process.h"

#include <stddef.h>
#include <string.h>

const char *user_shown(const char *user)
{
	return strcmp(user, USER_DEAD) == 0 ? "(ended)" : user;
}

const char *process_label(
	const char *notebook, const char *job, const char *container, const char *pod)
{
	const char *const labels[] = { notebook, job, container, pod };
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (labels[i] && *labels[i])
			return labels[i];
	return "";
}
