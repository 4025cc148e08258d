/* A table of process lives with pidfds. */
#include "proc/lives.h"

#include <sys/epoll.h>
#include <sys/syscall.h>

#include "proc/proc.h"

enum { FIRST_PLACES = 64, ASK_NAMES_MS = 60000 };

static bool is_live(const struct lives *l, uint32_t i)
{
	return l->lives[i].used && l->entries[i].ended_ms < 0;
}

/* A pid that the source describes and the same pid on this host are different processes. */
static int64_t key_of(uint32_t pid, bool own)
{
	return (int64_t)own << 32 | pid;
}

/* Only lives that have not ended are found by their pid. */
static void reindex(struct lives *l)
{
	idmap_clear(&l->by_pid);
	for (uint32_t i = 0; i < l->n; i++)
		if (is_live(l, i))
			idmap_put(&l->by_pid, key_of(l->entries[i].id.pid, l->lives[i].own), i);
}

static bool grow(struct lives *l, size_t cap)
{
	if (!array_resize(&l->entries, cap) || !array_resize(&l->lives, cap) ||
		!idmap_reserve(&l->by_pid, cap))
		return false;
	l->cap = cap;
	return true;
}

int lives_reserve(struct lives *l, size_t more, struct err *e)
{
	while (l->cap < l->n + more)
		if (!grow(l, 2 * l->cap))
			return err_memory(e);
	return 0;
}

int lives_init(struct lives *l, struct reader *reader, bool pidfds, struct err *e)
{
	*l = (struct lives){ .reader = reader };
	l->exits_fd = pidfds ? epoll_create1(EPOLL_CLOEXEC) : -1;
	l->pidfds = l->exits_fd >= 0;
	if (!grow(l, FIRST_PLACES)) {
		lives_finish(l);
		return err_memory(e);
	}
	return 0;
}

static void close_file(int *fd)
{
	file_close(*fd);
	*fd = -1;
}

static void close_files(struct life_watch *life)
{
	close_file(&life->pidfd);
	close_file(&life->stat_fd);
}

void lives_finish(struct lives *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->lives[i].used)
			close_files(&l->lives[i]);
	if (l->pidfds)
		close(l->exits_fd);
	free(l->entries);
	free(l->lives);
	idmap_finish(&l->by_pid);
	names_finish(&l->users);
	free(l->expected);
	*l = (struct lives){ 0 };
}

/* Returns the number of a name; a new name gets the next number. When out of memory, all new
 * names share one number; then only the choice of a user's leading holder can be wrong. */
static uint32_t user_number(struct lives *l, const char *name)
{
	return names_find(&l->users, 0, name, NULL);
}

/* Whether the user is one of this host and known only by number. */
static bool has_no_name(const struct process_id *id)
{
	return id->owner_uid >= 0 && strncmp(id->user, "uid:", 4) == 0;
}

/* The name of a user was found: all lives that had only the number get it, so that they count
 * as one user from now on. */
static void spread_name(struct lives *l, const struct process_id *named)
{
	if (named->owner_uid < 0 || has_no_name(named))
		return;
	for (uint32_t i = 0; i < l->n; i++) {
		struct process_id *id = &l->entries[i].id;
		if (!l->lives[i].used || id->owner_uid != named->owner_uid || !has_no_name(id))
			continue;
		str_copy(id->user, sizeof(id->user), named->user);
		l->lives[i].user = user_number(l, named->user);
		l->entries[i].dirty = true;
	}
}

static void ask_names(struct lives *l, int64_t now_ms)
{
	if (now_ms >= l->names_ms && now_ms - l->names_ms < ASK_NAMES_MS)
		return;
	l->names_ms = now_ms;
	for (uint32_t i = 0; i < l->n; i++) {
		struct process_id id;
		bool brief;
		if (is_live(l, i) && has_no_name(&l->entries[i].id) &&
			reader_describe(l->reader, l->entries[i].id.pid, &id, &brief))
			spread_name(l, &id);
	}
}

/* Returns whether the description may become better later. */
static bool describe(struct lives *l, uint32_t pid, bool own, struct process_id *id)
{
	bool brief = false;
	*id = (struct process_id){ .owner_uid = -1 };
	bool there = own	 ? l->describe(l->source, pid, id)
		     : l->reader ? reader_describe(l->reader, pid, id, &brief)
				 : false;
	id->pid = pid;
	process_restrict(id, l->privacy);
	if (there)
		return brief;
	id->start_ticks = 0;
	id->started_ms = -1;
	id->uid = id->owner_uid = -1;
	str_copy(id->user, sizeof(id->user), USER_DEAD);
	return false;
}

