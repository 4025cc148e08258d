/* Reads a list of hosts; runs ssh for each, several at a time, and checks what they sent. */
#include "fleet/remotes.h"

#include <pthread.h>

#include "base/child.h"
#include "store/identify.h"

/* The characters of host and user names; ':' and '%' occur in IPv6 addresses. A name is
 * passed to ssh as one argument, but the ssh configuration may pass it to a shell. */
static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			      "._-@:%+";

/* Fails unless the text can only be a host name, and not an option of ssh. */
static int check_name(const char *name, size_t len, size_t line, struct err *e)
{
	char safe[2 * REMOTE_NAME_CAP];
	const char *at = memchr(name, '@', len);
	const char *host = at ? at + 1 : name;
	bool good = strspn(name, allowed) >= len && host < name + len && at != name &&
		    *name != '-' && *host != '-';
	str_escape(safe, sizeof(safe), name, len < REMOTE_NAME_CAP ? len : REMOTE_NAME_CAP);
	if (len >= REMOTE_NAME_CAP)
		return err_set(
			e, ERR_USAGE, "line %zu: '%s...' is too long for a host", line, safe);
	if (!good)
		return err_set(e, ERR_USAGE,
			"line %zu: '%s' is not a host: write HOST or USER@HOST, one a line; a "
			"port belongs into ~/.ssh/config",
			line, safe);
	return 0;
}

static bool has_name(const struct remotes *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->items[i].name, name) == 0)
			return true;
	return false;
}

static int add_name(struct remotes *r, const char *name, size_t len, struct err *e)
{
	struct remote new = { .state = REMOTE_FAILED };
	memcpy(new.name, name, len);
	if (has_name(r, new.name)) {
		log_notice("%s is in the list twice and is asked once", new.name);
		return 0;
	}
	if (r->n == REMOTES_MAX)
		return err_set(e, ERR_USAGE,
			"there are more than %d hosts: use an engine (--from)", REMOTES_MAX);
	if (!array_one_more(&r->items, r->n))
		return err_memory(e);
	r->items[r->n++] = new;
	return 0;
}

int remotes_read(struct remotes *r, const char *text, struct err *e)
{
	int rc = 0;
	for (size_t line = 1; *text && rc == 0; line++) {
		size_t end = strcspn(text, "\n");
		size_t until = strcspn(text, "#\n");
		while (until && strchr(" \t\r", text[until - 1]))
			until--;
		size_t from = strspn(text, " \t");
		if (from < until)
			rc = check_name(text + from, until - from, line, e);
		if (from < until && rc == 0)
			rc = add_name(r, text + from, until - from, e);
		text += end + (text[end] == '\n');
	}
	if (rc == 0 && r->n == 0)
		rc = err_set(e, ERR_USAGE, "the list has no hosts");
	return rc;
}

void remotes_finish(struct remotes *r)
{
	free(r->items);
	arena_finish(&r->texts);
	*r = (struct remotes){ 0 };
}

/* Hosts that are asked at the same time, and how much one may send, in bytes: more than a
 * year of a host with 16 busy cards. */
enum { AT_A_TIME = 8, CONNECT_S = 10 };
#define STORE_MAX_BYTES ((int64_t)256 << 20)

/* The exit status of ssh: its own failures, and what a shell returns. */
enum { SSH_FAILED = 255, NOT_FOUND = 127, WRONG_USAGE = 2 };

/* What the threads share. */
struct fetching {
	struct remotes *r;
	const struct remotes_wish *wish;
	pthread_mutex_t lock; /* for the two numbers and the progress */
	size_t next, n_done;
	char since[32], until[32], connect[32];
};

/* Sets the reason. `detail` is a message of another program, or "". */
static void say_why(
	struct remote *host, const char *why, const char *detail, const char *advice)
{
	size_t len = strlen(detail);
	len -= len && detail[len - 1] == '.';
	host->state = REMOTE_FAILED;
	snprintf(host->why, sizeof(host->why), "%s%s%.*s; %s", why, len ? ": " : "", (int)len,
		detail, advice);
}

