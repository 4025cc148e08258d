/* gua pick: finds free cards, and prints them or runs a command on them. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/timetext.h"
#include "cmd/cmd.h"
#include "cmd/share/cmd_live.h"
#include "cmd/pick_lock.h"
#include "cmd/pick_search.h"
#include "pick/pick.h"

/* Default of --hold: the time that a program may need to load its libraries before it allocates
 * memory on the card. */
#define HOLD_MS 30000
/* What a shell evaluates if nothing was picked: programs see no card, and the status is not 0.
 */
#define CLOSED_TEXT "export CUDA_VISIBLE_DEVICES=; false\n"

struct values {
	struct live_values live;
	struct filter_values filter;			 /* only --id is used */
	int64_t n, min_free_bytes, free_for_ms, hold_ms; /* hold_ms -1: not given */
	double max_util_pct;
	const char *wait, *format, *lock_dir;
	bool json, ignore_reservations;
};

#define AT(member) .offset = offsetof(struct values, member)
static const struct option_row rows[] = {
	{ OPTION_COUNT, 'n', "count", "N", "number of cards (default 1)", AT(n), .min = 1,
		.max = PICK_MAX_CARDS },
	{ OPTION_SIZE, 0, "min-free", "SIZE",
		"at least this much free memory; the card may be in use: 20G, 8GiB (default: "
		"only cards without holders)",
		AT(min_free_bytes) },
	{ OPTION_REAL, 0, "max-util", "PCT", "at most this utilisation (default: not active)",
		AT(max_util_pct), .max = 100 },
	{ OPTION_DURATION, 0, "free-for", "D",
		"truly idle for at least this long, according to the store: 10m",
		AT(free_for_ms) },
	{ OPTION_MAYBE, 0, "wait", "D", "wait for free cards, at most this long", AT(wait) },
	{ OPTION_CHOICE, 0, "format", "FORMAT", "uuid (default), index, or env (for eval)",
		.choices = "index|uuid|env", AT(format) },
	{ OPTION_FLAG, 0, "json", NULL, "one JSON document: the cards, or why there are none",
		AT(json) },
	{ OPTION_DURATION, 0, "hold", "D",
		"without a command: keep the cards from other picks this long (default 30s)",
		AT(hold_ms), .max = 86400e3 },
	{ OPTION_LIST, 'i', "id", "CARD,...",
		"only these cards: index, index:instance, UUID (or its beginning) or PCI "
		"address",
		AT(filter.ids) },
	{ OPTION_TEXT, 0, "lock-dir", "DIR", "directory of the locks (default /run/lock/gua)",
		AT(lock_dir) },
	{ OPTION_FLAG, 0, "ignore-reservations", NULL,
		"also cards that another user has reserved but does not use",
		AT(ignore_reservations) },
	LIVE_ROWS(struct values, live),
	{ 0 },
};

/* Replaces this process with the command, which keeps the locks open while it runs. */
static int become(const struct command *self, char **argv, const struct pick_result *r)
{
	struct str uuids = { 0 };
	struct err e = { 0 };
	int rc = pick_result_uuids(r, &uuids, &e);
	if (!rc && (setenv("CUDA_VISIBLE_DEVICES", str_text(&uuids), 1) != 0 ||
			   setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1) != 0))
		rc = err_memory(&e);
	str_finish(&uuids);
	for (size_t i = 0; i < r->n_picked && !rc; i++)
		if (fcntl(r->facts[i].lock, F_SETFD, 0) != 0)
			rc = err_set(&e, ERR_WORLD, "cannot keep a lock: %s", strerror(errno));
	if (rc)
		return cmd_fail(self, &e);
	execvp(argv[0], argv);
	int status = errno == ENOENT ? 127 : 126;
	err_set(&e, ERR_WORLD, "cannot start %s: %s", argv[0], strerror(errno));
	cmd_fail(self, &e);
	return status;
}

/* `command` is the first word that is not an option, or NULL. */
static int read_wait(
	const struct values *v, const char *command, int64_t *wait_ms, struct err *e)
{
	struct err ignored = { 0 };
	*wait_ms = v->wait ? -1 : 0;
	/* An optional value must follow "=": as a separate word, 10m would be the command. */
	if (v->wait && !*v->wait && command && duration_parse(command, wait_ms, &ignored) == 0)
		return err_set(e, ERR_USAGE,
			"write --wait=%s; '%s' as a separate word is taken as the command",
			command, command);
	if (!v->wait || !*v->wait)
		return 0;
	return duration_parse(v->wait, wait_ms, e) ? err_prefix(e, "--wait") : 0;
}

static void write_closed(int number)
{
	(void)!write(STDOUT_FILENO, CLOSED_TEXT, strlen(CLOSED_TEXT));
	raise(number); /* the handler is gone: this ends the program as usual */
}

/* From now on a signal that ends the program leaves the shell without cards. */
static void close_on_signals(void)
{
	static const int numbers[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGXCPU,
		SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGUSR1, SIGUSR2 };
	struct sigaction action = { .sa_handler = write_closed,
		.sa_flags = (int)(SA_RESETHAND | SA_NODEFER) };
	struct sigaction now;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
			sigaction(numbers[i], &action, NULL);
}

/* Whether the words ask for --format env, perhaps misspelt. Used before the options are
 * understood, and if they are not: then a word too many does no harm. */
