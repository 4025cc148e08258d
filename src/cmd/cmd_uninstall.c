/* gua uninstall: undoes what gua install has done. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/install_steps.h"

struct values {
	const char *root;
	bool dry_run, purge, yes;
};

static const struct option_row options[] = {
	{ OPTION_FLAG, 0, "dry-run", .help = "print every step, and do none",
		.offset = offsetof(struct values, dry_run) },
	{ OPTION_TEXT, 0, "root", "DIR", "remove from the system image below DIR",
		.offset = offsetof(struct values, root) },
	{ OPTION_FLAG, 0, "purge", .help = "remove the data too, after a question",
		.offset = offsetof(struct values, purge) },
	{ OPTION_FLAG, 0, "yes", .help = "with --purge: do not ask",
		.offset = offsetof(struct values, yes) },
	{ 0 },
};

/* Asks on the terminal whether the data may be removed. */
static int confirm(const struct install_steps *s, struct err *e)
{
	char answer[16] = "";
	if (!isatty(STDIN_FILENO))
		return err_set(e, ERR_USAGE,
			"--purge asks before it removes data, and standard input is not a "
			"terminal: add --yes, or leave out --purge");
	printf("Remove all that was recorded in %s%s? This cannot be undone. [y/N] ",
		s->in.root, INSTALLED_DATA);
	fflush(stdout);
	if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
		return 0;
	return err_set(e, ERR_WORLD, "nothing was removed");
}

static int check(const struct install_steps *s, bool ask, struct err *e)
{
	if (geteuid() != 0 && !s->dry_run && !s->in.root[0])
		return err_set(e, ERR_WORLD,
			"only root can remove a service: run 'sudo gua uninstall'");
	return ask ? confirm(s, e) : 0;
}

/* What is left, and where. */
static void print_rest(const struct install_steps *s)
{
	char path[PATH_MAX];
	if (installation_path(&s->in, INSTALLED_DATA, path, NULL) != 0 ||
		access(path, F_OK) != 0 || s->dry_run)
		return;
	printf("\nThe data stays in %s; 'gua uninstall --purge' removes it. 'gua report --db "
	       "%s/gua.db' still reads it.\n",
		path, path);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct values v = { .root = "" };
	struct err e = { 0 };
	int status;
	if (cmd_options_only(self, argc, argv, &v, &status))
		return status;
	struct install_steps s = { .in = { .root = strcmp(v.root, "/") == 0 ? "" : v.root },
		.dry_run = v.dry_run,
		.purge = v.purge };
	if (check(&s, v.purge && !v.yes && !v.dry_run, &e) || install_steps_undo(&s, &e))
		return cmd_fail(self, &e);
	print_rest(&s);
	return 0;
}

const struct command cmd_uninstall = {
	.name = "uninstall",
	.summary = "undo what gua install has done, and keep the data",
	.usage = "[--dry-run] [--root DIR] [--purge [--yes]]",
	.details = "Removes what gua install has made and nobody has changed since. Programs,\n"
		   "manual pages and what a package has installed stay: remove them with\n"
		   "'make uninstall' or the package.",
	.options = options,
	.run = run,
};
