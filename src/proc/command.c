/* Makes the command of a process as it is stored: program and script, and no other argument.
 * Also finds which Jupyter kernel a process is. */
#include "proc/command.h"

#include "base/piece.h"
#include "proc/secret.h"

enum {
	COMM_MAX = 15,	    /* the kernel cuts longer names */
	PROGRAM_CAP = 4096, /* bytes of argv[0] that are used */
};

/* How to find the script in an interpreter's arguments. Letters are those of short options;
 * lists of words are "a|b|". An option that is not listed may take a value, which may be a
 * secret: see MEANS_UNSURE. */
struct interpreter {
	const char *name;   /* basename of argv[0]; a final '*': a version may follow */
	const char *flags;  /* short options without a value */
	const char *valued; /* options that take the next argument (or the rest of their own) */
	const char *code;   /* options after which there is no script: code, standard input */
	const char *longs;  /* long options that take the next argument */
	const char *codes;  /* long options after which there is no script */
	const char *file;   /* only this long option names the script; NULL: the script is the
			       first argument that is not an option */
	const char *endings; /* of its scripts */
	char module;	     /* option that names the module to run, or 0 */
};

#define PYTHON_FLAGS "bBdEhiIOPqRsSuvVxt3J?"
#define SHELL_FLAGS "abefhiklmnprtuvxBCDEHIPTV"
#define SHELL_ENDINGS ".sh|.bash|.zsh|.slurm|"

static const struct interpreter interpreters[] = {
	{ "python*", PYTHON_FLAGS, "WXQ", "c", "--check-hash-based-pycs|", "", NULL,
		".py|.pyc|.pyw|", 'm' },
	{ "pypy*", PYTHON_FLAGS, "WX", "c", "", "", NULL, ".py|", 'm' },
	{ "julia*", "hiqvgO0123", "pLJtCH", "eE",
		"--threads|--procs|--load|--sysimage|--cpu-target|--machine-file|",
		"--eval|--print|", NULL, ".jl|", 'm' },
	{ "node", "chiv", "rC", "ep", "--require|--import|--loader|--conditions|",
		"--eval|--print|", NULL, ".js|.mjs|.cjs|.ts|", 0 },
	{ "Rscript", "", "", "e", "", "", NULL, ".R|.r|", 0 },
	{ "R", "qs", "gdf", "e", "", "--args|", "--file|", ".R|.r|", 0 },
	{ "bash", SHELL_FLAGS, "oO", "cs", "--rcfile|--init-file|", "", NULL, SHELL_ENDINGS,
		0 },
	{ "sh", SHELL_FLAGS, "o", "cs", "", "", NULL, SHELL_ENDINGS, 0 },
	{ "dash", SHELL_FLAGS, "o", "cs", "", "", NULL, SHELL_ENDINGS, 0 },
	{ "zsh", SHELL_FLAGS, "o", "cs", "", "", NULL, SHELL_ENDINGS, 0 },
	{ "perl*", "acfghilnpstuvwSTUWX0123456789", "I", "eE", "", "", NULL, ".pl|.t|", 0 },
	{ "ruby*", "achlnpsvwxydSUW0123456789", "ICrE", "e", "", "", NULL, ".rb|", 0 },
};

/* "", "3.11", "-1.9", "3.11-dbg": what may follow the name of an interpreter. "python3-config"
 * is another program, whose arguments are not scripts. */
static bool is_version(struct piece text)
{
	static const char debug[] = "-dbg";
	enum { DEBUG = sizeof(debug) - 1 };
	if (text.len > DEBUG && memcmp(text.at + text.len - DEBUG, debug, DEBUG) == 0)
		text.len -= DEBUG;
	return piece_span(text, "0123456789.-") == text.len;
}

static const struct interpreter *find_interpreter(struct piece name)
{
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
		const char *want = interpreters[i].name;
		size_t n = strcspn(want, "*");
		if (piece_is_like(name, want) && is_version(piece_skip(name, n)))
			return &interpreters[i];
	}
	return NULL;
}

/* Whether `arg` is one of the words of "--a|--b|". */
static bool in_list(const char *list, struct piece arg)
{
	for (const char *end; (end = strchr(list, '|')); list = end + 1)
		if ((size_t)(end - list) == arg.len && memcmp(list, arg.at, arg.len) == 0)
			return true;
	return false;
}

/* What an argument means for the search. */
enum meaning {
	MEANS_FLAG,
	MEANS_VALUE_FOLLOWS,
	MEANS_UNSURE, /* an unknown option: the next argument may be its value */
	MEANS_MODULE, /* its name is in *rest, or the next argument */
	MEANS_SCRIPT, /* its name is in *rest */
	MEANS_LAST,   /* "--": the next argument is the script */
	MEANS_NO_SCRIPT,
};

/* Reads a cluster of short options such as "-um". *rest is the part after the letter that
 * decides. After an unknown letter the rest may be its value; letters of `code` are still
 * looked for. */
