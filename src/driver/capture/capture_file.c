/* Reads a capture (gua-capture(5)): its lines, checked, become answers by call and subject. */
#include "driver/capture/capture_file.h"

#include "driver/capture/capture.h"
#include "driver/capture/capture_layout.h"
#include "driver/nvml/nvml_abi.h"

/* Reads the lines of a capture. Lines that begin with an unknown word, and unknown calls, come
 * from a newer gua and are skipped. */

enum { ROUNDS_MAX = 3600, ROWS_MAX = 16384 };
#define MOMENT_MAX (INT64_C(1) << 61)

struct parser {
	struct capture_file *r;
	size_t line; /* number of the line, from 1 on */
	bool head, end;
	int round;		    /* of the calls that follow; -1: none */
	struct nvml_form form;	    /* of the call before; symbol NULL: its rows are skipped */
	struct nvml_answer *answer; /* of the call before, if it may have rows; or NULL */
	struct err *e;
};

static int wrong(struct parser *p, const char *what)
{
	return err_set(p->e, ERR_WORLD, "line %zu: %s", p->line, what);
}

/* Takes the next word of a line, and ends it with a NUL; NULL: there is none. A text in
 * quotation marks is one word, without them. */
static char *next_word(char **at)
{
	const char *rest = *at;
	size_t len;
	bool quoted;
	const char *found = capture_layout_word(&rest, &len, &quoted);
	if (!found)
		return NULL;
	char *word = *at + (found - *at);
	*at += rest - *at + (*rest == ' ');
	word[len] = '\0';
	return word;
}

static bool read_integer(const char *word, int64_t min, int64_t max, int64_t *value)
{
	char *end = NULL;
	if (!word || !*word || word[strspn(word, "-0123456789")])
		return false;
	errno = 0;
	*value = strtoll(word, &end, 10);
	return end != word && !*end && errno == 0 && *value >= min && *value <= max;
}

/* Reads "-", "0" or "0/2". */
static bool read_subject(char *word, struct nvml_key *key)
{
	int64_t card = -1, instance = -1;
	key->card = key->instance = -1;
	if (!word)
		return false;
	if (strcmp(word, "-") == 0)
		return true;
	char *slash = strchr(word, '/');
	if (slash)
		*slash = '\0';
	if (!read_integer(word, 0, CAPTURE_CARDS - 1, &card) ||
		(slash && !read_integer(slash + 1, 0, CAPTURE_INSTANCES - 1, &instance)))
		return false;
	key->card = (int)card;
	key->instance = (int)instance;
	return true;
}

/* Reads "(1,2)", as many numbers as the call has. */
static bool read_args(char *word, unsigned n, struct nvml_key *key)
{
	size_t len = strlen(word);
	if (word[0] != '(' || word[len - 1] != ')')
		return false;
	word[len - 1] = '\0';
	char *rest = word + 1;
	for (unsigned i = 0; i < n; i++) {
		char *number = strsep(&rest, ",");
		int64_t value = 0;
		if (!read_integer(number, INT32_MIN, UINT32_MAX, &value))
			return false;
		key->args[i] = (int)value;
	}
	return rest == NULL;
}

/* Whether the values of a call match its form, and nothing follows them. */
static bool check_values(const struct nvml_form *form, const char *values)
{
	for (unsigned i = 0; i < nvml_calls_parts(form); i++)
		if (!capture_layout_read(form->layout, &values, NULL))
			return false;
	return values[strspn(values, " ")] == '\0';
}

/* Whether a call has the subject that its form requires: the driver, a card, an instance. */
static bool fits(const struct nvml_form *form, const struct nvml_key *key)
{
	if (form->subject == NVML_OF_DRIVER)
		return key->card < 0;
	return key->card >= 0 && (key->instance < 0 || form->subject == NVML_OF_ANY);
}

static int add_answer(struct parser *p, const struct nvml_answer *a)
{
	struct capture_file *r = p->r;
	if (!array_reserve(&r->answers, &r->cap_answers, r->n_answers + 1))
		return err_memory(p->e);
	r->answers[r->n_answers] = *a;
	p->answer = p->form.row && a->code == 0 ? &r->answers[r->n_answers] : NULL;
	r->n_answers++;
	return 0;
}

