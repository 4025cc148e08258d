/* Copies what reports about a window need, and sends the copy. */
#include "cmd/export_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/extract.h"

static int send_file(int fd, struct err *e)
{
	char block[65536];
	ssize_t n;
	while ((n = read(fd, block, sizeof(block))) > 0)
		if (fwrite(block, 1, (size_t)n, stdout) != (size_t)n)
			break;
	if (n < 0)
		return err_set(
			e, ERR_WORLD, "cannot read the temporary file: %s", strerror(errno));
	if (n > 0 || fflush(stdout) != 0)
		return err_set(e, ERR_WORLD, "cannot write the output: %s", strerror(errno));
	return 0;
}

int export_store(const struct store_list *stores, struct export_window window, struct err *e)
{
	const char *directory = secure_getenv("TMPDIR");
	int fd = -1;
	if (stores->n != 1)
		return err_set(e, ERR_USAGE,
			"--format store is about one store: give one with --db PATH");
	if (isatty(STDOUT_FILENO))
		return err_set(
			e, ERR_USAGE, "a store is not a text: redirect the output to a file");
	const struct extract_wish wish = { .path = stores->paths[0],
		.since_ms = window.since_ms,
		.until_ms = window.until_ms,
		.directory = directory && *directory == '/' ? directory : "/tmp" };
	int rc = store_extract(&fd, &wish, e);
	if (rc == 0) {
		rc = send_file(fd, e);
		close(fd);
	}
	return rc;
}
