/* What happens in a scenario: events in time, and the faults that they turn on and off. */
#ifndef GUA_DRIVER_SIM_SCENARIO_EVENT_H
#define GUA_DRIVER_SIM_SCENARIO_EVENT_H

#include <stdbool.h>
#include <stdint.h>

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
