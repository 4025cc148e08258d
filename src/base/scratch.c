/* Starts the helper that makes the directory and later removes it. */
#include "base/scratch.h"

#include <sys/prctl.h>

#include "base/helper.h"

/* How long to wait for the helper's reply, and for the removal. */
enum { ANSWER_MS = 30000, REMOVE_MS = 10000 };

/* Other helpers are killed when their owner ends; this one does its work then. */
static void outlive(void *context, struct helper_place *place)
{
	(void)context;
	(void)place;
	prctl(PR_SET_PDEATHSIG, 0);
}

/* Runs in the helper, which now outlives its owner: the directory is removed whatever happens
 * to the owner. Replies with the path, or with an errno as a number. */
static void make_directory(void *context, const struct str *request, struct str *reply)
{
	struct scratch *s = context;
	int len = snprintf(s->path, sizeof(s->path), "%s/gua-XXXXXX", str_text(request));
	bool fits = len > 0 && (size_t)len < sizeof(s->path);
	if (!fits || !mkdtemp(s->path)) {
		str_addf(reply, "%d", fits ? errno : ENAMETOOLONG);
		*s->path = '\0';
		return;
	}
	str_add(reply, s->path);
}

/* Runs in the helper when its owner has ended or asks it to end. */
static void remove_all(void *context)
{
	const struct scratch *s = context;
	DIR *directory = *s->path ? opendir(s->path) : NULL;
	for (struct dirent *file; directory && (file = readdir(directory));)
		unlinkat(dirfd(directory), file->d_name, 0);
	if (!directory)
		return;
	closedir(directory);
	rmdir(s->path);
}

/* Asks the helper for the directory. */
static int ask(struct scratch *s, const char *parent, struct err *e)
{
	const struct str *reply;
	int rc = helper_send(s->keeper, parent, strlen(parent), e);
	if (rc == 0)
		rc = helper_receive(s->keeper, ANSWER_MS, &reply, e);
	if (rc)
		return rc;
	const char *path = str_text(reply);
	if (strchr(path, '/'))
		str_copy(s->path, sizeof(s->path), path);
	else
		rc = err_set(e, ERR_WORLD, "cannot make a directory in %s: %s", parent,
			strerror(atoi(path)));
	return rc;
}

int scratch_open(struct scratch *s, const char *parent, struct err *e)
{
	const struct helper_work work = { .name = "gua-scratch",
		.begin = outlive,
		.serve = make_directory,
		.end = remove_all,
		.context = s };
	*s = (struct scratch){ .path = "" };
	int rc = helper_new(&s->keeper, &work, e);
	if (rc == 0)
		rc = ask(s, parent, e);
	if (rc)
		scratch_close(s);
	return rc;
}

void scratch_close(struct scratch *s)
{
	if (s->keeper)
		helper_free(s->keeper, REMOVE_MS);
	s->keeper = NULL;
}
