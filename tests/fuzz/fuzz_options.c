/* A command line, its words separated by newlines. */
#include "fuzz.h"

#include "base/options.h"

enum { MAX_WORDS = 64 };

struct values {
	bool flag;
	const char *text, *choice;
	struct text_list list;
	int64_t count, wait_ms;
	double real;
};

static const struct option_row table[] = {
	{ OPTION_FLAG, 'v', "verbose", .help = "say more",
		.offset = offsetof(struct values, flag) },
	{ OPTION_TEXT, 0, "db", "PATH", "the store", .offset = offsetof(struct values, text) },
	{ OPTION_LIST, 'a', "add", "X", "one more", .offset = offsetof(struct values, list) },
	{ OPTION_COUNT, 'n', "count", "N", "how many", .offset = offsetof(struct values, count),
		.min = 1, .max = 100 },
	{ OPTION_DURATION, 0, "wait", "D", "how long",
		.offset = offsetof(struct values, wait_ms), .min = 1000, .max = 8000 },
	{ OPTION_REAL, 0, "cost", "X", "price", .offset = offsetof(struct values, real) },
	{ OPTION_CHOICE, 0, "format", "F", "form", .choices = "text|json",
		.offset = offsetof(struct values, choice) },
	{ 0 },
};

static void check_values(const struct values *v)
{
	CHECK(v->list.n <= TEXT_LIST_MAX);
	CHECK(v->count >= 1 && v->count <= 100);
	CHECK(v->wait_ms >= 1000 && v->wait_ms <= 8000);
	CHECK(v->real >= 0);
	CHECK(strcmp(v->choice, "text") == 0 || strcmp(v->choice, "json") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), name[] = "gua", *argv[MAX_WORDS + 1] = { name };
	int argc = 1;
	for (char *word = text; word && argc < MAX_WORDS; argc++) {
		argv[argc] = word;
		word = strchr(word, '\n');
		if (word)
			*word++ = '\0';
	}
	struct values v = { .choice = "text", .count = 1, .wait_ms = 1000 };
	struct err e = { 0 };
	struct command_line line = { .argc = argc, .argv = argv };
	if (options_parse(&line, table, &v, &e) != 0) {
		CHECK(e.text[0]);
		check_safe(e.text);
	} else {
		CHECK(line.help || (line.first_operand >= 1 && line.first_operand <= argc));
		check_values(&v);
	}
	free(text);
	return 0;
}
