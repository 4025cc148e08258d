/* Which process holds a lock of gua pick, as the kernel reports it: the owner of the lock
 * file, and the process in /proc/locks. The content of a lock file is never used. */
#ifndef GUA_PICK_OWNER_H
#define GUA_PICK_OWNER_H

#include <stdint.h>

#include "base/str.h"
#include "proc/user.h"

/* The name of the process that keeps cards after a pick without a command; it contains the
 * number of seconds. Up to a day, it fits the kernel's 15 bytes. */
#define PICK_KEEPER_NAME "gua-hold %llds"

struct pick_owner {
	int64_t file_uid; /* of the lock file; -1: not known */
	int64_t pid;	  /* that took the lock; -1: it has ended or is not visible */
	int64_t uid;	  /* of that process; -1: not known */
	char comm[64];	  /* its name, safe to show; "": not known */
	int64_t left_ms;  /* how long it still keeps the card, as its name says; -1: unknown */
};

/* Finds the process that has locked the open file. */
void pick_owner_find(struct pick_owner *o, int fd);

/* Whether it is certain that the lock belongs to another user. */
bool pick_owner_is_other(const struct pick_owner *o);

/* The uid to talk to: the process's, else the file's; -1: not known. */
int64_t pick_owner_uid(const struct pick_owner *o);

/* "alice (pid 123, python)", "you (pid 123, gua-hold 30s; 12 s left)". */
void pick_owner_add(struct str *out, const struct pick_owner *o, struct user_names *names);

#endif
