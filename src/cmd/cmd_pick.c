/* gua pick: finds free cards, and prints them or runs a command on them. */
#include <signal.h>

#include "cmd/share/cmd_live.h"
#include "cmd/share/configure.h"
#include "lease/lease_dir.h"
#include "pick/pick.h"
#include "pick/pick_lock.h"
#include "present/filter.h"
#include "proc/cgroup.h"
#include "proc/proc.h"

#define SHARED_DIRECTORY "/run/lock/gua"
/* Sticky: nobody can remove or rename the files of others, except the directory's owner. */
enum { SHARED_MODE = 01777, PRIVATE_MODE = 0700 };

/* Opens a directory, and creates it with `mode` (0: not) if it is missing. Symbolic links are
 * not followed, because another user may have created them. */
static int open_directory(const char *path, mode_t mode)
{
	bool made = mode && mkdir(path, mode) == 0;
	if (mode && !made && errno != EEXIST)
		return -1;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* The umask may have removed bits. */
	if (fd >= 0 && made && fchmod(fd, mode) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Opens the directory of all users. On failure returns -1, and writes what is wrong with it. */
static int open_shared(const char *path, char *why, size_t cap)
{
	struct stat s;
	int fd = open_directory(path, geteuid() == 0 ? SHARED_MODE : 0);
	if (fd < 0 || fstat(fd, &s) != 0)
		snprintf(why, cap, "%s: %s", path, strerror(errno));
	else if (s.st_uid != 0)
		snprintf(why, cap, "%s does not belong to root", path);
	else if ((s.st_mode & 07777) != SHARED_MODE)
		snprintf(why, cap, "%s does not have mode 1777", path);
	else
		return fd;
	file_close(fd);
	return -1;
}

/* Opens a directory that nobody else can write to. */
static int open_private(const char *path, struct err *e)
{
	struct stat s;
	int fd = open_directory(path, PRIVATE_MODE);
	if (fd < 0 || fstat(fd, &s) != 0)
		err_set(e, ERR_WORLD,
			"cannot open %s for the locks: %s; give another directory with "
			"--lock-dir",
			path, strerror(errno));
	else if (s.st_uid != geteuid() || (s.st_mode & 022))
		err_set(e, ERR_WORLD,
			"%s belongs to another user or others may write to it; give another "
			"directory for the locks with --lock-dir",
			path);
	else
		return fd;
	file_close(fd);
	return ERR_WORLD;
}

/* Opens $XDG_RUNTIME_DIR/gua/pick or, if that is not possible, /tmp/gua-pick-UID. */
static int open_own(const char *root, struct err *e)
{
	char path[PATH_MAX];
	struct err ignored = { 0 };
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	if (runtime && runtime[0] == '/' && file_path(path, "%s/gua/pick", runtime) &&
		access(runtime, W_OK) == 0 &&
		file_make_parent(path, PRIVATE_MODE, &ignored) == 0) {
		int fd = open_private(path, &ignored);
		if (fd >= 0)
			return fd;
	}
	if (!file_path(path, "%s/tmp/gua-pick-%u", root, (unsigned)geteuid()))
		return err_set(e, ERR_USAGE, "the path of the locks is too long");
	return open_private(path, e);
}

/* Opens the directory of the locks: `asked`; or ROOT/run/lock/gua, if it belongs to root and
 * has mode 1777 (root creates it); or a private directory of the user, with a warning; or none,
 * with another warning, because a user who has put files there must not stop the pick. *fd is a
 * descriptor, or -1 for none. Fails only for `asked`. */
static int open_place(int *fd, const char *asked, const char *root, struct err *e)
{
	struct stat s;
	struct err own = { 0 };
	char path[PATH_MAX], why[PATH_MAX + 64], safe[PATH_MAX];
	if (asked) {
		*fd = open_directory(asked, SHARED_MODE);
		if (*fd < 0)
			return err_set(e, ERR_WORLD, "cannot open %s for the locks: %s", asked,
				strerror(errno));
		if (fstat(*fd, &s) == 0 && s.st_uid != 0 && s.st_uid != geteuid())
			fprintf(stderr,
				"gua pick: the directory of the locks belongs to uid %u, who "
				"can remove locks of others\n",
				(unsigned)s.st_uid);
		return 0;
	}
	if (!file_path(path, "%s" SHARED_DIRECTORY, root))
		return err_set(e, ERR_USAGE, "the path of the locks is too long");
	*fd = open_shared(path, why, sizeof(why));
	if (*fd >= 0)
		return 0;
	*fd = open_own(root, &own);
	str_escape(safe, sizeof(safe), why, strlen(why));
	if (*fd >= 0)
		fprintf(stderr,
			"gua pick: picks of other users are not seen (%s); an administrator "
			"can create the directory: systemd-tmpfiles --create gua.conf\n",
			safe);
	else
		fprintf(stderr,
			"gua pick: the cards are not reserved, and other picks may choose them "
			"too (%s; %s)\n",
			safe, own.text);
	*fd = *fd >= 0 ? *fd : -1;
	return 0;
}

struct values {
	struct live_values live;
	struct filter_values filter; /* only --id is used */
	struct pick_wish wish;
	int64_t hold_ms; /* -1: not given */
	const char *wait, *format, *lock_dir, *leases;
	bool json, ignore_reservations;
	int64_t wait_ms; /* read from `wait`; 0: do not wait; -1: without limit */
};

/* With --free-for the cards are read at least this often: some drivers keep no samples, so use
 * between two readings that are further apart would not be seen. */
enum { FIRST_POLL_MS = 1000, LAST_POLL_MS = 10000, WATCH_POLL_MS = 2000 };
/* A pick chooses within milliseconds: a process that keeps the turn for this long is stuck. */
#define TURN_MS 5000
/* Cards are left for earlier waiting picks for this long. It is many times their longest
 * interval of polling. One that waits for many cards gets this time to collect them; one that
 * is stopped, or that only pretends to wait, cannot block the others for longer. */
#define YIELD_MS (5 * 60 * 1000)

/* The state of one card during a choice. */
struct hold {
	bool asked, promised;
	int fd;		      /* reservation; -1: none */
	struct pick_owner by; /* if reserved: by whom; if promised: for whom */
};

struct search {
	const struct values *v;
	struct live_session *session;
	struct filter filter;
	struct pick_wish wish;
	struct pick_locks locks;
	struct pick_queue queue;
	struct lease_dir *lease_dir;
	const struct leases *leases; /* at the last look; NULL: they do not count */
	char job[LABEL_CAP];	     /* in which this pick runs, by its cgroup; "": none */
	bool told;		     /* what cannot be seen of leases */
	bool joined;		     /* a place in the queue was asked for */
	struct pick_result *result;
	int64_t yielding_since_us; /* since when enough cards have been left for others; -1:
				      they are not */
	/* One choice. */
	const struct present *now;
	struct hold *holds;		   /* by index of the card */
	struct pick_candidate *candidates; /* cards of the filter, the good ones first */
	size_t n_candidates, n_good;
};

/* Prints a warning. */
static void warn(const char *text)
{
	fprintf(stderr, "gua pick: %s\n", text);
}

/* Finds the job of this process, and opens the directory of leases. Without it, cards are
 * picked as if there were none. */
static void open_leases(struct search *s)
{
	const char *root = s->v->live.o.source.root;
	struct configuration conf = { .root = root };
	struct cgroup_labels labels = { 0 };
	char bytes[4096];
	struct err e = { 0 };
	int proc = -1;
	if (proc_open(&proc, root, &e) == 0) {
		ssize_t n = proc_read_cgroup(proc, (uint32_t)getpid(), bytes, sizeof(bytes));
		cgroup_parse(bytes, n < 0 ? 0 : (size_t)n, &labels);
		close(proc);
	}
	str_copy(s->job, sizeof(s->job), labels.job);
	bool read = configure_read(&conf, NULL, &e) == 0;
	const struct lease_dir_options o = { .path = s->v->leases,
		.root = root,
		.numbering = read ? conf.values.leases.numbering : NULL };
	if (lease_dir_open(&s->lease_dir, &o, &e) != 0)
		warn(e.text);
	configure_finish(&conf);
}

/* Whether a lease is that of the job in which this pick runs. A user may set the variable to
 * anything, so it counts only for a lease of the same user. */
static bool is_own(const struct search *s, const struct lease *lease)
{
	const char *claimed = cmd_variable("SLURM_JOB_ID");
	if (lease->kind != LEASE_SLURM)
		return false;
	return (strncmp(s->job, "slurm:", 6) == 0 && strcmp(s->job + 6, lease->id) == 0) ||
	       (claimed && strcmp(claimed, lease->id) == 0 && lease->uid == getuid());
}

/* The lease of somebody else that covers a card; NULL: none. */
static const struct lease *lease_of(const struct search *s, const struct card_id *card)
{
	for (size_t i = 0; s->leases && i < s->leases->n; i++)
		if (s->leases->v[i].kind != LEASE_PICK && /* locks decide about these */
			lease_covers(s->leases, &s->leases->v[i], card) &&
			!is_own(s, &s->leases->v[i]))
			return &s->leases->v[i];
	return NULL;
}

/* Reads the leases, and says once what cannot be seen of them. */
static void look_at_leases(struct search *s)
{
	size_t no_card = 0;
	if (!s->lease_dir || s->v->ignore_reservations)
		return;
	s->leases = lease_dir_read(s->lease_dir, s->now->now_ms);
	for (size_t i = 0; i < s->leases->n; i++)
		no_card += !lease_knows_cards(s->leases, &s->leases->v[i]) &&
			   !is_own(s, &s->leases->v[i]);
	if (!s->told && no_card)
		fprintf(stderr,
			"gua pick: a scheduler has given away cards, and which ones is not "
			"known (leases: %zu; see gua lease check)\n",
			no_card);
	if (!s->told && lease_dir_hidden(s->lease_dir))
		fprintf(stderr,
			"gua pick: leases that this user may not read: %zu; their cards look "
			"free\n",
			lease_dir_hidden(s->lease_dir));
	s->told = true;
}

/* Reads the cards once. */
static int look(struct search *s, struct err *e)
{
	struct live_session *session = s->session;
	struct pick_result *r = s->result;
	int rc = cmd_live_refresh(session, e);
	/* Readings that are always old are not good enough to choose a card. */
	if (rc == 0 && live_late_ms(session->live)) {
		session->lost = true;
		rc = err_set(e, ERR_BUSY,
			"the driver always takes longer than --driver-timeout to answer");
	}
	if (rc)
		return rc;
	s->now = live_present(session->live);
	s->wish.rules = s->now->hosts[0].rules;
	str_copy(r->host, sizeof(r->host), s->now->hosts[0].hostname);
	str_copy(r->note, sizeof(r->note), s->now->hosts[0].note);
	r->time_ms = s->now->now_ms;
	look_at_leases(s);
	return 0;
}

static int rank(struct search *s, struct err *e)
{
	size_t *indexes = calloc(s->now->n_cards + 1, sizeof(*indexes));
	s->holds = calloc(s->now->n_cards + 1, sizeof(*s->holds));
	s->candidates = calloc(s->now->n_cards + 1, sizeof(*s->candidates));
	int n = indexes && s->holds && s->candidates
			? filter_cards(&s->filter, s->now, indexes, e)
			: err_memory(e);
	for (int i = 0; i < n; i++)
		s->candidates[i] = (struct pick_candidate){ .card = &s->now->cards[indexes[i]],
			.lease = lease_of(s, &s->now->cards[indexes[i]].id) };
	free(indexes);
	if (n < 0)
		return n;
	s->n_candidates = (size_t)n;
	for (size_t i = 0; i < s->now->n_cards; i++)
		s->holds[i].fd = -1;
	s->n_good = pick_rank(&s->wish, s->candidates, s->n_candidates, s->now->now_ms);
	return 0;
}

static struct hold *hold_of(struct search *s, const struct present_card *card)
{
	return &s->holds[card - s->now->cards];
}

/* Reserves a card, if that has not been tried yet. */
static int reserve(struct search *s, const struct present_card *card, struct err *e)
{
	struct hold *h = hold_of(s, card);
	if (h->asked)
		return 0;
	h->asked = true;
	int fd = pick_lock_card(&s->locks, card->id.uuid, &h->by, e);
	h->fd = fd > 0 ? fd : -1;
	return fd > 0 || fd == ERR_BUSY ? 0 : fd;
}

/* Marks the cards that an earlier pick would take now, as many as it wants. */
static int promise_to(struct search *s, struct pick_ticket *t, struct err *e)
{
	struct pick_candidate *all = calloc(s->now->n_cards + 1, sizeof(*all));
	size_t n = 0, promised = 0;
	int rc = all ? 0 : err_memory(e);
	t->ask.wish.rules = s->wish.rules;
	for (size_t i = 0; i < s->now->n_cards && !rc; i++)
		if (pick_ask_names(&t->ask, s->now->cards[i].id.uuid))
			all[n++] = (struct pick_candidate){ .card = &s->now->cards[i],
				.lease = lease_of(s, &s->now->cards[i].id) };
	size_t good = rc ? 0 : pick_rank(&t->ask.wish, all, n, s->now->now_ms);
	for (size_t i = 0; i < good && promised < (size_t)t->ask.wish.n && !rc; i++) {
		struct hold *h = hold_of(s, all[i].card);
		rc = reserve(s, all[i].card, e);
		if (h->fd < 0 || h->promised)
			continue;
		h->promised = true;
		h->by = t->by;
		promised++;
	}
	free(all);
	return rc;
}

/* Chooses among the good candidates; those that are not chosen get another verdict. Returns how
 * many are chosen, or an error. */
static int take(struct search *s, struct err *e)
{
	size_t chosen = 0, left = 0, want = (size_t)s->wish.n;
	int64_t now_us = clock_now(&s->session->clock).boot_us;
	for (size_t i = 0; i < s->n_good; i++) {
		struct pick_candidate *c = &s->candidates[i];
		struct hold *h = hold_of(s, c->card);
		int rc = chosen < want ? reserve(s, c->card, e) : 0;
		if (rc)
			return rc;
		c->verdict = chosen == want ? PICK_SPARE
			     : h->fd < 0    ? PICK_TAKEN
			     : h->promised  ? PICK_PROMISED
					    : PICK_GOOD;
		chosen += c->verdict == PICK_GOOD;
		left += c->verdict == PICK_PROMISED;
	}
	/* Enough cards may have been left for others for long enough. */
	if (chosen < want && chosen + left < want)
		s->yielding_since_us = -1;
	else if (chosen < want && s->yielding_since_us < 0)
		s->yielding_since_us = now_us;
	bool impatient = chosen < want && s->yielding_since_us >= 0 &&
			 now_us - s->yielding_since_us >= YIELD_MS * INT64_C(1000);
	for (size_t i = 0; i < s->n_good && chosen < want && impatient; i++)
		if (s->candidates[i].verdict == PICK_PROMISED) {
			s->candidates[i].verdict = PICK_GOOD;
			chosen++;
		}
	for (size_t i = 0; i < s->n_good && chosen < want; i++)
		if (s->candidates[i].verdict == PICK_GOOD)
			s->candidates[i].verdict = PICK_SPARE;
	return chosen < want ? 0 : (int)chosen;
}

static void copy_fact(struct search *s, const struct pick_candidate *c, struct pick_fact *f)
{
	struct hold *h = hold_of(s, c->card);
	const double *values = c->card->values;
	*f = (struct pick_fact){ .id = c->card->id,
		.verdict = c->verdict,
		.lock = -1,
		.by = h->by,
		.free_bytes = values[METRIC_MEMORY_FREE],
		.util_pct = values[METRIC_UTILIZATION_GPU],
		.holders = values[METRIC_GUA_HOLDERS],
		.free_since_ms = c->card->free_since_ms };
	if (c->card->state == CARD_SUSPECT)
		present_suspect_text(f->suspect, sizeof(f->suspect), c->card);
	if (c->lease)
		f->lease = *c->lease;
	if (c->verdict == PICK_GOOD) {
		f->lock = h->fd;
		h->fd = -1;
	}
}

/* Copies what was found into the result: first the picked cards, then the others. */
static int keep_facts(struct search *s, struct err *e)
{
	struct pick_result *r = s->result;
	pick_result_finish(r);
	r->facts = calloc(s->n_candidates + 1, sizeof(*r->facts));
	if (!r->facts)
		return err_memory(e);
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < s->n_candidates; i++)
			if ((s->candidates[i].verdict == PICK_GOOD) == (round == 0))
				copy_fact(s, &s->candidates[i], &r->facts[r->n_facts++]);
	while (r->n_picked < r->n_facts && r->facts[r->n_picked].verdict == PICK_GOOD)
		r->n_picked++;
	return 0;
}

/* Takes a place in the queue. Without one, the pick waits all the same. */
static void join(struct search *s)
{
	struct str wish = { 0 }, cards = { 0 };
	struct err e = { 0 };
	s->joined = true;
	for (size_t i = 0; i < s->n_candidates && s->v->filter.ids.n; i++)
		str_addf(&cards, "%s%s", i ? "," : "", s->candidates[i].card->id.uuid);
	pick_wish_add(&wish, &s->wish, str_text(&cards));
	if (pick_lock_join(&s->queue, &s->locks, str_text(&wish), &e) != 0)
		fprintf(stderr, "gua pick: %s; waiting without a place in the queue\n", e.text);
	str_finish(&wish);
	str_finish(&cards);
}

/* Reads the cards once, and reserves as many as are wanted or none. */
static int choose(struct search *s, struct err *e)
{
	if (look(s, e))
		return e->code;
	int rc = rank(s, e);
	/* One pick at a time: else two picks that need two cards each could get one each. */
	int turn = rc ? -1 : pick_lock_turn(&s->locks, TURN_MS);
	/* Cards are left for all earlier picks. */
	struct pick_ticket *tickets = NULL;
	bool yields = rc == 0 && s->v->wait_ms != 0 && !s->v->ignore_reservations;
	size_t n = yields ? pick_lock_waiting(&s->queue, &s->locks, &tickets) : 0;
	for (size_t i = 0; i < n && !rc; i++)
		rc = promise_to(s, &tickets[i], e);
	free(tickets);
	if (rc == 0)
		rc = take(s, e);
	if (rc >= 0)
		rc = keep_facts(s, e);
	if (rc == 0 && !s->result->n_picked && s->v->wait_ms && !s->joined &&
		s->locks.directory >= 0)
		join(s);
	for (size_t i = 0; i < s->now->n_cards && s->holds; i++)
		file_close(s->holds[i].fd);
	free(s->holds);
	free(s->candidates);
	s->holds = NULL;
	s->candidates = NULL;
	file_close(turn);
	return rc;
}

/* Reads the cards repeatedly, at growing intervals, until there are enough or the time is over.
 * A driver that fails in the meantime may come back, so the wait continues; that it does is
 * said once. */
static int choose_in_time(struct search *s, struct err *e)
{
	struct live_session *session = s->session;
	int64_t wait_ms = s->v->wait_ms, poll_ms = FIRST_POLL_MS;
	int64_t start_us = clock_now(&session->clock).boot_us;
	int64_t last_poll_ms = s->wish.free_for_ms > 0 ? WATCH_POLL_MS : LAST_POLL_MS;
	for (bool first = true;; first = false) {
		struct str lines = { 0 };
		int rc = choose(s, e);
		if (s->result->n_picked || (rc && !session->lost))
			return rc;
		size_t want = (size_t)s->wish.n;
		if (!rc && s->result->n_facts && want > s->result->n_facts)
			return err_set(e, ERR_WORLD,
				"%zu cards are wanted, and there are only %zu to choose from",
				want, s->result->n_facts);
		int64_t left_ms =
			wait_ms - (clock_now(&session->clock).boot_us - start_us) / 1000;
		if (wait_ms >= 0 && left_ms <= 0 && !rc) {
			const char *note = live_present(session->live)->hosts[0].note;
			rc = pick_result_refuse(s->result, want, e);
			if (s->wish.free_for_ms > 0 && *note) {
				struct err whole = *e;
				err_set(e, ERR_WORLD, "%s (%s)", whole.text, note);
			}
		}
		if (wait_ms >= 0 && left_ms <= 0)
			return rc;
		if (session->lost && !session->told) {
			fprintf(stderr, "gua pick: %s; waiting\n", e->text);
		} else if (!session->lost && first && isatty(STDERR_FILENO)) {
			pick_result_reservations(s->result, &lines);
			fprintf(stderr, "%sgua pick: not enough free cards; waiting\n",
				str_text(&lines));
			str_finish(&lines);
		}
		session->told = session->lost;
		cmd_live_wait(session, wait_ms >= 0 && left_ms < poll_ms ? left_ms : poll_ms);
		poll_ms = 2 * poll_ms < last_poll_ms ? 2 * poll_ms : last_poll_ms;
	}
}

/* Finds the cards. Everything is closed again except their reservations, which are in *r. On
 * failure *r has what is known about the cards. */
static int search_cards(struct pick_result *r, const struct values *v, struct err *e)
{
	static const unsigned char wanted[METRIC_COUNT] = {
		[METRIC_UTILIZATION_GPU] = 1,
		[METRIC_MEMORY_TOTAL] = 1,
		[METRIC_MEMORY_USED] = 1,
		[METRIC_MEMORY_FREE] = 1,
	};
	static struct live_session session; /* a stuck thread may still use its clock */
	struct search s = { .v = v,
		.session = &session,
		.wish = v->wish,
		.locks = { .directory = -1,
			.ignore_others = v->ignore_reservations,
			.warn = warn },
		.queue = PICK_QUEUE_NONE,
		.result = r,
		.yielding_since_us = -1 };
	struct live_values live = v->live;
	live.o.cards_only = true;
	if (filter_init(&s.filter, &v->filter, e) || cmd_live_open(&session, &live, wanted, e))
		return e->code;
	int rc = open_place(&s.locks.directory, v->lock_dir, live.o.source.root, e);
	open_leases(&s);
	if (!rc)
		rc = choose_in_time(&s, e);
	lease_dir_close(s.lease_dir);
	pick_lock_leave(&s.queue, &s.locks);
	file_close(s.locks.directory);
	cmd_live_close(&session);
	return rc;
}

/* Default of --hold: the time that a program may need to load its libraries before it allocates
 * memory on the card. */
#define HOLD_MS 30000
/* What a shell evaluates if nothing was picked: programs see no card, and the status is not 0.
 */
#define CLOSED_TEXT "export CUDA_VISIBLE_DEVICES=; false\n"

#define AT(member) .offset = offsetof(struct values, member)
static const struct option_row rows[] = {
	{ OPTION_COUNT, 'n', "count", "N", "number of cards (default 1)", AT(wish.n), .min = 1,
		.max = PICK_MAX_CARDS },
	{ OPTION_SIZE, 0, "min-free", "SIZE",
		"at least this much free memory; the card may be in use: 20G, 8GiB (default: "
		"only cards without holders)",
		AT(wish.min_free_bytes) },
	{ OPTION_REAL, 0, "max-util", "PCT", "at most this utilisation (default: not active)",
		AT(wish.max_util_pct), .max = 100 },
	{ OPTION_DURATION, 0, "free-for", "D",
		"truly-idle for at least this long, according to the store: 10m",
		AT(wish.free_for_ms) },
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
		"also cards that another user has reserved, or a scheduler has given away, but "
		"that nobody uses",
		AT(ignore_reservations) },
	{ OPTION_TEXT, 0, "leases", "DIR",
		"directory of the leases (default " LEASE_DIR_PATH ")", AT(leases) },
	LIVE_ROWS(struct values, live),
	{ 0 },
};

