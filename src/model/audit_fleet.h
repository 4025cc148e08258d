/* Where an audit of many hosts comes from: what its foot says. Only for model/audit.h. */
#ifndef GUA_MODEL_AUDIT_FLEET_H
#define GUA_MODEL_AUDIT_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of more hosts than this, the one with the most idle-held time is first, and people see the
 * cards of the worst few only. */
enum { AUDIT_HOSTS_LISTED = 16, AUDIT_HOSTS_WORST = 5 };

/* The stores of an audit. Nothing of those that could not be read is in it. */
struct audit_stores {
	size_t n;	     /* that were asked for */
	const char **unread; /* why one could not be read, and which; safe; the audit's */
	size_t n_unread;
};

/* Texts are safe for a terminal and are the engine's, like the arrays. */
struct audit_fleet {
	bool asked; /* the audit is of metrics; else nothing below is set */
	const char *url, *engine;
	size_t n_seen;	     /* hosts */
	size_t n_late;	     /* of them: first seen within the window */
	size_t n_silent;     /* of them: not seen at its end */
	int64_t n_expected;  /* -1: not said */
	const char *missing; /* names of some that were expected and not seen; "": none */
	size_t n_missing;
	size_t n_resets;  /* hosts whose store was lost */
	size_t n_assumed; /* series of users whose start was taken to be 0 */
	size_t n_twice;	  /* cards that two hosts report */
	size_t n_partial; /* hosts with other cards too than the audit is about: no users */
	size_t n_not_finite;
	const char *const *warnings; /* of the engine */
	size_t n_warnings;
};

/* Hosts whose stores were fetched for this report. Texts are safe for a terminal. */
struct asked_hosts {
	size_t n_asked, n_answered; /* names; a host with two names answers twice */
	const struct asked_failure {
		const char *host, *why;
	} * failed;
	size_t n_failed;
	const char *directory; /* where their stores are kept for the report */
};

#endif
