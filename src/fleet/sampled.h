/* An audit of samples: readings of cards that another exporter showed at each scrape, judged by
 * gua's definitions. A sample stands for the time since the sample before it; a gap of more
 * than two scrape intervals is unobserved. */
#pragma once

#include "fleet/exporter.h"
#include "fleet/fleet_fill.h"
#include "fleet/probe.h"

/* A card, or a MIG instance of one. */
struct sampled_card {
	const char *uuid, *instance;
	const char *label;    /* its UUID in the exporter's first label for it; "" */
	const char *driver;   /* its version; NULL: not known */
	const char *target;   /* the host that was scraped, which may have another name */
	uint32_t place;	      /* in the audit before cards were sorted; IDMAP_NONE: not in it */
	uint32_t host, model; /* numbers of names; model IDMAP_NONE: not known */
	uint32_t parent;      /* of an instance; IDMAP_NONE */
	int index;
	bool odd;	     /* at some moment of the probe it had use or memory alone */
	bool left_out;	     /* the audit does not include it */
	bool leased;	     /* labels said whose it was */
	int64_t interval_ms; /* between two scrapes, and the votes for that */
	int64_t n_votes;
	int64_t first_ms, last_ms;		/* its samples; -1: none */
	int64_t divided_from_ms, divided_to_ms; /* samples of its instances; -1: none */
	double floor_bytes;			/* least used memory; NAN: not known */
	double changes;		 /* how often its state changed, over 2: see sampled_error() */
	int64_t ms[CARD_STATES]; /* of the window */
	/* Of the time line; [CARD_UNOBSERVED] is what was observed. NULL: none. */
	struct audit_column *columns;
	int64_t energy_mj[CARD_STATES], energy_known_ms[CARD_STATES];
	int64_t util_pct_ms; /* -1: not known */
	int64_t sm_active_pct_ms, sm_active_ms;
	/* Of hours, if the engine judges them: the energy counter at the end of the last one,
	 * and when that was; all energy; and sums over hours, weighted, of the products of two
	 * states' times, and of a state's time and the energy. */
	double counter_mj, hours_mj, products[CARD_STATES][CARD_STATES], mj[CARD_STATES];
	int64_t counter_ms;
};

/* Who has a card, as far as labels say. Texts are safe; "": none. */
struct sampled_holder {
	const char *namespace, *pod, *container, *job, *user;
	bool left_out; /* the audit is of other users */
};
enum { SAMPLED_COPIES = 7 };
enum { SAMPLED_NOBODY = 0 }; /* the number of a holder without any name */

/* The time of a holder on a card, as shares. */
struct sampled_part {
	uint32_t card, holder;
	double ms[CARD_STATES];
};

/* Series whose samples mean the same. */
struct sampled_series {
	uint32_t card, holder;
	const struct exporter_metric *metric;
	int64_t last_ms; /* of the last sample that was read */
	int64_t step_ms; /* the most common time between two, and */
	int64_t n_votes; /* how much more often than others */
};

struct sampled_raw {
	int64_t t_ms;
	double value;
	uint32_t series;
	uint32_t labels; /* their checksum: several with other labels may be one series */
};

/* Zero-initialise. */
struct sampled {
	struct fleet_fill *fill;
	struct fleet *f; /* the fill's, like the next two */
	const struct audit_question *q;
	struct audit *a;
	const struct exporter *x;
	const char
		*by; /* labels that tell series apart: the exporter's, and those of the fleet */
	struct rules rules;
	struct names hosts, card_names, models, holder_names, series_names;
	struct sampled_card *cards;
	struct sampled_holder *holders;
	struct sampled_part *parts;
	struct sampled_series *series;
	size_t n_cards, n_holders, n_parts, n_series;
	struct idmap part_map;
	struct sampled_raw *raws;
	size_t n_raws, raws_cap;
	size_t name_bytes;	 /* of series and their names, about */
	double *scrapes;	 /* of each host in the probe's short stretches, at most */
	size_t n_scrapes;	 /* hosts of which that is known */
	int64_t step_ms;	 /* the usual time between two scrapes */
	int64_t longest_ms;	 /* the longest one of a host */
	double main_floor_bytes; /* what the driver of most cards keeps for itself */
	int64_t asked_ms;	 /* where the window began that was asked for, if it is long */
	double n_at_once;	 /* series of the cards' utilisation at a time, about */
	bool has_numbers;	 /* metrics say whose a card is, instead of labels */
	/* Matchers that tell the copies of replicas apart; the last one is of all others. */
	const char *copies[SAMPLED_COPIES];
	size_t n_copies;
	struct arena texts;
};

