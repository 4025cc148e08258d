/* Which session a process belongs to: the unit that policy judges. gua-policy(7). */
#pragma once

#include "model/policy.h"

/* What is known of a process; texts may be NULL. */
struct session_member {
	uint32_t pid;
	uint64_t start_ticks;
	int64_t posix_session; /* or 0 */
	const char *boot_id, *user;
	const char *texts[PROCESS_TEXTS];
};

/* The texts that name a session, in the order in which a process is tested for them. */
enum { SESSION_LABELS = 4 };
extern const struct session_label {
	enum session_kind kind;
	enum process_text text;
	const char *tag; /* before the text in the key */
} session_labels[SESSION_LABELS];

/* Writes the key of the session, and returns its kind. Processes of two users are never in
 * one session. */
enum session_kind session_key(char key[SESSION_KEY_CAP], const struct session_member *m);
/* What people call the session of this key: "slurm:1", "session 19101"; with `with_user`
 * "slurm:1 of alice". */
void session_shown(char *dst, size_t cap, const char *key, bool with_user);
/* session_key() of a process that was read now. */
enum session_kind session_key_of(
	char key[SESSION_KEY_CAP], const struct process_id *id, const char *boot_id);
/* How the process is used. */
enum session_use session_use(const struct session_member *m);
/* Whether a service of the system runs jobs of users, as cron.service does: a process in it is
 * a job of its user, not the service. */
bool session_is_job_unit(const char *unit, size_t len);
/* Of two uses in one session, the one that is ended later. */
enum session_use session_gentler(enum session_use a, enum session_use b);
