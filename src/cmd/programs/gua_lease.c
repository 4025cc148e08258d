/* gua-lease: the program behind `gua lease watch`. It is a separate program because it asks a
 * scheduler, for which the recorder has neither the right nor the network. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/signalfd.h>

#include "base/child.h"
#include "base/fault.h"
#include "base/words.h"
#include "cmd/cmd_lease.h"
#include "cmd/share/hand_over.h"
#include "lease/kubelet_pods.h"
#include "lease/slurm_jobs.h"
#include "proc/cgroup.h"
#include "proc/pods.h"

/* The largest answer; arguments of a command; leases of a host. */
enum { ANSWER_MAX = 64 << 20, ARGUMENTS_MAX = 24, IDS_MAX = 4096 };

/* The watch over a scheduler. */
struct watch {
	const struct lease_place *place;
	enum lease_kind kind;
	char own[PATH_MAX]; /* the directory of the scheduler's leases */
	char node[256];
	bool no_json;			  /* this Slurm does not write it */
	char (*ids)[LEASE_FILE_NAME_CAP]; /* names of the files of one answer */
	size_t n_ids;
	/* Of the kubelet: */
	char (*names)[NAME_MAX + 1]; /* of files below /var/log: see proc/pods.h */
	size_t n_names;
	glob_t cgroups;	   /* of pods */
	struct str table;  /* as it was written last */
	struct err failed; /* a lease could not be written; code 0: all were */
	struct fault silent, doubtful;
};

/* What a program has written. */
struct answer {
	char *data;
	size_t len;
	bool refused; /* it ended with an error, before its time was over */
	bool ended;   /* the error says that there is no such job */
};

/* Runs a program. The caller frees a->data. */
static int run_program(struct watch *w, const char *const *argv, const char *const *env,
	struct answer *a, struct err *e)
{
	struct child_result r = { 0 };
	struct stat st;
	int fd = memfd_create("answer", MFD_CLOEXEC);
	if (fd < 0)
		return err_set(e, ERR_WORLD, "memfd_create: %s", strerror(errno));
	const struct child_command c = { .argv = argv,
		.env = env,
		.output_fd = fd,
		.output_max = ANSWER_MAX,
		.timeout_ms = w->place->config->timeout_ms };
	int rc = child_run(&c, &r, e);
	a->refused = rc == 0 && !r.timed_out && r.status != 0;
	a->ended = a->refused && strstr(r.output, "Invalid job id");
	if (rc == 0 && r.status != 0) {
		char text[CHILD_OUTPUT_CAP + 128];
		child_result_text(text, sizeof(text), argv[0], &r);
		rc = err_set(e, ERR_WORLD, "%s", text);
	} else if (rc == 0 && (fstat(fd, &st) != 0 || st.st_size >= ANSWER_MAX)) {
		rc = err_set(e, ERR_WORLD, "the answer is larger than %d MiB; use a prolog",
			ANSWER_MAX >> 20);
	} else if (rc == 0) {
		a->data = malloc((size_t)st.st_size + 1);
		ssize_t n = a->data ? pread(fd, a->data, (size_t)st.st_size, 0) : -1;
		a->len = n < 0 ? 0 : (size_t)n;
		rc = n < 0 ? err_memory(e) : 0;
	}
	close(fd);
	return rc;
}

/* Asks a program of Slurm, which stands beside the configured scontrol. The caller frees
 * a->data. */
static int ask(struct watch *w, const char *program, const char *const *arguments,
	struct answer *a, struct err *e)
{
	const char *argv[ARGUMENTS_MAX], *named = cmd_variable("SLURM_CONF");
	char path[PATH_MAX], conf[PATH_MAX + 16], **words = NULL;
	size_t n_words = 0, n = 0;
	*a = (struct answer){ 0 };
	snprintf(conf, sizeof(conf), "SLURM_CONF=%s", named ? named : "");
	const char *const env[] = { "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=%s", named ? conf : NULL, NULL };
	if (words_split(w->place->config->slurm, &words, &n_words, e))
		return e->code;
	for (; n < ARGUMENTS_MAX / 2 && words[n]; n++)
		argv[n] = words[n];
	if (!n || words[n]) {
		free(words);
		return err_set(e, ERR_USAGE, "[leases] slurm is not a command");
	}
	const char *slash = strrchr(argv[n - 1], '/');
	snprintf(path, PATH_MAX, "%.*s%s", slash ? (int)(slash + 1 - argv[n - 1]) : 0,
		argv[n - 1], program);
	if (strcmp(program, "scontrol") != 0)
		argv[n - 1] = path;
	while (*arguments && n < ARGUMENTS_MAX - 1)
		argv[n++] = *arguments++;
	argv[n] = NULL;
	int rc = run_program(w, argv, env, a, e);
	free(words);
	return rc;
}

