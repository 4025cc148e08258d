/* What the simulated source finds about itself. */
#include "driver/diagnosis.h"
#include "driver/source.h"

void sim_diagnose(const struct diagnosis *d, struct findings *f)
{
	if (!d->source)
		finding_advise(finding_add(f, FINDING_PROBLEM, "simulation", "%s", d->why.text),
			"its scenario decides when it fails: see gua-scenario(5)");
	else
		finding_add(f, FINDING_OK, "simulation",
			"a simulated driver with %zu card%s: its data is invented",
			d->source->n_cards, d->source->n_cards == 1 ? "" : "s");
}