/* "SYMBOL SUBJECT [(NUMBERS)] = CODE VALUES" */
static int parse_call(struct parser *p, char *rest)
{
	struct nvml_answer a = { .round = p->round, .first_row = p->r->n_rows };
	char *word = next_word(&rest);
	p->answer = NULL;
	p->form.symbol = NULL;
	if (!word)
		return wrong(p, "the name of the call is missing");
	a.key.symbol = word;
	if (!nvml_calls_find(word, &p->form)) {
		p->form.symbol = NULL;
		return 0;
	}
	if (!read_subject(next_word(&rest), &a.key) || !fits(&p->form, &a.key))
		return wrong(p, "this is not what the call can be about");
	if (p->form.n_args) {
		word = next_word(&rest);
		if (!word || !read_args(word, p->form.n_args, &a.key))
			return wrong(p, "the numbers of the call are missing or wrong");
	}
	word = next_word(&rest);
	if (!word || strcmp(word, "=") != 0)
		return wrong(p, "the equals sign is missing");
	int64_t code = 0;
	rest += strspn(rest, " ");
	if (strncmp(rest, "no answer", 9) == 0) {
		a.code = NVML_STUCK;
		a.values = "";
		if (a.key.card >= 0)
			p->r->stuck[a.key.card] = true;
		return add_answer(p, &a);
	}
	if (!read_integer(next_word(&rest), INT32_MIN, INT32_MAX, &code))
		return wrong(p, "there is no code after the equals sign");
	a.code = (int)code;
	a.values = rest;
	if (code == 0 ? !check_values(&p->form, rest) : rest[strspn(rest, " ")] != '\0')
		return wrong(p, "these are not the values of this call");
	return add_answer(p, &a);
}

/* Whether an entry has the form of the first one. */
static bool check_row(const struct parser *p, const char *row, const char *first)
{
	const char *layout = capture_layout_of_row(p->form.row, first);
	return capture_layout_read(layout, &row, NULL) && !row[strspn(row, " ")];
}

static int parse_row(struct parser *p, const char *row)
{
	struct capture_file *r = p->r;
	struct nvml_answer *a = p->answer;
	if (!p->form.symbol)
		return 0;
	if (!a)
		return wrong(p, "the line before it is not a call that returns a list");
	if (!check_row(p, row, a->n_rows ? r->rows[a->first_row] : row))
		return wrong(p, "this is not an entry of the list of the call before it");
	if (a->n_rows >= ROWS_MAX)
		return wrong(p, "the list is too long");
	if (!array_reserve(&r->rows, &r->cap_rows, r->n_rows + 1))
		return err_memory(p->e);
	r->rows[r->n_rows++] = row;
	a->n_rows++;
	return 0;
}

static int parse_round(struct parser *p, char *rest)
{
	struct capture_file *r = p->r;
	int64_t number = 0;
	struct nvml_round round;
	const struct nvml_round *before = r->n_rounds ? &r->rounds[r->n_rounds - 1] : NULL;
	if (!read_integer(next_word(&rest), 0, ROUNDS_MAX - 1, &number) ||
		(size_t)number != r->n_rounds)
		return wrong(p, "the rounds are not numbered 0, 1, 2 ...");
	if (!read_integer(next_word(&rest), 0, MOMENT_MAX, &round.wall_us) ||
		!read_integer(next_word(&rest), 0, MOMENT_MAX, &round.boot_us) ||
		(before && round.boot_us <= before->boot_us))
		return wrong(p, "the moments of the round are missing, wrong or not in order");
	if (!array_reserve(&r->rounds, &r->cap_rounds, r->n_rounds + 1))
		return err_memory(p->e);
	r->rounds[r->n_rounds++] = round;
	p->round = (int)number;
	return 0;
}

bool capture_file_pair(const char **at, char *key, char *value)
{
	const char *rest = *at;
	size_t key_len, len;
	bool quoted;
	const char *name = capture_layout_word(&rest, &key_len, &quoted);
	const char *text = name && !quoted ? capture_layout_word(&rest, &len, &quoted) : NULL;
	if (!text)
		return false;
	snprintf(key, CAPTURE_LINE_CAP, "%.*s", (int)key_len, name);
	snprintf(value, CAPTURE_LINE_CAP, "%.*s", (int)len, text);
	*at = rest + strspn(rest, " ");
	return true;
}

static int parse_process(struct parser *p, char *rest)
{
	struct capture_file *r = p->r;
	char key[CAPTURE_LINE_CAP], value[CAPTURE_LINE_CAP];
	int64_t pid = 0;
	if (!read_integer(next_word(&rest), 1, UINT32_MAX, &pid))
		return wrong(p, "the pid is missing or wrong");
	const char *at = rest + strspn(rest, " ");
	bool gone = strcmp(at, "gone") == 0;
	while (capture_file_pair(&at, key, value))
		;
	if (*at && !gone)
		return wrong(
			p, "after the pid, 'gone' or pairs of a name and a value must follow");
	if (!array_reserve(&r->processes, &r->cap_processes, r->n_processes + 1))
		return err_memory(p->e);
	r->processes[r->n_processes++] = (struct capture_file_process){ .pid = (uint32_t)pid,
		.pairs = gone ? NULL : rest };
	return 0;
}

