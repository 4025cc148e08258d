/* The parts of a scenario: card, process, seat; events and faults are in scenario_event.h. */
#ifndef GUA_DRIVER_SIM_SCENARIO_TYPES_H
#define GUA_DRIVER_SIM_SCENARIO_TYPES_H

#include "model/process.h"
#include "model/reading.h"
#include "driver/sim/scenario_event.h"

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
	int64_t held_mw;   /* with processes that do not use it; -1: idle_mw */
	int64_t cool_us;   /* after use it draws half of what the use added, for this long */
	bool gpm;	   /* it has GPM: use of cards and instances from counters */
	bool gpm_breaks;   /* after which the memory of its instances cannot be read */
	int sm_active_pct; /* SM use by GPM, of the utilisation */
	size_t first_seat, n_seats; /* its part of seats[] */
	size_t n_load_seats;	    /* seats that ever use it, its instances' included */
};

/* One pid in the file; it may live several lives. */
struct scenario_process {
	char name[32];	    /* of the file */
	uint32_t pid;	    /* 0: not yet taken from `pid_env`, or in a file */
	char pid_env[64];   /* environment variable with the pid, or "" */
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

/* A text about a process beside its command. */
struct scenario_text {
	uint32_t process; /* index */
	enum process_text which;
	char text[COMMAND_CAP];
};

#define SEAT_NONE UINT32_MAX

/* A process on a card, as far as some event puts it there. */
struct scenario_seat {
	uint32_t card, process;
	uint32_t next; /* another seat of the process, or SEAT_NONE */
	bool loads;    /* some event makes it use the card */
};

#endif
