/* Opens the clock, source and store of the commands that show the cards now. */
#include "cmd/share/cmd_live.h"

#include <malloc.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "cmd/share/configure.h"
#include "lease/lease_dir.h"
#include "proc/pods.h"

/* Scenario time 0 of a virtual clock without a file. */
#define VIRTUAL_START_MS 1793606400000LL
enum { LEAST_MS = 100, LONGEST_MS = 86400000 };

/* Chooses the store to read; NULL: none. A simulated view reads a store only if the user named
 * it: otherwise it would be the one of the real cards. */
static const char *choose_db(struct live_session *s, const struct live_values *v)
{
	struct err unknown = { 0 };
	bool invented = source_is_invented(v->o.source.name);
	if (v->no_store || v->o.db || v->only_named)
		return v->no_store ? NULL : v->o.db;
	int rc = choose_db_to_read(&s->chosen, &unknown);
	return rc || (invented && !s->chosen.named) ? NULL : s->chosen.path;
}

void cmd_live_note_captured(const char *source)
{
	const char *path = source_capture_path(source);
	char safe[256];
	if (!path)
		return;
	str_escape(safe, sizeof(safe), path, strlen(path));
	fprintf(stderr, "gua: readings from the capture %s: not of this host, and not live\n",
		safe);
}

/* Whether pods are named by the uids of their processes here. Where there are no pods, the
 * configuration is not read. */
static bool keeps_uids(const char *root)
{
	struct configuration conf = { .root = root };
	struct err e = { 0 };
	if (!file_is_below(root, "/var/log/pods") &&
		!file_is_below(root, LEASE_DIR_PATH "/" PODS_TABLE))
		return false;
	bool keeps = configure_read(&conf, NULL, &e) == 0 &&
		     strcmp(conf.values.pod_user, "uid") == 0;
	configure_finish(&conf);
	return keeps;
}

int cmd_live_open(struct live_session *s, const struct live_values *v,
	const unsigned char *wanted, struct err *e)
{
	*s = (struct live_session){ .stop_fd = -1 };
	struct live_options o = v->o;
	if (source_check(o.source.name, o.source.scenario, false, e) ||
		clock_open(&s->clock, v->clock, VIRTUAL_START_MS, e))
		return e->code;
	o.db = choose_db(s, v);
	o.db_named = s->named = o.db && (v->o.db || s->chosen.named);
	o.rules = (struct rules)RULES_DEFAULT;
	o.metrics = wanted;
	o.keep_uids = keeps_uids(o.source.root);
	o.source.nvml_path = cmd_nvml_path(o.source.nvml_path);
	o.source.clock = &s->clock;
	/* The view itself shows what the driver does not support. */
	log_setup(LOG_LEVEL_ERROR, LOG_STYLE_PLAIN);
	/* The driver's thread and this one seldom run at the same time: one heap is enough. */
	mallopt(M_ARENA_MAX, 1);
	int rc = live_open(&s->live, &o, e);
	if (rc)
		cmd_live_close(s);
	else
		cmd_live_note_captured(o.source.name);
	s->next_us = clock_now(&s->clock).boot_us;
	return rc;
}

void cmd_live_close(struct live_session *s)
{
	live_close(s->live);
	s->live = NULL;
	file_close(s->stop_fd);
	s->stop_fd = -1;
	clock_finish(&s->clock);
}

int cmd_live_look(struct live_session *s, struct err *e)
{
	int rc = live_refresh(s->live, s->stop_fd, e);
	s->lost = rc != 0;
	return rc;
}

int cmd_live_check(const struct live_session *s, struct err *e)
{
	return live_present(s->live)->n_cards
		       ? 0
		       : err_set(e, ERR_NOTHING, "the driver works but lists no card");
}

int cmd_live_refresh(struct live_session *s, struct err *e)
{
	int rc = cmd_live_look(s, e);
	return rc ? rc : cmd_live_check(s, e);
}

void cmd_live_note(struct live_session *s, const struct command *self)
{
	const char *note = live_present(s->live)->hosts[0].note;
	if (s->named && *note)
		fprintf(stderr, "gua %s: %s\n", self->name, note);
	s->named = false;
}

void cmd_live_catch(struct live_session *s)
{
	sigset_t stop;
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	s->stop_fd = signalfd(-1, &stop, SFD_CLOEXEC);
}

