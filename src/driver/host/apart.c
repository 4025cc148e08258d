/* Starts helpers for sources, waits for them, and gives up those that do not answer. */
#include "driver/host/apart.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "driver/host/apart_site.h"

#define PATIENCE_MS 30000
/* How long a helper that has nothing to do may take to close its driver. */
#define CLOSING_MS 1000
/* A process that wakes up later than this was stopped in between. */
#define FROZEN_US 1000000

struct apart {
	struct source_host base;
	struct apart_site *sites[SOURCE_KINDS_MAX];
	size_t n_sites;
	struct source_place *places; /* one for each site, shared with the helpers */
	struct apart_manner manner;
	int stop_fd, wake_fd;
};

void apart_left_add(struct left *l, struct left_process process,
	const struct source_avoid *card, int64_t now_us)
{
	size_t i = card ? 0 : l->n_cards;
	while (i < l->n_cards && l->cards[i].card.index != card->index)
		i++;
	if (i == LEFT_ENTRIES || (!card && process.pidfd < 0)) {
		file_close(process.pidfd);
		return;
	}
	struct left_card *c = &l->cards[i];
	if (i == l->n_cards) {
		*c = (struct left_card){ .card.index = -1 };
		l->n_cards++;
	}
	c->process = process;
	if (!card)
		return;
	int64_t wait_us = c->wait_us ? 2 * c->wait_us : LEFT_FIRST_US;
	c->card = *card;
	c->wait_us = wait_us < LEFT_LONGEST_US ? wait_us : LEFT_LONGEST_US;
	c->until_us = now_us + c->wait_us;
}

size_t apart_left_check(struct left *l, int64_t now_us)
{
	size_t living = 0, kept = 0;
	for (size_t i = 0; i < l->n_cards; i++) {
		struct left_card *c = &l->cards[i];
		/* A process that could not be killed has ended: the driver works again. */
		if (c->process.pidfd >= 0 && helper_is_gone(c->process.pidfd)) {
			c->process.pidfd = -1;
			c->until_us = now_us;
		}
		bool still = c->process.pidfd >= 0;
		living += still;
		/* The number of failures is remembered for as long again as the card was left
		 * alone. */
		if (still || now_us < c->until_us + c->wait_us)
			l->cards[kept++] = *c;
	}
	l->n_cards = kept;
	return living;
}

void apart_left_avoids(const struct left *l, int64_t now_us, struct source_avoids *out)
{
	out->n = 0;
	for (size_t i = 0; i < l->n_cards && out->n < SOURCE_AVOID_MAX; i++) {
		const struct left_card *c = &l->cards[i];
		if (c->card.index >= 0 && (c->process.pidfd >= 0 || now_us < c->until_us))
			out->cards[out->n++] = c->card;
	}
}

size_t apart_left_list(const struct left *l, struct source_stuck *out, size_t max)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n_cards && n < max; i++)
		if (l->cards[i].process.pidfd >= 0)
			out[n++] = (struct source_stuck){ .pid = l->cards[i].process.pid,
				.card = l->cards[i].card };
	return n;
}

void apart_left_finish(struct left *l)
{
	for (size_t i = 0; i < l->n_cards; i++)
		file_close(l->cards[i].process.pidfd);
	*l = (struct left){ 0 };
}

/* Describes what the helper is doing: "nvmlDeviceGetSamples on card 3"; "": no call. */
static void describe_place(const struct source_place *shared, char *dst, size_t cap)
{
	struct source_place p;
	char call[SOURCE_CALL_CAP];
	memcpy(&p, shared, sizeof(p));
	str_escape(call, sizeof(call), p.call, strnlen(p.call, sizeof(p.call)));
	if (call[0] && p.card >= 0)
		snprintf(dst, cap, "%s on card %d", call, p.card);
	else
		snprintf(dst, cap, "%s", call);
}

/* Ends the helper. If it cannot be ended or was given up, notes which card it was asking. True:
 * it cannot be ended. */
static bool free_helper(struct apart_site *s, int64_t wait_ms, bool given_up)
{
	struct source_avoid card = { .index = s->place->card };
	struct left_process process = { .pid = helper_pid(s->helper) };
	process.pidfd = helper_free(s->helper, wait_ms);
	if (process.pidfd >= 0 || given_up)
		apart_left_add(&s->left, process, card.index >= 0 ? &card : NULL,
			clock_monotonic_us());
	s->helper = NULL;
	s->busy = false;
	s->patrol_us = 0;
	return process.pidfd >= 0;
}

