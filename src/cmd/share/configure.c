/* Finds and reads the files of the configuration. */
#include "cmd/share/configure.h"

/* The name for the settings of --set, besides the names of the files. */
#define SET_OPTION "--set"
enum { CONFIG_MAX_BYTES = 256 * 1024 };

const char *configure_named(const char *option)
{
	return option ? option : cmd_variable("GUA_CONFIG");
}

static void add_place(struct configuration *c, const char *directory, const char *name)
{
	char *path = c->places[c->n_places].path;
	if (file_path(path, "%s%s", directory, name))
		c->n_places++;
}

/* Lists the places in the order in which they count. */
static void find_places(struct configuration *c, const char *named)
{
	const char *own = cmd_variable("XDG_CONFIG_HOME"), *home = cmd_variable("HOME");
	c->n_places = 0;
	if (named) {
		add_place(c, named, "");
		return;
	}
	add_place(c, c->root ? c->root : "", SYSTEM_CONFIG);
	if (own && *own == '/')
		add_place(c, own, "/gua/gua.conf");
	else if (home && *home == '/')
		add_place(c, home, "/.config/gua/gua.conf");
}

/* Whether a recorder may follow a file: a user who can write to it can make the recorder record
 * less. */
static int check_owner(const char *path, const struct stat *st, struct err *e)
{
	bool root = geteuid() == 0;
	if (!S_ISREG(st->st_mode))
		return 0;
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(e, ERR_WORLD,
			"the recorder ignores %s, because it belongs to the uid %d; it must "
			"belong to root or to the recorder's user",
			path, (int)st->st_uid);
	if ((st->st_mode & S_IWOTH) || (root && (st->st_mode & S_IWGRP) && st->st_gid != 0))
		return err_set(e, ERR_WORLD,
			"the recorder ignores %s, because other users can write to it; run "
			"chmod go-w on it",
			path);
	return 0;
}

static struct settings_owner owner_of(const struct stat *st)
{
	return (struct settings_owner){ true, st->st_uid, st->st_mode };
}

static int read_place(struct configuration *c, size_t i, bool named, struct err *e)
{
	struct file_content f = { 0 };
	struct err why = { 0 };
	struct settings *s = &c->settings;
	const char *path = c->places[i].path;
	int rc = file_read_regular(path, CONFIG_MAX_BYTES, &f, &why);
	bool missing = f.error == ENOENT || f.error == ENOTDIR;
	if (!rc && c->recorder)
		rc = check_owner(path, &f.st, &why);
	if (!rc) {
		c->places[i].found = CONFIG_READ;
		rc = settings_read(s, path, f.data, f.len, e);
	} else if (missing && !named) {
		c->places[i].found = CONFIG_MISSING;
		rc = 0;
	} else if (f.error == EACCES && !named && !c->recorder) {
		/* It may contain secrets of the recorder. */
		c->places[i].found = CONFIG_DENIED;
		log_notice("%s; going on without it", why.text);
		rc = 0;
	} else {
		c->places[i].found = CONFIG_REFUSED;
		rc = settings_refuse(s, path, why.text, e);
	}
	if (!rc && c->places[i].found == CONFIG_READ) {
		/* Who may change the file: the owner is that of the open file that was read,
		 * because the name may lead to another file later. */
		char directory[PATH_MAX];
		struct stat st;
		const char *slash = strrchr(path, '/');
		size_t len = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
		snprintf(directory, sizeof(directory), "%.*s", (int)len, path);
		s->owners[s->n_files - 1] = owner_of(&f.st);
		if (stat(len ? directory : ".", &st) == 0)
			s->directories[s->n_files - 1] = owner_of(&st);
	}
	free(f.data);
	return rc;
}

