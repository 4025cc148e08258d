/* A scenario: cards, processes and events in time, as described in a text file (the language is
 * in gua-scenario(5)). The simulated source and the tests' fake library play it in place of a
 * driver. This header is the parsed file, which never changes once it is made; play.h plays it.
 */
#pragma once

#include "base/names.h"
#include "model/process.h"
#include "model/reading.h"

enum { SCENARIO_CALL_CAP = 64 };

enum scenario_verb {
	EVENT_VERB_HOLD,      /* value: bytes, or -1 */
	EVENT_VERB_LOAD,      /* value: percent; on_us and off_us */
	EVENT_VERB_CARD_LOAD, /* the same, by no process */
	EVENT_VERB_RELEASE,
	EVENT_VERB_EXIT,
	EVENT_VERB_START,
	EVENT_VERB_ORPHAN, /* value: bytes */
	EVENT_VERB_STATUS, /* value: enum card_status; code */
	EVENT_VERB_VANISH, /* value: 1 gone, 0 back */
	EVENT_VERB_ENERGY_RESET,
	EVENT_VERB_XID,		 /* value: number */
	EVENT_VERB_FAULT,	 /* fault; value: 1 begins, 0 ends */
	EVENT_VERB_STEP,	 /* value: microseconds, either sign */
	EVENT_VERB_SUSPEND,	 /* value: microseconds, 0: its end */
	EVENT_VERB_GARBAGE,	 /* value: 1 on, 0 off */
	EVENT_VERB_GROW,	 /* value: entries more after each refusal; on_us: at most */
	EVENT_VERB_ZERO_USE,	 /* value: bits of calls, 0: end */
	EVENT_VERB_POWER_FACTOR, /* value: factor, 0: end */
};

/* Calls in which the use of processes is 0. */
enum {
	ZERO_USE_OLDER = 1, /* nvmlDeviceGetProcessUtilization */
	ZERO_USE_NEWER = 2, /* nvmlDeviceGetProcessesUtilizationInfo */
};

struct scenario_event {
	int64_t at_us;
	int64_t value;
	int64_t on_us, off_us; /* duty cycle; 0: steady */
	enum scenario_verb verb;
	int card;	/* index into cards[], or -1 */
	int process;	/* index into processes[], or -1 */
	int code;	/* driver's return code of a status */
	uint32_t seat;	/* of (card, process), or SEAT_NONE */
	uint32_t fault; /* index into faults[] */
	uint32_t order; /* place in the file */
	int line;	/* in the file */
};

enum scenario_fault_kind { FAULT_FAIL, FAULT_SLOW, FAULT_HANG };

/* A fault of a call, while it is on. */
struct scenario_fault {
	enum scenario_fault_kind kind;
	char call[SCENARIO_CALL_CAP]; /* name, or a beginning when `prefix` */
	bool prefix;
	int card;	  /* index into cards[], or -1: any card */
	int code;	  /* FAULT_FAIL */
	int64_t slow_us;  /* FAULT_SLOW */
	int64_t until_us; /* within a round of the timeline; INT64_MAX: for ever */
};

enum {
	SCENARIO_BYTES_MAX = 1000000,
	SCENARIO_CARDS_MAX = 64,
	SCENARIO_MIG_MAX = 7, /* instances of a card */
	SCENARIO_UNITS_MAX = SCENARIO_CARDS_MAX * (1 + SCENARIO_MIG_MAX),
	SCENARIO_PROCESSES_MAX = 4096,
	SCENARIO_EVENTS_MAX = 65536,
};

/* A physical card or a MIG instance. */
struct scenario_card {
	struct card_id id;
	int parent;		/* index of a MIG instance's card in cards[], or -1 */
	bool has_mig;		/* it has instances: MIG is on */
	int64_t reserved_bytes; /* by the driver, of id.mem_total_bytes */
	int64_t idle_mw, max_mw;
	int64_t held_mw; /* with processes that do not use it; -1: idle_mw */
	int64_t cool_us; /* after use it draws half of what the use added, for this long */
	bool gpm;	 /* it has GPM: use of cards and instances from counters */
	bool gpm_breaks; /* after GPM was read, the memory of its instances cannot be read */
	int64_t sm_active_pct;	    /* SM use by GPM, in percent of the utilisation */
	size_t first_seat, n_seats; /* its part of seats[] */
	size_t n_load_seats;	    /* seats that ever use it, its instances' included */
};