static int parse_place(struct parser *p, char *rest)
{
	int place = str_place(nvml_place_names, NVML_PLACES, next_word(&rest));
	if (place < NVML_PLACES)
		p->r->site.places |= 1U << place;
	return 0;
}

static int parse_module(struct parser *p, char *rest)
{
	struct nvml_site *site = &p->r->site;
	const char *word = next_word(&rest);
	if (!word)
		return wrong(p, "the version of the module is missing");
	site->has_module = strcmp(word, "none") != 0;
	if (site->has_module && strcmp(word, "unknown") != 0)
		str_copy(site->module_version, sizeof(site->module_version), word);
	return 0;
}

static int parse_node(struct parser *p, char *rest)
{
	struct nvml_site *site = &p->r->site;
	const char *name = next_word(&rest);
	int64_t error = 0;
	if (!name || !read_integer(next_word(&rest), 0, 4095, &error))
		return wrong(p, "a node has a name and a number");
	if (site->n_nodes < NVML_NODES) {
		struct nvml_node *node = &site->nodes[site->n_nodes++];
		str_copy(node->name, sizeof(node->name), name);
		node->error = (int)error;
	}
	return 0;
}

static int parse_gpu(struct parser *p, char *rest)
{
	struct capture_file *r = p->r;
	const char *pci = next_word(&rest), *power = next_word(&rest);
	const char *name = next_word(&rest), *uuid = next_word(&rest);
	if (!pci || !power || !name || !uuid)
		return wrong(p, "a card has an address, a state, a name and a UUID");
	if (r->n_gpus < PROC_CARDS_MAX) {
		struct proc_card *gpu = &r->gpus[r->n_gpus];
		str_copy(gpu->pci, sizeof(gpu->pci), pci);
		str_copy(gpu->name, sizeof(gpu->name), name);
		str_copy(gpu->uuid, sizeof(gpu->uuid), uuid);
		r->asleep[r->n_gpus++] = strcmp(power, "asleep") == 0;
	}
	return 0;
}

static int parse_library(struct parser *p, char *rest)
{
	bool quoted = rest[strspn(rest, " ")] == '"';
	const char *word = next_word(&rest);
	p->r->library = quoted && word ? word : "";
	return 0;
}

/* Reads the line that ends the rounds. */
static int parse_end(struct parser *p, char *rest)
{
	p->end = *rest == '\0';
	p->round = -1;
	return 0;
}

static const struct line_kind {
	const char *word;
	int (*parse)(struct parser *p, char *rest); /* NULL: one word follows ... */
	size_t text; /* ... and this is the offset of its pointer in struct capture_file */
} kinds[] = {
	{ "call", parse_call, 0 },
	{ "round", parse_round, 0 },
	{ "process", parse_process, 0 },
	{ "place", parse_place, 0 },
	{ "module", parse_module, 0 },
	{ "node", parse_node, 0 },
	{ "gpu", parse_gpu, 0 },
	{ "library", parse_library, 0 },
	{ "made", NULL, offsetof(struct capture_file, made) },
	{ "system", NULL, offsetof(struct capture_file, system) },
	{ "kernel", NULL, offsetof(struct capture_file, kernel) },
	{ "end", parse_end, 0 },
};

/* Whether the line can be shown as it is. */
static bool is_plain(const char *line)
{
	char safe[CAPTURE_LINE_CAP];
	size_t len = strlen(line);
	return len < CAPTURE_LINE_CAP - 1 && str_escape(safe, sizeof(safe), line, len) == len &&
	       memcmp(safe, line, len) == 0;
}