static void take_job(void *context, const struct lease_file *job)
{
	struct watch *w = context;
	struct lease_file f = *job;
	struct err e = { 0 };
	f.boot = w->place->boot;
	if (w->n_ids >= IDS_MAX || !array_one_more(&w->ids, w->n_ids) ||
		!lease_file_name(w->ids[w->n_ids], f.id))
		return;
	w->n_ids++;
	if (lease_dir_put(w->place->path, w->kind, &f, w->place->config->private, &e) != 0)
		w->failed = e;
}

static int ask_text(struct watch *w, const struct slurm_jobs *jobs, struct err *e)
{
	const char *const arguments[] = { "-h", "-w", w->node, "-t", "R,S,CG,CF", "-o", "%A",
		NULL };
	struct answer a, job;
	int rc = ask(w, "squeue", arguments, &a, e);
	if (rc == 0)
		a.data[a.len] = '\0';
	char *rest = a.data, *id;
	for (size_t n = 0; rc == 0 && n < IDS_MAX && (id = strsep(&rest, " \n")) != NULL; n++) {
		const char *const about[] = { "-d", "show", "job", id, NULL };
		struct err why = { 0 };
		if (!*id || id[strspn(id, "0123456789")])
			continue;
		rc = ask(w, "scontrol", about, &job, e);
		if (rc == 0 && slurm_jobs_text(jobs, id, job.data, job.len, &why) != 0)
			fault_raise(&w->doubtful, w->place->now_ms, "%s", why.text);
		free(job.data);
		if (job.ended) /* by now, which is no error */
			rc = 0;
	}
	free(a.data);
	return rc;
}

static int ask_slurm(struct watch *w, struct err *e)
{
	static const char *const arguments[] = { "-d", "--json", "show", "job", NULL };
	const struct slurm_jobs jobs = { w->node, take_job, w };
	struct answer a;
	int rc = 0;
	if (!w->no_json) {
		rc = ask(w, "scontrol", arguments, &a, e);
		if (rc == 0)
			rc = slurm_jobs_json(&jobs, a.data, a.len, e);
		w->no_json = a.refused;
		free(a.data);
	}
	if (w->no_json)
		rc = ask_text(w, &jobs, e);
	w->no_json &= rc == 0; /* it may not have been there at all */
	return rc;
}

static void read_names(struct watch *w, const char *folder)
{
	char path[PATH_MAX];
	DIR *dir = file_path(path, "%s%s", w->place->root, folder) ? opendir(path) : NULL;
	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
		if (entry->d_name[0] != '.' && !strchr(entry->d_name, '\n') &&
			w->n_names < PODS_MAX && array_one_more(&w->names, w->n_names))
			str_copy(w->names[w->n_names++], NAME_MAX + 1, entry->d_name);
	if (dir)
		closedir(dir);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Writes the table of names for those who may not read /var/log/pods, if it has changed. */
static int write_table(struct watch *w, struct err *e)
{
	char path[PATH_MAX];
	struct str table = { 0 };
	w->n_names = 0;
	read_names(w, "/var/log/pods");
	read_names(w, "/var/log/containers");
	array_sort(w->names, w->n_names, compare_names);
	for (size_t i = 0; i < w->n_names; i++)
		str_addf(&table, "%s\n", w->names[i]);
	bool same = strcmp(str_text(&table), str_text(&w->table)) == 0;
	int rc = table.failed ? err_memory(e) : 0;
	if (rc == 0 && !same && !file_path(path, "%s/" PODS_TABLE, w->place->path))
		rc = err_set(e, ERR_USAGE, "the path of the leases is too long");
	umask(w->place->config->private ? 027 : 022);
	if (rc == 0 && !same)
		rc = file_replace(path, str_text(&table), table.len, e);
	umask(022);
	struct str other = rc == 0 ? w->table : table;
	w->table = rc == 0 ? table : w->table;
	str_finish(&other);
	return rc;
}

static bool has_cgroup(const struct watch *w, const char *uid)
{
	char ends[2][128];
	snprintf(ends[0], sizeof(ends[0]), "pod%s", uid);
	snprintf(ends[1], sizeof(ends[1]), "pod%s.slice", uid);
	for (char *c = ends[1]; *c; c++)
		*c = *c == '-' ? '_' : *c;
	for (size_t i = 0; i < w->cgroups.gl_pathc; i++)
		for (size_t k = 0; k < 2; k++)
			if (str_ends_with(w->cgroups.gl_pathv[i], ends[k]))
				return true;
	return false;
}

/* The name of the youngest directory of a pod, that of a live one if there is one; NULL: none.
 * A pod of a stateful set has the name of the one before it. The time at which the directory
 * was made is that of its last change where the file system does not keep it: a container was
 * added. */
static const char *find_pod(
	const struct watch *w, const struct lease_file *f, bool *lives, double *since_s)
{
	char head[NAME_MAX + 1], path[PATH_MAX];
	const char *found = NULL;
	int n = snprintf(head, sizeof(head), "%s_%s_", f->user, strchr(f->id, '/') + 1);
	*lives = false;
	for (size_t i = 0; n > 0 && i < w->n_names; i++) {
		struct statx st;
		const char *name = w->names[i];
		if (strncmp(name, head, (size_t)n) != 0)
			continue;
		bool alive = has_cgroup(w, name + n);
		double made = NAN;
		if (file_path(path, "%s/var/log/pods/%s", w->place->root, name) &&
			statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_MTIME,
				&st) == 0) {
			const struct statx_timestamp *t =
				st.stx_mask & STATX_BTIME ? &st.stx_btime : &st.stx_mtime;
			made = (double)t->tv_sec + (double)(t->tv_nsec / 1000000) / 1e3;
		}
		if (found && (*lives != alive ? *lives : !(made > *since_s)))
			continue;
		found = name;
		*lives = alive;
		*since_s = made;
	}
	return found;
}

