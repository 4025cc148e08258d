/* Names sessions, and determines how they are used. */
#include "model/session.h"

/* The first characters of a boot id, enough to distinguish boots. */
enum { BOOT_SHOWN = 8 };

static bool is_text(const char *text)
{
	return text && *text;
}

/* What a process says of itself decides nothing. */
static bool is_fact(const char *text)
{
	return is_text(text) && strncmp(text, JOB_CLAIM, strlen(JOB_CLAIM)) != 0;
}

const struct session_label session_labels[SESSION_LABELS] = {
	{ SESSION_JOB, PROCESS_JOB, "" },
	{ SESSION_POD, PROCESS_POD, "pod " },
	{ SESSION_CONTAINER, PROCESS_CONTAINER, "" },
	{ SESSION_NOTEBOOK, PROCESS_NOTEBOOK, "" },
};

enum session_kind session_key(char key[SESSION_KEY_CAP], const struct session_member *m)
{
	const char *user = m->user ? m->user : "", *boot = m->boot_id ? m->boot_id : "";
	for (const struct session_label *l = session_labels;
		l < session_labels + SESSION_LABELS; l++) {
		if (!is_fact(m->texts[l->text]))
			continue;
		snprintf(key, SESSION_KEY_CAP, "%s%.*s of %s", l->tag, SESSION_KEY_CAP / 2,
			m->texts[l->text], user);
		return l->kind;
	}
	if (m->posix_session > 0) {
		snprintf(key, SESSION_KEY_CAP, "session %lld of %s, boot %.*s",
			(long long)m->posix_session, user, BOOT_SHOWN, boot);
		return SESSION_POSIX;
	}
	snprintf(key, SESSION_KEY_CAP, "process %u of %s, start %llu, boot %.*s", m->pid, user,
		(unsigned long long)m->start_ticks, BOOT_SHOWN, boot);
	return SESSION_PROCESS;
}

void session_shown(char *dst, size_t cap, const char *key, bool with_user)
{
	const char *of = NULL;
	for (const char *p = strstr(key, " of "); p; p = strstr(p + 1, " of "))
		of = p;
	size_t len = strlen(key);
	if (of)
		len = (size_t)(of - key) + (with_user ? strcspn(of, ",") : 0);
	snprintf(dst, cap, "%.*s", (int)len, key);
}

enum session_kind session_key_of(
	char key[SESSION_KEY_CAP], const struct process_id *id, const char *boot_id)
{
	struct session_member m = { .pid = id->pid,
		.start_ticks = id->start_ticks,
		.posix_session = id->posix_session,
		.boot_id = boot_id,
		.user = id->user };
	for (int i = 0; i < PROCESS_TEXTS; i++)
		m.texts[i] = process_text(id, (enum process_text)i);
	return session_key(key, &m);
}

/* The use that each origin implies (gua(1), ORIGIN OF A PROCESS). */
static const struct {
	const char *login;
	enum session_use use;
} logins[] = {
	{ "ssh", USE_INTERACTIVE },
	{ "mosh", USE_INTERACTIVE },
	{ "tty", USE_INTERACTIVE },
	{ "desktop", USE_INTERACTIVE },
	{ "tmux", USE_INTERACTIVE },
	{ "screen", USE_INTERACTIVE },
	{ "vscode", USE_INTERACTIVE },
	{ "cursor", USE_INTERACTIVE },
	{ "windsurf", USE_INTERACTIVE },
	{ "jetbrains", USE_INTERACTIVE },
	{ "jupyter", USE_INTERACTIVE },
	{ "rstudio", USE_INTERACTIVE },
	{ "container", USE_SERVICE },
	{ "service", USE_SERVICE },
};

/* As Debian, RHEL and Arch name them. Without pam_systemd(8), which Debian does not use for
 * jobs, jobs stay in the cgroup of the service. */
static const char *const job_units[] = {
	"cron.service",
	"crond.service",
	"cronie.service",
	"anacron.service",
	"fcron.service",
	"atd.service",
};

bool session_is_job_unit(const char *unit, size_t len)
{
	for (size_t i = 0; i < sizeof(job_units) / sizeof(job_units[0]); i++)
		if (len == strlen(job_units[i]) && memcmp(unit, job_units[i], len) == 0)
			return true;
	return false;
}

static bool is_service_unit(const char *unit)
{
	size_t len = unit ? strlen(unit) : 0;
	return len > 8 && strcmp(unit + len - 8, ".service") == 0 &&
	       strncmp(unit, "user@", 5) != 0 && !session_is_job_unit(unit, len);
}

enum session_use session_use(const struct session_member *m)
{
	const char *login = m->texts[PROCESS_LOGIN];
	if (is_fact(m->texts[PROCESS_JOB]))
		return USE_BATCH;
	if (is_text(m->texts[PROCESS_NOTEBOOK]))
		return USE_INTERACTIVE;
	/* A container may serve a model: only its manager knows. */
	if (is_text(m->texts[PROCESS_CONTAINER]) || is_text(m->texts[PROCESS_POD]) ||
		is_service_unit(m->texts[PROCESS_UNIT]))
		return USE_SERVICE;
	for (size_t i = 0; login && i < sizeof(logins) / sizeof(logins[0]); i++)
		if (strcmp(login, logins[i].login) == 0)
			return logins[i].use;
	return USE_BATCH;
}

enum session_use session_gentler(enum session_use a, enum session_use b)
{
	static const int order[SESSION_USES] = {
		[USE_BATCH] = 0, [USE_INTERACTIVE] = 1, [USE_SERVICE] = 2
	};
	return order[a] >= order[b] ? a : b;
}