/* Queries the window for the metrics of an exporter, and adds hosts and cards to the fill,
 * without those that are in it. */
int sampled_ask_run(
	struct sampled *s, struct fleet_fill *fill, const struct exporter *x, struct err *e);
/* Scrapes are counted in stretches of this length: in a longer one, pods come and go, each with
 * a series of its own. */
enum { SAMPLED_COUNTED_S = 1200, SAMPLED_STEPS = 18 };
extern const int64_t sampled_steps_ms[SAMPLED_STEPS];
/* The time between two scrapes of a host, and how often an engine judges its samples: no less
 * often than they come, and each one counts for one and a half of that. */
int64_t sampled_interval(const struct sampled *s, uint32_t host);
int64_t sampled_step(int64_t interval_ms);
/* Adds the users, when the cards are sorted; `way`: a number of these samples. */
int sampled_fill_users(struct sampled *s, size_t way, struct err *e);
void sampled_finish(struct sampled *s);

/* The longest time for which a sample can stand: two intervals, and some jitter. */
int64_t sampled_limit(int64_t interval_ms);
/* How far off, in samples, a sum of states can be in 95 of 100 cases, if states changed
 * 2 `changes` times from one sample to the next. Each change hides up to one interval; states
 * that are shorter than an interval are seen by chance, each sample independently, which is
 * binomial: its variance is half of the changes that one sees. The rest covers bursts that are
 * so rare that no sample met one. */
double sampled_error(double changes);

/* The steps. Only for sampled*.c. */
/* The number of a host and, without a port, the target that was scraped. */
int sampled_host(struct sampled *s, const struct labels *l, uint32_t *number,
	char target[HOST_KEY_CAP], struct err *e);
/* The number of the series with these labels, added if it is new. */
int sampled_series(struct sampled *s, const struct labels *l,
	const struct exporter_metric *metric, uint32_t *number, struct err *e);
/* Takes samples as they arrive; the context is a struct sampled. */
int sampled_take(void *context, const struct sample *sample, struct err *e);
/* The number of the series of a sample; `metric` NULL: its name says it. */
int sampled_number(struct sampled *s, const struct sample *sample,
	const struct exporter_metric *metric, uint32_t *number, struct err *e);
/* Keeps a sample, and notes when its card was in MIG mode. */
int sampled_keep(struct sampled *s, struct sampled_raw raw, struct err *e);
/* Sorts what was kept by card, time and series. */
void sampled_sort(struct sampled *s);
/* Adds time of a card in one state, evenly within a stretch, with these holders. */
struct sampled_stretch {
	uint32_t card;
	enum card_state state;
	int64_t from_ms, to_ms, ms;
	const uint32_t *holders;
	size_t n_holders;
};
int sampled_book(struct sampled *s, const struct sampled_stretch *t, struct err *e);
/* Judges long windows: the engine judges the samples, and counts states hour by hour. */
int sampled_hours(struct sampled *s, struct probe *p, struct err *e);
/* Sets the driver's own memory: the least that a card of the model shows, at most 1 GiB. */
int sampled_floors(struct sampled *s, struct err *e);
/* Leaves out the cards that were not asked for. */
void sampled_restrict(struct sampled *s);
/* Judges the samples that were taken, for the window of the audit. */
int sampled_judge(struct sampled *s, struct err *e);
/* Sets index, UUID and model of a card. */
void sampled_card_id(
	struct card_id *id, const struct sampled *s, const struct sampled_card *card);
int sampled_fill(struct sampled *s, struct err *e);
