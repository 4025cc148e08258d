/* A source of GPU numbers: what it can be asked, the kinds of sources, and the lists of their
 * names that users write. */
#pragma once

#include "base/base.h"
#include "driver/source_host.h"
#include "model/finding.h"
#include "model/metric.h"
#include "model/process.h"
#include "model/reading.h"

/* How one job of the source is done: for the log and `gua doctor`. */
struct facility {
	const char *job; /* "utilisation", "process list", "energy" ... */
	const char *how; /* the symbol or way in use: "nvmlDeviceGetMemoryInfo_v2" */
	bool fallback;	 /* not the preferred way */
	bool works;	 /* false: no way works; `how` says why */
	char note[96];	 /* which cards, or the code that made it fall back; may be "" */
};

/* A source: the real driver, a simulated one, or several joined (source_set.c). It owns the
 * arrays that its readings point to; they are valid until its next call. All calls are made
 * from one thread at a time and may block when a driver hangs: driver/host/ puts a deadline
 * around them. */

/* What a glance reads. */
enum glance { GLANCE_MEMORY = 1, GLANCE_ENERGY = 2 };

/* How drains differ from the usual ones. */
enum drain {
	DRAIN_POWER = 1, /* they read power_mw, too, which is slow on some drivers */
	DRAIN_BRIEF = 2, /* they read neither energy nor the parts of the use of processes */
	DRAIN_ALL = DRAIN_POWER | DRAIN_BRIEF,
};

struct source_ops {
	const char *name; /* "nvml", "sim" */
	/* Finds the cards again: new ones are added, lost ones matched by UUID, MIG instances
	 * enumerated. Order of cards[] never changes and none is removed while the source is
	 * open. Fails only when there is no driver to ask. */
	int (*scan)(struct source *s, struct err *e);
	/* Utilisation samples since its last drain, process utilisation and energy of the cards
	 * whose flag is set (n_cards flags; NULL: of all). A card's fault is its status, not a
	 * failure; fails only when the driver as a whole is gone. */
	int (*drain)(struct source *s, const bool *which, struct err *e);
	/* The cheap reading between two drains: what `what` (enum glance bits) asks for, of all
	 * cards. If the driver does not sample utilisation, a glance reads it too, and the next
	 * drain has it among its samples. Fails like drain(). */
	int (*glance)(struct source *s, unsigned what, struct err *e);
	/* Process lists and memory of the cards whose flag is set (n_cards flags; NULL: all
	 * cards, and MIG instances are enumerated again). Fails like drain(). */
	int (*look)(struct source *s, const bool *which, struct err *e);
	/* Describes a process of a card with own_processes; false: there is no such process.
	 * NULL: there is no such card. */
	bool (*describe)(struct source *s, uint32_t pid, struct process_id *id);
	/* Reads the requested metrics of a card, and leaves the others as they are. Only for
	 * cards whose status is ok; the status may change. NULL: the source has no metrics. */
	void (*metrics)(struct source *s, const struct metric_request *request, double *values,
		metric_texts texts);
	/* metrics() will be called next with these requests, in this order, whatever happens to
	 * the cards meanwhile: a source in another process asks for all of them at once. They
	 * must stay where they are until then. `refresh`: before that it drains all cards and
	 * looks at them; returns what these return. NULL: the source gains nothing from it. */
	int (*expect)(struct source *s, const struct metric_request *requests, size_t n,
		bool refresh, struct err *e);
	/* Reads at most `max` records of accounting mode; returns how many. NULL: none. */
	size_t (*accounts)(
		struct source *s, size_t card, struct process_account *a, size_t max);
	/* The identity of the card that a MIG instance is a part of; NULL: there are none. */
	void (*board)(struct source *s, size_t card, struct card_id *id);
	/* See source_late(). NULL: a call is over when it returns. */
	int (*late)(struct source *s, struct err *e);
	/* How each job is done; at most `max` rows. */
	size_t (*facilities)(struct source *s, struct facility *rows, size_t max);
	void (*close)(struct source *s);
};

/* An error of a card that the driver reported. */
struct source_xid {
	size_t card;	/* index into cards[] */
	int64_t number; /* the number in NVIDIA's list of XIDs */
};

/* The common head of every source. */
struct source {
	const struct source_ops *ops;
	struct card_reading *cards; /* owned by the source */
	size_t n_cards;
	const struct source_xid *xids; /* reported since the drain before; filled by drain() */
	size_t n_xids;
	char driver_version[VERSION_CAP]; /* "" when unknown */
	char hostname[128];		  /* a simulated source names its own host; else "" */
	int64_t sample_period_us; /* longest time between two samples; 0: at most a second */
	int code;		  /* the driver's code for a call that failed; 0: none */
	bool incomplete;	  /* a part of it is down: a scan may bring cards back */
	int64_t ring_us; /* the time that the shortest ring spans, as seen so far; 0: not known
			    yet */
	/* What the last glance cost, by clock_cost_us(): for memory and for energy. */
	int64_t memory_cost_us, energy_cost_us;
	/* For a source in another process: the total CPU time that it has used there, and the
	 * wall clock there at the end of the last call. */
	int64_t apart_cost_us, apart_wall_ms;
	struct err unsaid; /* the error of a call that returns no code: see source_unsaid() */
	unsigned drains;   /* set by the caller: enum drain bits */
};

