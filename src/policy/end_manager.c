/* Chooses and runs the commands of managers. */
#include "policy/end_manager.h"

#include "base/child.h"
#include "base/words.h"
#include "model/process.h"

static const struct manager {
	const char *prefix;
	size_t offset; /* of its command in struct config_end */
} managers[] = {
	{ "slurm:", offsetof(struct config_end, slurm) },
	{ "pbs:", offsetof(struct config_end, pbs) },
	{ "lsf:", offsetof(struct config_end, lsf) },
	{ "docker:", offsetof(struct config_end, docker) },
	{ "podman:", offsetof(struct config_end, podman) },
};

/* An id may have plain letters and digits only: it becomes an argument, and must not look
 * like an option. */
static bool is_plain(const char *id)
{
	return *id && !id[strspn(id, "0123456789abcdefghijklmnopqrstuvwxyz"
				     "ABCDEFGHIJKLMNOPQRSTUVWXYZ")];
}

/* Below a user's own service manager, the user chooses the names of cgroups. */
bool end_manager_is_users(const char *cgroup, size_t len)
{
	static const char slice[] = "/user.slice/";
	return memmem(cgroup, len, slice, sizeof(slice) - 1) != NULL;
}

/* Splits a command into `argv`, and adds the words `more`, which end with NULL. */
static int split(struct manager_command *c, const char **argv, const char *command,
	const char *const *more, struct err *e)
{
	char **words = NULL;
	size_t n = 0;
	int rc = words_split(command, &words, &n, e);
	if (rc)
		return rc;
	if (n == 0 || n > MANAGER_ARGUMENTS)
		rc = err_set(e, ERR_USAGE, "[end]: '%s' is not a command", command);
	for (size_t i = 0; rc == 0 && (i < n || more[i - n]); i++) {
		const char *word = i < n ? words[i] : more[i - n];
		size_t len = strlen(word) + 1;
		if (c->used + len > sizeof(c->text)) {
			rc = err_set(e, ERR_USAGE, "[end]: '%s' is too long", command);
			break;
		}
		argv[i] = memcpy(c->text + c->used, word, len);
		c->used += len;
	}
	free(words);
	return rc;
}

static int find_label(struct manager_command *c, const struct config_end *config,
	const char *label, struct err *e)
{
	for (size_t i = 0; i < sizeof(managers) / sizeof(managers[0]); i++) {
		size_t len = strlen(managers[i].prefix);
		const char *const *command =
			(const void *)((const char *)config + managers[i].offset);
		const char *id = label + len;
		if (strncmp(label, managers[i].prefix, len) != 0 || !is_plain(id) || !*command)
			continue;
		const char *tell = i == 0 ? config->slurm_notify : NULL;
		const char *const more[] = { id,
			"gua ends this job: it holds GPUs and does not use them", NULL };
		*c = (struct manager_command){ 0 };
		snprintf(c->shown, sizeof(c->shown), "%.400s %.64s", *command, id);
		int rc = split(c, c->argv, *command, (const char *const[]){ id, NULL }, e);
		return rc || !tell ? rc : split(c, c->tell, tell, more, e);
	}
	return 1;
}

/* The command gets the namespace, the name of the pod, its workload and the reason. */
static int find_pod(struct manager_command *c, const struct config_end *config,
	const struct managed *what, struct err *e)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
	char space[LABEL_CAP], workload[LABEL_CAP];
	const char *pod = strchr(what->pod, '/');
	process_namespace(space, what->pod);
	process_workload(workload, what->pod);
	if (!config->kubernetes)
		return err_set(e, ERR_NOTHING,
			"it is a pod, and kubernetes in [end] of gua.conf names no command");
	if (!pod || space[strspn(space, name)] || pod[1 + strspn(pod + 1, name)] ||
		!is_plain((const char[]){ *space, '\0' }) ||
		!is_plain((const char[]){ pod[1], '\0' }))
		return err_set(e, ERR_NOTHING, "the whole name of its pod is not known");
	const char *const more[] = { space, pod + 1, strchr(workload, '/') + 1, what->reason,
		NULL };
	*c = (struct manager_command){ 0 };
	snprintf(
		c->shown, sizeof(c->shown), "%.300s %s %s", config->kubernetes, space, pod + 1);
	return split(c, c->argv, config->kubernetes, more, e);
}

int end_manager_find(struct manager_command *c, const struct config_end *config,
	const struct managed *what, struct err *e)
{
	int rc = find_label(c, config, what->job, e);
	if (rc == 1 && *what->pod)
		return find_pod(c, config, what, e);
	return rc == 1 ? find_label(c, config, what->container, e) : rc;
}

struct work {
	const struct manager_command *command;
	int64_t timeout_ms;
};

/* Runs in the helper: replies with nothing, or with why it failed. */
static void serve(void *context, const struct str *request, struct str *reply)
{
	const struct work *work = context;
	struct child_result r;
	struct err e = { 0 };
	char text[512];
	const struct child_command c = { .argv = work->command->argv,
		.timeout_ms = work->timeout_ms };
	const struct child_command tell = { .argv = work->command->tell,
		.timeout_ms = work->timeout_ms };
	(void)request;
	if (tell.argv[0])
		(void)child_run(&tell, &r, &e);
	if (child_run(&c, &r, &e) != 0) {
		str_add(reply, e.text);
	} else if (r.status != 0) {
		child_result_text(text, sizeof(text), work->command->argv[0], &r);
		str_add(reply, text);
	}
}

int end_manager_start(
	struct helper **h, const struct manager_command *c, int64_t timeout_ms, struct err *e)
{
	struct work work = { c, timeout_ms };
	const struct helper_work how = {
		.name = "gua-manager", .serve = serve, .context = &work
	};
	int rc = helper_new(h, &how, e);
	return rc ? rc : helper_send(*h, "", 0, e);
}

bool end_manager_is_over(struct helper *h, struct err *e)
{
	const struct str *reply = NULL;
	int rc = helper_receive(h, 0, &reply, e);
	if (rc == 0 && reply->len)
		err_set(e, ERR_WORLD, "%s", str_text(reply));
	else if (rc == 0)
		*e = (struct err){ 0 };
	return rc != ERR_BUSY;
}
