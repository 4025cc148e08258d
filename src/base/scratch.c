/* Makes the directory, and starts the helper that removes it. */
#include "base/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/helper.h"

/* How long the removal is waited for. */
enum { REMOVE_MS = 10000 };

/* A helper usually ends with its owner; this one begins its work then. */
static void outlive(void *context, struct helper_place *place)
{
	(void)context;
	(void)place;
	prctl(PR_SET_PDEATHSIG, 0);
}

static void answer_nothing(void *context, const struct str *request, struct str *reply)
{
	(void)context;
	(void)request;
	(void)reply;
}

/* Runs in the helper: its owner has ended, or wants it. */
static void remove_all(void *context)
{
	const char *path = context;
	DIR *directory = opendir(path);
	for (struct dirent *file; directory && (file = readdir(directory));)
		unlinkat(dirfd(directory), file->d_name, 0);
	if (directory)
		closedir(directory);
	rmdir(path);
}

int scratch_open(struct scratch *s, const char *parent, struct err *e)
{
	const struct helper_work work = { .name = "gua-scratch",
		.begin = outlive,
		.serve = answer_nothing,
		.end = remove_all,
		.context = s->path };
	int len = snprintf(s->path, sizeof(s->path), "%s/gua-XXXXXX", parent);
	s->keeper = NULL;
	if (len < 0 || (size_t)len >= sizeof(s->path) || !mkdtemp(s->path))
		return err_set(e, ERR_WORLD, "cannot make a directory in %s: %s", parent,
			strerror(errno));
	int rc = helper_new(&s->keeper, &work, e);
	if (rc)
		rmdir(s->path);
	return rc;
}

void scratch_close(struct scratch *s)
{
	if (s->keeper)
		helper_free(s->keeper, REMOVE_MS);
	s->keeper = NULL;
}