static bool asks_for_env(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		size_t name = strcspn(argv[i], "=");
		const char *value = argv[i][name] ? argv[i] + name + 1 : argv[i + 1];
		/* getopt_long(3) accepts abbreviations; --f is also the beginning of
		 * --free-for. */
		if (name >= strlen("--fo") && strncmp(argv[i], "--format", name) == 0 &&
			value && strncasecmp(value, "env", 3) == 0)
			return true;
	}
	return false;
}

static int print_cards(const struct command *self, const struct values *v,
	const struct pick_result *r, int64_t hold_ms)
{
	struct str out = { 0 };
	struct err e = { 0 };
	const char *format = v->format ? v->format : "uuid";
	int rc = 0;
	if (strcmp(format, "env") == 0)
		str_add(&out, "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=");
	if (v->json)
		pick_result_json(r, hold_ms, NULL, &out);
	else if (strcmp(format, "index") == 0)
		pick_result_indexes(r, &out);
	else
		rc = pick_result_uuids(r, &out, &e);
	if (rc) {
		str_finish(&out);
		return cmd_fail(self, &e);
	}
	if (!v->json)
		str_add(&out, "\n");
	return cmd_print(self, &out);
}

/* Prints a message on standard error, with the lines before it that say who has the cards; as
 * JSON also on standard output. Returns the exit status. */
static int fail(const struct command *self, const struct values *v, const struct pick_result *r,
	const struct err *e)
{
	struct str lines = { 0 }, out = { 0 };
	pick_result_reservations(r, &lines);
	fputs(str_text(&lines), stderr);
	str_finish(&lines);
	if (v->json && e->code != ERR_USAGE) {
		pick_result_json(r, 0, e->text, &out);
		cmd_print(self, &out);
	}
	return cmd_fail(self, e);
}

static int check(const struct values *v, bool with_command, struct err *e)
{
	if (with_command && v->format)
		return err_set(e, ERR_USAGE, "--format is for a pick without a command");
	if (with_command && v->json)
		return err_set(e, ERR_USAGE, "--json is for a pick without a command");
	if (with_command && v->hold_ms >= 0)
		return err_set(e, ERR_USAGE,
			"--hold is for a pick without a command; a command holds its cards "
			"itself");
	if (v->json && v->format)
		return err_set(e, ERR_USAGE, "give --json or --format, not both");
	return 0;
}

/* Prints the picked cards, after a background process has them. */
static int hand_out(
	const struct command *self, const struct values *v, const struct pick_result *r)
{
	int64_t hold_ms = v->hold_ms >= 0 ? v->hold_ms : HOLD_MS;
	int locks[PICK_MAX_CARDS];
	struct err e = { 0 };
	for (size_t i = 0; i < r->n_picked; i++)
		locks[i] = r->facts[i].lock;
	if (pick_lock_keep(locks, r->n_picked, hold_ms, &e) != 0)
		return cmd_fail(self, &e);
	return print_cards(self, v, r, hold_ms);
}

static int pick(
	const struct command *self, const struct values *v, char **argv, struct pick_result *r)
{
	struct err e = { 0 };
	struct pick_request request = { .live = &v->live,
		.filter = &v->filter,
		.wish = { .n = (size_t)v->n,
			.min_free_bytes = v->min_free_bytes,
			.max_util_pct = v->max_util_pct,
			.free_for_ms = v->free_for_ms },
		.lock_dir = v->lock_dir,
		.ignore_reservations = v->ignore_reservations };
	int rc = read_wait(v, argv[0], &request.wait_ms, &e);
	if (rc == 0)
		rc = check(v, argv[0] != NULL, &e);
	if (rc == 0)
		rc = pick_search(r, &request, &e);
	if (rc)
		return fail(self, v, r, &e);
	for (size_t i = 0; i < r->n_picked; i++)
		if (r->facts[i].suspect[0])
			fprintf(stderr, "gua pick: %s\n", r->facts[i].suspect);
	return argv[0] ? become(self, argv, r) : hand_out(self, v, r);
}

/* What the JSON says if the driver is never reached. */
static struct pick_result unknown_host(void)
{
	struct pick_result r = { .time_ms = (int64_t)time(NULL) * 1000 };
	char name[sizeof(r.host) / 4] = "";
	if (gethostname(name, sizeof(name) - 1) == 0)
		text_escape(r.host, sizeof(r.host), name, strlen(name));
	return r;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct values v = { .n = 1, .min_free_bytes = -1, .hold_ms = -1, .max_util_pct = NAN };
	struct pick_result result = unknown_host();
	bool env = asks_for_env(argc, argv);
	int status = 0;
	if (env)
		close_on_signals();
	int first = cmd_options(self, argc, argv, &v, &status);
	if (first) {
		env = v.format && strcmp(v.format, "env") == 0;
		status = pick(self, &v, argv + first, &result);
	}
	if (status && env) {
		fputs(CLOSED_TEXT, stdout);
		fflush(stdout);
	}
	pick_result_finish(&result);
	return status;
}

const struct command cmd_pick = {
	.name = "pick",
	.summary = "find free cards, wait for them, run a command on them",
	.usage = "[-n N] [--wait[=D]] [OPTIONS] [-- COMMAND [ARGUMENTS]]",
	.details = "With a command, gua pick sets CUDA_VISIBLE_DEVICES and runs the command. "
		   "Other\npicks do not get the cards while it runs. Picks that wait are "
		   "served in the\norder in which they came. The exit status is 1 if not "
		   "enough cards are free;\n--format env then prints a line that hides all "
		   "cards from the shell.",
	.options = rows,
	.stop_at_operand = true,
	.run = run,
};
