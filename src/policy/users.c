/* Listens on the socket of users, and answers their requests without blocking: what they keep,
 * whether a session can be kept, and what happens to one. */
#include "policy/users.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "policy/explain.h"

/* A connection that has sent no request after this time is closed. */
#define ASK_US (5 * INT64_C(1000000))
/* The place of an answered connection stays taken for this long, so that no user can keep
 * gua enforce busy by asking again and again. */
#define PAUSE_US INT64_C(200000)
/* How many connections are accepted in one turn, before other work is done. */
enum { BURST = 1024, BURST_MS = 5, SUBUID_MAX = 1 << 20, FIRST_SUBUID = 65536 };
/* Reading the store for users takes at most 1/PART of the time, however many requests come. */
enum { PART = 20 };
#define DAY_MS INT64_C(86400000)
#define ROOT_LONGEST_MS (28 * DAY_MS)
/* Keeps are recorded for ever, so their number is limited. */
enum { MOST_A_DAY = 100 };

/* One connection. */
struct place {
	int fd;		/* -1: closed, and the place is free at `until_us` */
	bool taken;	/* false: the place is free */
	bool answered;	/* answered; waits until the other side closes it */
	uint32_t uid;	/* of the other side */
	uint32_t owner; /* the user that owns a subordinate uid; otherwise the same uid */
	int64_t since_us, until_us;
};

struct users {
	struct enforcer *enforcer;
	int64_t now_ms;
	/* The socket. */
	int fd, directory;
	char name[NAME_MAX + 1];
	ino_t inode; /* a file of this name with another inode is not ours */
	struct place places[USERS_PLACES];
	int64_t rest_us; /* until then no connection is accepted */
	/* The sessions, read for one request and reused for the next ones. */
	struct facts_now present;
	bool read;
	int64_t until_us; /* until then it counts as fresh */
};

static void forget_present(struct users *u)
{
	if (u->read)
		facts_now_finish(&u->present);
	u->read = false;
}

static int read_present(struct users *u, struct err *e)
{
	int64_t begin_us = clock_monotonic_us();
	if (u->read && begin_us < u->until_us)
		return 0;
	forget_present(u);
	u->present = enforcer_facts(u->enforcer, u->now_ms, false);
	u->read = true;
	int rc = facts_now_read(&u->present, e);
	int64_t now_us = clock_monotonic_us();
	u->until_us = now_us + (now_us - begin_us) * PART;
	if (rc)
		forget_present(u);
	return rc;
}

/* Whether the configuration allows a user to keep a session for this long; answer->ok is the
 * result. */
static int check_time(const struct users *u, const struct user_request *r, uint32_t uid,
	struct user_answer *answer, struct err *e)
{
	const struct config_policy *limits = &u->enforcer->policy.config->policy;
	int64_t longest_ms = uid == 0 ? ROOT_LONGEST_MS : limits->keep_longest_ms;
	const struct policy_span week = { u->now_ms - 7 * DAY_MS, INT64_MAX };
	struct arena texts = { 0 };
	struct policy_keep *k = NULL;
	int64_t sum_ms = 0, n_day = 0;
	if (r->for_ms > longest_ms) {
		snprintf(answer->why, sizeof(answer->why),
			"a session can be kept for %s at most", duration_text(longest_ms).text);
		return 0;
	}
	int rc = policy_file_keeps(u->enforcer->file, week, &texts, &k, e);
	for (; k; k = k->next)
		if (k->uid == uid) {
			sum_ms += k->until_ms - clock_later(k->from_ms, week.since_ms);
			n_day += k->from_ms > u->now_ms - DAY_MS;
		}
	arena_finish(&texts);
	if (rc)
		return rc;
	answer->ok = uid == 0;
	if (uid == 0)
		return 0;
	if (sum_ms + r->for_ms > limits->keep_per_week_ms)
		snprintf(answer->why, sizeof(answer->why),
			"a user can keep sessions for %s in seven days, and this would exceed "
			"it",
			duration_text(limits->keep_per_week_ms).text);
	else if (n_day >= MOST_A_DAY)
		snprintf(answer->why, sizeof(answer->why),
			"a user can keep sessions %d times in 24 hours", MOST_A_DAY);
	else
		answer->ok = true;
	return 0;
}

