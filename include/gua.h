/* libgua: what the GPUs of this host do now, for programs. libgua(3) is the manual.
 *
 * The library lives inside somebody's program: it prints nothing, never exits, starts no
 * threads, touches no signals and no environment, and links libc and libm only; the driver is
 * opened when gua_open() asks for it. Functions that can fail return 0 or a negative enum
 * gua_code, and gua_error() has the sentence. A handle is used by one thread at a time; several
 * handles may be open.
 *
 * A reading that the driver does not give is NAN (double) or -1 (integers), never 0. Structs
 * begin with their size, which the caller sets (GUA_INIT does), so that a later library can add
 * fields at the end without breaking a program that was built before. */
#ifndef GUA_H
#define GUA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What can go wrong; gua_code_text() says it in words. */
enum gua_code {
	GUA_OK = 0,
	GUA_WRONG_USE = -1, /* a wrong argument: unknown source, index out of range, size ... */
	GUA_FAILED = -2,    /* the world's fault: no driver, no such file ... */
	GUA_BUSY = -3,	    /* the world's, and may pass by itself: try again later */
	GUA_NO_MEMORY = -4,
};

enum gua_card_status {
	GUA_CARD_OK = 0,
	GUA_CARD_LOST = 1,   /* fell off the bus; matched again when it returns */
	GUA_CARD_ASLEEP = 2, /* powered down, and left alone */
	GUA_CARD_DENIED = 3, /* there, but this user may not open it */
};

/* Bits of gua_process.kind. */
enum gua_process_kind {
	GUA_PROCESS_COMPUTE = 1,
	GUA_PROCESS_GRAPHICS = 2,
	GUA_PROCESS_MPS = 4, /* client of an MPS server */
};

/* What gua_open() looks at. Zero, NULL and "" mean the default; the texts are copied. */
struct gua_options {
	size_t size;
	const char *source;    /* "nvml" (the default) or "sim", a simulated lab */
	const char *nvml_path; /* driver library instead of libnvidia-ml.so.1 */
	const char *scenario;  /* sim: a gua-scenario(5) file instead of the built-in lab */
	const char *root;      /* directory in which proc and sys are, instead of / */
};

/* A card, or a MIG instance, which is a card of its own. */
struct gua_card {
	size_t size;
	char uuid[96];
	char name[96];
	char parent_uuid[96]; /* of a MIG instance, else "" */
	char pci[32];	      /* "0000:17:00.0", "" when unknown */
	int index;	      /* the driver's index of the physical card */
	int mig_index;	      /* of the instance within its card, or -1: not MIG */
	int gpu_instance;     /* GI id, or -1 */
	int compute_instance; /* CI id, or -1 */
	int status;	      /* enum gua_card_status; the numbers below are of the last look */
	int64_t mem_total_bytes, mem_used_bytes;
	double util_pct; /* the driver's newest sample, 0 to 100 */
	double power_w;
	double energy_j;     /* counter that only grows: use differences */
	size_t processes;    /* how many gua_card_process() has */
	int processes_known; /* 0: the lists could not be read, and processes is 0 */
};

/* A process on a card. */
struct gua_process {
	size_t size;
	uint32_t pid;	   /* as seen by the driver */
	unsigned kind;	   /* gua_process_kind bits */
	int64_t mem_bytes; /* on this card */
	double sm_pct;	   /* its mean use between the last two refreshes, 0 to 100 */
};

/* struct gua_card card = GUA_INIT(struct gua_card); */
#ifdef __cplusplus
#define GUA_INIT(type)                                                                         \
	{                                                                                      \
		sizeof(type)                                                                   \
	}
#else
#define GUA_INIT(type)                                                                         \
	{                                                                                      \
		.size = sizeof(type)                                                           \
	}
#endif

struct gua; /* an open source of GPU numbers */

/* The library's version, "0.1.0"; and the sentence of a code. Both are constants. */
const char *gua_version(void);
const char *gua_code_text(int code);

/* Opens the source, finds the cards and reads them once. `options` may be NULL. On failure
 * *handle is still a handle for gua_error() and gua_close(), or NULL when memory ran out. */
int gua_open(struct gua **handle, const struct gua_options *options);
/* Closes; NULL does nothing. */
void gua_close(struct gua *handle);
/* Why the last call on this handle failed: one sentence, "" when it did not. NULL is allowed.
 * Valid until the next call. */
const char *gua_error(const struct gua *handle);

/* Reads everything again: utilisation, power, energy, memory, process lists; looks for cards
 * that came or returned. A lost card is a status, not a failure. */
int gua_refresh(struct gua *handle);

/* How many cards there are; it never shrinks while the handle is open. 0 for a failed one. */
size_t gua_card_count(const struct gua *handle);
/* Fills `card`, whose size is set, with what the last refresh saw. */
int gua_card(struct gua *handle, size_t index, struct gua_card *card);
/* Fills `process` with the process `index` of a card; below gua_card.processes. */
int gua_card_process(
	struct gua *handle, size_t card, size_t index, struct gua_process *process);

#ifdef __cplusplus
}
#endif

#endif
