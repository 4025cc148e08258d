/* Runs the administrator's command with the notice as JSON on its standard input. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/words.h"
#include "policy/channel.h"

/* The user that it runs as: never root. */
static int find_user(struct child_command *c, const char *name, struct err *e)
{
	char memory[4096];
	struct passwd entry, *found = NULL;
	int why = getpwnam_r(name, &entry, memory, sizeof(memory), &found);
	if (!found)
		return err_set(e, ERR_WORLD, "cannot run the command as %s: %s", name,
			why ? strerror(why) : "there is no such user");
	if (found->pw_uid == 0)
		return err_set(
			e, ERR_WORLD, "the command must not run as root; set command_user");
	c->change_user = true;
	c->uid = found->pw_uid;
	c->gid = found->pw_gid;
	return 0;
}

static int run(
	const struct channel_job *job, char **argv, struct child_result *r, struct err *e)
{
	struct str json = { 0 };
	const struct notice_extra extra = { str_text(&job->text->subject),
		str_text(&job->text->body) };
	struct child_command command = { .argv = (const char *const *)argv,
		.timeout_ms = job->config->timeout_ms };
	int rc = notice_to_json_with(job->notice, &extra, &json, e);
	str_add(&json, "\n");
	command.input = str_text(&json);
	command.input_len = json.len;
	if (rc == 0)
		rc = find_user(&command, job->config->command_user, e);
	if (rc == 0)
		rc = child_run(&command, r, e);
	str_finish(&json);
	return rc;
}

enum delivery channel_command(const struct channel_job *job, char why[CHANNEL_WHY_CAP])
{
	struct err e = { 0 };
	struct child_result r = { 0 };
	char **argv = NULL;
	size_t n = 0;
	int rc = words_split(job->config->command, &argv, &n, &e);
	if (rc == 0 && n == 0)
		rc = err_set(&e, ERR_USAGE, "command is empty");
	if (rc == 0)
		rc = run(job, argv, &r, &e);
	if (rc)
		text_copy(why, CHANNEL_WHY_CAP, e.text);
	else if (r.status != 0)
		child_result_text(why, CHANNEL_WHY_CAP, argv[0], &r);
	else
		text_copy(why, CHANNEL_WHY_CAP, argv[0]);
	free(argv);
	return rc == 0 && r.status == 0 ? DELIVERY_DONE : DELIVERY_FAILED;
}
