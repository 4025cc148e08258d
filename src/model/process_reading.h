/* What a source reports about the processes on a card: lists, use, and ended processes. */
#ifndef GUA_MODEL_PROCESS_READING_H
#define GUA_MODEL_PROCESS_READING_H

#include <stdint.h>

/* Other engines of a card; drivers that report their use know at least the first three. The
 * first is the use of the memory bus: every computation causes it, so it does not count as
 * work by itself. */
enum engine { ENGINE_MEMORY, ENGINE_ENCODER, ENGINE_DECODER, ENGINE_JPEG, ENGINE_FLOW };
#define ENGINE_COUNT 5

/* The mean use of one process since the last drain. Processes that are not listed had none. */
struct process_util {
	uint32_t pid;
	int64_t wall_us;		 /* stamp of its newest sample */
	double sm_pct;			 /* 0..100 */
	double engine_pct[ENGINE_COUNT]; /* by enum engine; NAN: not reported */
};

/* A process that has ended, from the driver's own records (accounting mode). */
struct ended_process {
	uint32_t pid;
	int64_t started_ms, ended_ms; /* wall clock */
	int64_t mem_peak_bytes;	      /* or -1 */
};

/* The record that accounting mode keeps about a process that is or was on a card. */
struct process_account {
	uint32_t pid;
	double gpu_pct, memory_pct; /* mean use of the card, and of its memory bus */
	int64_t mem_peak_bytes;	    /* or -1 */
	int64_t time_ms;	    /* how long it was on the card; 0: it still is */
};

enum process_kind {
	PROCESS_COMPUTE = 1,
	PROCESS_GRAPHICS = 2,
	PROCESS_MPS = 4, /* client of an MPS server */
};

/* A process on a card; one entry a pid, lists merged: kind is a set of process_kind bits. */
struct card_process {
	uint32_t pid;
	unsigned kind;
	int64_t mem_bytes; /* or -1: the driver does not report it */
};

#endif