static int write_keep(const struct users *u, const struct user_request *r, uint32_t uid,
	const struct idle_session *session, struct err *e)
{
	struct policy_file *file = u->enforcer->file;
	char evidence[320];
	struct policy_keep keep = { .session = session->key,
		.user = uid == 0 ? "root" : session->user,
		.reason = r->reason,
		.uid = uid,
		.pid = r->what.pid,
		.from_ms = u->now_ms,
		.until_ms = u->now_ms + r->for_ms };
	struct brief until = moment_iso(keep.until_ms);
	if (r->ask == USER_ASK_DROP)
		snprintf(evidence, sizeof(evidence), "its user no longer keeps it");
	else
		snprintf(
			evidence, sizeof(evidence), "kept until %s: %s", until.text, r->reason);
	struct policy_action a = { .at_ms = u->now_ms,
		.step = STEP_KEPT,
		.uid = uid,
		.held_bytes = -1,
		.idle_since_ms = -1,
		.idle_ms = -1,
		.given_back_ms = -1,
		.session = session->key,
		.kind = session_kind_names[session->kind],
		.user = session->user,
		.evidence = evidence,
		.config = u->enforcer->config_hash,
		.actor = keep.user };
	bool failed = policy_file_begin(file, e) ||
		      policy_file_drop_keep(file, session->key, u->now_ms, e) ||
		      (r->ask == USER_ASK_KEEP && policy_file_add_keep(file, &keep, e)) ||
		      policy_file_add_action(file, &a, e);
	return policy_file_end(file, failed ? e->code : 0, e);
}

/* Adds what is kept: the session of a process or, without a pid, a lease. */
static void add_kept(
	struct user_answer *answer, const char *session, const struct policy_keep *keep)
{
	struct user_kept kept = { .what.pid = (uint32_t)keep->pid, .until_ms = keep->until_ms };
	char shown[SESSION_KEY_CAP];
	session_shown(shown, sizeof(shown), session, false);
	if (!keep->pid)
		str_copy(kept.what.lease, sizeof(kept.what.lease),
			shown + strcspn(shown, " ") + 1);
	str_escape(kept.reason, sizeof(kept.reason), keep->reason, strlen(keep->reason));
	user_talk_add_kept(answer, &kept);
}

/* Keeps the session of a process, or keeps it no longer: the process belongs to the uid, or the
 * uid is root's. Fails only if the store or policy.db cannot be read or written. */
static int answer_keep(struct users *u, const struct user_request *r, uint32_t uid,
	struct user_answer *answer, struct err *e)
{
	const struct idle_history *h = &u->present.history;
	const struct idle_process *process = NULL;
	int rc = read_present(u, e);
	if (rc)
		return rc;
	for (size_t i = 0; (process = facts_now_find(&u->present, &r->what, &i)) != NULL; i++)
		if (*r->what.lease ? uid == 0 || process->uid == uid
				   : process->start_ticks == r->start_ticks)
			break;
	bool other = process && uid != 0 && process->uid != uid;
	if (!process || other) {
		str_copy(answer->why, sizeof(answer->why),
			*r->what.lease ? EXPLAIN_NO_LEASE
			: other	       ? "this process belongs to another user"
				: "this process holds no card at the recorder's last tick");
		return 0;
	}
	const struct idle_session *session = &h->sessions[process->session];
	if (r->ask == USER_ASK_DROP) {
		/* Without a keep to drop, no row is written. */
		int64_t until_ms;
		answer->ok = true;
		rc = policy_file_kept_until(
			u->enforcer->file, session->key, u->now_ms, &until_ms, e);
		return rc || until_ms < 0 ? rc : write_keep(u, r, uid, session, e);
	}
	rc = check_time(u, r, uid, answer, e);
	if (rc || !answer->ok)
		return rc;
	rc = write_keep(u, r, uid, session, e);
	if (rc == 0)
		add_kept(answer, session->key,
			&(struct policy_keep){ .pid = r->what.pid,
				.until_ms = u->now_ms + r->for_ms,
				.reason = r->reason });
	return rc;
}

static int answer_explain(struct users *u, const struct user_request *r, uint32_t uid,
	struct user_answer *answer, struct err *e)
{
	int rc = read_present(u, e);
	struct explain_question q = { .now = &u->present,
		.policy = u->enforcer->policy,
		.settings = u->enforcer->settings,
		.file = u->enforcer->file,
		.what = r->what,
		.uid = uid,
		.json = r->json,
		.utc = r->utc };
	if (rc == 0)
		rc = explain(&q, &answer->text, e);
	answer->ok = rc == 0;
	return rc;
}

