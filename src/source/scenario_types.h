/* The parts of a scenario: card, process, event, fault, seat. */
#ifndef GUA_SOURCE_SCENARIO_TYPES_H
#define GUA_SOURCE_SCENARIO_TYPES_H

#include "model/process.h"
#include "model/reading.h"

enum {
	SCENARIO_BYTES_MAX = 1000000,
	SCENARIO_CARDS_MAX = 64,
	SCENARIO_MIG_MAX = 7, /* instances of a card */
	SCENARIO_UNITS_MAX = SCENARIO_CARDS_MAX * (1 + SCENARIO_MIG_MAX),
	SCENARIO_PROCESSES_MAX = 4096,
	SCENARIO_EVENTS_MAX = 65536,
	SCENARIO_CALL_CAP = 64,
};

/* A physical card or a MIG instance. */
struct scenario_card {
	struct card_id id;
	int parent;		/* index of a MIG instance's card in cards[], or -1 */
	bool has_mig;		/* it has instances: MIG is on */
	int64_t reserved_bytes; /* by the driver, of id.mem_total_bytes */
	int64_t idle_mw, max_mw;
	size_t first_seat, n_seats; /* its part of seats[] */
	size_t n_load_seats;	    /* seats that ever use it, its instances' included */
};

/* One pid in the file; it may live several lives. */
struct scenario_process {
	char name[32];	    /* of the file */
	uint32_t pid;	    /* 0: not yet taken from `pid_env` */
	char pid_env[64];   /* environment variable with the pid, or "" */
	unsigned kind;	    /* process_kind bits */
	int64_t uid;	    /* or -1 */
	bool dead;	    /* the driver lists it, the system does not know it */
	bool has_started;   /* its first life began at started_us, else at its first event */
	int64_t started_us; /* scenario time, may be below 0 */
	char user[USER_CAP];
	char command[COMMAND_CAP];
	uint32_t first_seat; /* head of the chain through seats[].next, or SEAT_NONE */
};

#define SEAT_NONE UINT32_MAX

/* A process on a card, as far as some event puts it there. */
struct scenario_seat {
	uint32_t card, process;
	uint32_t next; /* another seat of the process, or SEAT_NONE */
	bool loads;    /* some event makes it use the card */
};

enum scenario_verb {
	EVENT_VERB_HOLD,      /* value: bytes, or -1 */
	EVENT_VERB_LOAD,      /* value: percent; on_us and off_us */
	EVENT_VERB_CARD_LOAD, /* the same, by nobody */
	EVENT_VERB_RELEASE,
	EVENT_VERB_EXIT,
	EVENT_VERB_START,
	EVENT_VERB_ORPHAN, /* value: bytes */
	EVENT_VERB_STATUS, /* value: enum card_status; code */
	EVENT_VERB_VANISH, /* value: 1 gone, 0 back */
	EVENT_VERB_ENERGY_RESET,
	EVENT_VERB_XID,	    /* value: number */
	EVENT_VERB_FAULT,   /* fault; value: 1 begins, 0 ends */
	EVENT_VERB_STEP,    /* value: microseconds, either sign */
	EVENT_VERB_SUSPEND, /* value: microseconds, 0: its end */
	EVENT_VERB_GARBAGE, /* value: 1 on, 0 off */
	EVENT_VERB_GROW,    /* value: entries more after each refusal; on_us: at most */
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

/* What is wrong with a call while it is on. */
struct scenario_fault {
	enum scenario_fault_kind kind;
	char call[SCENARIO_CALL_CAP]; /* name, or a beginning when `prefix` */
	bool prefix;
	int card;	  /* index into cards[], or -1: whatever card */
	int code;	  /* FAULT_FAIL */
	int64_t slow_us;  /* FAULT_SLOW */
	int64_t until_us; /* within a round of the timeline; INT64_MAX: for ever */
};

#endif