/* Opens the source and does the first scan. ERR_WORLD with one sentence that says why not. */
int source_open(struct source **s, const struct source_options *options, struct err *e);
void source_close(struct source *s);
int source_scan(struct source *s, struct err *e);
int source_drain(struct source *s, const bool *which, struct err *e);
int source_glance(struct source *s, unsigned what, struct err *e);
int source_look(struct source *s, const bool *which, struct err *e);
/* Why a call that returns no code has failed since this was last called. After such a failure
 * no reading is valid. */
int source_unsaid(struct source *s, struct err *e);
/* Returns the result of a call that returned ERR_BUSY and goes on. ERR_BUSY: it is not done;
 * ask again. */
int source_late(struct source *s, struct err *e);

/* What is known when a source examines itself: whether it can be used on this host, and what is
 * in the way. This is done whether or not it could be opened. It reads and changes nothing. */
struct diagnosis {
	const char *name;      /* as the user named the source: "nvml", "capture:FILE" */
	const char *root;      /* where /proc, /sys and /dev are; "" for the real ones */
	struct source *source; /* after one drain and one look; NULL: that failed */
	struct err why;	       /* if it failed: why */
	bool hangs;	       /* if it failed: whether it did not answer in time */
	void *before; /* what the kind's look() saw before the source was opened, or NULL */
};

/* The functions of each kind, for the table of kinds. */
void *nvml_diagnose_before(const char *root);
void nvml_diagnose(const struct diagnosis *d, struct findings *f);
void sim_diagnose(const struct diagnosis *d, struct findings *f);
void captured_diagnose(const struct diagnosis *d, struct findings *f);

/* The kinds of sources: one table, which is used to open them, to read --source and run.source
 * in the store, and to make the help and completion of --source. Several names are joined by
 * commas: "nvml,sim". */

struct source_kind {
	const char *name;
	const char *help; /* a few words */
	/* Opens it and does the first scan; NULL: this name stands for others, or none. */
	int (*open)(struct source **s, const struct source_options *options, struct err *e);
	/* Looks at the host before the source is opened, because a library may change it:
	 * NVIDIA's makes device nodes for root. The caller frees the result with free(). May be
	 * NULL, and may return NULL. */
	void *(*look)(const char *root);
	/* Examines the source for `gua doctor`; set when `open` is set. */
	void (*diagnose)(const struct diagnosis *d, struct findings *f);
	bool invented;	/* its data is not measured now on a GPU of this host */
	bool automatic; /* "auto" opens it */
	bool may_block; /* its calls may never return: a host opens it, where there is one */
};

/* Opens a source of a kind: here, or by the host. */
int source_kind_open(const struct source_kind *kind, struct source **s,
	const struct source_options *options, struct err *e);
/* Whether the host opens it. If only this process has the clock, it is opened here. */
bool source_kind_is_apart(const struct source_kind *kind, const struct source_options *options);

/* How each kind is opened, for the table. */
int nvml_source_open(struct source **s, const struct source_options *options, struct err *e);
int sim_source_open(struct source **s, const struct source_options *options, struct err *e);
int captured_source_open(
	struct source **s, const struct source_options *options, struct err *e);
int captured_check(const char *path, struct err *e);

/* The default, and the name that means no source. */
#define SOURCE_AUTO "auto"
#define SOURCE_NONE "none"
/* A capture is named with its file, "capture:FILE", and cannot be joined with others. */
#define SOURCE_CAPTURE "capture"

enum { SOURCE_NAME_CAP = PATH_MAX + 16 };

/* The file of a capture; NULL: the name is not one. In a store the name has no file. */
const char *source_capture_path(const char *name);
/* Makes the file name of a capture absolute, in `dst` of SOURCE_NAME_CAP bytes; other names do
 * not change. */
int source_make_absolute(const char **name, char *dst, struct err *e);
/* Whether the data is played from a capture. */
bool source_is_captured(const char *names);

/* Help of --source, where a source is required and where there may be none. */
#define SOURCE_HELP                                                                            \
	"where readings come from: auto, nvml, sim (invented data), several: "                 \
	"nvml,sim, or a capture of another host: capture:FILE"

#define SOURCE_NONE_HELP                                                                       \
	"where readings come from: auto, nvml, sim (invented data), none, several: "           \
	"nvml,sim, or a capture of another host: capture:FILE"

/* Help of --scenario. */
#define SCENARIO_HELP "scenario for the simulated source: see man gua-scenario"

enum { SOURCE_KINDS_MAX = 8 };

/* The kinds that a list of names stands for, each once, in its order; for "none" n is 0. */
struct source_list {
	const struct source_kind *kinds[SOURCE_KINDS_MAX];
	size_t n;
};

/* Reads a list of names. ERR_USAGE with the known names when a name is unknown; `or_none`:
 * "none" is allowed. */
int source_list_read(struct source_list *list, const char *names, bool or_none, struct err *e);
/* The names of the list, joined by commas. */
void source_list_text(const struct source_list *list, char *dst, size_t cap);

/* Checks --source and --scenario, and that a capture can be played. */
int source_check(const char *names, const char *scenario, bool or_none, struct err *e);

/* Whether a list has a source with simulated data, and whether it has one with measured data.
 * Names that are not in the table are ignored. */
bool source_is_invented(const char *names);
bool source_is_measured(const char *names);

/* Appends the names, each followed by a blank, for completion. */
void source_words(struct str *out);
void source_words_none(struct str *out);

/* Opens all members of a list as one source; the list's kinds must outlive it. Fails when none
 * of them opens, or when one fails with ERR_USAGE. */
int source_set_open(struct source **s, const struct source_list *list,
	const struct source_options *options, struct err *e);
