/* The built-in exemptions: processes that no rule may end. The program that judges and the
 * program that signals (gua-end) both ask here. No configuration removes one. */
#pragma once

#include "base/base.h"
#include "proc/proc_parse.h"

/* Whether an ordinary user may have made or changed the program file of a process. */
enum program_owner {
	PROGRAM_UNKNOWN, /* the file cannot be checked */
	PROGRAM_SYSTEM,	 /* root's, and nobody else may write to it */
	PROGRAM_OTHER,
};

/* What is known about a process. An unknown fact never makes it exempt. */
struct builtin_facts {
	uint32_t pid;		      /* 0: unknown */
	uint64_t start_ticks;	      /* 0: unknown */
	int64_t uid;		      /* its lowest uid; -1: unknown */
	int64_t uid_min;	      /* the first uid of ordinary users: builtin_uid_min() */
	char comm[PROC_COMM_CAP + 1]; /* "": unknown */
	enum program_owner program;
	const char *pod;    /* "namespace/name", or its uid; NULL or "": it is in none */
	bool service;	    /* it is a system service: builtin_is_service() */
	bool graphics;	    /* it uses its cards for graphics only */
	bool kernel_thread; /* a thread of the kernel */
};

/* Why the process is exempt, as the end of a sentence ("its uid is below UID_MIN, 1000"); NULL:
 * it is not. */
const char *builtin_exemption(const struct builtin_facts *f);
/* All reasons for which the process is exempt; several may apply. */
enum { BUILTIN_REASONS = 7 };
const char *builtin_reason(const struct builtin_facts *f, int i);

/* Fills the facts that /proc has, and keeps those that the caller has set before: `pid`,
 * `uid_min`, `pod` and `graphics`. `proc` and `pid` are as in proc/proc.h. -1 with errno: the
 * process has ended, or cannot be read; then nothing is changed. */
int builtin_read(struct builtin_facts *f, int proc, uint32_t pid);

/* UID_MIN of this host's /etc/login.defs; 1000 if it has none. */
int64_t builtin_uid_min(void);
/* The same from the bytes of such a file. */
int64_t builtin_parse_uid_min(const char *bytes, size_t len);
/* Whether the bytes of /proc/PID/cgroup say that the process is in a service of the system's
 * service manager: below /system.slice/NAME.service, except the service of cron. */
bool builtin_is_service(const char *bytes, size_t len);
