/* gua pick: finds free cards, and prints them or runs a command on them. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timetext.h"
#include "cmd/cmd.h"
#include "cmd/live.h"
#include "cmd/pick_lock.h"
#include "live/filter.h"
#include "live/pick.h"

/* Default of --hold: the time that a program may need to load its libraries before it allocates
 * memory on the card. */
#define HOLD_MS 30000
/* With --free-for the cards are read at least this often: some drivers keep no samples, so use
 * between two readings that are further apart would not be seen. */
enum { MAX_CARDS = 64, FIRST_POLL_MS = 1000, LAST_POLL_MS = 10000, WATCH_POLL_MS = 2000 };

struct values {
	struct live_values live;
	struct filter_values filter;			 /* only --id is used */
	int64_t n, min_free_bytes, free_for_ms, hold_ms; /* hold_ms -1: not given */
	double max_util_pct;
	const char *wait, *format, *lock_dir;
};

#define AT(member) .offset = offsetof(struct values, member)
static const struct option_row rows[] = {
	{ OPTION_COUNT, 'n', "count", "N", "number of cards (default 1)", AT(n), .min = 1,
		.max = MAX_CARDS },
	{ OPTION_SIZE, 0, "min-free", "SIZE",
		"at least this much free memory; the card may be in use: 20G, 8GiB (default: "
		"only cards without holders)",
		AT(min_free_bytes) },
	{ OPTION_REAL, 0, "max-util", "PCT", "at most this utilisation (default: not active)",
		AT(max_util_pct), .max = 100 },
	{ OPTION_DURATION, 0, "free-for", "D",
		"truly idle for at least this long, by the store: 10m (default: now)",
		AT(free_for_ms) },
	{ OPTION_MAYBE, 0, "wait", "D", "wait for free cards, at most this long", AT(wait) },
	{ OPTION_CHOICE, 0, "format", "FORMAT", "uuid (default), index, or env: for eval",
		.choices = "index|uuid|env", AT(format) },
	{ OPTION_DURATION, 0, "hold", "D",
		"without a command: keep the cards from other picks this long (default 30s)",
		AT(hold_ms), .max = 86400e3 },
	{ OPTION_LIST, 'i', "id", "CARD,...",
		"only these cards: index, index:instance, UUID (or its beginning) or PCI "
		"address",
		AT(filter.ids) },
	{ OPTION_TEXT, 0, "lock-dir", "DIR", "directory of the locks (default /run/lock/gua)",
		AT(lock_dir) },
	LIVE_ROWS(struct values, live),
	{ 0 },
};

/* The chosen cards and their locks. */
struct choice {
	struct card_id cards[MAX_CARDS];
	int locks[MAX_CARDS];
	char suspect[256]; /* the message about a suspect card among them, or "" */
	size_t n;
};

static void release(struct choice *c)
{
	for (size_t i = 0; i < c->n; i++)
		close(c->locks[i]);
	c->n = 0;
	c->suspect[0] = '\0';
}

/* Locks cards in order until there are enough; returns 0 also if there are too few. */
static int lock_cards(struct choice *c, const struct pick_wish *wish, int directory,
	const struct live_card *cards, const size_t *ranked, size_t n, size_t *counts,
	struct err *e)
{
	for (size_t i = 0; i < n && c->n < wish->n; i++) {
		const struct card_id *id = &cards[ranked[i]].id;
		int fd = pick_lock_take(directory, id->uuid, false, e);
		if (fd == ERR_BUSY) {
			counts[PICK_GOOD]--;
			counts[PICK_TAKEN]++;
			continue;
		}
		if (fd < 0)
			return fd;
		if (cards[ranked[i]].state == CARD_SUSPECT)
			live_suspect_text(c->suspect, sizeof(c->suspect), &cards[ranked[i]]);
		c->locks[c->n] = fd;
		c->cards[c->n++] = *id;
	}
	return 0;
}

