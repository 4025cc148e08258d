/* Names and labels of processes, as people read them. */
#include "model/process.h"

#define FIELD(text, member, keep)                                                              \
	{                                                                                      \
		text, offsetof(struct process_id, member),                                     \
			sizeof(((struct process_id *)0)->member), keep                         \
	}
const struct process_field process_fields[PROCESS_TEXTS] = {
	[PROCESS_COMMAND] = FIELD("command", command, false),
	[PROCESS_NOTEBOOK] = FIELD("notebook", notebook, false),
	[PROCESS_NOTEBOOK_PATH] = FIELD("notebook_path", origin.notebook_path, false),
	[PROCESS_JOB] = FIELD("job", job, true),
	[PROCESS_JOB_NAME] = FIELD("job_name", origin.job_name, false),
	[PROCESS_JOB_TASK] = FIELD("job_task", origin.job_task, false),
	[PROCESS_ACCOUNT] = FIELD("account", origin.account, false),
	[PROCESS_CONTAINER] = FIELD("container", container, true),
	[PROCESS_POD] = FIELD("pod", pod, true),
	[PROCESS_UNIT] = FIELD("unit", unit, false),
	[PROCESS_LOGIN] = FIELD("login", origin.login, false),
	[PROCESS_SESSION] = FIELD("session", origin.session, false),
	[PROCESS_PARENTS] = FIELD("parents", origin.parents, false),
	[PROCESS_PYTHON_ENV] = FIELD("python_env", origin.python_env, false),
	[PROCESS_TAG] = FIELD("tag", origin.tag, false),
};

const char *process_text(const struct process_id *id, enum process_text which)
{
	return (const char *)id + process_fields[which].offset;
}

const char *const privacy_names[PRIVACIES] = {
	[PRIVACY_NORMAL] = "normal",
	[PRIVACY_STRICT] = "strict",
};

void process_restrict(struct process_id *id, enum privacy privacy)
{
	for (size_t i = 0; i < PROCESS_TEXTS && privacy == PRIVACY_STRICT; i++)
		if (!process_fields[i].strict)
			explicit_bzero(
				(char *)id + process_fields[i].offset, process_fields[i].cap);
	if (privacy == PRIVACY_STRICT && strncmp(id->job, JOB_CLAIM, strlen(JOB_CLAIM)) == 0)
		explicit_bzero(id->job, sizeof(id->job));
}

bool process_is_job(const char *word, const char *job)
{
	size_t len = strlen(word), whole = strlen(job);
	return len && len <= whole && strcmp(job + whole - len, word) == 0 &&
	       (len == whole || job[whole - len - 1] == ':');
}

const char *process_shown_user(const char *user)
{
	return strcmp(user, USER_DEAD) == 0 ? "(ended)" : user;
}

const char *process_label(const char *const texts[PROCESS_TEXTS])
{
	const char *pod = texts[PROCESS_POD], *named = pod && strchr(pod, '/') ? pod : NULL;
	const char *const labels[] = { texts[PROCESS_NOTEBOOK_PATH], texts[PROCESS_NOTEBOOK],
		texts[PROCESS_JOB_TASK], texts[PROCESS_JOB], named, texts[PROCESS_CONTAINER],
		pod };
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (labels[i] && *labels[i])
			return labels[i];
	return "";
}

const char *process_label_of(const struct process_id *id)
{
	const char *texts[PROCESS_TEXTS];
	for (int i = 0; i < PROCESS_TEXTS; i++)
		texts[i] = process_text(id, i);
	return process_label(texts);
}

/* Removes a last part "-X" of `least` to `most` of these characters; false: there is none. */
static bool strip_part(char *name, const char *characters, size_t least, size_t most)
{
	char *dash = strrchr(name, '-');
	size_t n = dash ? strlen(dash + 1) : 0;
	if (!dash || dash == name || dash[-1] == '/' || n < least || n > most ||
		strspn(dash + 1, characters) != n)
		return false;
	*dash = '\0';
	return true;
}

void process_namespace(char dst[LABEL_CAP], const char *pod)
{
	const char *slash = pod ? strchr(pod, '/') : NULL;
	snprintf(dst, LABEL_CAP, "%.*s", slash ? (int)(slash - pod) : 0, slash ? pod : "");
}

void process_workload(char dst[LABEL_CAP], const char *pod)
{
	/* Kubernetes makes random names of these, so that they spell no word. */
	static const char random[] = "bcdfghjklmnpqrstvwxz2456789", digits[] = "0123456789";
	str_copy(dst, LABEL_CAP, pod);
	if (!strip_part(dst, random, 5, 5)) {
		strip_part(dst, digits, 1, 5); /* of a stateful set */
		return;
	}
	if (strip_part(dst, random, 8, 10)) /* of a replica set */
		return;
	strip_part(dst, digits, 8, 10); /* the minute of a cron job */
}