bool cmd_live_wait(struct live_session *s, int64_t every_ms)
{
	struct pollfd fd = { .fd = s->stop_fd, .events = POLLIN };
	int64_t now_us = clock_now(&s->clock).boot_us;
	s->next_us += every_ms * 1000;
	if (s->next_us < now_us)
		s->next_us = now_us;
	int ready;
	do {
		ready = clock_wait(&s->clock, s->next_us, &fd, 1);
	} while (ready < 0 && errno == EINTR);
	return ready == 0;
}

bool cmd_live_again(struct live_session *s, const struct command *self, int *rc,
	const struct err *e, int64_t every_ms)
{
	if (*rc && !s->lost)
		return false;
	int64_t late_ms = s->lost ? 0 : live_late_ms(s->live);
	bool well = !s->lost && !late_ms;
	struct pollfd stop = { .fd = s->stop_fd, .events = POLLIN };
	if (s->lost && !s->told && poll(&stop, 1, 0) <= 0)
		fprintf(stderr, "gua %s: %s; trying again\n", self->name, e->text);
	if (late_ms && !s->told_late)
		fprintf(stderr,
			"gua %s: the driver always takes longer than --driver-timeout; the "
			"readings are %.1f s old\n",
			self->name, (double)late_ms / 1000);
	if (well && s->told)
		fprintf(stderr, "gua %s: the driver answers again\n", self->name);
	s->told = !well;
	s->told_late = !well && (s->told_late || late_ms);
	if (cmd_live_wait(s, every_ms))
		return true;
	*rc = 0;
	return false;
}

int cmd_live_print(const struct command *self, const struct live_values *v,
	const unsigned char *wanted, const struct live_lines *lines, struct err *e)
{
	static struct live_session s; /* a stuck thread may still use its clock */
	struct str out = { 0 };
	int64_t looks = 0;
	int rc = cmd_live_open(&s, v, wanted, e);
	if (rc)
		return rc;
	FILE *to = lines->path ? fopen(lines->path, "we") : stdout;
	bool closed = to != NULL;
	while (to) {
		rc = cmd_live_refresh(&s, e);
		if (rc == 0)
			rc = lines->look(&s, lines->context, &out, e);
		if (rc == 0)
			rc = cmd_write(to, &out, e);
		if (rc == 0 && lines->note)
			cmd_live_note(&s, self);
		if (!lines->every_ms || ++looks == lines->count ||
			!cmd_live_again(&s, self, &rc, e, lines->every_ms))
			break;
	}
	if (to && lines->path)
		closed = fclose(to) == 0;
	if (!closed && rc == 0)
		rc = err_set(e, ERR_WORLD, "cannot write %s: %s", lines->path, strerror(errno));
	str_finish(&out);
	cmd_live_close(&s);
	return rc;
}

int cmd_live_seconds(const char *text, int64_t *ms, struct err *e)
{
	char *end = NULL;
	double seconds = strtod(text, &end);
	bool plain = end != text && *end == '\0' && seconds >= 0 && seconds < 1e6;
	if (plain)
		*ms = (int64_t)(seconds * 1000 + 0.5);
	else if (duration_parse(text, ms, e) != 0)
		return ERR_USAGE;
	if (*ms <= 0)
		return err_set(
			e, ERR_USAGE, "the time between two readings must be more than 0");
	if (*ms < LEAST_MS)
		*ms = LEAST_MS;
	return 0;
}

int cmd_live_loop(const char *loop, const char *loop_ms, int64_t *every_ms, struct err *e)
{
	*every_ms = 0;
	if (loop && loop_ms)
		return err_set(e, ERR_USAGE, "--loop and --loop-ms exclude each other");
	if (loop && cmd_live_seconds(*loop ? loop : "5", every_ms, e) != 0)
		return err_prefix(e, "--loop");
	if (!loop_ms)
		return 0;
	char *end = NULL;
	*every_ms = strtoll(loop_ms, &end, 10);
	if (end == loop_ms || *end || *every_ms < 1 || *every_ms > LONGEST_MS)
		return err_set(e, ERR_USAGE,
			"--loop-ms takes milliseconds, at most a day, not '%s'", loop_ms);
	return 0;
}
