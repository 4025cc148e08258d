/* gua-lease: the program behind `gua lease watch`. It is a separate program because it asks a
 * scheduler, for which the recorder has neither the right nor the network. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/words.h"
#include "cmd/cmd_lease.h"
#include "lease/slurm_jobs.h"

/* The largest answer; the longest number of a job; arguments of a command; jobs of a host. */
enum { ANSWER_MAX = 64 << 20, ID_CAP = 16, ARGUMENTS_MAX = 24, IDS_MAX = 4096 };

/* The watch over Slurm. */
struct watch {
	const struct lease_place *place;
	char own[PATH_MAX]; /* the directory of Slurm's leases */
	char node[256];
	bool no_json;	     /* this Slurm does not write it */
	char (*ids)[ID_CAP]; /* of one answer */
	size_t n_ids;
	struct err failed; /* a lease could not be written; code 0: all were */
	struct fault silent, doubtful;
};

/* What a program of Slurm has written. */
struct answer {
	char *data;
	size_t len;
	bool refused; /* it ended with an error, before its time was over */
	bool ended;   /* the error says that there is no such job */
};

static int read_answer(struct answer *a, int fd, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || st.st_size >= ANSWER_MAX)
		return err_set(e, ERR_WORLD, "the answer is larger than %d MiB; use a prolog",
			ANSWER_MAX >> 20);
	a->data = malloc((size_t)st.st_size + 1);
	ssize_t n = a->data ? pread(fd, a->data, (size_t)st.st_size, 0) : -1;
	a->len = n < 0 ? 0 : (size_t)n;
	return n < 0 ? err_memory(e) : 0;
}

/* Fills argv with the configured command and the arguments, which end with NULL. `program`
 * stands beside the configured scontrol. */
static int make_command(const char **argv, char path[PATH_MAX], char **words,
	const char *program, const char *const *arguments)
{
	size_t n = 0;
	for (; n < ARGUMENTS_MAX / 2 && words[n]; n++)
		argv[n] = words[n];
	if (!n || words[n])
		return -1;
	const char *slash = strrchr(argv[n - 1], '/');
	snprintf(path, PATH_MAX, "%.*s%s", slash ? (int)(slash + 1 - argv[n - 1]) : 0,
		argv[n - 1], program);
	if (strcmp(program, "scontrol") != 0)
		argv[n - 1] = path;
	while (*arguments && n < ARGUMENTS_MAX - 1)
		argv[n++] = *arguments++;
	argv[n] = NULL;
	return 0;
}

/* Asks a program of Slurm. The caller frees a->data. */
static int ask(struct watch *w, const char *program, const char *const *arguments,
	struct answer *a, struct err *e)
{
	static const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=%s", NULL, NULL };
	const char *with_conf[6], *argv[ARGUMENTS_MAX];
	char path[PATH_MAX], conf[PATH_MAX + 16], **words = NULL;
	const char *named = cmd_variable("SLURM_CONF");
	size_t n_words = 0;
	struct child_result r = { 0 };
	*a = (struct answer){ 0 };
	memcpy(with_conf, env, sizeof(env));
	snprintf(conf, sizeof(conf), "SLURM_CONF=%s", named ? named : "");
	with_conf[4] = named ? conf : NULL;
	int rc = words_split(w->place->config->slurm, &words, &n_words, e);
	if (rc == 0 && make_command(argv, path, words, program, arguments) != 0)
		rc = err_set(e, ERR_USAGE, "[leases] slurm is not a command");
	int fd = memfd_create("answer", MFD_CLOEXEC);
	if (rc == 0 && fd < 0)
		rc = err_set(e, ERR_WORLD, "memfd_create: %s", strerror(errno));
	const struct child_command c = { .argv = argv,
		.env = with_conf,
		.output_fd = fd,
		.output_max = ANSWER_MAX,
		.timeout_ms = w->place->config->timeout_ms };
	if (rc == 0)
		rc = child_run(&c, &r, e);
	a->refused = rc == 0 && !r.timed_out && r.status != 0;
	a->ended = a->refused && strstr(r.output, "Invalid job id");
	if (rc == 0 && r.status != 0) {
		char text[CHILD_OUTPUT_CAP + 128];
		child_result_text(text, sizeof(text), argv[0], &r);
		rc = err_set(e, ERR_WORLD, "%s", text);
	}
	if (rc == 0)
		rc = read_answer(a, fd, e);
	if (fd >= 0)
		close(fd);
	free(words);
	return rc;
}

static void take_job(void *context, const struct lease_file *job)
{
	struct watch *w = context;
	struct lease_file f = *job;
	f.boot = w->place->boot;
	if (w->n_ids >= IDS_MAX || strlen(f.id) >= ID_CAP || !array_one_more(&w->ids, w->n_ids))
		return;
	str_copy(w->ids[w->n_ids++], ID_CAP, f.id);
	struct err e = { 0 };
	if (lease_dir_put(w->place->path, LEASE_SLURM, &f, w->place->config->private, &e) != 0)
		w->failed = e;
}

static int ask_json(struct watch *w, const struct slurm_jobs *jobs, struct err *e)
{
	static const char *const arguments[] = { "-d", "--json", "show", "job", NULL };
	struct answer a;
	int rc = ask(w, "scontrol", arguments, &a, e);
	if (rc == 0)
		rc = slurm_jobs_json(jobs, a.data, a.len, e);
	w->no_json = a.refused;
	free(a.data);
	return rc;
}