void apart_site_end(struct apart_site *s)
{
	if (s->helper)
		free_helper(s, s->busy ? 0 : CLOSING_MS, false);
}

int apart_site_refuse(struct apart_site *s, struct err *e)
{
	apart_site_end(s);
	return err_set(e, ERR_WORLD, "the process that asks the driver sent an invalid answer");
}

/* Kills the helper, or leaves it behind. */
static int give_up(struct apart_site *s, struct err *e)
{
	char where[HELPER_PLACE_CAP], age[40];
	int card = s->place->card;
	pid_t pid = helper_pid(s->helper);
	int64_t patience_ms = s->manner->patience_ms;
	describe_place(s->place, where, sizeof(where));
	bool stuck = free_helper(s, 0, true);
	if (patience_ms < 1000)
		snprintf(age, sizeof(age), "%lld ms", (long long)patience_ms);
	else
		str_copy(age, sizeof(age), duration_text(patience_ms).text);
	if (stuck)
		log_warning(
			"process %d is stuck in %s and cannot be ended; it is left behind%s",
			(int)pid, where[0] ? where : "the driver",
			card >= 0 ? ", and the card is left alone until it ends" : "");
	else if (card >= 0)
		log_warning("%s has not come back for %s; the card is left alone for a while",
			where, age);
	return err_set(e, ERR_WORLD, "the driver has not answered for %s%s%s%s", age,
		where[0] ? " (stuck in " : "", where, where[0] ? ")" : "");
}

static int not_yet(const struct apart_site *s, struct err *e)
{
	char where[HELPER_PLACE_CAP];
	describe_place(s->place, where, sizeof(where));
	return err_set(e, ERR_BUSY, "the driver does not answer%s%s%s",
		where[0] ? " (stuck in " : "", where, where[0] ? ")" : "");
}

static int64_t due_of(const struct source_place *place)
{
	return __atomic_load_n(&place->due_us, __ATOMIC_RELAXED);
}

/* Returns when the helper is given up. On a patrol this time starts again with each glance. */
static int64_t end_of_patience(const struct apart_site *s)
{
	int64_t due_us = s->asked_us;
	if (s->patrol_us && due_of(s->place) > due_us)
		due_us = clock_earlier(due_of(s->place), due_us + s->patrol_us);
	return due_us + s->manner->patience_ms * 1000;
}

/* Waits for the helper, until it answers, this thread is interrupted, a moment is reached, or
 * the helper's time is over. */
static int receive(
	struct apart_site *s, int64_t until_us, const struct str **reply, struct err *e)
{
	for (;;) {
		struct pollfd fds[] = { { .fd = helper_fd(s->helper), .events = POLLIN },
			{ .fd = s->stop_fd, .events = POLLIN } };
		int64_t end_us = end_of_patience(s);
		int64_t left_ms =
			(clock_earlier(until_us, end_us) - clock_monotonic_us()) / 1000;
		int ready = poll(fds, 2, left_ms > 0 ? (int)left_ms : 0);
		/* If this process did not run, perhaps the helper did not either. */
		if (ready == 0 && clock_monotonic_us() > end_us + FROZEN_US)
			s->asked_us = clock_monotonic_us();
		if (ready < 0 && errno != EINTR)
			return err_set(e, ERR_WORLD, "poll: %s", strerror(errno));
		int rc = ready > 0 && fds[0].revents ? helper_receive(s->helper, 0, reply, e)
						     : ERR_BUSY;
		if (rc != ERR_BUSY)
			return rc;
		if (ready > 0 && fds[1].revents)
			return not_yet(s, e);
		if (left_ms <= 0 && end_us == end_of_patience(s))
			return until_us < end_us ? not_yet(s, e) : give_up(s, e);
	}
}

/* Waits like receive(). If there is no answer in time, the helper is given up. */
static int take_reply(
	struct apart_site *s, int64_t until_us, const struct str **reply, struct err *e)
{
	int rc = receive(s, until_us, reply, e);
	if (!rc) {
		s->busy = false;
		s->patrol_us = 0;
	}
	if (rc && rc != ERR_BUSY)
		apart_site_end(s);
	if (!s->helper)
		s->why = *e;
	return rc;
}

