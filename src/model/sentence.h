/* The sentences of a report, for people. Only model/report.h includes this file. */
#pragma once

/* Output must begin with this text when some of its data is simulated. */
#define SIMULATED_WARNING                                                                      \
	"SIMULATED DATA: invented by a simulated source, not measured on a GPU."
#define CAPTURED_WARNING                                                                       \
	"CAPTURED DATA: played from a capture of another host, not measured on this one."
/* The same on standard error, after the name of a host or store. */
#define SIMULATED_NOTE "simulated data, invented and not measured on a GPU"
#define CAPTURED_NOTE "captured data, not measured on this host"

/* The topic of a sentence. A format decides where each kind is shown; sentences of a kind
 * keep their order. */
enum sentence_kind {
	SENTENCE_SIMULATED,	 /* a warning: the data is invented */
	SENTENCE_SIMULATED_HOST, /* the same for one of several hosts */
	SENTENCE_IMPORTED,	 /* some of the data was imported from another tool */
	SENTENCE_COVERAGE,	 /* the window, and how much of it was observed */
	SENTENCE_CLIPPED,	 /* the window that was asked for is longer than the data */
	SENTENCE_RESTRICTED,	 /* what the report leaves out */
	SENTENCE_ABSENT,	 /* a host without a recorder */
	SENTENCE_OBSERVED,	 /* the total that the shares of the states refer to */
	SENTENCE_UNOBSERVED,	 /* continues "unobserved 5.0%" */
	SENTENCE_WASTE,
	SENTENCE_VERDICT, /* the 20 % rule */
	SENTENCE_COMPARE, /* about the other window, and cautions */
	SENTENCE_CARD,	  /* an event: a card that has no readings now */
	SENTENCE_HOLDERS, /* about the table of holders */
	SENTENCE_SPELLS,  /* how many spells are not in the table */
	SENTENCE_LEASES,  /* how many leases are not in the table */
	SENTENCE_LEASE,	  /* a lease that was never used, for a digest */
	SENTENCE_SPELL,	  /* about the table of the longest idle spells */
	SENTENCE_POLICY,  /* what gua enforce did */
	SENTENCE_BILL,	  /* about the bill */
	SENTENCE_ENERGY,  /* about the energy in it */
	SENTENCE_EVENT,	  /* how often something happened, and when last */
	SENTENCE_FLEET,	  /* the foot of a report over a fleet or over stores */
	SENTENCE_RULES,	  /* the rules that were in force, and how fine time is kept */
};

struct sentence {
	enum sentence_kind kind;
	const char *label; /* its topic in one word, constant; "": the same as the sentence
			      before; NULL: none */
	const char *text;
};