int configure_read(struct configuration *c, const struct configure_options *o, struct err *e)
{
	const char *named = configure_named(o ? o->file : NULL);
	int rc = 0;
	c->settings.schema = &config_schema;
	settings_finish(&c->settings);
	find_places(c, named);
	for (size_t i = 0; i < c->n_places && !rc; i++)
		rc = read_place(c, i, named != NULL, e);
	if (!rc && o && o->set.n)
		rc = settings_set(&c->settings, SET_OPTION, &o->set, e);
	return rc ? rc : settings_apply(&c->settings, &c->values, e);
}

int configure_leniently(struct configuration *c, const struct configure_options *o,
	void (*log)(const char *format, ...), struct err *e)
{
	const struct settings *s = &c->settings;
	char text[2048];
	int rc = configure_read(c, o, e);
	for (size_t i = 0; rc == 0 && i < s->n_errors; i++) {
		settings_error_text(s, i, text, sizeof(text));
		if (strcmp(s->files[s->errors[i].file], SET_OPTION) == 0)
			rc = err_set(e, ERR_USAGE, "%s", text);
		else if (log)
			log("%s", text);
	}
	return rc;
}

void configure_rows(const struct command *self, struct option_row rows[OPTIONS_MAX])
{
	settings_rows(&config_schema, self->options, rows);
}

void configure_override(const struct command *self, struct configuration *c)
{
	struct option_row rows[OPTIONS_MAX];
	configure_rows(self, rows);
	settings_override(rows, &c->values, &c->options, c->given);
}

struct configuration configure_like(const struct configuration *c)
{
	struct configuration new = {
		.root = c->root, .recorder = c->recorder, .options = c->options
	};
	memcpy(new.given, c->given, sizeof(new.given));
	return new;
}

int configure(const struct command *self, struct configuration *c,
	const struct configure_options *o, int *status)
{
	struct err e = { 0 };
	char text[2048];
	*status = configure_read(c, o, &e) ? cmd_fail(self, &e) : 0;
	for (size_t i = 0; !*status && i < c->settings.n_errors; i++) {
		settings_error_text(&c->settings, i, text, sizeof(text));
		fprintf(stderr, "gua %s: %s\n", self->name, text);
	}
	if (!*status && c->settings.n_errors)
		*status = err_exit_code(ERR_USAGE);
	configure_override(self, c);
	return *status != 0;
}

int configure_again(
	const struct command *self, struct configuration *c, const struct configure_options *o)
{
	struct configuration fresh = configure_like(c);
	struct err e = { 0 };
	int rc = configure_leniently(&fresh, o, log_warning, &e);
	if (rc)
		log_warning("%s", e.text);
	bool worse = rc || fresh.settings.n_errors;
	for (size_t i = 0; i < fresh.n_places && i < c->n_places && !rc; i++) {
		if (c->places[i].found != CONFIG_READ ||
			fresh.places[i].found != CONFIG_MISSING)
			continue;
		log_warning("%s is not there any more", fresh.places[i].path);
		worse = true;
	}
	if (worse) {
		configure_finish(&fresh);
		return rc ? rc : ERR_USAGE;
	}
	configure_override(self, &fresh);
	*c = fresh;
	return 0;
}

void configure_finish(struct configuration *c)
{
	settings_finish(&c->settings);
}

void configure_example(struct str *out)
{
	str_add(out,
		"# Configuration of gua; see man gua.conf. gua config shows what is in force,\n"
		"# and gua config --check FILE checks a file. Every key is shown with its\n"
		"# default, or with an example where it has none.\n");
	for (const struct config_section *at = config_schema.sections; at->name; at++) {
		/* A block that was not asked for must not be in force. */
		str_addf(out, "\n# %s\n%s[%s%s]\n", at->help, at->block_size ? "#" : "",
			at->name, at->block_size ? " NAME" : "");
		for (const struct config_key *key = config_schema.keys; key->section; key++) {
			if (strcmp(key->section, at->name) != 0)
				continue;
			str_addf(out, "# %s\n", key->value.help);
			const char *name = key->value.name;
			str_addf(out, "#%s%s%s\n", name ? name : "", name ? " = " : "",
				key->initial ? key->initial : key->example);
		}
	}
}
