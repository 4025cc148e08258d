/* gua_tracker: a tracker inside the caller's program, sampled by a thread or child process. */
#include <gua.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "driver/source.h"
#include "lib/lib.h"
#include "track/tracker_private.h"

/* How long the sampler may take to begin and to end. It may be stuck in a file of a process
 * (see proc/proc.h) or in the driver; then it is left behind. */
enum { UUIDS_MAX = 64, START_MS = 10000, STOP_MS = 10000, KILLED_MS = 1000 };

/* Samples that are kept for a caller that reads each one: 10 s at the shortest interval. */
enum { IMAGE_CARDS = 64, IMAGE_SAMPLES = 1024 };

/* The numbers of a tracker, passed from the sampler (a thread or a child process) to the
 * caller through a shared mapping, with a lock that stays usable if either of them dies. */
struct image {
	pthread_mutex_t lock;			    /* shared between processes, robust */
	struct track_sample samples[IMAGE_SAMPLES]; /* the last ones: number N is at N % size */
	/* From here on, what image_copy() copies. */
	struct err err; /* why there are no numbers */
	int64_t number; /* of the sample */
	struct track_sample sample;
	struct track_result result; /* its pointers are not valid: the rows are below */
	size_t n_cards, n_processes;
	struct track_card cards[IMAGE_CARDS];
	struct track_process processes[TRACK_PROCESSES_MAX];
};

struct gua_tracker {
	struct err err; /* of the last call */
	enum gua_tracker_state state;
	pid_t caller; /* the process that started it: a fork of the caller has no sampler */
	int helper;
	struct tracker_options o;
	char texts[5][1024]; /* uuids, source, nvml_path, scenario, root */
	const char *uuids[UUIDS_MAX];
	struct image *image, *seen; /* shared with the sampler; a copy of the last numbers that
				       were asked for */
	int stop_fd;		    /* makes the sampler stop, or -1 */
	int ready_fd;		    /* the thread has begun, and has ended; or -1 */
	pthread_t thread;
	bool left; /* the thread is stuck and still uses this struct: it is never freed */
	pid_t child;
};

_Static_assert((int)GUA_COMBINED == (int)TRACK_COMBINED, "groups");

API const char *gua_tracker_error(const struct gua_tracker *tracker)
{
	return tracker ? tracker->err.text : gua_code_text(GUA_NO_MEMORY);
}

API int gua_tracker_state(const struct gua_tracker *tracker)
{
	return tracker ? (int)tracker->state : (int)GUA_TRACKER_NEW;
}

static int check_values(struct gua_tracker *t, const struct gua_tracker_options *given)
{
	double interval_s = given->interval_s > 0 ? given->interval_s : 1;
	if (!(given->interval_s >= 0) || interval_s < 0.01 || interval_s > 86400)
		return err_set(&t->err, GUA_WRONG_USE,
			"the sampling interval must be from 0.01 s to one day, not %g",
			given->interval_s);
	if (given->helper != GUA_HELPER_THREAD && given->helper != GUA_HELPER_PROCESS)
		return err_set(
			&t->err, GUA_WRONG_USE, "%d is not a kind of helper", given->helper);
	if (given->pid < 0 || given->pid > INT32_MAX)
		return err_set(&t->err, GUA_WRONG_USE, "%lld is not a process id",
			(long long)given->pid);
	if (given->expected_cores < 0)
		return err_set(&t->err, GUA_WRONG_USE,
			"the number of expected cores must not be negative, not %lld",
			(long long)given->expected_cores);
	t->o.interval_ms = llround(interval_s * 1e3);
	t->o.pid = (pid_t)given->pid;
	t->o.expected_cores = given->expected_cores;
	t->helper = given->helper;
	return 0;
}

