/* gua install: makes the recorder a service of the system. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/share/hand_over.h"
#include "cmd/install_steps.h"

struct values {
	const char *root;
	bool dry_run, no_start;
};

static const struct option_row options[] = {
	{ OPTION_FLAG, 0, "dry-run", .help = "print every step, and do none",
		.offset = offsetof(struct values, dry_run) },
	{ OPTION_TEXT, 0, "root", "DIR", "install into the system image below DIR",
		.offset = offsetof(struct values, root) },
	{ OPTION_FLAG, 0, "no-start", .help = "neither enable nor start the service",
		.offset = offsetof(struct values, no_start) },
	{ 0 },
};

/* The service sees no home directories, and a /tmp of its own. */
static int check_program(const struct install_steps *s, struct err *e)
{
	static const char *const hidden[] = { "/home/", "/root/", "/run/user/", "/tmp/",
		"/var/tmp/" };
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (strncmp(s->program, hidden[i], strlen(hidden[i])) == 0)
			return err_set(e, ERR_WORLD,
				"a service cannot start %s, because it sees nothing in %s; put "
				"gua into the system first, for example with 'make install', "
				"and run it from there",
				s->program, hidden[i]);
	return 0;
}

static bool has_packaged_unit(const struct installation *in)
{
	char path[PATH_MAX];
	for (size_t i = 0; i < N_ITEMS; i++)
		if (installation_items[i].kind == ITEM_FILE &&
			strstr(installation_items[i].name, INSTALLED_UNIT))
			return installation_packaged(in, &installation_items[i], path);
	return false;
}

static int check(const struct install_steps *s, struct err *e)
{
	if (geteuid() != 0 && !s->dry_run && !s->in.root[0])
		return err_set(e, ERR_WORLD,
			"only root can install a service: run 'sudo gua install'; 'gua "
			"install --dry-run' prints what it would do, and 'gua start' records "
			"as you");
	/* The image may have a program that this host does not have. */
	return s->in.root[0] || has_packaged_unit(&s->in) ? 0 : check_program(s, e);
}

static void print_next(const struct install_steps *s)
{
	if (s->dry_run)
		return;
	printf("\nData: " INSTALLED_DATA "; settings: /etc/gua/gua.conf. ");
	printf("Members of the group " INSTALLED_USER " can read the data:\n"
	       "  usermod -a -G " INSTALLED_USER " USER\n");
	if (!s->start)
		printf("Start the recorder with: systemctl enable --now " INSTALLED_UNIT "\n");
	else if (s->in.root[0])
		printf("The recorder starts when the image is booted.\n");
	else
		printf("'gua status' says what the recorder does; 'gua uninstall' undoes all "
		       "this and keeps the data.\n");
}

static int run(const struct command *self, int argc, char **argv)
{
	struct values v = { .root = "" };
	char program[PATH_MAX];
	struct err e = { 0 };
	int status;
	if (cmd_options_only(self, argc, argv, &v, &status))
		return status;
	struct install_steps s = { .in = { .root = strcmp(v.root, "/") == 0 ? "" : v.root },
		.program = program,
		.dry_run = v.dry_run,
		.start = !v.no_start };
	if (!hand_over_self(program))
		err_set(&e, ERR_WORLD, "the path of this program is not known");
	if (e.code || check(&s, &e) || install_steps_make(&s, &e))
		return cmd_fail(self, &e);
	print_next(&s);
	return 0;
}

const struct command cmd_install = {
	.name = "install",
	.summary = "make the recorder a service of this system",
	.usage = "[--dry-run] [--root DIR] [--no-start]",
	.details = "Makes the user and the group gua, /var/lib/gua, an example of\n"
		   "/etc/gua/gua.conf and the systemd unit gua.service, unless a package has\n"
		   "installed them, and starts the service. Running it again is harmless:\n"
		   "what is there stays as it is.",
	.options = options,
	.run = run,
};
