/* Tables of processes and users that blocked. They have a fixed size: an attacker must not make
 * them grow. */
#include "proc/wary.h"

#define SECOND_US INT64_C(1000000)
#define USER_FIRST_US (600 * SECOND_US)
#define USER_MOST_US (24 * 3600 * SECOND_US)
/* Two processes block in a row if the second one blocks within this time after the first, or
 * after the pause that follows it. */
#define SOON_US (10 * SECOND_US)
#define PAUSE_FIRST_US (5 * SECOND_US)
#define PAUSE_MOST_US (300 * SECOND_US)
/* After this long without a process that blocks, pauses are short again. */
#define FORGIVEN_US (1200 * SECOND_US)

static struct wary_user *find_user(struct wary *w, int64_t uid)
{
	struct wary_user *oldest = &w->users[0];
	for (size_t i = 0; i < WARY_USERS; i++) {
		if (w->users[i].until_us && w->users[i].uid == uid)
			return &w->users[i];
		if (w->users[i].until_us < oldest->until_us)
			oldest = &w->users[i];
	}
	*oldest = (struct wary_user){ .uid = uid };
	return oldest;
}

static int64_t longer(int64_t last_us, int64_t first_us, int64_t most_us)
{
	int64_t next_us = last_us ? 2 * last_us : first_us;
	return next_us < most_us ? next_us : most_us;
}

void wary_add(struct wary *w, const struct process_id *id, int64_t now_us)
{
	if (id) {
		w->processes[w->next] = *id;
		w->next = (w->next + 1) % WARY_PROCESSES;
		if (id->uid >= 0) {
			struct wary_user *user = find_user(w, id->uid);
			user->wait_us = longer(user->wait_us, USER_FIRST_US, USER_MOST_US);
			user->until_us = now_us + user->wait_us;
		}
	}
	int64_t since_us = now_us - w->blocked_us;
	if (since_us > FORGIVEN_US)
		w->pause_us = 0;
	if (w->any && since_us < SOON_US + w->pause_us) {
		w->pause_us = longer(w->pause_us, PAUSE_FIRST_US, PAUSE_MOST_US);
		w->calm_us = now_us + w->pause_us;
	}
	w->blocked_us = now_us;
	w->any = true;
}

struct process_id *wary_find(struct wary *w, uint32_t pid, uint64_t start_ticks)
{
	for (size_t i = 0; i < WARY_PROCESSES; i++)
		if (w->processes[i].pid == pid && w->processes[i].start_ticks == start_ticks)
			return &w->processes[i];
	return NULL;
}

bool wary_is_calm(const struct wary *w)
{
	return !w->any;
}

bool wary_allows(struct wary *w, const struct process_id *id, int64_t now_us)
{
	if (now_us < w->calm_us || wary_find(w, id->pid, id->start_ticks))
		return false;
	for (size_t i = 0; i < WARY_USERS; i++)
		if (w->users[i].uid == id->uid && now_us < w->users[i].until_us)
			return false;
	return true;
}