static int make_socket(struct users *u)
{
	struct sockaddr_un address;
	struct stat st;
	user_talk_address(&address, u->directory, u->name);
	u->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->fd < 0)
		return -1;
	/* The kernel creates the file with this mode: everybody may ask about themselves. */
	mode_t mask = umask(0111);
	int rc = bind(u->fd, (struct sockaddr *)&address, sizeof(address));
	int why = errno;
	umask(mask);
	errno = why;
	if (rc == 0 && fstatat(u->directory, u->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		u->inode = st.st_ino;
	return rc == 0 ? listen(u->fd, SOMAXCONN) : rc;
}

int users_open(struct users **out, struct enforcer *enforcer, struct err *e)
{
	char path[PATH_MAX];
	const char *name = NULL;
	struct users *u = calloc(1, sizeof(*u));
	if (!u)
		return err_memory(e);
	u->enforcer = enforcer;
	u->fd = -1;
	for (size_t i = 0; i < USERS_PLACES; i++)
		u->places[i].fd = -1;
	user_talk_path(
		path, sizeof(path), enforcer->policy.config->policy.socket, enforcer->db);
	file_make_parent(path, 0755, NULL);
	u->directory = user_talk_open_directory(path, &name);
	str_copy(u->name, sizeof(u->name), name);
	if (u->directory >= 0) {
		/* Removes the socket of a service that has ended: one that belongs to this user
		 * and refuses connections. By the lock of policy.db no other service runs. */
		struct stat st;
		if (fstatat(u->directory, u->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISSOCK(st.st_mode) && st.st_uid == geteuid())
			unlinkat(u->directory, u->name, 0);
	}
	if (u->directory < 0 || make_socket(u) != 0) {
		err_set(e, ERR_WORLD, "cannot make the socket %s, on which users ask: %s", path,
			strerror(errno));
		users_close(u);
		return ERR_WORLD;
	}
	*out = u;
	return 0;
}

static void leave(struct place *p)
{
	file_close(p->fd);
	*p = (struct place){ .fd = -1 };
}

void users_close(struct users *u)
{
	struct stat st;
	if (!u)
		return;
	for (size_t i = 0; i < USERS_PLACES; i++)
		leave(&u->places[i]);
	if (u->fd >= 0 && u->inode &&
		fstatat(u->directory, u->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		st.st_ino == u->inode)
		unlinkat(u->directory, u->name, 0);
	file_close(u->fd);
	file_close(u->directory);
	forget_present(u);
	free(u);
}

size_t users_fds(const struct users *u, struct pollfd *fds)
{
	size_t n = 0;
	if (!u)
		return 0;
	if (u->rest_us <= clock_monotonic_us())
		fds[n++] = (struct pollfd){ .fd = u->fd, .events = POLLIN };
	for (size_t i = 0; i < USERS_PLACES; i++)
		if (u->places[i].fd >= 0)
			fds[n++] = (struct pollfd){ .fd = u->places[i].fd, .events = POLLIN };
	return n;
}

int64_t users_wait_ms(const struct users *u)
{
	int64_t now_us = clock_monotonic_us(), first_us = INT64_MAX;
	if (!u)
		return -1;
	if (u->rest_us > now_us)
		first_us = u->rest_us;
	for (size_t i = 0; i < USERS_PLACES; i++)
		if (u->places[i].fd >= 0 && !u->places[i].answered &&
			u->places[i].until_us < first_us)
			first_us = u->places[i].until_us;
	if (first_us == INT64_MAX)
		return -1;
	return first_us > now_us ? (first_us - now_us) / 1000 + 1 : 0;
}

static size_t count_of(const struct users *u, uint32_t owner)
{
	size_t n = 0;
	for (size_t i = 0; i < USERS_PLACES; i++)
		n += u->places[i].taken && u->places[i].owner == owner;
	return n;
}

/* A free place; when all are taken, the user with the most of them loses the oldest. NULL: the
 * user has too many. */
static struct place *find_place(struct users *u, uint32_t owner)
{
	size_t most = count_of(u, owner) + 1;
	struct place *oldest = NULL;
	if (most > USERS_PLACES_OF_ONE)
		return NULL;
	for (size_t i = 0; i < USERS_PLACES; i++)
		if (!u->places[i].taken)
			return &u->places[i];
	for (size_t i = 0; i < USERS_PLACES; i++) {
		struct place *p = &u->places[i];
		size_t n = count_of(u, p->owner);
		if (n > most || (n == most && oldest && p->since_us < oldest->since_us)) {
			oldest = p;
			most = n;
		}
	}
	if (oldest)
		leave(oldest);
	return oldest;
}

/* Maps the subordinate uids of a user to one uid. /etc/subuid is short, and is read only for
 * a uid that may be in it. */
static uint32_t owner_of(uint32_t uid)
{
	struct file_content file = { 0 };
	if (uid < FIRST_SUBUID)
		return uid;
	if (file_read_regular("/etc/subuid", SUBUID_MAX, &file, NULL) == 0)
		uid = user_talk_owner(file.data, file.len, uid);
	free(file.data);
	return uid;
}

/* Gives a new connection a place. If its user has too many, it is closed without an answer,
 * and the client tries again. */
static void admit(struct users *u, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0;
	uint32_t owner = known ? owner_of(peer.uid) : 0;
	struct place *p = known ? find_place(u, owner) : NULL;
	if (!p) {
		close(fd);
		return;
	}
	int64_t now_us = clock_monotonic_us();
	*p = (struct place){ .fd = fd,
		.taken = true,
		.uid = peer.uid,
		.owner = owner,
		.since_us = now_us,
		.until_us = now_us + ASK_US };
}

static void accept_all(struct users *u)
{
	int n = 0;
	if (u->rest_us > clock_monotonic_us())
		return;
	while (n < BURST) {
		int fd = accept4(u->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && errno != ECONNABORTED)
			break;
		n++;
		if (fd >= 0)
			admit(u, fd);
	}
	/* Too many connections at once, or no descriptor is left. */
	if (n == BURST || (errno != EAGAIN && errno != EWOULDBLOCK))
		u->rest_us = clock_monotonic_us() + BURST_MS * 1000;
}

/* An answer that does not fit into the socket at once is not sent. */
static void answer(struct users *u, struct place *p, const struct user_request *r)
{
	struct str out = { 0 };
	struct user_answer a = { 0 };
	struct err e = { 0 };
	int rc;
	if (!u->enforcer->file) {
		rc = err_set(&e, ERR_WORLD, "gua enforce cannot open policy.db now");
	} else if (r->ask == USER_ASK_EXPLAIN) {
		rc = answer_explain(u, r, p->uid, &a, &e);
	} else if (r->ask != USER_ASK_LIST) {
		rc = answer_keep(u, r, p->uid, &a, &e);
	} else {
		const struct policy_span now = { u->now_ms, u->now_ms + 1 };
		struct arena texts = { 0 };
		struct policy_keep *k = NULL;
		rc = policy_file_keeps(u->enforcer->file, now, &texts, &k, &e);
		for (; k; k = k->next)
			if (k->uid == p->uid)
				add_kept(&a, k->session, k);
		arena_finish(&texts);
		a.ok = rc == 0;
	}
	if (rc) {
		a.ok = false;
		str_copy(a.why, sizeof(a.why), e.text);
	}
	user_talk_write_answer(&out, &a);
	if (out.failed || out.len > USER_ANSWER_MAX || out.len == 0 ||
		send(p->fd, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL) !=
			(ssize_t)out.len) {
		close(p->fd);
		p->fd = -1;
	}
	p->answered = true;
	p->until_us = clock_monotonic_us() + PAUSE_US;
	user_talk_finish_answer(&a);
	str_finish(&out);
}

static void attend(struct users *u, struct place *p)
{
	char bytes[USER_REQUEST_MAX + 1];
	struct user_request r;
	int64_t now_us = clock_monotonic_us();
	if (p->fd >= 0) {
		ssize_t n = recv(p->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		bool nothing = n < 0 && (errno == EAGAIN || errno == EINTR);
		if (nothing && (p->answered || now_us < p->until_us))
			return;
		/* A second request, a malformed one and the end of the connection are all
		 * treated the same. */
		if (!p->answered && n > 0 && user_talk_parse_request(&r, bytes, (size_t)n)) {
			answer(u, p, &r);
			return;
		}
		close(p->fd);
		p->fd = -1;
		p->until_us = p->answered ? p->until_us : now_us + PAUSE_US;
	}
	if (now_us >= p->until_us)
		leave(p);
}

void users_step(struct users *u, int64_t now_ms)
{
	if (!u)
		return;
	u->now_ms = now_ms;
	/* The first turn frees places for new connections; the second reads their requests. */
	for (int turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < USERS_PLACES; i++)
			if (u->places[i].taken)
				attend(u, &u->places[i]);
		if (turn == 0)
			accept_all(u);
	}
}