/* Reads the cards once, and fills `c` with wish->n cards or with none. */
static int choose(struct choice *c, struct pick_wish *wish, const struct filter *filter,
	struct live_session *s, int directory, size_t counts[PICK_VERDICTS], struct err *e)
{
	size_t n_cards;
	memset(counts, 0, PICK_VERDICTS * sizeof(*counts));
	int rc = cmd_live_refresh(s, e);
	/* Readings that are always old are not good enough to choose a card. */
	if (rc == 0 && live_late_ms(s->live)) {
		s->lost = true;
		rc = err_set(e, ERR_BUSY,
			"the driver always takes longer than --driver-timeout to answer");
	}
	if (rc)
		return rc;
	wish->rules = *live_rules(s->live);
	const struct live_card *cards = live_cards(s->live, &n_cards);
	size_t *candidates = calloc(n_cards + 1, sizeof(*candidates));
	if (!candidates)
		return err_memory(e);
	int n = filter_cards(filter, cards, n_cards, candidates, e);
	/* One pick at a time: otherwise two picks that need two cards each could get one
	 * each. */
	int turn = n < 0 ? n : pick_lock_take(directory, "choosing", true, e);
	rc = turn < 0 ? turn : 0;
	if (rc == 0) {
		size_t good = pick_rank(
			wish, cards, candidates, (size_t)n, live_now_ms(s->live), counts);
		rc = lock_cards(c, wish, directory, cards, candidates, good, counts, e);
		if (rc || c->n < wish->n)
			release(c);
		close(turn);
	}
	free(candidates);
	return rc;
}

/* "no free card: 2 held; 1 active". */
static int no_card(const struct values *v, const size_t counts[PICK_VERDICTS], const char *note,
	struct err *e)
{
	struct str why = { 0 };
	for (size_t i = 0; i < PICK_VERDICTS; i++)
		if (counts[i])
			str_addf(&why, "%s%zu %s", why.len ? "; " : "", counts[i],
				pick_verdict_names[i]);
	if (v->n == 1)
		err_set(e, ERR_WORLD, "no free card: %s", str_text(&why));
	else
		err_set(e, ERR_WORLD, "fewer than %d free cards: %s", (int)v->n,
			str_text(&why));
	str_finish(&why);
	if (v->free_for_ms > 0 && *note) {
		struct err whole = *e;
		err_set(e, ERR_WORLD, "%s (%s)", whole.text, note);
	}
	return ERR_WORLD;
}

/* Reads the cards repeatedly, at growing intervals, until there are enough or the time is over.
 * A driver that fails in the meantime may come back, so the wait continues. */
static int choose_in_time(struct choice *c, const struct values *v, struct live_session *s,
	const struct filter *filter, int directory, int64_t wait_ms, struct err *e)
{
	struct pick_wish wish = { .n = (size_t)v->n,
		.min_free_bytes = v->min_free_bytes,
		.max_util_pct = v->max_util_pct,
		.free_for_ms = v->free_for_ms };
	size_t counts[PICK_VERDICTS];
	int64_t start_us = clock_now(&s->clock).boot_us, poll_ms = FIRST_POLL_MS;
	int64_t last_poll_ms = v->free_for_ms > 0 ? WATCH_POLL_MS : LAST_POLL_MS;
	for (bool first = true;; first = false) {
		int rc = choose(c, &wish, filter, s, directory, counts, e);
		if (c->n || (rc && !s->lost))
			return rc;
		int64_t left_ms = wait_ms - (clock_now(&s->clock).boot_us - start_us) / 1000;
		if (wait_ms >= 0 && left_ms <= 0)
			return rc ? rc : no_card(v, counts, live_note(s->live), e);
		if (s->lost && !s->told)
			fprintf(stderr, "gua pick: %s; waiting\n", e->text);
		else if (!s->lost && first && isatty(STDERR_FILENO))
			fputs("gua pick: not enough free cards; waiting\n", stderr);
		s->told = s->lost;
		cmd_live_wait(s, wait_ms >= 0 && left_ms < poll_ms ? left_ms : poll_ms);
		poll_ms = 2 * poll_ms < last_poll_ms ? 2 * poll_ms : last_poll_ms;
	}
}

/* UUIDs come from the driver and are passed to eval: allow only characters that a shell does
 * not interpret. */