/* Before Kubernetes 1.34 pods that have finished are listed, too: they have no cgroup. */
static void take_pod(void *context, const struct lease_file *pod)
{
	struct watch *w = context;
	struct lease_file f = *pod;
	struct pods one;
	bool lives;
	const char *name = find_pod(w, pod, &lives, &f.since_s);
	if (name && !lives && w->cgroups.gl_pathc)
		return;
	pods_init(&one, -1, true);
	if (name)
		pods_add(&one, name, strlen(name));
	if (one.n) /* as processes have it: a long name is cut */
		f.id = one.names[0].name;
	take_job(w, &f);
	pods_finish(&one);
}

static int ask_kubelet(struct watch *w, struct err *e)
{
	const struct kubelet_pods pods = { take_pod, w };
	char path[PATH_MAX], timeout[32];
	struct answer a = { 0 };
	/* It says why it gives up, if it does so before it is killed. */
	snprintf(timeout, sizeof(timeout), "%lld",
		(long long)(w->place->config->timeout_ms * 9 / 10));
	const char *const argv[] = { path, w->place->config->kubelet, timeout, NULL };
	if (write_table(w, e))
		return e->code;
	if (!hand_over_path("kubelet", path))
		return err_set(e, ERR_WORLD, "the program gua-kubelet is not installed");
	int rc = run_program(w, argv, NULL, &a, e);
	if (rc == 0) {
		cgroup_find_pods(w->place->root, &w->cgroups);
		rc = kubelet_pods_decode(&pods, a.data, a.len, e);
		globfree(&w->cgroups);
	}
	free(a.data);
	return rc;
}

/* Asks once, and writes the answer: removes the leases of jobs that it does not have, and says
 * that the others are those of now. */
static int pass(struct watch *w, struct err *e)
{
	char path[PATH_MAX + sizeof(LEASE_DIR_HEARTBEAT)], text[64];
	struct stat st;
	w->n_ids = 0;
	w->failed = (struct err){ 0 };
	int rc = w->kind == LEASE_POD ? ask_kubelet(w, e) : ask_slurm(w, e);
	if (rc || w->failed.code)
		return rc ? rc : err_set(e, ERR_WORLD, "%s", w->failed.text);
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
	snprintf(text, sizeof(text), "every = %s\n",
		duration_option(w->place->config->every_ms).text);
	snprintf(path, sizeof(path), "%s/" LEASE_DIR_HEARTBEAT, w->own);
	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		(size_t)st.st_size == strlen(text) &&
		utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return file_replace_entry(path, text, strlen(text), e);
}

static int prepare(struct watch *w, struct err *e)
{
	const struct lease_place *p = w->place;
	const char *kind = lease_kind_names[w->kind];
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
	struct lease_place now = *p;
	struct pollfd signals = { .events = POLLIN };
	struct watch w = { .place = &now, .kind = kind };
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
			fault_raise(&w.silent, now.now_ms, "cannot read the %s: %s",
				kind == LEASE_POD ? "kubelet's pods" : "jobs of Slurm",
				why.text);
		else
			fault_clear(&w.silent, now.now_ms);
		over = clock_wait(&clock, next_us, &signals, 1) != 0;
		rc = 0;
	}
	file_close(signals.fd);
	free(w.ids);
	free(w.names);
	str_finish(&w.table);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct lease_parts parts = { watch };
	struct command own = cmd_lease;
	own.parts = &parts;
	file_hold_standard();
	return cmd_run(&own, argc, argv);
}
