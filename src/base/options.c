/* Parses options with getopt_long, driven by a table, and prints the table as help. */
#include "base/options.h"

#include <getopt.h>

#include "base/nearest.h"

enum { FIRST_LONG = 1000, HELP_COLUMN = 28, TEXT_WIDTH = 80 };

int options_choice(const char *choices, const char *word)
{
	size_t len = strlen(word);
	for (int i = 0; choices; i++) {
		size_t n = strcspn(choices, "|");
		if (n == len && memcmp(choices, word, len) == 0)
			return i;
		choices = choices[n] ? choices + n + 1 : NULL;
	}
	return -1;
}

/* A limit as the user would write it on the command line. */
static struct brief limit_text(const struct option_row *row, double limit)
{
	if (row->kind == OPTION_DURATION)
		return duration_option((int64_t)limit);
	return str_brief(
		"%.10g%s", limit, limit > 0 && row->kind == OPTION_SIZE ? " bytes" : "");
}

static int check_range(
	const struct option_row *row, const struct written *as, double value, struct err *e)
{
	struct brief least = limit_text(row, row->min);
	if (value >= row->min && (row->max <= 0 || value <= row->max))
		return 0;
	if (row->max > 0)
		return err_set(e, ERR_USAGE, "%s %s is out of range: %s to %s", as->name,
			as->text, least.text, limit_text(row, row->max).text);
	return err_set(e, ERR_USAGE, "%s %s is out of range: at least %s", as->name, as->text,
		least.text);
}

static int set_number(
	const struct option_row *row, const struct written *as, void *value, struct err *e)
{
	const char *text = as->text;
	char *end = NULL;
	errno = 0;
	if (row->kind == OPTION_COUNT) {
		long long n = strtoll(text, &end, 10);
		bool plain = text[0] == '-' || (text[0] >= '0' && text[0] <= '9');
		if (!plain || *end || end == text || errno)
			return err_set(e, ERR_USAGE, "%s takes a whole number, not '%s'",
				as->name, text);
		*(int64_t *)value = n;
		return check_range(row, as, (double)n, e);
	}
	double x = strtod(text, &end);
	bool plain = text[strspn(text, "0123456789.-")] == '\0';
	if (!plain || *end || end == text || errno)
		return err_set(e, ERR_USAGE, "%s takes a number, not '%s'", as->name, text);
	*(double *)value = x;
	return check_range(row, as, x, e);
}

static int set_text(const struct option_row *row, const struct written *as, const char **value,
	struct err *e)
{
	bool file = strcmp(row->arg, "PATH") == 0 || strcmp(row->arg, "FILE") == 0;
	if (file && !*as->text)
		return err_set(
			e, ERR_USAGE, "%s needs a path, and this one is empty", as->name);
	*value = as->text;
	return 0;
}

int options_set_one(
	const struct option_row *row, const struct written *as, void *values, struct err *e)
{
	void *value = (char *)values + row->offset;
	const char *text = as->text;
	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)value = true;
		return 0;
	case OPTION_TEXT:
		return set_text(row, as, value, e);
	case OPTION_MAYBE:
	case OPTION_MAYBE_NEXT:
		*(const char **)value = text ? text : "";
		return 0;
	case OPTION_LIST: {
		struct text_list *list = value;
		if (list->n == TEXT_LIST_MAX)
			return err_set(e, ERR_USAGE, "%s was given more than %d times",
				as->name, TEXT_LIST_MAX);
		list->items[list->n++] = text;
		return 0;
	}
	case OPTION_TEXTS: {
		struct texts *texts = value;
		if (!array_one_more(&texts->items, texts->n))
			return err_memory(e);
		texts->items[texts->n++] = text;
		return 0;
	}
	case OPTION_CHOICE:
		if (options_choice(row->choices, text) < 0)
			return err_set(e, ERR_USAGE,
				strchr(row->choices, '|') ? "%s takes one of %s, not '%s'"
							  : "%s must be %s, not '%s'",
				as->name, row->choices, text);
		*(const char **)value = text;
		return 0;
	case OPTION_DURATION:
	case OPTION_SIZE: {
		int rc = row->kind == OPTION_SIZE ? size_parse(text, value, e)
						  : duration_parse(text, value, e);
		if (rc)
			return err_prefix(e, "%s", as->name);
		return check_range(row, as, (double)*(int64_t *)value, e);
	}
	case OPTION_COUNT:
	case OPTION_REAL:
		return set_number(row, as, value, e);
	}
	return 0;
}