static int take_options(struct gua_tracker *t, const struct gua_tracker_options *given)
{
	const char *texts[] = { given->uuids, given->source, given->nvml_path, given->scenario,
		given->root };
	for (size_t i = 0; i < 5; i++)
		if (texts[i] && !str_copy(t->texts[i], sizeof(t->texts[i]), texts[i]))
			return err_set(&t->err, GUA_WRONG_USE, "an option is too long");
	const char *source = t->texts[1][0] ? t->texts[1] : SOURCE_AUTO;
	bool none = strcmp(source, SOURCE_NONE) == 0;
	struct source_list list;
	if (source_list_read(&list, source, true, &t->err) != 0)
		return GUA_WRONG_USE;
	t->o.rules = (struct rules)RULES_DEFAULT;
	t->o.root = t->texts[4];
	t->o.source = (struct source_options){ .name = none ? NULL : source,
		.nvml_path = t->texts[2][0] ? t->texts[2] : NULL,
		.nvml_option = "nvml_path",
		.scenario = t->texts[3][0] ? t->texts[3] : NULL,
		.root = t->texts[4] };
	if (check_values(t, given))
		return GUA_WRONG_USE;
	char *rest = t->texts[0];
	for (char *word; (word = strsep(&rest, ",")) != NULL;) {
		if (!*word)
			continue;
		if (t->o.n_gpu_uuids == UUIDS_MAX)
			return err_set(&t->err, GUA_WRONG_USE, "more than %d cards are named",
				UUIDS_MAX);
		t->uuids[t->o.n_gpu_uuids++] = word;
	}
	t->o.gpu_uuids = t->o.n_gpu_uuids ? t->uuids : NULL;
	return 0;
}

API int gua_tracker_new(struct gua_tracker **tracker, const struct gua_tracker_options *options)
{
	struct gua_tracker_options given = { 0 };
	struct gua_tracker *t = calloc(1, sizeof(*t));
	*tracker = t;
	if (!t)
		return GUA_NO_MEMORY;
	t->stop_fd = t->ready_fd = -1;
	if (options && options->size < sizeof(size_t))
		return err_set(&t->err, GUA_WRONG_USE, "gua_tracker_options.size is not set");
	if (options)
		memcpy(&given, options,
			options->size < sizeof(given) ? options->size : sizeof(given));
	int rc = take_options(t, &given);
	if (rc)
		t->state = GUA_TRACKER_STOPPED; /* only its error can be read */
	return rc;
}

static void image_lock(struct image *im)
{
	/* A sampler that died with the lock may have left half-written numbers; the next
	 * publication replaces all of them. */
	if (pthread_mutex_lock(&im->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&im->lock);
}

/* Copies an image without the samples before the last one, and without unused rows. */
static void image_copy(struct image *to, struct image *from)
{
	size_t start = offsetof(struct image, err), rows = offsetof(struct image, processes);
	image_lock(from);
	memcpy((char *)to + start, (const char *)from + start,
		rows - start + from->n_processes * sizeof(from->processes[0]));
	pthread_mutex_unlock(&from->lock);
}

/* Writes a tracker's numbers into the image. */
static void image_publish(struct image *im, struct tracker *t)
{
	const struct track_result *r = tracker_result(t);
	image_lock(im);
	im->result = *r;
	im->n_cards = r->n_cards < IMAGE_CARDS ? r->n_cards : IMAGE_CARDS;
	im->n_processes =
		r->n_processes < TRACK_PROCESSES_MAX ? r->n_processes : TRACK_PROCESSES_MAX;
	if (im->n_cards)
		memcpy(im->cards, r->cards, im->n_cards * sizeof(im->cards[0]));
	if (im->n_processes)
		memcpy(im->processes, r->processes, im->n_processes * sizeof(im->processes[0]));
	pthread_mutex_unlock(&im->lock);
}

/* Samples until `stop_fd` is readable, or until the process of the pidfd `parent_fd` (or -1)
 * has ended: then it returns false. */
static bool sampler_run(struct tracker *t, struct image *im, int stop_fd, int parent_fd)
{
	struct clock clock;
	struct track_sample sample;
	bool goes_on = true;
	clock_init_real(&clock);
	for (;;) {
		struct pollfd fds[] = { { .fd = stop_fd, .events = POLLIN },
			{ .fd = parent_fd, .events = POLLIN } };
		/* When all processes have ended there is nothing more to sample. */
		int64_t until_us =
			goes_on ? tracker_next_us(t)
				: clock_now(&clock).boot_us + 3600 * INT64_C(1000000);
		int ready = clock_wait(&clock, until_us, fds, 2);
		if (ready > 0 && fds[0].revents)
			return true;
		if (ready > 0 && fds[1].revents)
			return false;
		if (ready != 0 || !goes_on)
			continue;
		goes_on = tracker_sample(t, &sample);
		image_lock(im);
		im->sample = sample;
		im->number++;
		im->samples[im->number % IMAGE_SAMPLES] = sample;
		pthread_mutex_unlock(&im->lock);
		image_publish(im, t);
	}
}

static void tell(int fd)
{
	uint64_t one = 1;
	if (write(fd, &one, sizeof(one)) < 0)
		return; /* the caller does not wait any more */
}

/* Does everything that may block: the caller's thread never does. Tells `ready_fd` when the
 * image has the first sample or an error, and samples as sampler_run() does. Returns the
 * tracker, or NULL. */
static struct tracker *sample_all(const struct tracker_options *o, struct image *im,
	int stop_fd, int ready_fd, int parent_fd)
{
	struct tracker *t = NULL;
	struct err e = { 0 };
	int rc = tracker_open(&t, o, &e);
	if (rc) {
		image_lock(im);
		im->err = e;
		pthread_mutex_unlock(&im->lock);
	} else {
		image_publish(im, t);
	}
	tell(ready_fd);
	if (!rc && sampler_run(t, im, stop_fd, parent_fd)) {
		tracker_stop(t);
		image_publish(im, t);
	}
	return rc ? NULL : t;
}

static void *thread_main(void *argument)
{
	struct gua_tracker *t = argument;
	tracker_close(sample_all(&t->o, t->image, t->stop_fd, t->ready_fd, -1));
	tell(t->ready_fd);
	return NULL;
}

/* Waits for a number in an eventfd; false: it does not come. */
static bool wait_for(int fd, int wait_ms)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	uint64_t number;
	int n;
	while ((n = poll(&ready, 1, wait_ms)) < 0 && errno == EINTR)
		continue;
	return n > 0 && read(fd, &number, sizeof(number)) == (ssize_t)sizeof(number);
}

