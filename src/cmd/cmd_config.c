/* gua config: prints the configuration in force and where it comes from, or checks it. */
#include "cmd/share/configure.h"
#include "policy/channel.h"
#include "render/json.h"

struct values {
	struct configure_options conf;
	const char *check, *root;
	bool json, example;
};

#define AT(field) .offset = offsetof(struct values, field)
static const struct option_row options[] = {
	{ OPTION_MAYBE_NEXT, 0, "check", "FILE",
		"check FILE, or the files in force, and name each error", AT(check) },
	CONFIGURE_ROWS(struct values, conf),
	{ OPTION_FLAG, 0, "json", .help = "print JSON", AT(json) },
	{ OPTION_FLAG, 0, "example", .help = "print a file with every key and its default",
		AT(example) },
	{ OPTION_TEXT, 0, "root", "DIR", "look for etc below DIR", AT(root), .hidden = true },
	{ 0 },
};

static void add_escaped(struct str *out, const char *text)
{
	char safe[4096];
	str_escape(safe, sizeof(safe), text, strlen(text));
	str_add(out, safe);
}

static void add_quoted(struct str *out, const char *text)
{
	struct str quoted = { 0 };
	for (const char *at = text; *at; at++)
		str_addf(&quoted, "%s%c", *at == '"' || *at == '\\' ? "\\" : "", *at);
	str_add(out, "\"");
	add_escaped(out, str_text(&quoted));
	str_add(out, "\"");
	str_finish(&quoted);
}

/* What prints the values in force, section by section. */
struct printer {
	const struct settings *settings;
	struct str *out;
	struct json *json; /* writes to `out`; NULL: as text */
};

static void json_safe(struct json *j, const char *key, const char *text)
{
	char safe[PATH_MAX];
	if (text)
		str_escape(safe, sizeof(safe), text, strlen(text));
	json_text(j, key, text ? safe : NULL);
}

/* Prints a value as JSON, or as "key = value   # FILE:LINE". `item` NULL: the default. */
static void show_value(
	const struct printer *p, const struct config_key *key, const struct setting *item)
{
	struct str *out = p->out;
	struct json *j = p->json;
	const char *name = item ? item->name : key->value.name;
	const char *value = item ? item->text : key->initial;
	const char *file = item ? p->settings->files[item->file] : NULL;
	size_t line = item ? item->line : 0, start = out->len;
	if (j) {
		json_open(j, NULL, '{');
		json_text(j, "section", key->section);
		json_safe(j, "name", item ? item->block : NULL);
		json_safe(j, "key", name);
		json_safe(j, "value", value);
		json_safe(j, "file", file);
		json_number(j, "line", line ? (double)line : NAN, 0);
		json_close(j, '}');
		return;
	}
	if (!*name || strpbrk(name, "=\"#;[") || strchr(" \t", *name) ||
		strchr(" \t", name[strlen(name) - 1]))
		add_quoted(out, name);
	else
		add_escaped(out, name);
	str_add(out, " = ");
	if (strchr(value, '#') && !strchr(value, '"'))
		add_quoted(out, value);
	else
		add_escaped(out, value);
	size_t width = out->len - start;
	str_addf(out, "%*s# ", width < 38 ? (int)(40 - width) : 2, "");
	add_escaped(out, file ? file : "default");
	if (line)
		str_addf(out, ":%zu", line);
	str_add(out, "\n");
}

/* Shows the values of a key. Those of the last file come first, because they count. */
static void show_key(const struct printer *p, const struct config_key *key, const char *block)
{
	const struct settings *s = p->settings;
	bool any = false;
	for (size_t file = s->n_files; file-- > 0;) {
		for (size_t i = 0; i < s->n_items; i++) {
			const struct setting *item = &s->items[i];
			if (item->file != file || item->key != key || item->wrong ||
				item->beaten || (block && strcmp(item->block, block) != 0))
				continue;
			show_value(p, key, item);
			any = true;
		}
	}
	if (!any && key->initial)
		show_value(p, key, NULL);
}

static void show_section(
	const struct printer *p, const struct config_section *section, const char *block)
{
	if (!p->json) {
		str_addf(p->out, "\n[%s", section->name);
		if (block) {
			str_add(p->out, " ");
			add_quoted(p->out, block);
		}
		str_add(p->out, "]\n");
	}
	for (const struct config_key *key = config_schema.keys; key->section; key++)
		if (strcmp(key->section, section->name) == 0)
			show_key(p, key, block);
}

