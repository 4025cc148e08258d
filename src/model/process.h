/* One process life: (pid, start time, boot), its user and its command. */
#pragma once

#include "base/base.h"

/* Sizes of the texts that describe a process. Longer texts are cut. */
enum {
	USER_CAP = 64,
	COMMAND_CAP = 256,
	LABEL_CAP = 128,
	TAG_CAP = 64,	  /* of a tag, an account, a python environment */
	LOGIN_CAP = 16,	  /* of what started a process */
	SESSION_CAP = 32, /* of the number of a login session */
	TASK_CAP = 48,	  /* of a job as its user knows it */
	BOOT_ID_CAP = 40,
	NOTEBOOK_CAP = 512, /* of the path of a notebook */
};

/* Before a job that only the process itself names. */
#define JOB_CLAIM "claim:"

/* Whether a user means this job by a word: "123" or "slurm:123". */
bool process_is_job(const char *word, const char *job);

/* `user` of a process that is not in /proc. Stores, JSON and CSV contain this value. */
#define USER_DEAD "_dead"
/* The user of a process that may not be read (hidepid). */
#define USER_UNKNOWN "_unknown"
/* The user as people read it: "(ended)" for USER_DEAD. */
const char *process_shown_user(const char *user);
/* Writes the workload of "namespace/pod", as the name of the pod suggests it: without what a
 * deployment, job, cron job or stateful set adds. It is a claim: a user may name a pod so. */
void process_workload(char dst[LABEL_CAP], const char *pod);
/* Writes the namespace of "namespace/pod"; "": it is not known. `pod` may be NULL. */
void process_namespace(char dst[LABEL_CAP], const char *pod);
struct process_id;

/* Where a process comes from (proc/owners.h). Each is escaped, and "" when it is not known. */
struct proc_origin {
	char login[LOGIN_CAP];	   /* what started it: ssh, tty, desktop, tmux, screen, vscode,
				      jupyter, batch, cron, container, service ... */
	char session[SESSION_CAP]; /* the login manager's number of its session */
	char parents[LABEL_CAP];   /* "bash > torchrun", from the session leader down */
	char python_env[TAG_CAP];  /* conda:NAME, pixi:NAME or venv:NAME */
	char notebook_path[NOTEBOOK_CAP]; /* of a Jupyter kernel; where its server does not say
					     it: "DIRECTORY (kernel 0a1b2c3d)" */
	char job_name[LABEL_CAP];	  /* of a Slurm job, like the next */
	char job_task[TASK_CAP]; /* of a task of an array: slurm:3_2, whose job is slurm:5 */
	char account[TAG_CAP];
	char tag[TAG_CAP]; /* GUA_TAG: its purpose, as its user stated it */
};

/* The facts about a process, read once, when it is first seen. Texts are raw bytes made safe
 * with str_escape(); "" when unknown. */
struct process_id {
	uint32_t pid;
	uint64_t start_ticks; /* /proc/PID/stat field 22; 0: unknown (no such process) */
	int64_t started_ms;   /* the same as unix milliseconds, or -1 */
	int64_t uid;	      /* the real uid, or -1 */
	int64_t owner_uid; /* the user that its time counts for (proc/owners.h); -1: unknown, or
			      of another host */
	int64_t posix_session; /* the pid of its session leader (setsid(2)); 0: unknown */
	char user[USER_CAP];   /* identity: name of owner_uid; "uid:123" when there is no name;
				  USER_DEAD when the process is not in /proc */
	char command[COMMAND_CAP]; /* basename of argv[0] and the script; proc/command.h */
	char notebook[LABEL_CAP];  /* jupyter:ID of a kernel; its path is in `origin` */
	char job[LABEL_CAP];	   /* slurm:ID, pbs:ID ...; JOB_CLAIM slurm:ID, if only its
				      environment says it */
	char container[LABEL_CAP]; /* docker:ID12, podman: ..., containerd: ...; ID12/NAME in a
				      pod, where that is known */
	char pod[LABEL_CAP];	   /* namespace/pod of kubernetes; its uid, if that is not
				      known */
	char unit[LABEL_CAP];	   /* systemd unit */
	struct proc_origin origin;
};

/* The texts that describe what a process does and where it comes from: all but its user. Stores
 * and formats use their names. */
enum process_text {
	PROCESS_COMMAND,
	PROCESS_NOTEBOOK,
	PROCESS_NOTEBOOK_PATH,
	PROCESS_JOB,
	PROCESS_JOB_NAME,
	PROCESS_JOB_TASK,
	PROCESS_ACCOUNT,
	PROCESS_CONTAINER,
	PROCESS_POD,
	PROCESS_UNIT,
	PROCESS_LOGIN,
	PROCESS_SESSION,
	PROCESS_PARENTS,
	PROCESS_PYTHON_ENV,
	PROCESS_TAG,
	PROCESS_TEXTS,
};
/* Their names in this order, for SQL. */
#define PROCESS_TEXT_COLUMNS                                                                   \
	"command, notebook, notebook_path, job, job_name, job_task, account, container, pod, " \
	"unit, login, session, parents, python_env, tag"
extern const struct process_field {
	const char *name;
	size_t offset, cap; /* in struct process_id */
	bool strict;	    /* kept even if privacy is strict */
} process_fields[PROCESS_TEXTS];
const char *process_text(const struct process_id *id, enum process_text which);
/* What a process belongs to: the first that is known, or "". Each may be NULL or "". Of a
 * Jupyter kernel the path of its notebook, of a job the number that its user knows. */
const char *process_label(const char *const texts[PROCESS_TEXTS]);
const char *process_label_of(const struct process_id *id);

/* What a recorder keeps about processes. Strict: neither command lines nor paths, nor anything
 * else that a process chooses; only its user, its times and the ids that managers gave it. */
enum privacy { PRIVACY_NORMAL, PRIVACY_STRICT, PRIVACIES };
#define PRIVACY_WORDS "normal|strict" /* in the order of the enum */
extern const char *const privacy_names[PRIVACIES];
/* Removes what must not be kept. */
void process_restrict(struct process_id *id, enum privacy privacy);