/* One pid in the file; it may have several lives. */
struct scenario_process {
	char name[32];	    /* of the file */
	uint32_t pid;	    /* 0: not yet taken from `pid_env`, or in a file */
	char pid_env[64];   /* environment variable that has the pid, or "" */
	char pid_file[64];  /* name of the file with the pid of each life, or "" */
	unsigned kind;	    /* process_kind bits */
	int64_t uid;	    /* or -1 */
	bool dead;	    /* the driver lists it, the system does not know it */
	bool has_started;   /* its first life began at started_us, else at its first event */
	int64_t started_us; /* scenario time, may be below 0 */
	char user[USER_CAP];
	char command[COMMAND_CAP];
	uint32_t first_seat; /* head of the chain through seats[].next, or SEAT_NONE */
};

/* A text about a process, besides its command. */
struct scenario_text {
	uint32_t process; /* index */
	enum process_text which;
	char text[COMMAND_CAP];
};

#define SEAT_NONE UINT32_MAX

/* A process on a card, if some event puts it there. */
struct scenario_seat {
	uint32_t card, process;
	uint32_t next; /* another seat of the process, or SEAT_NONE */
	bool loads;    /* some event makes it use the card */
};

/* Everything that one file says. */
struct scenario {
	char host[128];		    /* "" when not given */
	char driver[VERSION_CAP];   /* driver version */
	char nvml[VERSION_CAP];	    /* version of its library */
	int cuda;		    /* 1000 * major + 10 * minor */
	bool has_start;		    /* the scenario sets the wall clock of virtual clocks */
	int64_t start_wall_us;	    /* that wall clock at time 0 */
	int64_t samples_per_second; /* of the driver */
	int64_t second_us; /* length of a second; longer when the scenario is played with fewer
			      samples */
	bool boot_stamps;  /* samples are stamped since boot, not by the wall clock */
	bool accounting;   /* the driver keeps statistics of processes */
	int64_t ring_us;   /* how long the driver keeps samples */
	int64_t repeat_us; /* events repeat after this long; 0: once */
	int layout[3];	   /* bytes of an entry of the process lists v1, v2, v3 */
	struct scenario_card *cards; /* physical ones first, by index; then MIG instances */
	size_t n_cards, n_physical;
	struct scenario_process *processes; /* in the file's order */
	size_t n_processes;
	struct scenario_text *texts; /* by process */
	size_t n_texts;
	struct scenario_event *events; /* by time, and in the file's order at one time */
	size_t n_events, cap_events;
	struct scenario_fault *faults; /* faults that events turn on and off */
	size_t n_faults, cap_faults;
	struct scenario_seat *seats; /* by card; a card's are next to each other */
	size_t n_seats;
	struct idmap by_pid; /* indexes of processes whose pid is known */
	struct names names;  /* of processes, by their indexes, while the file is read */
	char (*missing)[64]; /* symbols that the fake library does not have */
	size_t n_missing;
};

/* Parses `len` bytes; `name` stands before the line number in errors. On success the caller
 * owns *out. Everything that can be wrong is found here: ERR_USAGE with "NAME:LINE: sentence".
 * Touches nothing but its arguments. */
int scenario_parse(
	struct scenario **out, const char *name, const char *bytes, size_t len, struct err *e);
/* The same for a file of at most 1 MB. */
int scenario_read(struct scenario **out, const char *path, struct err *e);
void scenario_free(struct scenario *s);

/* The variable with the directory of the files of `pid file NAME`. */
#define SCENARIO_PIDS "FAKENVML_PIDS"

/* Gives processes with `pid env NAME` their pids; `lookup` returns the text of a variable or
 * NULL, and may be NULL itself if there is no environment. Call it once, before playing. Fails
 * when a variable is missing, or when two processes would have the same pid at the same time. A
 * program that plays a scenario with `pid file NAME` calls play_read_pids(). */
int scenario_resolve(
	struct scenario *s, const char *(*lookup)(const char *name), struct err *e);