/* Replaces this process with the command, which keeps the locks open while it runs. */
static int become(
	const struct command *self, char **argv, const struct pick_result *r, struct err *e)
{
	struct str uuids = { 0 };
	int rc = pick_result_uuids(r, &uuids, e);
	if (!rc && (setenv("CUDA_VISIBLE_DEVICES", str_text(&uuids), 1) != 0 ||
			   setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1) != 0))
		rc = err_memory(e);
	str_finish(&uuids);
	for (size_t i = 0; i < r->n_picked && !rc; i++)
		if (fcntl(r->facts[i].lock, F_SETFD, 0) != 0)
			rc = err_set(e, ERR_WORLD, "cannot keep a lock: %s", strerror(errno));
	if (rc)
		return rc;
	execvp(argv[0], argv);
	int status = cmd_not_started(argv, errno, e);
	cmd_fail(self, e);
	return status;
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
		/* getopt_long(3) accepts abbreviations; --f also begins --free-for. */
		if (name >= strlen("--fo") && strncmp(argv[i], "--format", name) == 0 &&
			value && strncasecmp(value, "env", 3) == 0)
			return true;
	}
	return false;
}

/* Prints the picked cards, after a background process holds them. */
static int hand_out(const struct call *call, const struct pick_result *r, struct err *e)
{
	const struct values *v = call->values;
	struct str out = { 0 };
	const char *format = v->format ? v->format : "uuid";
	int64_t hold_ms = v->hold_ms >= 0 ? v->hold_ms : HOLD_MS;
	int locks[PICK_MAX_CARDS];
	for (size_t i = 0; i < r->n_picked; i++)
		locks[i] = r->facts[i].lock;
	int rc = pick_lock_keep(locks, r->n_picked, hold_ms, e);
	if (rc)
		return rc;
	if (strcmp(format, "env") == 0)
		str_add(&out, "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=");
	if (v->json)
		pick_result_json(r, hold_ms, NULL, &out);
	else if (strcmp(format, "index") == 0)
		pick_result_indexes(r, &out);
	else
		rc = pick_result_uuids(r, &out, e);
	if (!v->json)
		str_add(&out, "\n");
	if (rc)
		str_finish(&out);
	return rc ? rc : cmd_print(call->self, &out);
}