/* Blocks all signals in the thread: the caller handles them. */
static int start_thread(struct gua_tracker *t)
{
	sigset_t all, before;
	/* This thread and the driver's thread do not belong to the program. */
	if (t->o.pid == getpid())
		t->o.own_threads = t->o.source.name ? 2 : 1;
	t->ready_fd = eventfd(0, EFD_CLOEXEC);
	if (t->ready_fd < 0)
		return err_set(&t->err, GUA_FAILED, "no descriptor: %s", strerror(errno));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&t->thread, NULL, thread_main, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return err_set(&t->err, GUA_FAILED, "cannot start a thread: %s", strerror(rc));
	if (!wait_for(t->ready_fd, START_MS)) {
		t->left = true;
		pthread_detach(t->thread);
		return err_set(&t->err, GUA_FAILED,
			"the sampling thread does not answer: a process cannot be read, or the "
			"driver hangs");
	}
	image_copy(t->seen, t->image);
	if (t->seen->err.code == 0)
		return 0;
	pthread_join(t->thread, NULL);
	t->err = t->seen->err;
	return t->err.code;
}

/* The child process that samples. It is forked from the caller's program without an exec, so it
 * closes the program's files, runs none of its handlers, and ends when the program ends. */
static void child_main(const struct gua_tracker *t, int ready_fd, int parent_fd)
{
	enum { ABOVE = 64, N_FILES = 3 };
	struct tracker_options o = t->o;
	int files[N_FILES] = { t->stop_fd, ready_fd, parent_fd };
	pid_t self = getpid();
	prctl(PR_SET_NAME, TRACK_HELPER_NAME);
	/* Three files are kept, moved to 3, 4, 5; the standard ones become /dev/null. */
	for (int i = 0; i < N_FILES; i++)
		if (files[i] >= 0)
			files[i] = fcntl(files[i], F_DUPFD, ABOVE);
	int null = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3 && null >= 0; i++)
		dup2(null, i);
	for (int i = 0; i < N_FILES; i++)
		if (files[i] >= 0)
			files[i] = dup2(files[i], 3 + i);
	syscall(SYS_close_range, 3U + N_FILES, ~0U, 0U); /* the function needs glibc 2.34 */
	o.excluded = &self;
	o.n_excluded = 1;
	o.source.clock = NULL;
	sample_all(&o, t->image, files[0], files[1], files[2]);
	/* Run no exit handlers: they belong to the program. */
	syscall(SYS_exit_group, 0);
}

static bool reap_child(struct gua_tracker *t, int wait_ms)
{
	for (int waited_ms = 0;; waited_ms += 2) {
		pid_t ended = waitpid(t->child, NULL, WNOHANG);
		if (ended == t->child || (ended < 0 && errno == ECHILD))
			return true;
		if (waited_ms >= wait_ms)
			return false;
		poll(NULL, 0, waited_ms < 20 ? 1 : 2);
	}
}

/* Waits for the child. Kills it if it does not end; its last numbers stay. One that is stuck in
 * the kernel ends later. */