static void judge_ssh(struct remote *host, const char *output)
{
	char advice[REMOTE_NAME_CAP + 128];
	bool refused = strstr(output, "Permission denied") != NULL;
	bool stranger = strstr(output, "Host key verification failed") != NULL;
	snprintf(advice, sizeof(advice),
		refused	   ? "gua never asks for a password: 'ssh-copy-id %s' installs a key"
		: stranger ? "run 'ssh %s' once, and compare the key of the host"
			   : "try 'ssh %s gua version'",
		host->name);
	if (strncmp(output, "ssh: ", 5) == 0)
		output += 5;
	say_why(host, *output ? "ssh failed" : "ssh failed, or the connection broke", output,
		advice);
}

/* Sets the reason when the bytes are not a store. */
static void judge_bytes(struct remote *host, int fd)
{
	char begin[48], safe[160], advice[REMOTE_NAME_CAP + 96];
	ssize_t n = pread(fd, begin, sizeof(begin), 0);
	while (n > 1 && begin[n - 1] == '\n')
		n--;
	str_escape(safe, sizeof(safe), begin, n > 0 ? (size_t)n : 0);
	snprintf(advice, sizeof(advice), "'ssh %s true' must print nothing", host->name);
	say_why(host, n > 0 ? "it sent something else than a store" : "it sent nothing", safe,
		advice);
}

static bool is_store(int fd)
{
	static const char magic[] = "SQLite format 3";
	char begin[sizeof(magic)];
	return pread(fd, begin, sizeof(begin), 0) == (ssize_t)sizeof(begin) &&
	       memcmp(begin, magic, sizeof(magic)) == 0;
}

static void judge_fetch(struct remote *host, const struct child_result *result, int fd,
	const struct remotes_wish *wish)
{
	struct stat st = { 0 };
	char text[96], advice[REMOTE_NAME_CAP + 96];
	fstat(fd, &st);
	snprintf(advice, sizeof(advice), "try 'ssh %s gua export' there", host->name);
	if (st.st_size >= STORE_MAX_BYTES) {
		snprintf(text, sizeof(text), "it sent more than %lld MiB",
			(long long)(STORE_MAX_BYTES >> 20));
		say_why(host, text, "", "ask for a shorter window");
	} else if (result->timed_out) {
		snprintf(text, sizeof(text), "no answer within %s",
			duration_text(wish->timeout_ms).text);
		snprintf(advice, sizeof(advice), "try 'ssh %s gua version', or --timeout",
			host->name);
		say_why(host, text, result->output, advice);
	} else if (result->status == SSH_FAILED || result->status < 0) {
		judge_ssh(host, result->output);
	} else if (result->status == NOT_FOUND) {
		say_why(host, "gua is not installed there, or not in the PATH of ssh",
			result->output, "install it there, or link it into /usr/local/bin");
	} else if (result->status == WRONG_USAGE) {
		say_why(host, "its gua does not know 'gua export --format store'",
			result->output, "install the version there that is here");
	} else if (result->status != 0) {
		snprintf(text, sizeof(text), "gua export failed there with status %d",
			result->status);
		say_why(host, text, result->output, "see gua-report(1), HOSTS BY SSH");
	} else if (!is_store(fd)) {
		judge_bytes(host, fd);
	} else {
		host->state = REMOTE_FETCHED;
		/* A message such as which of two stores it reads. */
		str_copy(host->why, sizeof(host->why), result->output);
	}
}

/* Runs ssh. No shell is involved on this side; on the other side, all words are fixed by us. */
static int run_ssh(const struct fetching *f, const char *name, int fd,
	struct child_result *result, struct err *e)
{
	const char *argv[] = { "ssh", "-T", "-a", "-x", "-o", "BatchMode=yes", "-o", f->connect,
		"-o", "ServerAliveInterval=15", "-o", "ClearAllForwardings=yes", "-o",
		"PermitLocalCommand=no", "-o", "RemoteCommand=none", "-o", "LogLevel=ERROR",
		"-o", "Compression=yes", "--", name, "gua", "export", "--format", "store",
		"--since", f->since, "--until", f->until, NULL };
	const struct child_command command = { .argv = argv,
		.env = f->wish->env,
		.output_fd = fd,
		.output_max = STORE_MAX_BYTES,
		.timeout_ms = f->wish->timeout_ms };
	return child_run(&command, result, e);
}