/* Whether an earlier setting has opened the block already, in a file that counts less. */
static bool was_opened(const struct settings *s, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!s->items[k].key && settings_same(&s->items[k], &s->items[i]))
			return true;
	return false;
}

static void show_all(const struct printer *p)
{
	const struct settings *s = p->settings;
	for (const struct config_section *at = config_schema.sections; at->name; at++) {
		if (!at->block_size)
			show_section(p, at, NULL);
		for (size_t i = 0; at->block_size && i < s->n_items; i++)
			if (s->items[i].section == at && !s->items[i].key && !was_opened(s, i))
				show_section(p, at, s->items[i].block);
	}
}

static const struct {
	const char *text, *key; /* in JSON */
} found_names[] = {
	[CONFIG_MISSING] = { "not there", "missing" },
	[CONFIG_READ] = { "read", "read" },
	[CONFIG_DENIED] = { "may not be read", "denied" },
	[CONFIG_REFUSED] = { "not used", "refused" },
};

static void print_json(struct str *out, const struct configuration *c)
{
	const struct settings *s = &c->settings;
	struct json j = { .out = out, .lines = 2 };
	json_open(&j, NULL, '{');
	json_text(&j, "schema", "gua-config-1");
	json_open(&j, "files", '[');
	for (size_t i = 0; i < c->n_places; i++) {
		json_open(&j, NULL, '{');
		json_safe(&j, "path", c->places[i].path);
		json_text(&j, "status", found_names[c->places[i].found].key);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "values", '[');
	show_all(&(struct printer){ s, out, &j });
	json_close(&j, ']');
	json_open(&j, "errors", '[');
	for (size_t i = 0; i < s->n_errors; i++) {
		const struct settings_error *error = &s->errors[i];
		json_open(&j, NULL, '{');
		json_safe(&j, "file", s->files[error->file]);
		json_number(&j, "line", error->line ? (double)error->line : NAN, 0);
		json_text(&j, "text", error->text);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

/* Prints each error in a line, or that there is none. */
static void print_check(struct str *out, const struct configuration *c)
{
	char text[2048];
	for (size_t i = 0; i < c->settings.n_errors; i++) {
		settings_error_text(&c->settings, i, text, sizeof(text));
		str_addf(out, "%s\n", text);
	}
	for (size_t i = 0; i < c->n_places && !c->settings.n_errors; i++) {
		add_escaped(out, c->places[i].path);
		str_addf(out, ": %s\n",
			c->places[i].found == CONFIG_READ
				? "no errors"
				: found_names[c->places[i].found].text);
	}
}

/* Prints the configuration, or what is wrong with it. */
static int show(const struct call *call)
{
	const struct values *v = call->values;
	const struct configuration *c = call->conf;
	struct str out = { 0 }, errors = { 0 };
	if (v->json) {
		print_json(&out, c);
	} else if (v->check) {
		print_check(&out, c);
	} else {
		for (size_t i = 0; i < c->n_places; i++) {
			str_add(&out, "# ");
			add_escaped(&out, c->places[i].path);
			str_addf(&out, ": %s\n", found_names[c->places[i].found].text);
		}
		show_all(&(struct printer){ &c->settings, &out, NULL });
		if (c->settings.n_errors)
			print_check(&errors, c);
	}
	int status = cmd_print(call->self, &out);
	fputs(str_text(&errors), stderr);
	str_finish(&errors);
	return status ? status : c->settings.n_errors > 0;
}

static int run(const struct call *call, struct err *e)
{
	struct values *v = call->values;
	if (v->example) {
		struct str out = { 0 };
		configure_example(&out);
		return cmd_print(call->self, &out);
	}
	if (v->check && *v->check)
		v->conf.file = v->check;
	call->conf->root = v->root;
	int rc = configure_read(call->conf, &v->conf, e);
	struct err wrong = { 0 };
	if (rc == 0 && channel_check(&call->conf->values.notices, &wrong) != 0)
		settings_blame(&call->conf->settings, "notices", "channels", wrong.text);
	return rc ? rc : show(call);
}

const struct command cmd_config = {
	.name = "config",
	.summary = "show the configuration in force, or check it",
	.usage = "[--check [FILE]] [--json] [OPTIONS]",
	.details = "The files, in the order in which they count: " SYSTEM_CONFIG ",\n"
		   "~/.config/gua/gua.conf. GUA_CONFIG or --config names one instead.",
	.options = options,
	.values_size = sizeof(struct values),
	.run = run,
};