/* Asks about one job. That it has ended by now is no error. */
static int ask_job(
	struct watch *w, const struct slurm_jobs *jobs, const char *id, struct err *e)
{
	const char *const arguments[] = { "-d", "show", "job", id, NULL };
	struct answer a;
	struct err why = { 0 };
	int rc = ask(w, "scontrol", arguments, &a, e);
	if (rc == 0 && slurm_jobs_text(jobs, id, a.data, a.len, &why) != 0)
		fault_raise(&w->doubtful, w->place->now_ms, "%s", why.text);
	free(a.data);
	return a.ended ? 0 : rc;
}

static int ask_text(struct watch *w, const struct slurm_jobs *jobs, struct err *e)
{
	const char *const arguments[] = { "-h", "-w", w->node, "-t", "R,S,CG,CF", "-o", "%A",
		NULL };
	struct answer a;
	int rc = ask(w, "squeue", arguments, &a, e);
	if (rc == 0)
		a.data[a.len] = '\0';
	char *rest = a.data, *id;
	for (size_t n = 0; rc == 0 && n < IDS_MAX && (id = strsep(&rest, " \n")) != NULL; n++)
		if (*id && id[strspn(id, "0123456789")] == '\0')
			rc = ask_job(w, jobs, id, e);
	free(a.data);
	return rc;
}

/* Removes the leases of jobs that the answer does not have. */
static void remove_others(struct watch *w)
{
	DIR *dir = opendir(w->own);
	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		bool known = entry->d_name[0] == '.';
		for (size_t i = 0; i < w->n_ids && !known; i++)
			known = strcmp(w->ids[i], entry->d_name) == 0;
		if (!known)
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

/* Says that the leases are those of now. */
static int beat(const struct watch *w, struct err *e)
{
	char path[PATH_MAX + sizeof(LEASE_DIR_HEARTBEAT)], every[32], text[48];
	duration_option(every, sizeof(every), w->place->config->every_ms);
	snprintf(text, sizeof(text), "every = %s\n", every);
	snprintf(path, sizeof(path), "%s/" LEASE_DIR_HEARTBEAT, w->own);
	struct stat st;
	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		(size_t)st.st_size == strlen(text) &&
		utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return file_replace_entry(path, text, strlen(text), e);
}

/* Asks once, and writes the answer. */
static int pass(struct watch *w, struct err *e)
{
	const struct slurm_jobs jobs = { w->node, take_job, w };
	w->n_ids = 0;
	w->failed = (struct err){ 0 };
	int rc = w->no_json ? 0 : ask_json(w, &jobs, e);
	if (w->no_json)
		rc = ask_text(w, &jobs, e);
	w->no_json &= rc == 0; /* it may not have been there at all */
	if (rc == 0 && w->failed.code)
		rc = err_set(e, ERR_WORLD, "%s", w->failed.text);
	if (rc)
		return rc;
	remove_others(w);
	return beat(w, e);
}

static int prepare(struct watch *w, struct err *e)
{
	const struct lease_place *p = w->place;
	const char *kind = lease_kind_names[LEASE_SLURM];
	if (!file_path(w->own, "%s/%s", p->path, kind))
		return err_set(e, ERR_USAGE, "the path of the leases is too long");
	if (p->config->node)
		str_copy(w->node, sizeof(w->node), p->config->node);
	else if (gethostname(w->node, sizeof(w->node) - 1) != 0)
		return err_set(
			e, ERR_WORLD, "cannot read the host's name: %s", strerror(errno));
	else
		w->node[strcspn(w->node, ".")] = '\0';
	umask(022);
	return file_make_directories(w->own, 0755, e);
}

static int watch(const struct lease_place *p, enum lease_kind kind, struct err *e)
{
	(void)kind;
	struct lease_place now = *p;
	struct pollfd signals = { .events = POLLIN };
	struct watch w = { .place = &now };
	struct clock clock;
	sigset_t ends;
	log_setup(LOG_LEVEL_NOTICE,
		getenv("JOURNAL_STREAM") ? LOG_STYLE_JOURNAL : LOG_STYLE_PLAIN);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signals.fd = signalfd(-1, &ends, SFD_CLOEXEC);
	int rc = prepare(&w, e);
	clock_init_real(&clock);
	for (bool over = rc != 0; !over;) {
		int64_t next_us = clock_now(&clock).boot_us + p->config->every_ms * 1000;
		struct err why = { 0 };
		now.now_ms = clock_wall_ms(&clock);
		rc = pass(&w, &why);
		if (p->once) {
			*e = why;
			break;
		}
		if (rc)
			fault_raise(&w.silent, now.now_ms, "cannot read Slurm's jobs: %s",
				why.text);
		else
			fault_clear(&w.silent, now.now_ms);
		over = clock_wait(&clock, next_us, &signals, 1) != 0;
		rc = 0;
	}
	if (signals.fd >= 0)
		close(signals.fd);
	free(w.ids);
	return rc;
}

int main(int argc, char **argv)
{
	file_hold_standard();
	return cmd_lease_run(&cmd_lease, argc, argv, watch);
}