/* Replaces a brief description of a life by a better one. */
static void improve(struct lives *l, uint32_t i)
{
	struct process_id id;
	struct process_entry *entry = &l->entries[i];
	bool brief = describe(l, entry->id.pid, false, &id);
	if (id.start_ticks != entry->id.start_ticks)
		return;
	l->lives[i].brief = brief;
	l->lives[i].user = user_number(l, id.user);
	id.started_ms = entry->id.started_ms;
	entry->id = id;
	entry->dirty = true;
	spread_name(l, &id);
}

/* Reads it through the open file, which stays with the life for which it was opened. A file
 * that was removed is one of a recorded tree. */
static uint64_t read_start_ticks(struct lives *l, uint32_t pid, int *fd)
{
	struct proc_stat now;
	struct stat st;
	bool opened = *fd < 0;
	if (opened)
		*fd = proc_open_file(owners_proc(reader_owners(l->reader)), pid, "stat");
	if (*fd < 0)
		return 0;
	bool there = fstat(*fd, &st) == 0 && st.st_nlink > 0;
	uint64_t ticks = there && proc_read_stat_again(*fd, &now) == 0 ? now.start_ticks : 0;
	if (!there || (opened && !file_can_stay_open(*fd)))
		close_file(fd);
	return there ? ticks : owners_start_ticks(reader_owners(l->reader), pid);
}

static uint64_t start_ticks_now(struct lives *l, uint32_t i)
{
	uint32_t pid = l->entries[i].id.pid;
	if (!l->lives[i].own)
		return l->reader ? read_start_ticks(l, pid, &l->lives[i].stat_fd) : 0;
	struct process_id id = { 0 };
	return l->describe(l->source, pid, &id) ? id.start_ticks : 0;
}

static void end_life(struct lives *l, uint32_t i, int64_t now_ms)
{
	int64_t exited_ms = l->lives[i].exited_ms;
	l->entries[i].ended_ms = exited_ms >= 0 ? exited_ms : now_ms;
	l->entries[i].last_seen_ms = l->entries[i].ended_ms;
	l->entries[i].dirty = true;
	close_files(&l->lives[i]);
	reindex(l);
}

/* Closing a pidfd also removes it from the epoll set. */
uint32_t lives_next_exited(struct lives *l, int64_t now_ms)
{
	struct epoll_event event;
	if (!l->pidfds || epoll_wait(l->exits_fd, &event, 1, 0) <= 0)
		return LIFE_NONE;
	l->lives[event.data.u32].exited_ms = now_ms;
	close_file(&l->lives[event.data.u32].pidfd);
	return event.data.u32;
}

void lives_check(struct lives *l, int64_t now_ms)
{
	while (lives_next_exited(l, now_ms) != LIFE_NONE)
		;
}

/* Whether the life continues; ends it if not. One that began in this look does. After an exit
 * the start time decides: a zombie is still the same life, and the driver may still list it. */
static bool goes_on(struct lives *l, uint32_t i, int64_t now_ms)
{
	if (l->lives[i].pidfd >= 0 || l->entries[i].first_seen_ms == now_ms)
		return true;
	if (start_ticks_now(l, i) == l->entries[i].id.start_ticks)
		return true;
	end_life(l, i, now_ms);
	return false;
}

void lives_sweep(struct lives *l, int64_t now_ms)
{
	bool checked = false;
	for (uint32_t i = 0; i < l->n; i++) {
		if (!is_live(l, i) || l->entries[i].last_seen_ms == now_ms)
			continue;
		if (!checked)
			lives_check(l, now_ms);
		checked = true;
		/* A process that is not in /proc lives as long as the driver lists it. */
		if (l->entries[i].id.start_ticks == 0)
			end_life(l, i, now_ms);
		else
			goes_on(l, i, now_ms);
	}
	ask_names(l, now_ms);
}

/* Begins a life in a free place, or a new one; LIFE_NONE when out of memory. It is not
 * described yet. */
static uint32_t new_life(struct lives *l, uint32_t pid, int64_t seen_ms)
{
	uint32_t i = 0;
	while (i < l->n && l->lives[i].used)
		i++;
	if (i == l->cap && !grow(l, l->cap * 2))
		return LIFE_NONE;
	l->n += i == l->n;
	l->entries[i] = (struct process_entry){
		.id = { .pid = pid,
			.started_ms = -1,
			.uid = -1,
			.owner_uid = -1,
			.user = USER_UNKNOWN },
		.first_seen_ms = seen_ms,
		.last_seen_ms = seen_ms,
		.last_active_ms = -1,
		.ended_ms = -1,
		.dirty = true,
	};
	l->lives[i] = (struct life_watch){ .used = true,
		.pidfd = -1,
		.user = user_number(l, USER_UNKNOWN),
		.exited_ms = -1,
		.stat_fd = -1 };
	return i;
}