static int parse_line(struct parser *p, char *line)
{
	if (!is_plain(line))
		return wrong(p, "it is too long, or has characters that cannot be shown");
	if (!p->head) {
		static const char name[] = "gua-capture ";
		p->head = true;
		if (strcmp(line, NVML_CAPTURE_HEAD) == 0)
			return 0;
		return wrong(
			p, strncmp(line, name, strlen(name)) == 0
				   ? "the capture was made by another version of gua, whose "
				     "format this one does not know"
				   : "this is not a capture: the first line of one is "
				     "'" NVML_CAPTURE_HEAD "'");
	}
	if (p->end)
		return *line ? wrong(p, "something follows the line 'end'") : 0;
	if (strncmp(line, "  ", 2) == 0)
		return parse_row(p, line);
	p->answer = NULL;
	p->form.symbol = NULL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i].word);
		char *rest = line + len;
		if (strncmp(line, kinds[i].word, len) != 0 || (*rest != ' ' && *rest))
			continue;
		if (kinds[i].parse)
			return kinds[i].parse(p, rest);
		const char *word = next_word(&rest);
		if (!word)
			return wrong(p, "the text is missing");
		memcpy((char *)p->r + kinds[i].text, &word, sizeof(word));
		return 0;
	}
	return 0;
}

/* Reads r->text, which has `len` bytes and a NUL after them, and cuts it into lines. ERR_WORLD:
 * the sentence names the line. */
static int parse_lines(struct capture_file *r, size_t len, struct err *e)
{
	struct parser p = { .r = r, .round = -1, .e = e };
	char *rest = r->text;
	if (memchr(r->text, '\0', len))
		return err_set(e, ERR_WORLD, "it has a NUL byte, which a capture never has");
	for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
		p.line++;
		int rc = parse_line(&p, line);
		if (rc)
			return rc;
	}
	if (!p.end)
		return err_set(e, ERR_WORLD,
			"the capture was cut: it does not end with the line 'end'");
	return 0;
}

enum { FILE_MAX = 8 << 20 };

static int compare_keys(const struct nvml_key *a, const struct nvml_key *b)
{
	int by_symbol = strcmp(a->symbol, b->symbol);
	if (by_symbol)
		return by_symbol;
	const int x[] = { a->card, a->instance, a->args[0], a->args[1], a->args[2] };
	const int y[] = { b->card, b->instance, b->args[0], b->args[1], b->args[2] };
	for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

static int compare_answers(const void *a, const void *b)
{
	const struct nvml_answer *x = a, *y = b;
	int by_key = compare_keys(&x->key, &y->key);
	return by_key ? by_key : (x->round > y->round) - (x->round < y->round);
}

/* Counts the answers before the first one that is greater than `last`. */
static size_t count_until(const struct capture_file *r, const struct nvml_answer *last)
{
	size_t low = 0, high = r->n_answers;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_answers(&r->answers[middle], last) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct nvml_answer *capture_file_find(
	const struct capture_file *r, const struct nvml_key *key, int round)
{
	const struct nvml_answer last = { .key = *key, .round = round };
	size_t n = count_until(r, &last);
	if (n == 0 || compare_keys(&r->answers[n - 1].key, key) != 0)
		return NULL;
	return &r->answers[n - 1];
}

bool capture_file_has(const struct capture_file *r, const char *symbol)
{
	const struct nvml_answer least = {
		.key = { symbol, -2, -2, { INT32_MIN, INT32_MIN, INT32_MIN } }, .round = -2
	};
	size_t n = count_until(r, &least);
	return n < r->n_answers && strcmp(r->answers[n].key.symbol, symbol) == 0;
}

static int compare_processes(const void *a, const void *b)
{
	const struct capture_file_process *x = a, *y = b;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

const struct capture_file_process *capture_file_process(
	const struct capture_file *r, uint32_t pid)
{
	const struct capture_file_process wanted = { .pid = pid };
	if (r->n_processes == 0)
		return NULL;
	return bsearch(
		&wanted, r->processes, r->n_processes, sizeof(wanted), compare_processes);
}

int capture_file_open(struct capture_file **result, const char *path, struct err *e)
{
	struct file_content content;
	*result = NULL;
	int rc = file_read_regular(path, FILE_MAX, &content, e);
	if (rc)
		return rc;
	struct capture_file *r = calloc(1, sizeof(*r));
	if (!r) {
		free(content.data);
		return err_memory(e);
	}
	r->text = content.data;
	r->made = r->system = r->kernel = r->library = "";
	if (parse_lines(r, content.len, e) != 0) {
		capture_file_free(r);
		return err_prefix(e, "%s", path);
	}
	array_sort(r->answers, r->n_answers, compare_answers);
	array_sort(r->processes, r->n_processes, compare_processes);
	*result = r;
	return 0;
}

void capture_file_free(struct capture_file *r)
{
	if (!r)
		return;
	free(r->text);
	free(r->answers);
	free(r->rows);
	free(r->processes);
	free(r->rounds);
	free(r);
}