/* Reads --wait, and checks what the options do not say by themselves. `words` begin with the
 * command; the word before it is the last option or "--". */
static int check(struct values *v, char **words, struct err *e)
{
	double number;
	int64_t ms;
	struct err ignored = { 0 };
	v->wait_ms = v->wait ? -1 : 0;
	if (v->wait && *v->wait && duration_parse(v->wait, &v->wait_ms, e))
		return err_prefix(e, "--wait");
	/* A first word that is probably not the command. An optional value must follow "=": as
	 * a separate word, 10m would be the command. */
	bool guess = words[0] && strcmp(words[-1], "--") != 0;
	const char *rest =
		guess && v->wait && !*v->wait ? duration_number(words[0], &number) : NULL;
	if (rest && (!*rest || duration_parse(words[0], &ms, &ignored) == 0))
		return err_set(e, ERR_USAGE,
			"write --wait=%s%s; '%s' as a separate word is taken as the command",
			words[0], *rest ? "" : "s", words[0]);
	if (guess && *words[0] && words[0][strspn(words[0], "0123456789")] == '\0')
		return err_set(e, ERR_USAGE,
			"'%s' is taken as the command; a number of cards is -n %s, the card "
			"with this index is -i %s",
			words[0], words[0], words[0]);
	for (char **word = words; guess && *word; word++)
		if (strcmp(*word, "--") == 0)
			return err_set(e, ERR_USAGE,
				"'%s' is before '--', but neither an option nor the value of "
				"one; the command comes after '--'",
				words[0]);
	if (words[0] && (v->format || v->json))
		return err_set(e, ERR_USAGE, "--%s is for a pick without a command",
			v->format ? "format" : "json");
	if (words[0] && v->hold_ms >= 0)
		return err_set(e, ERR_USAGE,
			"--hold is for a pick without a command; a command holds its cards "
			"itself");
	if (v->json && v->format)
		return err_set(e, ERR_USAGE, "give --json or --format, not both");
	return 0;
}

