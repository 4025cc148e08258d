/* Reads gua.conf(5) for a command: finds the files, checks them, and puts options over them. */
#pragma once

#include "cmd/cmd.h"
#include "config/config.h"
#include "config/settings.h"

/* The system's file; below --root for commands that have that option. */
#define SYSTEM_CONFIG "/etc/gua/gua.conf"

/* The options of a command that reads the configuration, and their rows: `member` is one of
 * these structs in the command's `type`. */
struct configure_options {
	const char *file;     /* --config; NULL: the usual places */
	struct text_list set; /* --set */
};
#define CONFIGURE_ROWS(type, member)                                                           \
	{ OPTION_TEXT, 0, "config", "FILE", "read FILE instead of gua.conf's usual places",    \
		.offset = offsetof(type, member.file) },                                       \
	{                                                                                      \
		OPTION_LIST, 0, "set", "KEY=VALUE",                                            \
			"set a key of gua.conf: record.interval=10s",                          \
			.offset = offsetof(type, member.set)                                   \
	}

/* A row of an option that sets a key of gua.conf, "SECTION.KEY", for this run. */
#define KEY_ROW(letter_, name_, key_)                                                          \
	{                                                                                      \
		.letter = (letter_), .name = (name_), .key = (key_)                            \
	}

enum config_found { CONFIG_MISSING, CONFIG_READ, CONFIG_DENIED, CONFIG_REFUSED };

/* Zero-initialise. */
struct configuration {
	const char *root;	 /* where the system's file is looked for; NULL: / */
	bool recorder;		 /* files that others can write to are refused */
	bool given[OPTIONS_MAX]; /* for struct command_line: the options that were given */
	struct config options;	 /* the same: what those say that set keys */
	/* Set by configure_read(). */
	struct config values;
	struct settings settings;
	struct {
		char path[PATH_MAX];
		enum config_found found;
	} places[2];
	size_t n_places;
};

/* The file that the user named: the option's value, else GUA_CONFIG; NULL: none. */
const char *configure_named(const char *option);

/* Reads the files and --set (`o` NULL: there are no options). Errors in them are listed in
 * c->settings, and the rest is in force. Fails for an invalid --set, or out of memory. */
int configure_read(struct configuration *c, const struct configure_options *o, struct err *e);

/* The same for a program that goes on with what is right: an error in --set is ERR_USAGE, and
 * those in files are logged with `log` (NULL: not). */
int configure_leniently(struct configuration *c, const struct configure_options *o,
	void (*log)(const char *format, ...), struct err *e);

/* For a command whose options have been parsed: reads, prints the errors, and lets the
 * options override the files. Returns 0 to continue, or 1 to return *status. */
int configure(const struct command *self, struct configuration *c,
	const struct configure_options *o, int *status);
/* Lets the options override the files. */
void configure_override(const struct command *self, struct configuration *c);
/* Copies the options of a command that has been configured before, to read again. */
struct configuration configure_like(const struct configuration *c);
/* The rows of a command, with what the schema says of keys. */
void configure_rows(const struct command *self, struct option_row rows[OPTIONS_MAX]);

/* Reads again, for a service. If there are errors, logs them and leaves *c as it is. Otherwise
 * *c is the new configuration, and the caller finishes its copy of the old one when nothing
 * points into it. */
int configure_again(
	const struct command *self, struct configuration *c, const struct configure_options *o);

void configure_finish(struct configuration *c);

/* Appends a file with every key and its default. */
void configure_example(struct str *out);
