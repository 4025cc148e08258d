/* The sections [notices] and [end] of gua.conf(5) as values: how people are told, and how a
 * session is ended. */
#ifndef GUA_CONFIG_NOTICES_H
#define GUA_CONFIG_NOTICES_H

#include <stdint.h>

struct config_notices {
	const char *channels;  /* names with blanks between them */
	const char *templates; /* directory of the texts */
	int64_t per_day;       /* notices to one user; the others wait for a digest */
	int64_t timeout_ms;    /* of one delivery */
	const char *sendmail;  /* path of the program */
	const char *mail_domain, *mail_from, *mail_reply_to; /* NULL: not given */
	const char *webhook_url, *webhook_kind, *webhook_secret;
	const char *command, *command_user;
	const char *login_directory;
};

struct config_end {
	int64_t confirm_ms; /* fresh samples over this long come before the end */
	int64_t sample_ms;  /* how often the driver is asked then */
	int64_t grace_ms;   /* between SIGTERM and SIGKILL, or giving up */
	double cpu_pct;	    /* a session that uses more of one core is at work */
	double power_pct;   /* above the idle floor of its card */
	const char *socket; /* of a gua-end that runs as a service; NULL: start one */
	const char *slurm, *pbs, *lsf, *docker, *podman; /* commands of managers */
	int64_t manager_timeout_ms;
};

#endif