void options_texts_finish(struct texts *t)
{
	free(t->items);
	*t = (struct texts){ 0 };
}

static int value_need(enum option_kind kind)
{
	if (kind == OPTION_MAYBE || kind == OPTION_MAYBE_NEXT)
		return optional_argument;
	return kind == OPTION_FLAG ? no_argument : required_argument;
}

/* getopt's own structures, made from the table; -h/--help is added last. */
static size_t make_getopt(const struct option_row *table, bool stop_at_operand,
	struct option *longs, char *shorts)
{
	size_t n = 0;
	if (stop_at_operand)
		*shorts++ = '+'; /* as in POSIX: no reordering */
	*shorts++ = ':';	 /* ':' for a missing value instead of a message on stderr */
	for (; n < OPTIONS_MAX - 2 && table[n].name; n++) {
		int has = value_need(table[n].kind);
		longs[n] = (struct option){ table[n].name, has, NULL, FIRST_LONG + (int)n };
		if (table[n].letter) {
			*shorts++ = table[n].letter;
			for (int colons = has; colons > 0; colons--)
				*shorts++ = ':';
		}
	}
	*shorts++ = 'h';
	*shorts = '\0';
	longs[n] = (struct option){ "help", no_argument, NULL, 'h' };
	longs[n + 1] = (struct option){ 0 };
	return n;
}

/* Returns the option whose name is nearest to what the user wrote; NULL: none is near. */
static const char *nearest_option(const struct option_row *table, const char *asked)
{
	if (strncmp(asked, "colour", 6) == 0)
		asked = "color";
	struct nearest like = nearest_to(asked, strcspn(asked, "="));
	for (; table->name; table++)
		if (!table->hidden)
			nearest_try(&like, table->name);
	return 2 * like.distance <= like.len ? like.name : NULL;
}

static int unknown_option(const struct option_row *table, int c, char **argv, struct err *e)
{
	const char *word = optind > 0 ? argv[optind - 1] : "";
	bool is_long = strncmp(word, "--", 2) == 0;
	if (c == ':' && is_long)
		return err_set(e, ERR_USAGE, "%s needs a value", word);
	if (c == ':')
		return err_set(e, ERR_USAGE, "-%c needs a value", optopt);
	if (is_long && optopt)
		return err_set(e, ERR_USAGE, "%s takes no value", word);
	const char *like = is_long ? nearest_option(table, word + 2) : NULL;
	if (like)
		return err_set(
			e, ERR_USAGE, "unknown option %s; did you mean --%s?", word, like);
	if (is_long)
		return err_set(e, ERR_USAGE, "unknown option %s", word);
	return err_set(e, ERR_USAGE, "unknown option -%c", optopt);
}

static const struct option_row *find_row(const struct option_row *table, size_t n, int c)
{
	if (c >= FIRST_LONG)
		return &table[c - FIRST_LONG];
	for (size_t i = 0; i < n; i++)
		if (table[i].letter == c)
			return &table[i];
	return NULL;
}

