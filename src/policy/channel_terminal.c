/* Writes to the user's own terminals, as write(1) does: to character devices that belong to the
 * user and accept messages (mesg y), without waiting, and nothing but printable text. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/channel.h"

/* The terminals that were used most recently; a user of tmux may have dozens. */
enum { MOST_TERMINALS = 4, MOST_LINES = 6, PATH_CAP = 48 };
#define TERMINALS "/dev/pts"

struct terminal {
	char path[PATH_CAP];
	int64_t used_s; /* when a key was last pressed there */
};

/* Keeps the list sorted, the most recently used first. */
static void add_terminal(struct terminal *list, size_t *n, const struct terminal *t)
{
	size_t at = *n;
	while (at > 0 && list[at - 1].used_s < t->used_s)
		at--;
	if (at == MOST_TERMINALS)
		return;
	size_t kept = *n < MOST_TERMINALS ? *n : MOST_TERMINALS - 1;
	memmove(&list[at + 1], &list[at], (kept - at) * sizeof(*list));
	list[at] = *t;
	*n = kept + 1;
}

/* mesg y: the group tty may write. */
static bool accepts(const struct stat *st, int64_t uid)
{
	return S_ISCHR(st->st_mode) && (int64_t)st->st_uid == uid && (st->st_mode & S_IWGRP);
}

static size_t find_terminals(struct terminal list[MOST_TERMINALS], int64_t uid)
{
	size_t n = 0;
	DIR *directory = opendir(TERMINALS);
	struct dirent *entry;
	while (directory && (entry = readdir(directory))) {
		struct terminal t;
		struct stat st;
		if (entry->d_name[strspn(entry->d_name, "0123456789")] ||
			strlen(entry->d_name) > 16)
			continue;
		snprintf(t.path, sizeof(t.path), TERMINALS "/%.16s", entry->d_name);
		if (lstat(t.path, &st) != 0 || !accepts(&st, uid))
			continue;
		t.used_s = st.st_atime;
		add_terminal(list, &n, &t);
	}
	if (directory)
		closedir(directory);
	return n;
}

void channel_terminal_text(struct str *out, const struct channel_job *job)
{
	char safe[1024];
	/* A digest is never cut: what it does not show would not have been told. */
	size_t lines = 0, most = job->notice->kind == NOTICE_DIGEST ? SIZE_MAX : MOST_LINES;
	str_add(out, "\r\n");
	for (const char *at = str_text(&job->text->body); *at && lines < most;) {
		size_t len = strcspn(at, "\n");
		if (len) {
			text_escape(safe, sizeof(safe), at, len);
			str_addf(out, "%s\r\n", safe);
			lines++;
		}
		at += len + (at[len] == '\n');
	}
}

/* The device is checked again once it is open: it may be another one by now. */
static bool write_to(const char *path, int64_t uid, const struct str *text)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	ssize_t n = fstat(fd, &st) == 0 && accepts(&st, uid)
			    ? write(fd, str_text(text), text->len)
			    : -1;
	int why = n < 0 ? errno : EAGAIN; /* a part of it: the buffer is full */
	close(fd);
	errno = why;
	return n == (ssize_t)text->len;
}

enum delivery channel_terminal(const struct channel_job *job, char why[CHANNEL_WHY_CAP])
{
	struct terminal list[MOST_TERMINALS];
	struct str text = { 0 };
	size_t done = 0, n = job->notice->uid > 0 ? find_terminals(list, job->notice->uid) : 0;
	int failed = 0;
	channel_terminal_text(&text, job);
	for (size_t i = 0; i < n && !text.failed; i++) {
		if (write_to(list[i].path, job->notice->uid, &text))
			done++;
		else
			failed = errno;
	}
	str_finish(&text);
	if (done)
		snprintf(why, CHANNEL_WHY_CAP, "%zu terminal%s", done, done == 1 ? "" : "s");
	else if (n)
		snprintf(why, CHANNEL_WHY_CAP, "cannot write to %s: %s", list[n - 1].path,
			failed == EAGAIN ? "its output is stopped, or nobody reads it"
					 : strerror(failed));
	else
		snprintf(why, CHANNEL_WHY_CAP, "%s has no terminal that accepts messages",
			job->notice->user);
	return done ? DELIVERY_DONE : n ? DELIVERY_FAILED : DELIVERY_NOBODY;
}
