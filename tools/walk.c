/* A library of the programs of build-walk, which the compiler lets call this at the entry of
 * each function: writes down the first entry of each, in order, in a file that all processes of
 * a walk map. tools/walk makes that file before and reads it after. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Functions that a process may enter, a power of two; entries that the file holds; programs. */
#define MOST_FUNCTIONS 16384
#define MOST_ENTRIES 131072
#define MOST_PROGRAMS 16

struct entry {
	char program[16];
	uint64_t offset;  /* of the function in the program */
	uint64_t process; /* its pid */
};

struct walk {
	struct entry begin[MOST_PROGRAMS]; /* the walk begins with one of these */
	_Atomic uint64_t has_begun, n;	   /* n: entries, also those that found no room */
	struct entry entries[MOST_ENTRIES];
};

static struct walk *walk;
static uintptr_t program_at;
static char program[16];
static _Atomic uintptr_t seen[MOST_FUNCTIONS];

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

/* The first object is the program itself. */
static int note_program(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	program_at = info->dlpi_addr;
	return 1;
}

__attribute__((constructor)) static void start(void)
{
	int fd = open(WALK_FILE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	dl_iterate_phdr(note_program, NULL);
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	const char *name = strrchr(path, '/');
	strncpy(program, name ? name + 1 : path, sizeof(program) - 1);
	void *at = mmap(NULL, sizeof(*walk), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		walk = at;
}

/* True once for each function. */
static bool is_first(uintptr_t function)
{
	size_t at = (function >> 4) * 0x9e3779b1U;
	for (size_t i = 0; i < MOST_FUNCTIONS; i++) {
		uintptr_t there = 0;
		_Atomic uintptr_t *slot = &seen[(at + i) % MOST_FUNCTIONS];
		if (atomic_compare_exchange_strong(slot, &there, function))
			return true;
		if (there == function)
			return false;
	}
	return false;
}

static bool begins(uint64_t offset)
{
	for (size_t i = 0; i < MOST_PROGRAMS; i++)
		if (walk->begin[i].offset == offset &&
			strncmp(walk->begin[i].program, program, sizeof(program)) == 0)
			return true;
	return false;
}

void __cyg_profile_func_enter(void *function, void *site)
{
	(void)site;
	if (!walk)
		return;
	uint64_t offset = (uintptr_t)function - program_at;
	if (!atomic_load(&walk->has_begun)) {
		if (!begins(offset))
			return;
		atomic_store(&walk->has_begun, 1);
	}
	if (!is_first((uintptr_t)function))
		return;
	uint64_t i = atomic_fetch_add(&walk->n, 1);
	if (i >= MOST_ENTRIES)
		return;
	walk->entries[i].offset = offset;
	walk->entries[i].process = (uint64_t)getpid();
	memcpy(walk->entries[i].program, program, sizeof(program));
}

void __cyg_profile_func_exit(void *function, void *site)
{
	(void)function;
	(void)site;
}