int options_parse(
	struct command_line *line, const struct option_row *table, void *values, struct err *e)
{
	struct option longs[OPTIONS_MAX];
	char shorts[4 * OPTIONS_MAX];
	size_t n = make_getopt(table, line->stop_at_operand, longs, shorts);
	line->help = false;
	for (const struct option_row *row = table; row->name; row++)
		if (row->initial && !row->key)
			options_set_one(row, &(struct written){ row->name, row->initial },
				values, NULL);
	optind = 0; /* glibc: start again, and forget a half-read cluster */
	opterr = 0;
	for (;;) {
		int c = getopt_long(line->argc, line->argv, shorts, longs, NULL);
		if (c == -1)
			break;
		if (c == 'h') {
			line->help = true;
			return 0;
		}
		const struct option_row *row =
			c == '?' || c == ':' ? NULL : find_row(table, n, c);
		if (!row)
			return unknown_option(table, c, line->argv, e);
		if (row->instead)
			return err_set(e, ERR_USAGE, "there is no --%s; write %s", row->name,
				row->instead);
		bool takes_next = row->kind == OPTION_MAYBE_NEXT && !optarg &&
				  optind < line->argc && line->argv[optind][0] != '-';
		struct brief name = str_brief("--%s", row->name);
		const struct written as = { name.text,
			takes_next ? line->argv[optind++] : optarg };
		int rc = options_set_one(row, &as, row->key ? line->config : values, e);
		if (rc)
			return rc;
		if (line->given)
			line->given[row - table] = true;
	}
	line->first_operand = optind;
	return 0;
}

/* Appends `text` broken at spaces, the first line at column `at`, the others indented. */
static void add_wrapped(struct str *out, const char *text, size_t at)
{
	size_t column = at;
	while (*text) {
		size_t word = strcspn(text, " ");
		bool first = column == at;
		if (!first && column + 1 + word > TEXT_WIDTH) {
			str_addf(out, "\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		} else if (!first) {
			str_add(out, " ");
			column++;
		}
		str_add_bytes(out, text, word);
		column += word;
		text += word + (text[word] == ' ');
	}
	str_add(out, "\n");
}

void options_describe(const struct option_row *table, struct str *out)
{
	for (; table->name; table++) {
		if (table->hidden)
			continue;
		size_t start = out->len;
		if (table->letter)
			str_addf(out, "  -%c, --%s", table->letter, table->name);
		else
			str_addf(out, "      --%s", table->name);
		if (table->arg && value_need(table->kind) == optional_argument)
			str_addf(out, "[=%s]", table->arg);
		else if (table->arg)
			str_addf(out, " %s", table->arg);
		size_t width = out->len - start;
		if (width + 2 > HELP_COLUMN) {
			str_addf(out, "\n%*s", HELP_COLUMN, "");
		} else {
			str_addf(out, "%*s", (int)(HELP_COLUMN - width), "");
		}
		struct brief initial = str_brief(" (default %s)", table->initial);
		struct str help = { 0 };
		str_addf(&help, "%s%s", table->help, table->initial ? initial.text : "");
		add_wrapped(out, str_text(&help), HELP_COLUMN);
		str_finish(&help);
	}
	str_addf(out, "  -h, --help%*sthis text\n", HELP_COLUMN - 12, "");
}

bool options_list_word(const char **at, char word[TEXT_LIST_WORD_CAP])
{
	while (**at == ',')
		++*at;
	size_t len = strcspn(*at, ",");
	if (len == 0)
		return false;
	size_t kept = len < TEXT_LIST_WORD_CAP ? len : TEXT_LIST_WORD_CAP - 1;
	memcpy(word, *at, kept);
	word[kept] = '\0';
	*at += len;
	return true;
}

bool options_list_takes(const struct text_list *list,
	bool (*match)(const char *word, const void *what), const void *what)
{
	char word[TEXT_LIST_WORD_CAP];
	for (size_t i = 0; i < list->n; i++)
		for (const char *at = list->items[i]; options_list_word(&at, word);)
			if (match ? match(word, what) : what && strcmp(word, what) == 0)
				return true;
	return list->n == 0;
}

int options_list_check(const char *option, const struct text_list *list, struct err *e)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i][strspn(list->items[i], ",")] == '\0')
			return err_set(e, ERR_USAGE, "--%s '%s' names nothing", option,
				list->items[i]);
	return 0;
}
