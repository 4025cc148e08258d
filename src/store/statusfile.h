/* The status file, STORE.status: what a running recorder says about itself. Every user who can
 * enter the directory may read it. It is the only file that `gua status`, `gua stop` and the
 * live views need to find a recorder.
 *
 * The recorder makes a new file at each start and takes a write lock on it before others can
 * open it. A program that may only read the file cannot take a write lock, so the lock that the
 * kernel reports is always the recorder's, and is never out of date. Readers take no lock. */
#pragma once

#include "base/fault.h"
#include "proc/proc.h"
#include "driver/source_host.h"

#define STATUS_MAX_FAULTS 32
/* The smallest size of the file. It is allocated in advance, because a full disk is itself a
 * fault to report. */
#define STATUS_ROOM 4096

/* The writer's side. Zero-initialise. */
struct statusfile {
	int fd; /* holds the lock; 0: there is no file */
	char path[4096 + 16];
	char head[256];	  /* the lines that stay the same */
	size_t size;	  /* how much of the file the last text took */
	bool unread;	  /* the driver does not answer: nothing is known of the cards now */
	char stuck[2048]; /* the lines about processes that are stuck in the driver */
};

/* Makes the file of the store at `db`. The caller holds the recorder's lock (lock.h). A file
 * that cannot be made is logged and is not an error: recording is more important. */
void statusfile_create(struct statusfile *f, const char *db, int64_t started_ms);
/* Publishes the last tick (-1: none yet) and the current faults; does nothing without a file,
 * or when `f` is NULL. */
void statusfile_publish(
	struct statusfile *f, int64_t tick_ms, const struct fault *const *faults, size_t n);
/* Notes the processes that are stuck in the driver, for the next recorder; statusfile_publish()
 * writes them. Does nothing when `f` is NULL. */
void statusfile_set_stuck(struct statusfile *f, const struct source_stuck *stuck, size_t n);
/* Reads the stuck processes that an earlier recorder of the store noted and that still exist.
 * Call it before statusfile_create(). Returns how many. */
size_t statusfile_read_stuck(const char *db, struct source_stuck *out, size_t max);
/* Removes the file. If a process is stuck, it only releases the lock and leaves the file, which
 * the next recorder reads. */
void statusfile_remove(struct statusfile *f);

/* The recorder's pid is not visible here: it is outside this container, or on another host. */
#define RECORDER_ELSEWHERE LOCK_UNSEEN

struct published_fault {
	int64_t since_ms;
	char text[320]; /* safe to print */
};

struct published {
	pid_t pid;   /* a running recorder's pid, RECORDER_ELSEWHERE, or 0: none is running */
	uid_t owner; /* of the file: the user whose recorder made it */
	bool told;   /* the members below were read; false: the recorder could not write them */
	pid_t writer;	      /* the recorder's pid as the recorder itself sees it */
	uint64_t start_ticks; /* of that process */
	char boot_id[40];
	char version[32];
	int64_t started_ms, tick_ms; /* tick_ms -1: no tick yet */
	bool unread;		     /* the recorder cannot read the cards now */
	struct published_fault faults[STATUS_MAX_FAULTS];
	size_t n_faults;
};

/* Reads the status file of the store at `db`. No file means that no recorder is running.
 * ERR_WORLD when the file is not one that a recorder of this store has made: not a regular
 * file, a link, or another user's. */
int statusfile_read(struct published *p, const char *db, struct err *e);

/* Whether a recorder is running, even one with a pid that is not visible here: 1, 0, or -1 when
 * there is no status file, it cannot be read, or it is not on a disk of this host. */
int statusfile_is_running(const char *db);
