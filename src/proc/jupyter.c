/* Finds a Jupyter kernel by the connection file in its arguments. */
#include "proc/jupyter.h"

#include <string.h>

#include "base/str.h"
#include "proc/proc_parse.h"

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* 8-4-4-4-12 hexadecimal digits. */
static bool is_uuid(const char *text, size_t len)
{
	if (len != 36)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? text[i] != '-' : !is_hex(text[i]))
			return false;
	}
	return true;
}

/* The ID of ".../kernel-ID.json". */
static bool kernel_id(const char *path, size_t len, const char **id, size_t *id_len)
{
	static const char head[] = "kernel-", tail[] = ".json";
	enum { HEAD = sizeof(head) - 1, TAIL = sizeof(tail) - 1 };
	const char *slash = len ? memrchr(path, '/', len) : NULL;
	const char *name = slash ? slash + 1 : path;
	size_t name_len = len - (size_t)(name - path);
	if (name_len <= HEAD + TAIL || memcmp(name, head, HEAD) != 0 ||
		memcmp(name + name_len - TAIL, tail, TAIL) != 0)
		return false;
	*id = name + HEAD;
	*id_len = name_len - HEAD - TAIL;
	return true;
}

/* Whether it is the name of an option that takes the connection file. */
static bool takes_file(const char *option, size_t len)
{
	static const char *const endings[] = { "connection_file", "connection-file",
		"control_file" };
	while (len && *option == '-') {
		option++;
		len--;
	}
	if (len == 1 && *option == 'f')
		return true;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t n = strlen(endings[i]);
		if (len >= n && memcmp(option + len - n, endings[i], n) == 0)
			return true;
	}
	return false;
}

/* Returns the value inside an option's own argument ("-f=X", "--f=X", "-fX"), or NULL. */
static const char *value_within(const char *arg, size_t len)
{
	const char *equals = memchr(arg, '=', len);
	if (equals)
		return takes_file(arg, (size_t)(equals - arg)) ? equals + 1 : NULL;
	return len > 2 && arg[1] == 'f' ? arg + 2 : NULL;
}

/* Kernels of different languages take "-f X", "-f=X", "-fX", "--f=X", "--f X",
 * "--connection-file X" and "--IPKernelApp.connection_file=X"; those of Julia, R and JavaScript
 * take X alone. X alone must be a UUID, because any program may have a kernel-*.json as an
 * argument. After the option it may be a name that an editor made up (kernel-v3...json). */
bool jupyter_label(char *dst, size_t cap, const char *bytes, size_t len)
{
	struct proc_arguments a = { .bytes = bytes, .len = len };
	size_t arg_len = 0, id_len = 0;
	const char *arg = NULL, *id = NULL;
	bool named = false; /* the previous argument was the option's name */
	dst[0] = '\0';
	proc_next_argument(&a, &arg, &arg_len); /* argv[0] */
	while (proc_next_argument(&a, &arg, &arg_len)) {
		bool option = arg_len > 1 && arg[0] == '-';
		const char *within = option ? value_within(arg, arg_len) : NULL;
		const char *value = within ? within : arg;
		if (kernel_id(value, arg_len - (size_t)(value - arg), &id, &id_len) &&
			(within || named || is_uuid(id, id_len))) {
			size_t used = str_escape(dst, cap, "jupyter:", 8);
			str_escape(dst + used, cap - used, id, id_len);
			return true;
		}
		named = option && takes_file(arg, arg_len);
	}
	return false;
}
