/* A lease as a file: gua-lease(5). Pure functions of bytes; lease/lease_dir.h reads files. */
#pragma once

#include "base/base.h"
#include "model/lease.h"

enum { LEASE_FILE_MAX = 16384, LEASE_FILE_NAME_CAP = 256 };

/* To which numbers of cards a number belongs. */
#define LEASE_NUMBERINGS "auto|nvml|minor"
enum { NUMBERING_AUTO, NUMBERING_NVML, NUMBERING_MINOR }; /* in that order */

/* The values of a file. Texts are NULL if they are not given, and point into its bytes. */
struct lease_file {
	const char *id, *user, *cards, *numbering, *name, *account, *task, *sluid, *boot;
	const char *watched;	 /* "yes": a watcher wrote it, and says that it is alive */
	int64_t uid, share;	 /* -1: not given */
	double since_s, until_s; /* unix seconds; NAN: not given */
};
#define LEASE_FILE_NONE                                                                        \
	{                                                                                      \
		.uid = -1, .share = -1, .since_s = NAN, .until_s = NAN                         \
	}

/* Reads a file, and changes its bytes; there must be room for one more. ERR_USAGE: it is not a
 * lease, and why. Keys that are not known are left out. */
int lease_file_parse(char *bytes, size_t len, struct lease_file *f, struct err *e);
/* Writes the file. What it was given need not be safe to show. */
void lease_file_add(struct str *out, const struct lease_file *f);
/* The lease without its cards. `written_ms`: when the file was written. */
struct lease lease_file_lease(
	const struct lease_file *f, enum lease_kind kind, int64_t written_ms);

/* The name of the file of a lease; false: the id is empty, too long or cannot be shown. */
bool lease_file_name(char name[LEASE_FILE_NAME_CAP], const char *id);
/* Takes the next card from a list with commas; what is not the name of a card is skipped. One
 * of several parts of a card ("GPU-...::2") is that card. False at the end. */
bool lease_file_card(const char **list, char card[UUID_CAP]);
