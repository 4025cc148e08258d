/* The command of a process as it is stored: program and script, and no other argument. */
#include "proc/command.h"

#include <string.h>

#include "base/str.h"
#include "proc/text.h"

/* How to find the script in an interpreter's arguments. Letters are those of short options. */
struct interpreter {
	const char *name;   /* basename of argv[0]; a final '*': a version may follow */
	const char *valued; /* options that take the next argument (or the rest of their own) */
	const char *code;   /* options with program text as their value: there is no script */
	char module;	    /* option that names the module to run, or 0 */
	const char *longs;  /* long options that take the next argument: "--a|--b|" */
	const char *file;   /* long option that names the script: "--file=", or NULL */
};

static const struct interpreter interpreters[] = {
	{ "python*", "WXQ", "c", 'm', "--check-hash-based-pycs|", NULL },
	{ "pypy*", "WX", "c", 'm', "", NULL },
	{ "julia*", "pLJtCH", "eE", 0,
		"--project|--threads|--procs|--load|--sysimage|--cpu-target|--machine-file|",
		NULL },
	{ "node", "rC", "ep", 0, "--require|--import|--loader|--conditions|", NULL },
	{ "Rscript", "g", "e", 0, "", NULL },
	{ "R", "gdf", "e", 0, "", "--file=" },
	{ "bash", "oO", "c", 0, "--rcfile|--init-file|", NULL },
	{ "sh", "o", "c", 0, "", NULL },
	{ "dash", "o", "c", 0, "", NULL },
	{ "zsh", "o", "c", 0, "", NULL },
	{ "perl*", "I", "eE", 0, "", NULL },
	{ "ruby*", "ICr", "e", 0, "", NULL },
};

static struct piece basename_of(struct piece path)
{
	while (path.len > 1 && path.at[path.len - 1] == '/')
		path.len--;
	const char *slash = path.len ? memrchr(path.at, '/', path.len) : NULL;
	if (!slash || path.len == 1)
		return path;
	size_t skip = (size_t)(slash - path.at) + 1;
	return (struct piece){ path.at + skip, path.len - skip };
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static const struct interpreter *find_interpreter(struct piece name)
{
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
		const char *want = interpreters[i].name;
		size_t n = strlen(want);
		bool any = want[n - 1] == '*';
		n -= any;
		if (name.len < n || memcmp(name.at, want, n) != 0)
			continue;
		if (name.len == n || (any && !is_letter(name.at[n])))
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

/* What an option means for the search. */
enum option_meaning { MEANS_FLAG, MEANS_VALUE_FOLLOWS, MEANS_CODE, MEANS_MODULE };

/* Reads a cluster of short options such as "-um". *rest is the part after the letter that
 * decides. */
static enum option_meaning read_cluster(
	const struct interpreter *how, struct piece arg, struct piece *rest)
{
	for (size_t i = 1; i < arg.len; i++) {
		char c = arg.at[i];
		*rest = (struct piece){ arg.at + i + 1, arg.len - i - 1 };
		if (c && strchr(how->code, c))
			return MEANS_CODE;
		if (c && c == how->module)
			return MEANS_MODULE;
		if (c && strchr(how->valued, c))
			return rest->len ? MEANS_FLAG : MEANS_VALUE_FOLLOWS;
	}
	return MEANS_FLAG;
}

static bool next_piece(struct proc_arguments *a, struct piece *arg)
{
	return proc_next_argument(a, &arg->at, &arg->len);
}

/* Finds the script or module in the arguments after argv[0]. */
static bool find_script(const struct interpreter *how, struct proc_arguments *a,
	struct piece *script, bool *module)
{
	struct piece arg, rest = { 0 };
	while (next_piece(a, &arg)) {
		size_t file_len = how->file ? strlen(how->file) : 0;
		*script = arg;
		if (arg.len == 0 || arg.at[0] != '-')
			return arg.len > 0;
		if (file_len && arg.len > file_len &&
			memcmp(arg.at, how->file, file_len) == 0) {
			*script = (struct piece){ arg.at + file_len, arg.len - file_len };
			return true;
		}
		if (arg.len == 1)
			return false; /* "-": from standard input */
		if (arg.at[1] == '-' && arg.len == 2)
			return next_piece(a, script) && script->len > 0;
		bool is_long = arg.at[1] == '-';
		enum option_meaning means = !is_long ? read_cluster(how, arg, &rest)
					    : in_list(how->longs, arg) ? MEANS_VALUE_FOLLOWS
								       : MEANS_FLAG;
		if (means == MEANS_CODE)
			return false;
		if (means == MEANS_VALUE_FOLLOWS && !next_piece(a, &arg))
			return false;
		if (means == MEANS_MODULE) {
			*module = true;
			*script = rest;
			return rest.len || (next_piece(a, script) && script->len);
		}
	}
	return false;
}

/* Returns the program, argv[0]. A process that rewrites its title puts the whole title there,
 * with its arguments, and nothing or NULs after it: of such a title the first word is used. */
static struct piece find_program(struct proc_arguments *a)
{
	struct piece program = { a->bytes, 0 };
	if (!next_piece(a, &program))
		return program;
	bool title = true;
	for (size_t i = a->at; i < a->len && title; i++)
		title = a->bytes[i] == '\0';
	const char *space = title ? memchr(program.at, ' ', program.len) : NULL;
	if (space)
		program.len = (size_t)(space - program.at);
	program = basename_of(program);
	if (program.len > 1 && program.at[0] == '-') /* a login shell: "-bash" */
		program = (struct piece){ program.at + 1, program.len - 1 };
	return program;
}

static size_t add_text(char *dst, size_t cap, size_t used, const char *text)
{
	return used + text_escape(dst + used, cap - used, text, strlen(text));
}

static size_t add_piece(char *dst, size_t cap, size_t used, struct piece piece)
{
	return used + text_escape(dst + used, cap - used, piece.at, piece.len);
}

void proc_command(
	char *dst, size_t cap, const char *bytes, size_t len, const struct proc_stat *stat)
{
	struct proc_arguments a = { .bytes = bytes, .len = len };
	struct piece program = find_program(&a), script = { 0 };
	size_t used = 0;
	bool module = false;
	dst[0] = '\0';
	if (program.len == 0) {
		used = add_text(dst, cap, used, "[");
		used = add_piece(dst, cap, used, (struct piece){ stat->comm, stat->comm_len });
		add_text(dst, cap, used, "]");
		return;
	}
	used = add_piece(dst, cap, used, program);
	const struct interpreter *how = find_interpreter(program);
	if (!how || !find_script(how, &a, &script, &module))
		return;
	used = add_text(dst, cap, used, module ? " -m " : " ");
	add_piece(dst, cap, used, basename_of(script));
}