static void fetch(struct fetching *f, struct remote *host)
{
	struct child_result result;
	struct err e = { 0 };
	int fd = open(host->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		say_why(host, "cannot make a temporary file", strerror(errno),
			"TMPDIR can name another directory");
	else if (run_ssh(f, host->name, fd, &result, &e) != 0)
		say_why(host, e.text, "", "install ssh on this host");
	else
		judge_fetch(host, &result, fd, f->wish);
	file_close(fd);
}

static void *work(void *context)
{
	struct fetching *f = context;
	for (;;) {
		pthread_mutex_lock(&f->lock);
		size_t i = f->next++;
		pthread_mutex_unlock(&f->lock);
		if (i >= f->r->n)
			return NULL;
		fetch(f, &f->r->items[i]);
		pthread_mutex_lock(&f->lock);
		f->n_done++;
		if (f->wish->progress)
			f->wish->progress(f->n_done, f->r->n);
		pthread_mutex_unlock(&f->lock);
	}
}

/* Sets the reason without the file name, which is temporary and means nothing to a user. */
static void judge_store(struct remote *host, const char *why)
{
	const char *name = strstr(why, host->path);
	struct str text = { 0 };
	str_add_bytes(&text, why, name ? (size_t)(name - why) : 0);
	str_add(&text, name ? "its store" : why);
	str_add(&text, name ? name + strlen(host->path) : "");
	say_why(host, "what it sent cannot be read", str_text(&text),
		"gua there must not be newer than gua here");
	str_finish(&text);
}

/* Opens the fetched stores. A host with two names in the list is used once. */
static int check_stores(struct remotes *r, struct err *e)
{
	char(*origins)[ORIGIN_CAP] = calloc(r->n, sizeof(*origins));
	if (!origins)
		return err_memory(e);
	for (size_t i = 0; i < r->n; i++) {
		struct remote *host = &r->items[i];
		struct err why = { 0 };
		if (host->state != REMOTE_FETCHED)
			continue;
		if (identify_origin(host->path, origins[i], &why) != 0)
			judge_store(host, why.text);
		for (size_t k = 0; k < i && host->state == REMOTE_FETCHED; k++)
			if (*origins[i] && strcmp(origins[i], origins[k]) == 0) {
				host->state = REMOTE_SAME;
				snprintf(host->why, sizeof(host->why),
					"it is the same host as %s and is counted once",
					r->items[k].name);
			}
	}
	free(origins);
	return 0;
}

int remotes_fetch(struct remotes *r, const struct remotes_wish *w, struct err *e)
{
	struct fetching f = { .r = r, .wish = w, .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t threads[AT_A_TIME];
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++)
		r->items[i].path =
			arena_textf(&r->texts, "%s/%s.store", w->directory, r->items[i].name);
	if (r->texts.failed)
		return err_memory(e);
	int64_t connect_s = w->timeout_ms / 1000 < CONNECT_S ? w->timeout_ms / 1000 : CONNECT_S;
	snprintf(f.connect, sizeof(f.connect), "ConnectTimeout=%lld",
		(long long)(connect_s > 0 ? connect_s : 1));
	snprintf(f.since, sizeof(f.since), "@%lld", (long long)(w->since_ms / 1000));
	snprintf(f.until, sizeof(f.until), "@%lld", (long long)((w->until_ms + 999) / 1000));
	while (n < AT_A_TIME && n < r->n && pthread_create(&threads[n], NULL, work, &f) == 0)
		n++;
	if (n == 0)
		work(&f);
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return check_stores(r, e);
}
