/* What a reader and its process send each other, for reader*.c. */
#ifndef GUA_PROC_READER_PRIVATE_H
#define GUA_PROC_READER_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/helper.h"
#include "model/process.h"
#include "proc/parse.h"
#include "proc/reader.h"

/* Processes that one request may ask for. What a process answers is lost when a later one of
 * the same request blocks, so it is not large. */
enum { READER_BATCH = 32 };

enum reader_question {
	READER_DESCRIBE,  /* struct reader_answer for each target */
	READER_ARGUMENTS, /* struct reader_result, then the bytes of cmdline */
	READER_ROLLUP,	  /* struct reader_result, then a struct proc_rollup */
	READER_IO,	  /* struct reader_result, then a struct proc_io */
	READER_ASK_AGAIN, /* all names of users, at their next use: struct reader_result */
};

/* A request is one of these. All questions but READER_DESCRIBE have one target, and answer
 * only for the life with this start time. */
struct reader_request {
	uint32_t question; /* an enum reader_question */
	uint32_t n;
	struct {
		uint64_t start_ticks;
		uint32_t pid;
		uint32_t brief; /* do not read files that may block */
	} targets[READER_BATCH];
};

struct reader_answer {
	struct process_id id;
	uint32_t there; /* 0: there is no such process */
	uint32_t late;	/* the name of its user may come later */
};

struct reader_result {
	int32_t why;  /* 0, or an errno */
	uint32_t len; /* bytes that follow */
};

/* reader_process.c: the process, and those that were left behind. Zero-initialise but for
 * `root`. */
struct reader_process {
	const char *root;
	struct helper *helper; /* NULL: not started, or it ended */
	struct {
		int pidfd;
		pid_t pid;
	} left[READER_STUCK_MAX]; /* they are stuck */
	size_t n_left;
	int64_t restart_us; /* monotonic: no process is started before this */
	unsigned n_failed;  /* how many have failed since the last answer */
	char why[128];	    /* why the last one failed */
};

int64_t reader_now_us(void);
/* Whether there is a process; starts one if that is possible now. */
bool reader_process_is_there(struct reader_process *p);
/* Sends the request and waits for the reply. ERR_WORLD: there is no process, or it ended;
 * ERR_BUSY: it is stuck. *blamed is then the process that it was reading, or 0. */
int reader_process_ask(struct reader_process *p, const struct reader_request *request,
	const struct str **reply, uint32_t *blamed);
/* The reply makes no sense: ends the process. */
void reader_process_refuse(struct reader_process *p);
/* The reply makes sense. */
void reader_process_works(struct reader_process *p);
void reader_process_end(struct reader_process *p);

/* reader_serve.c: starts the process. `root` as in reader_open(). */
int reader_start_helper(struct helper **h, const char *root, struct err *e);

#endif
