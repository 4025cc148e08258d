/* Fetches the stores of hosts by ssh into a temporary directory. */
#include "cmd/fleet_ssh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cmd/fleet_engine.h"

enum { LIST_MAX_BYTES = 1 << 20 };

static int read_list(struct remotes *r, const char *path, struct err *e)
{
	struct file_content f = { 0 };
	int rc = strcmp(path, "-") == 0
			 ? file_read_all("/dev/stdin", LIST_MAX_BYTES, &f.data, &f.len, e)
			 : file_read_regular(path, LIST_MAX_BYTES, &f, e);
	if (rc == 0)
		rc = remotes_read(r, f.data, e);
	free(f.data);
	return rc ? err_prefix(e, "--ssh") : 0;
}

static void show_progress(size_t n_done, size_t n_all)
{
	fprintf(stderr, "\r\033[Kasking the hosts: %zu of %zu are done", n_done, n_all);
	fflush(stderr);
}

static int take_stores(struct fleet_ssh *s, struct store_list *stores, struct err *e)
{
	struct asked_failure *failed = calloc(s->remotes.n + 1, sizeof(*failed));
	int rc = failed ? 0 : err_memory(e);
	s->asked.failed = failed;
	s->asked.n_asked = s->remotes.n;
	s->asked.directory = s->scratch.path;
	for (size_t i = 0; i < s->remotes.n && rc == 0; i++) {
		const struct remote *host = &s->remotes.items[i];
		if (*host->why)
			log_notice("%s: %s", host->name, host->why);
		if (host->state == REMOTE_FETCHED)
			rc = store_list_add(stores, host->path, e);
		if (host->state != REMOTE_FAILED)
			s->asked.n_answered++;
		else
			failed[s->asked.n_failed++] =
				(struct asked_failure){ host->name, host->why };
	}
	if (rc == 0 && s->asked.n_answered == 0)
		rc = err_set(e, ERR_WORLD, "no host of the list can be reported about");
	return rc;
}

int fleet_ssh_fetch(struct fleet_ssh *s, const struct report_hosts *hosts,
	struct store_list *stores, struct err *e)
{
	const char *directory = secure_getenv("TMPDIR");
	int rc = read_list(&s->remotes, hosts->file, e);
	if (rc == 0)
		rc = scratch_open(
			&s->scratch, directory && *directory == '/' ? directory : "/tmp", e);
	const struct remotes_wish wish = { .since_ms = hosts->since_ms,
		.until_ms = hosts->until_ms,
		.timeout_ms = hosts->timeout_ms,
		.directory = s->scratch.path,
		.env = (const char *const *)environ,
		.progress = isatty(STDERR_FILENO) ? show_progress : NULL };
	if (rc == 0)
		rc = remotes_fetch(&s->remotes, &wish, e);
	fleet_engine_quiet();
	return rc ? rc : take_stores(s, stores, e);
}

void fleet_ssh_finish(struct fleet_ssh *s)
{
	scratch_close(&s->scratch);
	free((void *)(uintptr_t)s->asked.failed);
	remotes_finish(&s->remotes);
}