static bool is_plain(const char *uuid)
{
	return uuid[strspn(uuid, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789-/_.:")] == '\0';
}

static int add_uuids(struct str *out, const struct choice *c, struct err *e)
{
	for (size_t i = 0; i < c->n; i++) {
		if (!is_plain(c->cards[i].uuid))
			return err_set(e, ERR_WORLD,
				"the driver reports an unusable UUID for a card: '%s'",
				c->cards[i].uuid);
		str_addf(out, "%s%s", i ? "," : "", c->cards[i].uuid);
	}
	return 0;
}

static void add_indexes(struct str *out, const struct choice *c)
{
	for (size_t i = 0; i < c->n; i++) {
		char label[CARD_LABEL_CAP];
		card_label(label, sizeof(label), &c->cards[i]);
		str_addf(out, "%s%s", i ? "," : "", label);
	}
}

static int print_choice(const struct command *self, const char *format, const struct choice *c)
{
	struct str out = { 0 };
	struct err e = { 0 };
	if (strcmp(format, "env") == 0)
		str_add(&out, "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=");
	if (strcmp(format, "index") == 0)
		add_indexes(&out, c);
	else if (add_uuids(&out, c, &e)) {
		str_finish(&out);
		return cmd_fail(self, &e);
	}
	str_add(&out, "\n");
	return cmd_print(self, &out);
}

/* Replaces this process with the command, which keeps the locks open while it runs. */
static int become(const struct command *self, char **argv, const struct choice *c)
{
	struct str uuids = { 0 };
	struct err e = { 0 };
	int rc = add_uuids(&uuids, c, &e);
	if (!rc && (setenv("CUDA_VISIBLE_DEVICES", str_text(&uuids), 1) != 0 ||
			   setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1) != 0))
		rc = err_memory(&e);
	str_finish(&uuids);
	for (size_t i = 0; i < c->n && !rc; i++)
		if (fcntl(c->locks[i], F_SETFD, 0) != 0)
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

/* Finds the cards. Everything is closed again except their locks. */
static int pick(struct choice *c, const struct values *v, int64_t wait_ms, struct err *e)
{
	static const unsigned char wanted[METRIC_COUNT] = {
		[METRIC_UTILIZATION_GPU] = 1,
		[METRIC_MEMORY_TOTAL] = 1,
		[METRIC_MEMORY_USED] = 1,
		[METRIC_MEMORY_FREE] = 1,
	};
	static struct live_session session; /* a thread that hangs may still use its clock */
	struct filter filter;
	bool shared = false;
	int rc = filter_init(&filter, &v->filter, e);
	if (rc)
		return rc;
	rc = cmd_live_open(&session, &v->live, wanted, e);
	if (rc)
		return rc;
	int directory = pick_lock_directory(v->lock_dir, &shared, e);
	rc = directory < 0 ? directory : 0;
	if (rc == 0 && !shared && !v->lock_dir)
		fputs("gua pick: other users do not see these locks, because there is no "
		      "shared "
		      "/run/lock/gua\n",
			stderr);
	if (rc == 0)
		rc = choose_in_time(c, v, &session, &filter, directory, wait_ms, e);
	if (rc == 0 && c->suspect[0])
		fprintf(stderr, "gua pick: %s\n", c->suspect);
	if (directory >= 0)
		close(directory);
	cmd_live_close(&session);
	return rc;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct values v = { .n = 1, .min_free_bytes = -1, .hold_ms = -1, .max_util_pct = NAN };
	struct choice chosen = { 0 };
	struct err e = { 0 };
	int64_t wait_ms = 0;
	int first = 0, status = 0;
	if (cmd_options(self, argc, argv, &v, &first, &status))
		return status;
	int rc = read_wait(&v, argv[first], &wait_ms, &e);
	if (rc == 0 && v.format && first < argc)
		rc = err_set(&e, ERR_USAGE, "--format is for a pick without a command");
	if (rc == 0 && v.hold_ms >= 0 && first < argc)
		rc = err_set(&e, ERR_USAGE,
			"--hold is for a pick without a command; a command holds its cards "
			"itself");
	if (rc == 0)
		rc = pick(&chosen, &v, wait_ms, &e);
	if (rc)
		return cmd_fail(self, &e);
	if (first < argc)
		return become(self, argv + first, &chosen);
	if (pick_lock_keep(v.hold_ms >= 0 ? v.hold_ms : HOLD_MS, &e) != 0)
		return cmd_fail(self, &e);
	status = print_choice(self, v.format ? v.format : "uuid", &chosen);
	release(&chosen);
	return status;
}

const struct command cmd_pick = {
	.name = "pick",
	.summary = "find free cards, wait for them, run a command on them",
	.usage = "[-n N] [--min-free SIZE] [--max-util PCT] [--free-for D] [--wait[=D]] "
		 "[OPTIONS] [-- COMMAND]",
	.details = "With a command, gua pick sets CUDA_VISIBLE_DEVICES and runs the command. "
		   "Other picks do\n"
		   "not get the cards while it runs. The exit status is 1 if not enough cards "
		   "are free.",
	.options = rows,
	.stop_at_operand = true,
	.run = run,
};