static enum meaning read_cluster(
	const struct interpreter *how, struct piece arg, struct piece *rest)
{
	bool known = true;
	for (size_t i = 1; i < arg.len; i++) {
		char c = arg.at[i];
		*rest = piece_skip(arg, i + 1);
		if (c && strchr(how->code, c))
			return MEANS_NO_SCRIPT;
		if (known && c && c == how->module)
			return MEANS_MODULE;
		if (known && c && strchr(how->valued, c))
			return rest->len ? MEANS_FLAG : MEANS_VALUE_FOLLOWS;
		known = known && c && strchr(how->flags, c);
	}
	return known ? MEANS_FLAG : MEANS_UNSURE;
}

static enum meaning read_long(
	const struct interpreter *how, struct piece arg, struct piece *rest)
{
	struct piece value = arg, name = piece_cut(&value, '=');
	if (arg.len == 2)
		return how->file ? MEANS_NO_SCRIPT : MEANS_LAST;
	if (in_list(how->codes, name))
		return MEANS_NO_SCRIPT;
	if (value.at && how->file && in_list(how->file, name)) {
		*rest = value;
		return MEANS_SCRIPT;
	}
	if (value.at)
		return MEANS_FLAG;
	return in_list(how->longs, name) ? MEANS_VALUE_FOLLOWS : MEANS_UNSURE;
}

static enum meaning read_argument(
	const struct interpreter *how, struct piece arg, struct piece *rest)
{
	*rest = arg;
	if (arg.len && arg.at[0] != '-')
		return how->file ? MEANS_NO_SCRIPT : MEANS_SCRIPT;
	if (arg.len < 2) /* "-": from standard input */
		return MEANS_NO_SCRIPT;
	return arg.at[1] == '-' ? read_long(how, arg, rest) : read_cluster(how, arg, rest);
}

static bool next_piece(struct proc_arguments *a, struct piece *arg)
{
	return proc_next_argument(a, &arg->at, &arg->len);
}

static bool has_ending(const struct interpreter *how, struct piece script)
{
	const char *dot = script.len ? memrchr(script.at, '.', script.len) : NULL;
	return dot && in_list(how->endings, piece_skip(script, (size_t)(dot - script.at)));
}

/* Finds the script or module in the arguments after argv[0]. After an unknown option, an
 * argument is the script only if it has the ending of one. Otherwise the search ends, because
 * all later arguments may be the script's own. */
static bool find_script(const struct interpreter *how, struct proc_arguments *a,
	struct piece *script, bool *module)
{
	enum meaning means = MEANS_FLAG;
	struct piece arg;
	while (next_piece(a, &arg)) {
		bool unsure = means == MEANS_UNSURE;
		means = read_argument(how, arg, script);
		if (means == MEANS_NO_SCRIPT)
			return false;
		if (means == MEANS_SCRIPT)
			return !unsure || how->file || has_ending(how, *script);
		if (means == MEANS_LAST)
			return next_piece(a, script);
		if (means == MEANS_MODULE) {
			*module = true;
			return script->len || next_piece(a, script);
		}
		if (means == MEANS_VALUE_FOLLOWS && !next_piece(a, &arg))
			return false;
	}
	return false;
}

static struct piece first_word(struct piece text)
{
	size_t n = 0;
	while (n < text.len && !piece_is_blank(text.at[n]))
		n++;
	return (struct piece){ text.at, n };
}

/* Returns the length of the program file's name at the start of the text; 0: the text does not
 * begin with it. The kernel keeps only the first bytes of the name. */
static size_t comm_length(struct piece text, const struct proc_stat *stat)
{
	size_t n = stat->comm_len;
	if (n == 0 || text.len < n || memcmp(text.at, stat->comm, n) != 0)
		return 0;
	if (n != COMM_MAX)
		return n == text.len ? n : 0;
	while (n < text.len && !piece_is_blank(text.at[n])) /* a blank may begin an argument */
		n++;
	return n;
}

/* Finds the program in a title that has blanks. A process that rewrites its title puts its
 * arguments there too; then only the first word is used. A path may have blanks as well; then
 * its last part is the name of the program file. Without a slash the name is not evidence,
 * because a process can give itself the beginning of its title as a name. */
static struct piece program_of_title(struct piece title, const struct proc_stat *stat)
{
	struct piece last = piece_basename(title);
	size_t n = last.len < title.len ? comm_length(last, stat) : 0;
	return n ? (struct piece){ last.at, n } : first_word(title);
}

/* Copies the text to `word` without what may be a secret. */
static struct piece cut_word(struct piece text, char word[PROGRAM_CAP])
{
	size_t len = text.len < PROGRAM_CAP ? text.len : PROGRAM_CAP;
	memcpy(word, text.at, len);
	return (struct piece){ word, secret_cut(word, len, SECRET_WORD) };
}

