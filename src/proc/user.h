/* A cache of user names. A name is kept for an hour, the lack of a name for five minutes.
 *
 * The user database may be on a directory server (sssd, LDAP) that does not answer for minutes,
 * or takes a second for each user. The recorder must not wait for it, so each lookup runs in a
 * thread of its own. Within ten seconds, all lookups together are waited for no longer than the
 * deadline. After that the answer is "uid:N" at first, and the name once it has arrived. While
 * one lookup is overdue, no other one is waited for. */
#pragma once

#include "base/base.h"

enum { USER_DEADLINE_MS = 2000 };
#define USER_KEEP_US (3600 * INT64_C(1000000))
#define USER_KEEP_MISSING_US (300 * INT64_C(1000000))

/* Asks the user database: writes the raw name and returns true. It may block, and other threads
 * call it, several at a time. `context` must live until all calls are over. */
typedef bool user_find(void *context, uint32_t uid, char *name, size_t cap);

/* The system's database (getpwuid_r). */
bool user_find_system(void *context, uint32_t uid, char *name, size_t cap);

struct user_names;

int user_names_new(
	struct user_names **u, user_find *find, void *context, int deadline_ms, struct err *e);
/* Names from the bytes of a passwd file. The table takes the bytes over and frees them. It uses
 * no threads. */
int user_names_new_file(struct user_names **u, char *bytes, size_t len, struct err *e);
void user_names_free(struct user_names *u);

/* Writes the escaped name and returns true; or writes "uid:N" and returns false. `now_us` is
 * from a monotonic clock. */
bool user_names_get(struct user_names *u, uint32_t uid, int64_t now_us, char *dst, size_t cap);

/* Asks again for every name at its next use. If the user is gone, the old name stays. */
void user_names_expire(struct user_names *u);
/* Whether a lookup is overdue: a "uid:N" may become a name later. */
bool user_names_are_late(const struct user_names *u);

/* Finds a uid in the bytes of a passwd file and writes the raw name; skips incomplete lines. */
bool user_find_in_passwd(const char *bytes, size_t len, uint32_t uid, char *name, size_t cap);
