/* The table of sources, and lists of their names. */
#include "driver/kind.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "driver/source.h"

static const struct source_kind kinds[] = {
	{ .name = SOURCE_AUTO, .help = "every driver there is" },
	{ .name = "nvml",
		.help = "NVIDIA's driver",
		.open = nvml_source_open,
		.look = nvml_diagnose_before,
		.diagnose = nvml_diagnose,
		.automatic = true,
		.may_block = true },
	{ .name = "sim",
		.help = "invented data",
		.open = sim_source_open,
		.diagnose = sim_diagnose,
		.invented = true },
	{ .name = SOURCE_CAPTURE,
		.help = "a capture of another host, as capture:FILE",
		.open = captured_source_open,
		.diagnose = captured_diagnose,
		.invented = true },
	{ .name = SOURCE_NONE, .help = "no GPU" },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
_Static_assert(KINDS <= SOURCE_KINDS_MAX, "a list has room for every kind");

static bool is_none(const struct source_kind *kind)
{
	return strcmp(kind->name, SOURCE_NONE) == 0;
}

static const struct source_kind *find(const char *name, size_t len)
{
	for (size_t i = 0; i < KINDS; i++)
		if (strlen(kinds[i].name) == len && memcmp(kinds[i].name, name, len) == 0)
			return &kinds[i];
	return NULL;
}

/* The name at *at; moves *at to the next one, or to NULL after the last. */
static const struct source_kind *next_kind(const char **at)
{
	size_t len = strcspn(*at, ",");
	const struct source_kind *kind = find(*at, len);
	*at = (*at)[len] ? *at + len + 1 : NULL;
	return kind;
}

const char *source_capture_path(const char *name)
{
	static const char prefix[] = SOURCE_CAPTURE ":";
	bool named = strncmp(name, prefix, sizeof(prefix) - 1) == 0;
	return named ? name + sizeof(prefix) - 1 : NULL;
}

int source_make_absolute(const char **name, char *dst, struct err *e)
{
	char absolute[PATH_MAX];
	const char *path = *name ? source_capture_path(*name) : NULL;
	if (!path || !*path)
		return 0;
	int rc = file_make_absolute(&path, absolute, e);
	snprintf(dst, SOURCE_NAME_CAP, SOURCE_CAPTURE ":%s", path);
	*name = dst;
	return rc;
}

bool source_is_captured(const char *names)
{
	return source_capture_path(names) || strcmp(names, SOURCE_CAPTURE) == 0;
}

/* `name` is a name and what may follow it in the list. */
static int refuse(const char *name, bool or_none, struct err *e)
{
	struct str all = { 0 };
	for (size_t i = 0; i < KINDS; i++)
		if (or_none || !is_none(&kinds[i]))
			str_addf(&all, "%s%s (%s)", all.len ? ", " : "", kinds[i].name,
				kinds[i].help);
	err_set(e, ERR_USAGE, "unknown source '%.*s'; there are %s", (int)strcspn(name, ","),
		name, str_text(&all));
	str_finish(&all);
	return ERR_USAGE;
}

static void add_once(struct source_list *list, const struct source_kind *kind)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->kinds[i] == kind)
			return;
	list->kinds[list->n++] = kind;
}

static void add(struct source_list *list, const struct source_kind *kind)
{
	if (kind->open)
		add_once(list, kind);
	for (size_t i = 0; i < KINDS && strcmp(kind->name, SOURCE_AUTO) == 0; i++)
		if (kinds[i].automatic)
			add_once(list, &kinds[i]);
}

int source_list_read(struct source_list *list, const char *names, bool or_none, struct err *e)
{
	*list = (struct source_list){ 0 };
	if (source_is_captured(names)) {
		const char *path = source_capture_path(names);
		if (!path || !*path)
			return err_set(e, ERR_USAGE,
				"name the capture: --source capture:FILE; it cannot be "
				"combined with other sources");
		add(list, find(SOURCE_CAPTURE, strlen(SOURCE_CAPTURE)));
		return 0;
	}
	for (const char *at = names; at;) {
		const char *name = at;
		const struct source_kind *kind = next_kind(&at);
		if ((kind && strcmp(kind->name, SOURCE_CAPTURE) == 0) ||
			source_capture_path(name))
			return err_set(e, ERR_USAGE,
				"a capture cannot be combined with other sources");
		if (!kind || (is_none(kind) && !or_none))
			return refuse(name, or_none, e);
		if (is_none(kind) && strcmp(names, SOURCE_NONE) != 0)
			return err_set(e, ERR_USAGE,
				"the source 'none' cannot be combined with others");
		add(list, kind);
	}
	return 0;
}

void source_list_text(const struct source_list *list, char *dst, size_t cap)
{
	size_t len = 0;
	dst[0] = '\0';
	for (size_t i = 0; i < list->n && len < cap; i++) {
		int n = snprintf(
			dst + len, cap - len, "%s%s", i ? "," : "", list->kinds[i]->name);
		len += n > 0 ? (size_t)n : 0;
	}
}

bool source_is_invented(const char *names)
{
	if (source_is_captured(names))
		return true;
	for (const char *at = names; at;) {
		const struct source_kind *kind = next_kind(&at);
		if (kind && kind->invented)
			return true;
	}
	return false;
}

bool source_is_measured(const char *names)
{
	if (source_is_captured(names))
		return false;
	for (const char *at = names; at;) {
		const struct source_kind *kind = next_kind(&at);
		if (kind && !kind->invented && !is_none(kind))
			return true;
	}
	return false;
}

int source_check(const char *names, const char *scenario, bool or_none, struct err *e)
{
	struct source_list list;
	int rc = source_list_read(&list, names, or_none, e);
	if (!rc && scenario && (!source_is_invented(names) || source_is_captured(names)))
		rc = err_set(e, ERR_USAGE, "--scenario goes with --source sim");
	if (!rc && source_is_captured(names))
		rc = captured_check(source_capture_path(names), e);
	return rc;
}

static void add_words(struct str *out, bool or_none)
{
	for (size_t i = 0; i < KINDS; i++)
		if (or_none || !is_none(&kinds[i]))
			str_addf(out, "%s%s ", kinds[i].name,
				strcmp(kinds[i].name, SOURCE_CAPTURE) == 0 ? ":" : "");
}

void source_words(struct str *out)
{
	add_words(out, false);
}

void source_words_none(struct str *out)
{
	add_words(out, true);
}
