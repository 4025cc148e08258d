/* The leases of this host: what schedulers have written into the directory of gua-lease(5), and
 * what the prologs of jobstats and the job mapping of dcgm-exporter have written into theirs.
 * Nobody but root and those to whom root gave a directory can make a lease: links are not
 * followed, and files and directories that others own or may write to are left out. Nothing
 * here blocks. */
#pragma once

#include "base/base.h"
#include "lease/lease_file.h"
#include "model/lease.h"

#define LEASE_DIR_PATH "/run/gua/leases"
/* In a directory: the time of this file is that of the last answer to its watcher. */
#define LEASE_DIR_HEARTBEAT ".heartbeat"
/* So many answers may be missing before leases are unknown. */
enum { LEASE_DIR_MISSED = 3 };

struct lease_dir_options {
	const char *path; /* NULL: ROOT/run/gua/leases */
	const char *root; /* "": this host; else a recorded tree, for the other files too */
	const char *numbering; /* of cards, where a lease does not say it: a word of
				  LEASE_NUMBERINGS */
};

struct lease_dir;

/* Path and root must live as long as the reader. Directories may come later. */
int lease_dir_open(struct lease_dir **d, const struct lease_dir_options *o, struct err *e);
void lease_dir_close(struct lease_dir *d);

/* The leases at `now_ms`: valid until the next call. While nothing changes it costs a stat of
 * each directory and, every few seconds, of each job's cgroup. A lease that has ended without a
 * word is not among them: by a boot, at its `until` unless its job has a cgroup, or because the
 * cgroup is gone. If memory runs out, the leases stay as they were. */
const struct leases *lease_dir_read(struct lease_dir *d, int64_t now_ms);

/* Writes the file of a lease into the directory of its kind below `dir`; makes directories.
 * `private`: only the owner and the group may read it. */
int lease_dir_put(const char *dir, enum lease_kind kind, const struct lease_file *f,
	bool private, struct err *e);
/* Removes it; that it is not there is no error. */
int lease_dir_remove(const char *dir, enum lease_kind kind, const char *id, struct err *e);

/* After lease_dir_read(): how many files this user may not read. */
size_t lease_dir_hidden(const struct lease_dir *d);
/* The same: lines about files and directories that were left out; "": none. */
const char *lease_dir_problems(const struct lease_dir *d);
/* Why a number does not say which card is meant, as a sentence; NULL: it does. */
const char *lease_dir_numbering_problem(struct lease_dir *d);
