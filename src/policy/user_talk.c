/* Requests and answers as JSON, and the user's side of the socket. */
#include "policy/user_talk.h"

#include <jansson.h>
#include <sys/socket.h>

#include "base/piece.h"
#include "proc/proc.h"

/* An upper limit of times: longer than any keep, and short enough to be added to a moment. */
#define LONGEST_MS (INT64_C(366) * 86400000)
/* How long the client waits: a pass of gua enforce may take some seconds. */
enum { ANSWER_MS = 20000, RETRY_MS = 250 };

static const char *const ask_names[USER_ASKS] = { "list", "keep", "drop", "explain" };

static bool parse_ask(struct user_request *r, const json_t *root)
{
	int ask = str_place(
		ask_names, USER_ASKS, json_string_value(json_object_get(root, "ask")));
	r->ask = (enum user_ask)ask;
	return ask < USER_ASKS;
}

/* Reads the pid or the lease. */
static bool parse_what(struct facts_asked *what, const json_t *root)
{
	json_int_t pid = json_integer_value(json_object_get(root, "pid"));
	const char *lease = json_string_value(json_object_get(root, "lease"));
	if (lease)
		str_escape(what->lease, sizeof(what->lease), lease, strlen(lease));
	what->pid = *what->lease || pid <= 0 || pid > INT32_MAX ? 0 : (uint32_t)pid;
	return *what->lease || what->pid;
}

static bool parse_numbers(struct user_request *r, const json_t *root)
{
	json_int_t ticks = json_integer_value(json_object_get(root, "start_ticks"));
	json_int_t for_ms = json_integer_value(json_object_get(root, "for_ms"));
	if (r->ask == USER_ASK_LIST)
		return true;
	if (!parse_what(&r->what, root) || ticks < 0 ||
		(r->ask != USER_ASK_EXPLAIN && ticks == 0 && r->what.pid))
		return false;
	if (r->ask == USER_ASK_KEEP && (for_ms <= 0 || for_ms > LONGEST_MS))
		return false;
	r->start_ticks = (uint64_t)ticks;
	r->for_ms = r->ask == USER_ASK_KEEP ? for_ms : 0;
	return true;
}

bool user_talk_parse_request(struct user_request *r, const char *bytes, size_t len)
{
	*r = (struct user_request){ 0 };
	json_t *root = len <= USER_REQUEST_MAX ? json_loadb(bytes, len, 0, NULL) : NULL;
	const char *reason = json_string_value(json_object_get(root, "reason"));
	bool ok = json_is_object(root) && parse_ask(r, root) && parse_numbers(r, root);
	if (ok && reason)
		str_escape(r->reason, sizeof(r->reason), reason, strlen(reason));
	r->json = json_is_true(json_object_get(root, "json"));
	r->utc = json_is_true(json_object_get(root, "utc"));
	json_decref(root);
	return ok;
}

void user_talk_write_request(struct str *out, const struct user_request *r)
{
	json_t *root = json_pack("{s:s, s:I, s:s, s:I, s:I, s:s, s:b, s:b}", "ask",
		ask_names[r->ask], "pid", (json_int_t)r->what.pid, "lease", r->what.lease,
		"start_ticks", (json_int_t)r->start_ticks, "for_ms", (json_int_t)r->for_ms,
		"reason", r->reason, "json", (int)r->json, "utc", (int)r->utc);
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	if (text)
		str_add(out, text);
	out->failed |= !text;
	free(text);
	json_decref(root);
}

/* A user can make at most this many keeps in a day. */
enum { MOST_KEPT = 100 };

void user_talk_finish_answer(struct user_answer *a)
{
	str_finish(&a->text);
	free(a->kept);
	*a = (struct user_answer){ 0 };
}

bool user_talk_add_kept(struct user_answer *a, const struct user_kept *kept)
{
	if (a->n_kept == MOST_KEPT || !array_one_more(&a->kept, a->n_kept))
		return false;
	a->kept[a->n_kept++] = *kept;
	return true;
}

bool user_talk_parse_answer(struct user_answer *a, const char *bytes, size_t len)
{
	json_t *root = len <= USER_ANSWER_MAX ? json_loadb(bytes, len, 0, NULL) : NULL, *one;
	const char *why = json_string_value(json_object_get(root, "why"));
	const char *text = json_string_value(json_object_get(root, "text"));
	bool ok = json_is_object(root);
	size_t i;
	*a = (struct user_answer){ .ok = json_is_true(json_object_get(root, "ok")) };
	str_escape(a->why, sizeof(a->why), why ? why : "", why ? strlen(why) : 0);
	/* Control characters are escaped in each line. */
	for (const char *at = text ? text : ""; *at;) {
		char line[1024];
		size_t n = strcspn(at, "\n");
		str_escape(line, sizeof(line), at, n);
		str_addf(&a->text, "%s\n", line);
		at += n + (at[n] != '\0');
	}
	json_array_foreach(json_object_get(root, "kept"), i, one)
	{
		const char *reason = json_string_value(json_object_get(one, "reason"));
		struct user_kept kept = { .until_ms = json_integer_value(
						  json_object_get(one, "until_ms")) };
		str_escape(kept.reason, sizeof(kept.reason), reason ? reason : "",
			reason ? strlen(reason) : 0);
		ok = ok && parse_what(&kept.what, one) && user_talk_add_kept(a, &kept);
	}
	json_decref(root);
	return ok && !a->text.failed;
}

