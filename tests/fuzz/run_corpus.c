/* Runs a fuzz target over every file of its corpus and over a fixed number of mutations of
 * them: the same bytes in every run, so that it is a test and not a lottery.
 *
 * usage: fuzz_NAME MUTATIONS CORPUS... */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

enum { MAX_SIZE = 256 * 1024, MAX_STEPS = 8, MAX_INPUTS = 256 };

struct input {
	uint8_t *bytes; /* heap */
	size_t size;
};

/* What is run now, for the report when it dies. */
static struct input current;

static void report(void)
{
	static const char name[] = "fuzz-crash";
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n = fd < 0 ? -1 : write(fd, current.bytes, current.size);
	fprintf(stderr, "%zd bytes that it died of are in %s: add them to the corpus\n", n,
		name);
}

static void on_signal(int number)
{
	report();
	signal(number, SIG_DFL);
	raise(number);
}

/* There only in a build with a sanitizer. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* xorshift64: the same sequence everywhere. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t below(uint64_t *state, size_t n)
{
	return n ? (size_t)(next_random(state) % n) : 0;
}

/* Runs a copy of exactly its size, so that a sanitizer sees a step beyond it. */
static void run(const uint8_t *bytes, size_t size)
{
	current.bytes = malloc(size ? size : 1);
	CHECK(current.bytes);
	current.size = size;
	memcpy(current.bytes, bytes, size);
	LLVMFuzzerTestOneInput(current.bytes, size);
	free(current.bytes);
	current.bytes = NULL;
}

/* One change in place; `bytes` has room for MAX_SIZE. Returns the new size. */
static size_t mutate(uint8_t *bytes, size_t size, uint64_t *state)
{
	static const uint8_t odd[] = { 0, '\n', ' ', ')', '(', ':', '/', '\\', '-', '=', '9',
		0x1b, 0x7f, 0x80, 0xc3, 0xff };
	size_t at = below(state, size), n = below(state, size - at + (size == at));
	switch (below(state, 6)) {
	case 0: /* flip a bit */
		if (size)
			bytes[at] ^= (uint8_t)(1 << below(state, 8));
		return size;
	case 1: /* a byte that means something to some parser */
		if (size)
			bytes[at] = odd[below(state, sizeof(odd))];
		return size;
	case 2: /* cut the end */
		return at;
	case 3: /* say a part twice */
		if (size + n > MAX_SIZE)
			return size;
		memmove(bytes + at + n, bytes + at, size - at);
		return size + n;
	case 4: /* leave a part out */
		memmove(bytes + at, bytes + at + n, size - at - n);
		return size - n;
	default: /* put a byte in */
		if (size + 1 > MAX_SIZE)
			return size;
		memmove(bytes + at + 1, bytes + at, size - at);
		bytes[at] = odd[below(state, sizeof(odd))];
		return size + 1;
	}
}

static int is_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

struct corpus {
	struct input inputs[MAX_INPUTS];
	size_t n;
};

static struct input read_input(const char *directory, const char *name)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	struct input in = { malloc(MAX_SIZE), 0 };
	FILE *f = fopen(path, "rb");
	CHECK(f && in.bytes);
	in.size = fread(in.bytes, 1, MAX_SIZE, f);
	fclose(f);
	return in;
}

static void read_corpus(struct corpus *corpus, const char *directory)
{
	struct dirent **names = NULL;
	int n = scandir(directory, &names, is_file, alphasort);
	CHECK(n > 0);
	for (int i = 0; i < n; i++) {
		CHECK(corpus->n < MAX_INPUTS);
		corpus->inputs[corpus->n++] = read_input(directory, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

static void run_mutations(const struct corpus *corpus, long n)
{
	uint8_t *bytes = malloc(MAX_SIZE);
	uint64_t state = 0x9E3779B97F4A7C15;
	CHECK(bytes);
	for (; n > 0; n--) {
		const struct input *seed = &corpus->inputs[below(&state, corpus->n)];
		size_t size = seed->size;
		memcpy(bytes, seed->bytes, size);
		for (size_t steps = 1 + below(&state, MAX_STEPS); steps > 0; steps--)
			size = mutate(bytes, size, &state);
		run(bytes, size);
	}
	free(bytes);
}

int main(int argc, char **argv)
{
	static struct corpus corpus;
	CHECK(argc >= 3);
	for (int i = 2; i < argc; i++)
		read_corpus(&corpus, argv[i]);
	signal(SIGABRT, on_signal);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(report);
	else
		signal(SIGSEGV, on_signal);
	run((const uint8_t *)"", 0);
	for (size_t i = 0; i < corpus.n; i++)
		run(corpus.inputs[i].bytes, corpus.inputs[i].size);
	run_mutations(&corpus, strtol(argv[1], NULL, 10));
	for (size_t i = 0; i < corpus.n; i++)
		free(corpus.inputs[i].bytes);
	return 0;
}
