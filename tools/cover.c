/* Notes which edges of the program's code a test enters: for tools/cover, which compiles all of
 * src/ with -fsanitize-coverage=trace-pc-guard,pc-table and links this library. Each program
 * maps a file with one byte per edge (COVER_FOLDER/TEST.PROGRAM), so that a process which is
 * killed loses nothing.
 *
 * The number of the test is in the timer slack of its processes, as nanoseconds above
 * COVER_FIRST: unlike the environment, it survives each fork and exec. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COVER_FIRST = 100000, MOST_EDGES = 1 << 22, PAGE = 4096 };

static uint8_t *edges;
static uint32_t next_edge = PAGE;

void __sanitizer_cov_trace_pc_guard(uint32_t *guard);
void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop);
void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop);

void __sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
	if (*guard)
		edges[*guard] = 1;
}

/* The name of the library or the program that the address is in. A program is found by its
 * file: it may have been started under any name. */
static const char *module_of(const void *address, Dl_info *info)
{
	static char program[4096];
	ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
	program[length < 0 ? 0 : length] = '\0';
	const char *path = dladdr(address, info) && strstr(info->dli_fname, ".so")
				   ? info->dli_fname
				   : program;
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* A test may forbid its programs to write files, as on a full disk. */
static struct rlimit without_limit(void)
{
	struct rlimit before;
	getrlimit(RLIMIT_FSIZE, &before);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ before.rlim_max, before.rlim_max });
	return before;
}

static int open_shared(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0666);
	if (fd >= 0)
		fchmod(fd, 0666);
	return fd;
}

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop)
{
	int test = prctl(PR_GET_TIMERSLACK) - COVER_FIRST;
	if (start == stop || *start || test < 0)
		return;
	if (!edges) {
		edges = mmap(NULL, MOST_EDGES, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (edges == MAP_FAILED) {
			edges = NULL;
			return;
		}
	}
	char path[512];
	Dl_info info;
	snprintf(path, sizeof path, "%s/%d.%s", COVER_FOLDER, test, module_of(start, &info));
	size_t n = (size_t)(stop - start);
	size_t size = (n + PAGE - 1) / PAGE * PAGE;
	struct rlimit limit = without_limit();
	int fd = open_shared(path, 0);
	if (fd < 0 || next_edge + size > MOST_EDGES || ftruncate(fd, (off_t)size) ||
		mmap(edges + next_edge, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			fd, 0) == MAP_FAILED) {
		dprintf(2, "tools/cover: %s: not recorded\n", path);
		n = 0;
	}
	setrlimit(RLIMIT_FSIZE, &limit);
	if (fd >= 0)
		close(fd);
	for (size_t i = 0; i < n; i++)
		start[i] = next_edge + (uint32_t)i;
	next_edge += (uint32_t)(n ? size : 0);
}

/* Writes once for each program where its edges are: pairs of an address in the file and flags.
 */
void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop)
{
	char path[512];
	Dl_info info;
	if (prctl(PR_GET_TIMERSLACK) < COVER_FIRST)
		return;
	snprintf(path, sizeof path, "%s/%s.places", COVER_FOLDER, module_of(start, &info));
	int fd = open_shared(path, O_EXCL);
	if (fd < 0)
		return;
	struct rlimit limit = without_limit();
	for (; start < stop; start += 2) {
		uint64_t pair[2] = { start[0] - (uintptr_t)info.dli_fbase, start[1] };
		if (write(fd, pair, sizeof pair) != sizeof pair)
			break;
	}
	setrlimit(RLIMIT_FSIZE, &limit);
	close(fd);
}