int apart_site_ask(struct apart_site *s, const struct str *request, const struct str **reply,
	struct err *e)
{
	if (!s->helper)
		return err_set(e, ERR_WORLD, "%s",
			s->why.code ? s->why.text
				    : "the process that asks the driver is not running");
	if (s->busy)
		return not_yet(s, e);
	if (request->failed ? err_memory(e)
			    : helper_send(s->helper, str_text(request), request->len, e)) {
		apart_site_end(s);
		s->why = *e;
		return e->code;
	}
	s->busy = true;
	s->asked_us = clock_monotonic_us();
	return take_reply(s,
		s->options.shared ? s->asked_us + s->manner->turn_ms * 1000 : INT64_MAX, reply,
		e);
}

int apart_site_late(struct apart_site *s, const struct str **reply, struct err *e)
{
	if (!s->helper || !s->busy)
		return err_set(e, ERR_WORLD, "the process that asks the driver is not running");
	return take_reply(s, clock_monotonic_us(), reply, e);
}

static int start_helper(struct apart_site *s, struct err *e)
{
	struct apart_serving serving = { .kind = s->kind,
		.options = s->options,
		.wake_fd = s->wake_fd >= 0 ? HELPER_WAKE_FD : -1 };
	char name[16];
	snprintf(name, sizeof(name), "gua-%s", s->kind->name);
	if (s->manner->name)
		str_copy(name, sizeof(name), s->manner->name);
	const struct helper_work work = { .name = name,
		.begin = apart_serve_begin,
		.serve = apart_serve,
		.end = apart_serve_end,
		.wake_fd = s->wake_fd >= 0 ? s->wake_fd : 0,
		.context = &serving };
	source_place_set(s->place, -1, "");
	return helper_new(&s->helper, &work, e);
}

int apart_site_start(struct apart_site *s, struct err *e)
{
	size_t stuck = apart_left_check(&s->left, clock_monotonic_us());
	if (s->helper)
		return 0;
	int rc = stuck < LEFT_MOST
			 ? start_helper(s, e)
			 : err_set(e, ERR_WORLD,
				   "%zu processes are stuck in the driver; no other is started "
				   "before one of them has ended. A reset of the card or a "
				   "reboot may be needed",
				   stuck);
	if (rc == 0)
		return 1;
	s->why = *e;
	return rc;
}

void apart_site_avoids(struct apart_site *s, struct source_avoids *out)
{
	int64_t now_us = clock_monotonic_us();
	apart_left_check(&s->left, now_us);
	apart_left_avoids(&s->left, now_us, out);
}

static struct apart_site *find_site(
	struct apart *a, const struct source_kind *kind, const struct source_options *options)
{
	for (size_t i = 0; i < a->n_sites; i++)
		if (a->sites[i]->kind == kind)
			return a->sites[i];
	struct apart_site *s = a->n_sites < SOURCE_KINDS_MAX ? malloc(sizeof(*s)) : NULL;
	if (!s)
		return NULL;
	*s = (struct apart_site){ .kind = kind,
		.options = *options,
		.place = &a->places[a->n_sites],
		.stop_fd = a->stop_fd,
		.wake_fd = a->wake_fd,
		.manner = &a->manner };
	s->options.name = kind->name;
	s->options.host = NULL;
	s->options.place = s->place;
	a->sites[a->n_sites++] = s;
	return s;
}

static int open_source(struct source_host *h, struct source **source,
	const struct source_kind *kind, const struct source_options *options, struct err *e)
{
	struct apart_site *s = find_site((struct apart *)h, kind, options);
	return s ? apart_source_open(source, s, e) : err_memory(e);
}

static void interrupt(struct source_host *h)
{
	eventfd_write(((struct apart *)h)->stop_fd, 1);
}

static void where(struct source_host *h, char *dst, size_t cap)
{
	struct apart *a = (struct apart *)h;
	dst[0] = '\0';
	for (size_t i = 0; i < SOURCE_KINDS_MAX && !dst[0]; i++)
		describe_place(&a->places[i], dst, cap);
}

static void recall(struct source_host *h, bool on)
{
	eventfd_t count;
	int fd = ((struct apart *)h)->wake_fd;
	if (on)
		eventfd_write(fd, 1);
	else
		eventfd_read(fd, &count);
}

