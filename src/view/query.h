/* The field query: chosen metrics of cards, or chosen facts of compute processes, as lines
 * that are byte for byte what scripts expect from nvidia-smi; or as JSON. */
#pragma once

#include "render/json.h"
#include "present/filter.h"
#include "present/live.h"

enum { QUERY_FIELDS_MAX = 512 };

/* What is listed: cards, or another of the lists of nvidia-smi. */
enum query_list { QUERY_GPU, QUERY_APPS, QUERY_ACCOUNTED, QUERY_RETIRED, QUERY_REMAPPED };
enum { QUERY_LISTS = QUERY_REMAPPED + 1 };

struct query {
	enum query_list list;
	bool instances; /* one line for each MIG instance, not for each card */
	bool csv, json;
	bool no_header, no_units;
	int lines;		      /* JSON: as in struct json */
	int fields[QUERY_FIELDS_MAX]; /* enum metric, or of the list */
	size_t n;
	const char *wrong; /* the first name that is not a field; NULL: none */
};

/* Reads "a,b,c". ERR_USAGE for an unknown field; the message names the nearest fields. */
int query_fields(struct query *q, const char *list, struct err *e);
/* Reads "csv,noheader,nounits" or "json". */
int query_format(struct query *q, const char *text, struct err *e);
/* Append the words that --format and --query-gpu accept, each followed by a space. */
void query_formats(struct str *out);
void query_gpu_fields(struct str *out);
/* Sets the flags of the metrics that the query needs. */
void query_wanted(const struct query *q, unsigned char *wanted);

/* Appends the header line. */
void query_header(const struct query *q, struct str *out);
/* Appends one look: CSV lines, or one JSON document. ERR_WORLD: --id names no card. */
int query_look(const struct query *q, struct live *l, const struct filter *f, struct str *out,
	struct err *e);

/* Appends every field with its description. */
void query_help(enum query_list list, struct str *out);

/* argv[0]; for a process that is gone, the text that nvidia-smi prints. */
void query_process_name(char *dst, size_t cap, struct live *l, const struct present_process *p);

/* As query_gpu_fields(). */
void query_list_app_fields(struct str *out);
void query_list_accounted_fields(struct str *out);
void query_list_retired_fields(struct str *out);
void query_list_remapped_fields(struct str *out);

/* A field of a board as text without its unit; "" unknown. */
void query_board_text(char *dst, size_t cap, enum metric m, const struct present *now,
	const struct present_board *b);

/* nvidia-smi's words for a code of the driver. */
const char *query_code_words(int code);
/* The code behind a missing value of a board: of its call, or why the board cannot be asked; 0:
 * the board does not have it. */
int query_missing_code(const struct present_board *b, enum metric m);

/* "00000017:..." from a sysfs address; "" if it is not one. */
struct brief query_bus_id(const char *pci);