static void end_child(struct gua_tracker *t, int wait_ms)
{
	if (reap_child(t, wait_ms))
		return;
	kill(t->child, SIGKILL);
	reap_child(t, KILLED_MS);
}

static int start_process(struct gua_tracker *t)
{
	sigset_t all, before;
	int ready_fd = eventfd(0, EFD_CLOEXEC);
	if (ready_fd < 0)
		return err_set(&t->err, GUA_FAILED, "no descriptor: %s", strerror(errno));
	/* PR_SET_PDEATHSIG would report the end of the forking thread, not of the process. */
	int parent_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	t->child = fork();
	if (t->child == 0)
		child_main(t, ready_fd, parent_fd);
	int why = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	file_close(parent_fd);
	if (t->child < 0) {
		close(ready_fd);
		return err_set(&t->err, GUA_FAILED, "cannot fork: %s", strerror(why));
	}
	bool ready = wait_for(ready_fd, START_MS);
	close(ready_fd);
	image_copy(t->seen, t->image);
	if (ready && t->seen->err.code == 0)
		return 0;
	end_child(t, ready ? STOP_MS : 0);
	t->err = t->seen->err;
	return ready ? t->err.code
		     : err_set(&t->err, GUA_FAILED, "the helper process does not answer");
}

static int wrong_state(struct gua_tracker *t, const char *cannot)
{
	static const char *const why[] = { "has not started yet", "has already started",
		"has already stopped" };
	return err_set(
		&t->err, GUA_WRONG_USE, "Cannot %s when tracking %s.", cannot, why[t->state]);
}

