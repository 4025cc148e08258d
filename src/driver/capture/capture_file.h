/* A capture that was read (gua-capture(5)): the answers of a driver, by call and subject. The
 * file comes from another host, so every line is checked when it is read. */
#pragma once

#include "base/base.h"
#include "driver/nvml/nvml_calls.h"
#include "driver/nvml/nvml_host.h"

/* A call: its symbol, its subject and its numbers. */
struct nvml_key {
	const char *symbol;
	int card, instance; /* -1: none */
	int args[NVML_ARGS];
};

struct nvml_answer {
	struct nvml_key key;
	int round; /* -1: asked once */
	int code;
	const char *values;	  /* words, in the form of the call */
	size_t first_row, n_rows; /* range of rows[]: the entries of a list */
};

struct capture_file_process {
	uint32_t pid;
	const char *pairs; /* "KEY VALUE KEY VALUE ..."; NULL: it was gone */
};
/* The longest line is shorter, and so are its words. */
enum { CAPTURE_LINE_CAP = 2049 };
/* Takes the next pair; a value is a word, or in quotation marks. False: there is none. */
bool capture_file_pair(const char **at, char *key, char *value);

/* Moments of a round, microseconds. */
struct nvml_round {
	int64_t wall_us, boot_us;
};

struct capture_file {
	char *text; /* the bytes of the file, cut into lines */
	struct nvml_answer *answers;
	size_t n_answers, cap_answers;
	const char **rows;
	size_t n_rows, cap_rows;
	struct capture_file_process *processes; /* by pid */
	size_t n_processes, cap_processes;
	struct nvml_round *rounds;
	size_t n_rounds, cap_rounds;
	struct nvml_site site;
	struct proc_card gpus[PROC_CARDS_MAX];
	bool asleep[PROC_CARDS_MAX];
	size_t n_gpus;
	bool stuck[PROC_CARDS_MAX];	    /* a call to the card did not return */
	const char *made, *system, *kernel; /* or "" */
	const char *library;		    /* "" when there was none */
};

/* Reads a file. ERR_WORLD with the line if it is not a capture. */
int capture_file_open(struct capture_file **r, const char *path, struct err *e);
void capture_file_free(struct capture_file *r);
/* Whether the library had this function. */
bool capture_file_has(const struct capture_file *r, const char *symbol);
/* The answer that was valid in a round; NULL: the call was not made. */
const struct nvml_answer *capture_file_find(
	const struct capture_file *r, const struct nvml_key *key, int round);
/* What the capture has about a process; NULL: nothing. */
const struct capture_file_process *capture_file_process(
	const struct capture_file *r, uint32_t pid);
