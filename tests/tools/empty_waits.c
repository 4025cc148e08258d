/* Preloaded into a program (LD_PRELOAD): writes a line to the file EMPTY_WAITS each time that
 * libcurl waits although no connection is open for which it could wait. All that it looks at
 * then is the pipe by which threads wake it.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	int (*real)(struct pollfd *, nfds_t, int) =
		(int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
	const char *path = getenv("EMPTY_WAITS");
	int rc = real(fds, n, timeout_ms);
	FILE *out = path && rc == 0 && n == 1 && timeout_ms > 0 ? fopen(path, "a") : NULL;
	if (out) {
		fprintf(out, "%d ms\n", timeout_ms);
		fclose(out);
	}
	return rc;
}
