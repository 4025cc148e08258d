/* The table of sources, lists of their names, and calls through a source's functions. */
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

/* Returns the kind whose name is at *at; moves *at to the next name; NULL after the last. */
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

/* `name` is a name, followed by the rest of the list. */
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

/* Whether the list has a kind with invented (or, if not `invented`, measured) data. */
static bool has_kind(const char *names, bool invented)
{
	if (source_is_captured(names))
		return invented;
	for (const char *at = names; at;) {
		const struct source_kind *kind = next_kind(&at);
		if (kind && kind->invented == invented && !is_none(kind))
			return true;
	}
	return false;
}

bool source_is_invented(const char *names)
{
	return has_kind(names, true);
}

bool source_is_measured(const char *names)
{
	return has_kind(names, false);
}

int source_check(const char *names, const char *scenario, bool or_none, struct err *e)
{
	struct source_list list;
	int rc = source_list_read(&list, names, or_none, e);
	if (rc)
		return rc;
	bool captured = source_is_captured(names);
	if (scenario && (captured || !source_is_invented(names)))
		return err_set(e, ERR_USAGE, "--scenario goes with --source sim");
	if (scenario && access(scenario, R_OK) != 0)
		return err_set(e, ERR_WORLD, "cannot open %s: %s", scenario, strerror(errno));
	return captured ? captured_check(source_capture_path(names), e) : 0;
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

int source_open(struct source **s, const struct source_options *options, struct err *e)
{
	struct source_list list;
	int rc = source_list_read(&list, options->name, false, e);
	if (rc)
		return rc;
	if (list.n == 1)
		return source_kind_open(list.kinds[0], s, options, e);
	return source_set_open(s, &list, options, e);
}

bool source_kind_is_apart(const struct source_kind *kind, const struct source_options *options)
{
	return options->host && kind->may_block && clock_is_shared(options->clock);
}

int source_kind_open(const struct source_kind *kind, struct source **s,
	const struct source_options *options, struct err *e)
{
	if (source_kind_is_apart(kind, options))
		return options->host->open(options->host, s, kind, options, e);
	return kind->open(s, options, e);
}

void source_place_set(struct source_place *p, int card, const char *call)
{
	if (!p)
		return;
	p->card = card;
	str_copy(p->call, sizeof(p->call), call);
}

int source_unsaid(struct source *s, struct err *e)
{
	int rc = s->unsaid.code;
	if (rc)
		*e = s->unsaid;
	s->unsaid = (struct err){ 0 };
	return rc;
}

void source_lose_card(struct card_reading *r, int code)
{
	bool was_ok = r->status == CARD_STATUS_OK, gone = r->gone;
	reading_clear(r, was_ok ? CARD_STATUS_LOST : r->status, was_ok ? code : r->code);
	r->gone = gone;
}

bool source_is_avoided(const struct source_avoids *a, int index, const char *pci)
{
	for (size_t i = 0; a && i < a->n; i++) {
		const struct source_avoid *one = &a->cards[i];
		bool both = one->pci[0] && pci[0];
		if (both ? strcmp(one->pci, pci) == 0 : one->index == index)
			return true;
	}
	return false;
}

void source_close(struct source *s)
{
	if (s)
		s->ops->close(s);
}

int source_scan(struct source *s, struct err *e)
{
	return s->ops->scan(s, e);
}

int source_drain(struct source *s, const bool *which, struct err *e)
{
	return s->ops->drain(s, which, e);
}

int source_glance(struct source *s, unsigned what, struct err *e)
{
	return s->ops->glance(s, what, e);
}

int source_look(struct source *s, const bool *which, struct err *e)
{
	return s->ops->look(s, which, e);
}

int source_late(struct source *s, struct err *e)
{
	return s->ops->late ? s->ops->late(s, e) : 0;
}

void source_log_no_room(void)
{
	log_error("not enough memory for another card");
}