/* Finds the program in argv[0], without a secret. */
static struct piece find_program(
	struct proc_arguments *a, const struct proc_stat *stat, char word[PROGRAM_CAP])
{
	struct piece title = { a->bytes, 0 };
	if (!next_piece(a, &title))
		return title;
	struct piece program = title;
	if (first_word(title).len < title.len) {
		program = program_of_title(title, stat);
		if (program.at + program.len < title.at + title.len)
			a->at = a->len; /* after a title come the remains of the arguments */
	}
	program = piece_basename(cut_word(program, word));
	if (program.len > 1 && program.at[0] == '-') /* a login shell: "-bash" */
		program = piece_skip(program, 1);
	return program;
}

static size_t add_text(char *dst, size_t cap, size_t used, const char *text)
{
	return used + str_escape(dst + used, cap - used, text, strlen(text));
}

static size_t add_piece(char *dst, size_t cap, size_t used, struct piece piece)
{
	return used + str_escape(dst + used, cap - used, piece.at, piece.len);
}

void command_name(char *dst, size_t cap, const struct proc_stat *stat)
{
	char word[PROGRAM_CAP];
	struct piece name = first_word((struct piece){ stat->comm, stat->comm_len });
	add_piece(dst, cap, 0, cut_word(name, word));
}

void command_text(
	char *dst, size_t cap, const char *bytes, size_t len, const struct proc_stat *stat)
{
	struct proc_arguments a = { .bytes = bytes, .len = len };
	char word[PROGRAM_CAP];
	struct piece program = find_program(&a, stat, word), script = { 0 };
	size_t used = 0;
	bool module = false;
	dst[0] = '\0';
	if (program.len == 0) {
		used = add_text(dst, cap, used, "[");
		command_name(dst + used, cap - used, stat);
		add_text(dst, cap, strlen(dst), "]");
		return;
	}
	used = add_piece(dst, cap, used, program);
	const struct interpreter *how = find_interpreter(program);
	if (!how || !find_script(how, &a, &script, &module) ||
		!secret_is_file_name(script.at, script.len))
		return;
	used = add_text(dst, cap, used, module ? " -m " : " ");
	add_piece(dst, cap, used, piece_basename(script));
}

/* Jupyter kernels, by the connection file in their arguments. */

/* 8-4-4-4-12 hexadecimal digits. */
static bool is_uuid(struct piece text)
{
	for (size_t i = 0; i < text.len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (!text.at[i] || !strchr(dash ? "-" : "0123456789abcdefABCDEF", text.at[i]))
			return false;
	}
	return text.len == 36;
}

/* The ID of ".../kernel-ID.json". */
static bool kernel_id(struct piece path, struct piece *id)
{
	enum { HEAD = sizeof("kernel-") - 1, TAIL = sizeof(".json") - 1 };
	struct piece name = piece_basename(path);
	if (name.len <= HEAD + TAIL || !piece_is_like(name, "kernel-*") ||
		!piece_is_like(path, "*.json"))
		return false;
	*id = (struct piece){ name.at + HEAD, name.len - HEAD - TAIL };
	return true;
}

/* Whether the text is the name of an option that takes the connection file. */
static bool takes_file(struct piece option)
{
	option = piece_skip(option, piece_span(option, "-"));
	return piece_is_like(option, "f") || piece_is_like(option, "*connection_file") ||
	       piece_is_like(option, "*connection-file") ||
	       piece_is_like(option, "*control_file");
}

/* Returns the value inside an option's own argument ("-f=X", "--f=X", "-fX"); empty: none. */
static struct piece value_within(struct piece arg)
{
	struct piece value = arg, name = piece_cut(&value, '=');
	if (value.at ? !takes_file(name) : arg.at[1] != 'f')
		return (struct piece){ NULL, 0 };
	return value.at ? value : piece_skip(arg, 2);
}

/* Kernels of different languages take "-f X", "-f=X", "-fX", "--f=X", "--f X",
 * "--connection-file X" and "--IPKernelApp.connection_file=X"; those of Julia, R and JavaScript
 * take X alone. X alone must be a UUID, because any program may have a kernel-*.json as an
 * argument. After the option it may be a name that an editor made up (kernel-v3...json). */
bool command_kernel(char *dst, size_t cap, const char *bytes, size_t len)
{
	struct proc_arguments a = { .bytes = bytes, .len = len };
	struct piece arg = { NULL, 0 }, id;
	bool named = false; /* the previous argument was the option's name */
	dst[0] = '\0';
	next_piece(&a, &arg); /* argv[0] */
	while (next_piece(&a, &arg)) {
		bool option = piece_is_like(arg, "-*") && arg.len > 1;
		struct piece within = option ? value_within(arg) : (struct piece){ NULL, 0 };
		if (kernel_id(within.len ? within : arg, &id) &&
			(within.len || named || is_uuid(id))) {
			add_piece(dst, cap, add_text(dst, cap, 0, "jupyter:"), id);
			return true;
		}
		named = option && takes_file(arg);
	}
	return false;
}