/* Opens a pidfd. -1: the kernel has none, and only the start time distinguishes lives. */
static int open_pidfd(struct lives *l, uint32_t pid, uint32_t place)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = place };
	int pidfd = l->pidfds ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0) : -1;
	if (pidfd < 0 || (file_can_stay_open(pidfd) &&
				 epoll_ctl(l->exits_fd, EPOLL_CTL_ADD, pidfd, &event) == 0))
		return pidfd;
	close(pidfd);
	return -1;
}

/* Opens the pidfd first. What is read after that belongs to the life of the pidfd; if that life
 * has ended, the check at the next look finds out. */
static uint32_t open_life(struct lives *l, uint32_t pid, bool own, int64_t now_ms)
{
	uint32_t i = new_life(l, pid, now_ms);
	if (i == LIFE_NONE)
		return i;
	l->lives[i].own = own;
	if (!own)
		l->lives[i].pidfd = open_pidfd(l, pid, i);
	return i;
}

/* The life has been described. */
static void take_life(struct lives *l, uint32_t i)
{
	const struct process_id *id = &l->entries[i].id;
	if (id->start_ticks == 0)
		close_file(&l->lives[i].pidfd);
	l->lives[i].user = user_number(l, id->user);
	spread_name(l, id);
	idmap_put(&l->by_pid, key_of(id->pid, l->lives[i].own), i);
}

void lives_expect(struct lives *l, uint32_t pid)
{
	uint32_t i = idmap_get(&l->by_pid, key_of(pid, false));
	if (i != LIFE_NONE &&
		!(l->lives[i].brief && reader_can_improve(l->reader, &l->entries[i].id)))
		return;
	if (array_reserve(&l->expected, &l->cap_expected, l->n_expected + 1))
		l->expected[l->n_expected++] = pid;
}

void lives_recall(struct lives *l, const struct process_id *id, int64_t now_ms)
{
	size_t k = 0;
	while (k < l->n_expected && l->expected[k] != id->pid)
		k++;
	uint32_t i = LIFE_NONE;
	if (k < l->n_expected && l->reader &&
		idmap_get(&l->by_pid, key_of(id->pid, false)) == LIFE_NONE)
		i = open_life(l, id->pid, false, now_ms);
	if (i == LIFE_NONE)
		return;
	if (owners_start_ticks(reader_owners(l->reader), id->pid) != id->start_ticks) {
		close_files(&l->lives[i]);
		l->lives[i].used = false;
		return;
	}
	l->expected[k] = l->expected[--l->n_expected];
	l->entries[i].id = *id;
	l->entries[i].id.started_ms =
		owners_started_ms(reader_owners(l->reader), id->start_ticks);
	process_restrict(&l->entries[i].id, l->privacy);
	take_life(l, i);
}

void lives_ask(struct lives *l)
{
	if (l->reader)
		reader_expect(l->reader, l->expected, l->n_expected);
	l->n_expected = 0;
}

uint32_t lives_find(struct lives *l, uint32_t pid, bool own, int64_t now_ms)
{
	uint32_t i = idmap_get(&l->by_pid, key_of(pid, own));
	if (i != LIFE_NONE && goes_on(l, i, now_ms)) {
		l->entries[i].last_seen_ms = now_ms;
		if (l->lives[i].brief && reader_knows(l->reader, pid))
			improve(l, i);
		return i;
	}
	i = open_life(l, pid, own, now_ms);
	if (i != LIFE_NONE) {
		l->lives[i].brief = describe(l, pid, own, &l->entries[i].id);
		take_life(l, i);
	}
	return i;
}

uint32_t lives_unknown(struct lives *l, int64_t now_ms)
{
	uint32_t i = idmap_get(&l->by_pid, key_of(0, false));
	if (i != LIFE_NONE && is_live(l, i)) {
		l->entries[i].last_seen_ms = now_ms;
		return i;
	}
	i = new_life(l, 0, now_ms);
	if (i != LIFE_NONE)
		idmap_put(&l->by_pid, key_of(0, false), i);
	return i;
}

uint32_t lives_add_ended(struct lives *l, uint32_t pid, int64_t started_ms, int64_t ended_ms)
{
	uint32_t i = new_life(l, pid, started_ms);
	if (i == LIFE_NONE)
		return i;
	l->entries[i].id.started_ms = started_ms;
	l->entries[i].last_seen_ms = l->entries[i].ended_ms = ended_ms;
	return i;
}

void lives_forget_ended(struct lives *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		if (l->lives[i].used && l->entries[i].ended_ms >= 0)
			l->lives[i].used = l->lives[i].kept;
		l->lives[i].kept = false;
	}
}