static int pick(const struct call *call, struct pick_result *r, struct err *e)
{
	struct values *v = call->values;
	char **argv = call->operands;
	if (check(v, argv, e) || search_cards(r, v, e)) {
		struct str lines = { 0 }, out = { 0 };
		pick_result_reservations(r, &lines);
		fputs(str_text(&lines), stderr);
		str_finish(&lines);
		if (v->json && e->code != ERR_USAGE) {
			pick_result_json(r, 0, e->text, &out);
			cmd_print(call->self, &out);
		}
		return e->code;
	}
	for (size_t i = 0; i < r->n_picked; i++)
		if (r->facts[i].suspect[0])
			fprintf(stderr, "gua pick: %s\n", r->facts[i].suspect);
	return argv[0] ? become(call->self, argv, r, e) : hand_out(call, r, e);
}

static int run(const struct call *call, struct err *e)
{
	const struct values *v = call->values;
	struct pick_result result = { .time_ms = (int64_t)time(NULL) * 1000 };
	char host[sizeof(result.host) / 4] = "";
	bool *const *env = call->self->parts;
	**env = v->format && strcmp(v->format, "env") == 0;
	/* What the JSON says if the driver is never reached. */
	if (gethostname(host, sizeof(host) - 1) == 0)
		str_escape(result.host, sizeof(result.host), host, strlen(host));
	int rc = pick(call, &result, e);
	pick_result_finish(&result);
	return rc;
}

static int start(const struct command *self, int argc, char **argv)
{
	struct command own = *self;
	bool env = asks_for_env(argc, argv), *known = &env; /* when the options are read */
	own.parts = &known;
	if (env)
		close_on_signals();
	int status = cmd_call(&own, argc, argv);
	if (status && env) {
		fputs(CLOSED_TEXT, stdout);
		fflush(stdout);
	}
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
	.values_size = sizeof(struct values),
	.initial =
		&(const struct values){
			.wish = { .n = 1, .min_free_bytes = -1, .max_util_pct = NAN },
			.hold_ms = -1 },
	.stop_at_operand = true,
	.start = start,
	.run = run,
};
