/* Leaves a text that the user reads at the next login: DIRECTORY/USER. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "policy/channel.h"

static int path_of(char *dst, size_t cap, const char *directory, const char *user)
{
	if (!notice_is_plain_user(user))
		return -1;
	int n = snprintf(dst, cap, "%s/%s", directory, user);
	return n > 0 && (size_t)n < cap ? 0 : -1;
}

enum delivery channel_login(const struct channel_job *job, char why[CHANNEL_WHY_CAP])
{
	char path[512];
	struct err e = { 0 };
	struct str text = { 0 };
	struct stat st;
	if (path_of(path, sizeof(path), job->config->login_directory, job->notice->user) != 0) {
		snprintf(why, CHANNEL_WHY_CAP, "%s is not a name that a file can have",
			job->notice->user);
		return DELIVERY_NOBODY;
	}
	str_addf(&text, "%s\n%s", str_text(&job->text->subject), str_text(&job->text->body));
	/* A link would be followed, and a pipe waited for. */
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		unlink(path);
	int rc = file_replace(path, str_text(&text), text.len, &e);
	/* The directory may be shared by members of a group; the file is for its user. */
	if (rc == 0 && chmod(path, 0644) != 0)
		rc = err_set(
			&e, ERR_WORLD, "cannot open %s to its user: %s", path, strerror(errno));
	str_finish(&text);
	text_copy(why, CHANNEL_WHY_CAP, rc ? e.text : path);
	return rc ? DELIVERY_FAILED : DELIVERY_DONE;
}

int channel_login_clear(const char *directory, const char *user, struct err *e)
{
	char path[512];
	if (path_of(path, sizeof(path), directory, user) != 0)
		return 0;
	if (unlink(path) != 0 && errno != ENOENT)
		return err_set(e, ERR_WORLD, "cannot remove %s: %s", path, strerror(errno));
	return 0;
}
