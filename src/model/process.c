/* The words for a process that people read. */
#include "model/process.h"

#include <string.h>

#define FIELD(text, member)                                                                    \
	{                                                                                      \
		text, offsetof(struct process_id, member),                                     \
			sizeof(((struct process_id *)0)->member)                               \
	}
const struct process_field process_fields[PROCESS_TEXTS] = {
	[PROCESS_COMMAND] = FIELD("command", command),
	[PROCESS_NOTEBOOK] = FIELD("notebook", notebook),
	[PROCESS_NOTEBOOK_PATH] = FIELD("notebook_path", origin.notebook_path),
	[PROCESS_JOB] = FIELD("job", job),
	[PROCESS_JOB_NAME] = FIELD("job_name", origin.job_name),
	[PROCESS_ACCOUNT] = FIELD("account", origin.account),
	[PROCESS_CONTAINER] = FIELD("container", container),
	[PROCESS_POD] = FIELD("pod", pod),
	[PROCESS_UNIT] = FIELD("unit", unit),
	[PROCESS_LOGIN] = FIELD("login", origin.login),
	[PROCESS_SESSION] = FIELD("session", origin.session),
	[PROCESS_PARENTS] = FIELD("parents", origin.parents),
	[PROCESS_PYTHON_ENV] = FIELD("python_env", origin.python_env),
	[PROCESS_TAG] = FIELD("tag", origin.tag),
};

const char *process_text(const struct process_id *id, enum process_text which)
{
	return (const char *)id + process_fields[which].offset;
}

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