void user_talk_write_answer(struct str *out, const struct user_answer *a)
{
	json_t *root = json_pack("{s:b, s:s, s:s, s:[]}", "ok", (int)a->ok, "why", a->why,
		"text", str_text(&a->text), "kept");
	json_t *kept = json_object_get(root, "kept");
	for (size_t i = 0; i < a->n_kept; i++)
		json_array_append_new(kept,
			json_pack("{s:I, s:s, s:I, s:s}", "pid",
				(json_int_t)a->kept[i].what.pid, "lease", a->kept[i].what.lease,
				"until_ms", (json_int_t)a->kept[i].until_ms, "reason",
				a->kept[i].reason));
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	out->failed |= !text || a->text.failed;
	if (text)
		str_add(out, text);
	free(text);
	json_decref(root);
}

void user_talk_path(char *dst, size_t cap, const char *configured, const char *db)
{
	const char *slash = strrchr(db, '/');
	if (configured)
		str_copy(dst, cap, configured);
	else if (strcmp(db, "/var/lib/gua/gua.db") == 0)
		str_copy(dst, cap, "/run/gua-enforce/socket");
	else
		snprintf(dst, cap, "%.*senforce.sock", slash ? (int)(slash + 1 - db) : 0, db);
}

uint32_t user_talk_owner(const char *bytes, size_t len, uint32_t uid)
{
	for (struct piece rest = { bytes, len }; rest.at;) {
		struct piece line = piece_cut(&rest, '\n');
		char text[128];
		unsigned long long first, n;
		snprintf(text, sizeof(text), "%.*s", (int)line.len, line.at);
		const char *colon = strchr(text, ':');
		if (colon && sscanf(colon, ":%llu:%llu", &first, &n) == 2 && uid >= first &&
			uid - first < n && first > 0)
			return (uint32_t)first;
	}
	return uid;
}

void user_talk_address(struct sockaddr_un *a, int directory, const char *name)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	proc_name_in(a->sun_path, sizeof(a->sun_path), directory, name);
}

int user_talk_open_directory(const char *path, const char **name)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');
	*name = slash ? slash + 1 : path;
	int n = slash ? (int)(slash - path) : 0;
	snprintf(directory, sizeof(directory), "%.*s", n, path);
	if (strlen(*name) > 80 || !**name) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open(slash ? (n ? directory : "/") : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Connects within the time that is left. */
static int connect_to(const char *path, int *fd, struct err *e)
{
	struct sockaddr_un address;
	struct timeval wait = { .tv_sec = ANSWER_MS / 1000 };
	const char *name = NULL;
	int directory = user_talk_open_directory(path, &name), rc = -1;
	*fd = directory < 0 ? -1 : socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (*fd >= 0) {
		user_talk_address(&address, directory, name);
		setsockopt(*fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
		setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
		rc = connect(*fd, (struct sockaddr *)&address, sizeof(address));
	}
	int why = errno;
	file_close(directory);
	if (rc == 0)
		return 0;
	file_close(*fd);
	*fd = -1;
	if (why == ENOENT || why == ECONNREFUSED || why == ENOTDIR)
		return err_set(e, ERR_NOTHING,
			"gua enforce is not running here: nothing listens on %s (%s)", path,
			strerror(why));
	return err_set(e, ERR_WORLD, "cannot ask gua enforce on %s: %s", path, strerror(why));
}

/* Sends one request. ERR_BUSY: the connection was closed without an answer. */
static int ask_once(
	const char *path, const struct str *request, struct user_answer *answer, struct err *e)
{
	int fd = -1, rc = connect_to(path, &fd, e);
	if (rc)
		return rc;
	char *bytes = malloc(USER_ANSWER_MAX);
	ssize_t n = -1;
	if (bytes && send(fd, request->data, request->len, MSG_NOSIGNAL) >= 0)
		n = recv(fd, bytes, USER_ANSWER_MAX, 0);
	int why = errno;
	close(fd);
	if (n > 0 && !user_talk_parse_answer(answer, bytes, (size_t)n))
		rc = err_set(e, ERR_WORLD, "the answer on %s is malformed", path);
	else if (n > 0)
		rc = answer->ok ? 0 : err_set(e, ERR_NOTHING, "%s", answer->why);
	else if (!bytes)
		rc = err_memory(e);
	else if (n < 0 && why == EAGAIN)
		rc = err_set(e, ERR_WORLD, "gua enforce does not answer on %s", path);
	else
		rc = err_set(e, ERR_BUSY,
			"gua enforce closed the connection; too many of your requests are "
			"waiting");
	free(bytes);
	return rc;
}

int user_talk_ask(const char *path, const struct user_request *r, struct user_answer *answer,
	struct err *e)
{
	struct str request = { 0 };
	int64_t until_us = clock_monotonic_us() + ANSWER_MS * 1000;
	*answer = (struct user_answer){ 0 };
	user_talk_write_request(&request, r);
	int rc = request.failed ? err_memory(e) : ERR_BUSY;
	while (rc == ERR_BUSY) {
		*e = (struct err){ 0 };
		rc = ask_once(path, &request, answer, e);
		if (rc != ERR_BUSY || clock_monotonic_us() >= until_us)
			break;
		poll(NULL, 0, RETRY_MS);
	}
	str_finish(&request);
	return rc;
}
