/* Slurm's words for the cards of a job: lists of hosts, and generic resources (GRES). */
#pragma once

#include "base/base.h"

/* The cards of a job on one host. */
struct slurm_gres {
	struct str cards; /* numbers with commas between them; the caller finishes it */
	int share;	  /* as in struct lease */
};

/* Adds the cards of "gpu:a100:2(IDX:0,3)", "shard:8(0/5,5/5,3/5)" and so on, of several with
 * commas between them. What has no card adds none. */
void slurm_gres_add(struct slurm_gres *g, const char *text);

/* The place of a host in a list of hosts, "dgx-[40,48-50],login": from 0; -1: not there. */
long slurm_gres_host(const char *list, const char *host);