static int64_t due_us(struct source_host *h)
{
	const struct apart *a = (struct apart *)h;
	int64_t newest_us = 0;
	for (size_t i = 0; i < SOURCE_KINDS_MAX; i++)
		if (due_of(&a->places[i]) > newest_us)
			newest_us = due_of(&a->places[i]);
	return newest_us;
}

static size_t stuck(struct source_host *h, struct source_stuck *out, size_t max)
{
	struct apart *a = (struct apart *)h;
	size_t n = 0;
	for (size_t i = 0; i < a->n_sites; i++) {
		struct apart_site *s = a->sites[i];
		apart_left_check(&s->left, clock_monotonic_us());
		size_t before = n;
		n += apart_left_list(&s->left, out + n, max - n);
		for (size_t k = before; k < n; k++)
			str_copy(out[k].kind, sizeof(out[k].kind), s->kind->name);
	}
	return n;
}

void apart_remember(struct apart *a, const struct source_stuck *one)
{
	struct left_process process = { .pid = one->pid,
		.pidfd = (int)syscall(SYS_pidfd_open, one->pid, 0) };
	for (size_t i = 0; process.pidfd >= 0 && i < a->n_sites; i++) {
		struct apart_site *s = a->sites[i];
		if (strcmp(s->kind->name, one->kind) != 0)
			continue;
		apart_left_add(&s->left, process, one->card.index >= 0 ? &one->card : NULL,
			clock_monotonic_us());
		log_warning("process %d of an earlier recorder is still stuck in the driver%s",
			one->pid,
			one->card.index >= 0 ? "; its card is left alone until it ends" : "");
		return;
	}
	file_close(process.pidfd);
}

void apart_stop(struct apart *a)
{
	for (size_t i = 0; i < a->n_sites; i++)
		apart_site_end(a->sites[i]);
}

/* Starts the helpers of the sources in the options; if that fails, opening one reports why. */
static void start_early(struct apart *a, const struct source_options *options)
{
	struct source_options hosted = *options;
	struct source_list list;
	struct err e = { 0 };
	hosted.host = &a->base;
	if (!options->name || source_list_read(&list, options->name, true, &e) != 0)
		return;
	hosted.shared = list.n > 1;
	for (size_t i = 0; i < list.n; i++) {
		if (!source_kind_is_apart(list.kinds[i], &hosted))
			continue;
		struct apart_site *s = find_site(a, list.kinds[i], &hosted);
		if (s)
			apart_site_start(s, &e);
	}
}

struct apart_manner apart_manner_of(int64_t deadline_ms)
{
	return (struct apart_manner){
		.patience_ms = deadline_ms > PATIENCE_MS ? deadline_ms : PATIENCE_MS,
		.turn_ms = deadline_ms / 2,
	};
}

int apart_new(struct apart **out, const struct source_options *options,
	const struct apart_manner *manner, struct err *e)
{
	struct apart *a = calloc(1, sizeof(*a));
	if (!a)
		return err_memory(e);
	a->base = (struct source_host){
		.open = open_source,
		.interrupt = interrupt,
		.where = where,
		.recall = recall,
		.stuck = stuck,
		.due_us = due_us,
	};
	a->manner = *manner;
	a->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	a->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	a->places = mmap(NULL, SOURCE_KINDS_MAX * sizeof(*a->places), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (a->places == MAP_FAILED)
		a->places = NULL;
	if (a->stop_fd < 0 || a->wake_fd < 0 || !a->places) {
		apart_free(a);
		return err_set(e, ERR_WORLD,
			"cannot prepare the process that asks the driver: %s", strerror(errno));
	}
	start_early(a, options);
	*out = a;
	return 0;
}

void apart_free(struct apart *a)
{
	if (!a)
		return;
	apart_stop(a);
	for (size_t i = 0; i < a->n_sites; i++) {
		apart_left_finish(&a->sites[i]->left);
		free(a->sites[i]);
	}
	if (a->places)
		munmap(a->places, SOURCE_KINDS_MAX * sizeof(*a->places));
	file_close(a->stop_fd);
	file_close(a->wake_fd);
	free(a);
}

struct source_host *apart_host(struct apart *a)
{
	return &a->base;
}