API int gua_tracker_start(struct gua_tracker *tracker)
{
	struct gua_tracker *t = tracker;
	if (!t)
		return GUA_WRONG_USE;
	t->err = (struct err){ 0 };
	if (t->state != GUA_TRACKER_NEW)
		return wrong_state(t, "start tracking");
	t->caller = getpid();
	if (t->o.pid == 0)
		t->o.pid = t->caller;
	t->seen = calloc(1, sizeof(*t->seen));
	struct image *im = mmap(NULL, sizeof(*im), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (im != MAP_FAILED) {
		pthread_mutexattr_t attributes;
		pthread_mutexattr_init(&attributes);
		pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
		pthread_mutex_init(&im->lock, &attributes);
		pthread_mutexattr_destroy(&attributes);
		t->image = im;
	}
	t->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (!t->seen || !t->image || t->stop_fd < 0)
		return err_set(&t->err, GUA_NO_MEMORY, ERR_MEMORY_TEXT " or descriptors");
	int rc = t->helper == GUA_HELPER_PROCESS ? start_process(t) : start_thread(t);
	t->state = rc ? GUA_TRACKER_STOPPED : GUA_TRACKER_STARTED;
	return rc;
}

API int gua_tracker_stop(struct gua_tracker *tracker)
{
	struct gua_tracker *t = tracker;
	uint64_t one = 1;
	if (!t)
		return GUA_WRONG_USE;
	t->err = (struct err){ 0 };
	if (t->state != GUA_TRACKER_STARTED)
		return wrong_state(t, "stop tracking");
	if (t->caller != getpid())
		return err_set(&t->err, GUA_WRONG_USE, "another process has started it");
	if (write(t->stop_fd, &one, sizeof(one)) < 0)
		return err_set(
			&t->err, GUA_FAILED, "cannot reach the helper: %s", strerror(errno));
	t->state = GUA_TRACKER_STOPPED;
	if (t->helper == GUA_HELPER_PROCESS) {
		end_child(t, STOP_MS);
	} else if (wait_for(t->ready_fd, STOP_MS)) {
		pthread_join(t->thread, NULL);
	} else {
		/* It is stuck and left behind; its last numbers stay. */
		t->left = true;
		pthread_detach(t->thread);
		image_lock(t->image);
		tracker_warn(&t->image->result,
			"the sampling thread is stuck: a process cannot be read, or the driver "
			"hangs; the numbers are those of the last sample");
		pthread_mutex_unlock(&t->image->lock);
	}
	return 0;
}

API void gua_tracker_free(struct gua_tracker *tracker)
{
	if (!tracker)
		return;
	if (tracker->state == GUA_TRACKER_STARTED && tracker->caller == getpid())
		gua_tracker_stop(tracker);
	free(tracker->seen);
	tracker->seen = NULL;
	if (tracker->left)
		return;
	file_close(tracker->stop_fd);
	file_close(tracker->ready_fd);
	/* The lock is not destroyed: a forked copy of the caller frees its own mapping too. */
	if (tracker->image)
		munmap(tracker->image, sizeof(*tracker->image));
	free(tracker);
}

/* Checks the caller's struct and the state. */
static int begin_reading(struct gua_tracker *t, const void *out, size_t size)
{
	if (!t)
		return GUA_WRONG_USE;
	t->err = (struct err){ 0 };
	if (!out || size < sizeof(size_t))
		return err_set(&t->err, GUA_WRONG_USE, "the struct's size is not set");
	if (!t->image || !t->seen || t->state == GUA_TRACKER_NEW)
		return wrong_state(t, "read results");
	return 0;
}

static void fill_groups(struct gua_track_result *to, const struct track_result *r)
{
	for (int g = 0; g < TRACK_GROUPS; g++) {
		to->ram_total_bytes[g] = r->ram[g].total_bytes;
		to->ram_private_bytes[g] = r->ram[g].private_bytes;
		to->ram_shared_bytes[g] = r->ram[g].shared_bytes;
		to->ram_swap_bytes[g] = r->ram[g].swap_bytes;
		to->cpu_max_pct[g] = r->cpu[g].max_sum_pct;
		to->cpu_mean_pct[g] = r->cpu[g].mean_sum_pct;
		to->threads_max[g] = r->max_threads[g];
		to->user_s[g] = r->user_s[g];
		to->system_s[g] = r->system_s[g];
		to->gpu_ram_bytes[g] = r->gpu_ram[g];
	}
}

API int gua_tracker_result(struct gua_tracker *tracker, struct gua_track_result *result)
{
	int rc = begin_reading(tracker, result, result ? result->size : 0);
	if (rc)
		return rc;
	const struct image *seen = tracker->seen;
	const struct track_result *r = &seen->result;
	image_copy(tracker->seen, tracker->image);
	struct gua_track_result found = {
		.elapsed_s = r->elapsed_s,
		.exited = r->exited,
		.samples = r->samples,
		.ram_capacity_bytes = r->ram_capacity_bytes,
		.ram_system_max_bytes = r->ram_system_max_bytes,
		.core_count = r->core_count,
		.expected_cores = r->expected_cores,
		.cpu_system_max_pct = r->cpu_system.max_sum_pct,
		.cpu_system_mean_pct = r->cpu_system.mean_sum_pct,
		.read_bytes = r->read_bytes,
		.written_bytes = r->written_bytes,
		.minor_faults = r->minor_faults,
		.major_faults = r->major_faults,
		.voluntary_switches = r->voluntary_switches,
		.involuntary_switches = r->involuntary_switches,
		.processes_seen = r->processes_seen,
		.processes_peak = r->processes_peak,
		.cards = seen->n_cards,
		.processes = seen->n_processes,
		.others = r->n_others,
		.warnings = r->n_warnings,
		.gpu_known = r->gpu_known,
		.gpu_count = r->gpu_count,
		.expected_gpus = r->expected_gpus,
		.gpu_capacity_bytes = r->gpu_capacity_bytes,
		.gpu_system_max_bytes = r->gpu_system_max_bytes,
		.gpu_util_max_pct = r->gpu_util.max_sum_pct,
		.gpu_util_mean_pct = r->gpu_util.mean_sum_pct,
		.gpu_active_s = r->gpu_active_s,
		.gpu_idle_held_s = r->gpu_idle_held_s,
		.gpu_context_bytes = r->gpu_context_bytes,
		.energy_j = r->energy_j,
		.tree_energy_j = r->tree_energy_j,
		.ram_charged_bytes = r->ram_charged_bytes,
		.ram_limit_bytes = r->ram_limit_bytes,
		.core_limit = r->core_limit,
	};
	str_copy(found.use_instead, sizeof(found.use_instead), r->use_instead);
	str_copy(found.gpu_note, sizeof(found.gpu_note), r->gpu_note);
	fill_groups(&found, r);
	gua_hand_struct(result, result->size, &found, sizeof(found));
	return 0;
}

static void fill_sample(
	struct gua_track_sample *sample, const struct track_sample *s, int64_t number)
{
	struct gua_track_sample found = {
		.elapsed_s = s->elapsed_s,
		.wall_us = s->wall_us,
		.ram_system_bytes = s->system_ram_bytes,
		.gpu_system_bytes = s->system_gpu_ram_bytes,
		.gpu_util_pct = s->gpu_sum_pct,
		.cpu_system_pct = s->system_cpu_pct,
		.processes = s->processes,
		.early = s->early,
		.number = number,
	};
	for (int g = 0; g < TRACK_GROUPS; g++) {
		found.ram_bytes[g] = s->ram_bytes[g];
		found.gpu_ram_bytes[g] = s->gpu_ram_bytes[g];
		found.threads[g] = s->threads[g];
		found.cpu_pct[g] = s->cpu_pct[g];
	}
	gua_hand_struct(sample, sample->size, &found, sizeof(found));
}

API int gua_tracker_snapshot(struct gua_tracker *tracker, struct gua_track_sample *sample)
{
	int rc = begin_reading(tracker, sample, sample ? sample->size : 0);
	if (rc)
		return rc;
	image_copy(tracker->seen, tracker->image);
	fill_sample(sample, &tracker->seen->sample, tracker->seen->number);
	return 0;
}

API int gua_tracker_sample(
	struct gua_tracker *tracker, int64_t number, struct gua_track_sample *sample)
{
	struct track_sample kept = { 0 };
	int rc = begin_reading(tracker, sample, sample ? sample->size : 0);
	if (rc)
		return rc;
	/* The first kept one from `number` on. */
	struct image *im = tracker->image;
	image_lock(im);
	int64_t oldest = im->number - IMAGE_SAMPLES + 1, found = number < 1 ? 1 : number;
	found = found < oldest ? oldest : found;
	if (found <= im->number)
		kept = im->samples[found % IMAGE_SAMPLES];
	else
		found = 0;
	pthread_mutex_unlock(&im->lock);
	if (!found)
		return err_set(&tracker->err, GUA_BUSY, "there is no sample %lld yet",
			(long long)number);
	fill_sample(sample, &kept, found);
	return 0;
}

API int gua_tracker_card(struct gua_tracker *tracker, size_t index, struct gua_track_card *card)
{
	int rc = begin_reading(tracker, card, card ? card->size : 0);
	if (rc)
		return rc;
	if (index >= tracker->seen->n_cards)
		return err_set(&tracker->err, GUA_WRONG_USE, "there is no card %zu", index);
	const struct track_card *c = &tracker->seen->cards[index];
	struct gua_track_card found = {
		.index = c->id.index,
		.mig_index = c->id.mig_index,
		.status = (int)c->status,
		.mem_total_bytes = c->id.mem_total_bytes,
		.used_max_bytes = c->max_used_bytes,
		.tree_max_bytes = c->max_tree_bytes,
		.util_max_pct = c->max_util_pct,
		.util_mean_pct = c->mean_util_pct,
		.tree_util_max_pct = c->max_tree_pct,
		.tree_util_mean_pct = c->mean_tree_pct,
		.energy_j = c->energy_j,
		.tree_energy_j = c->tree_energy_j,
		.active_s = c->active_s,
		.idle_held_s = c->idle_held_s,
		.tree_processes = c->peak_tree_processes,
	};
	str_copy(found.uuid, sizeof(found.uuid), c->id.uuid);
	str_copy(found.name, sizeof(found.name), c->id.name);
	gua_hand_struct(card, card->size, &found, sizeof(found));
	return 0;
}

API int gua_tracker_process(
	struct gua_tracker *tracker, size_t index, struct gua_track_process *process)
{
	int rc = begin_reading(tracker, process, process ? process->size : 0);
	if (rc)
		return rc;
	if (index >= tracker->seen->n_processes)
		return err_set(&tracker->err, GUA_WRONG_USE, "there is no process %zu", index);
	const struct track_process *p = &tracker->seen->processes[index];
	struct gua_track_process found = {
		.pid = p->id.pid,
		.ppid = p->ppid,
		.uid = p->id.uid,
		.started_s = p->started_s,
		.ended_s = p->ended_s,
		.user_s = p->user_s,
		.system_s = p->system_s,
		.ram_total_bytes = p->max_total_bytes,
		.ram_private_bytes = p->max_private_bytes,
		.rss_bytes = p->max_rss_bytes,
		.gpu_ram_bytes = p->max_gpu_bytes,
		.threads_max = p->max_threads,
		.unreadable = p->unreadable,
	};
	str_copy(found.command, sizeof(found.command), p->id.command);
	gua_hand_struct(process, process->size, &found, sizeof(found));
	return 0;
}

API const char *gua_tracker_warning(const struct gua_tracker *tracker, size_t index)
{
	const struct image *seen = tracker ? tracker->seen : NULL;
	return seen && index < seen->result.n_warnings ? seen->result.warnings[index] : NULL;
}
